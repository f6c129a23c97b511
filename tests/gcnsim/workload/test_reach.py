"""Mini-batches in expectation, beside really drawn ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.workload.mini_batches import layer_batch, neighbour_batch
from gcnsim.workload.reach import DegreeLaw, Groups, counted, expected_layers, expected_neighbours, lognormal_law
from tests.sampled import law_of

DRAWN = 10
CASES = [(1000, (2, 2)), (1000, (10, 10)), (200, (25, 10)), (1000, (0.1, 0.1)), (500, (5, 5, 5))]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return block_model(BlockModel(nodes=20_000, edges=200_000), 1, "generated")


def really(graph: Graph, batch: int, fanout: Sequence[int | float]) -> FloatArray:
    """Mean rows per level of drawn batches."""
    sizes = []
    for k in range(DRAWN):
        nodes = stream(0, "batch", k).choice(graph.nodes, size=batch, replace=False)
        found = neighbour_batch(graph, nodes, fanout, stream(0, "draw", k))
        sizes.append([level.size for level in found.levels])
    return np.asarray(np.mean(sizes, axis=0), dtype=np.float64)


def expected(law: DegreeLaw, batch: int, fanout: Sequence[int | float]) -> list[float]:
    found = expected_neighbours(law, np.array([batch / law.nodes]), fanout)
    return [float(counted(law, Groups.one(), chance)[0]) for chance in found.chance]


@pytest.mark.parametrize(("batch", "fanout"), CASES)
def test_rows_of_a_generated_graph_within_3_percent(graph: Graph, batch: int, fanout: tuple[int | float, ...]) -> None:
    assert expected(law_of(graph.degrees), batch, fanout) == pytest.approx(really(graph, batch, fanout), rel=0.03)


@pytest.mark.parametrize(("batch", "fanout"), [*CASES, (300, (25, 25, 25))])
def test_rows_of_a_directed_graph_within_7_percent(batch: int, fanout: tuple[int | float, ...]) -> None:
    """Of nodes that are pointed to, and point, each for itself lognormally often."""
    generator, nodes, entries = stream(0, "directed"), 20_000, 140_000
    ends = [generator.lognormal(0.0, 1.0, nodes) for _ in range(2)]
    into, out = (generator.choice(nodes, size=entries, p=end / end.sum()) for end in ends)
    pairs = np.unique(np.stack([into, out]), axis=1)
    indptr = np.searchsorted(pairs[0], np.arange(nodes + 1))
    graph = Graph(indptr.astype(np.int64), pairs[1].astype(np.int32), "directed", None, None)
    pointing = np.bincount(pairs[1], minlength=nodes)
    law = replace(law_of(pointing), directed=True)
    assert expected(law, batch, fanout) == pytest.approx(really(graph, batch, fanout), rel=0.07)


@pytest.mark.parametrize(("batch", "fanout"), CASES[:2])
@pytest.mark.parametrize("name", ["acl_papers", "amazon_cs", "coauthor_phy", "tolokers"])
@pytest.mark.skipif("GCNSIM_DATA" not in os.environ, reason="GCNSIM_DATA names no folder of graphs")
def test_rows_of_real_graphs_within_6_percent(name: str, batch: int, fanout: tuple[int | float, ...]) -> None:
    graph = load_graph(str(Path(os.environ["GCNSIM_DATA"]) / f"{name}.npz"))
    assert expected(law_of(graph.degrees), batch, fanout) == pytest.approx(really(graph, batch, fanout), rel=0.06)


def test_entries_are_those_that_nodes_draw(graph: Graph) -> None:
    law = law_of(graph.degrees)
    found = expected_neighbours(law, np.array([0.05]), (3, 2))
    assert found.entries[1] == pytest.approx(1000 * np.minimum(graph.degrees, 2).mean())
    assert found.looked == pytest.approx(sum(found.entries))
    shared = expected_neighbours(law, np.array([0.05]), (0.5,))
    assert shared.looked == pytest.approx(2 * shared.entries[0]) == pytest.approx(1000 * law.mean)


def test_layers_of_a_generated_graph(graph: Graph) -> None:
    law = law_of(graph.degrees)
    found = expected_layers(law, 1000 / graph.nodes, (400, 400))
    rows = [float(counted(law, Groups.one(), chance)[0]) for chance in found.chance]
    sizes = []
    for k in range(DRAWN):
        nodes = stream(0, "batch", k).choice(graph.nodes, size=1000, replace=False)
        batch = layer_batch(graph, nodes, (400, 400), stream(0, "draw", k))
        sizes.append([level.size for level in batch.levels])
    assert rows == pytest.approx(np.mean(sizes, axis=0), rel=0.03)


def test_a_lognormal_law_keeps_its_mean_and_spread() -> None:
    law = lognormal_law(1e6, 20.0, 1.2)
    assert law.mean == pytest.approx(20.0)
    assert law.share.sum() == pytest.approx(1.0)
    middle = float(law.share @ np.log(law.degree))
    assert np.sqrt(law.share @ (np.log(law.degree) - middle) ** 2) == pytest.approx(1.2, rel=0.02)
    even = lognormal_law(1e6, 20.0, 1e-9)
    assert even.degree == pytest.approx(np.full(even.degree.size, 20.0))


def test_wider_degrees_reach_fewer_nodes() -> None:
    rows = [expected(lognormal_law(1e5, 20.0, spread), 2000, (10, 10))[0] for spread in (0.5, 1.0, 1.5)]
    assert rows == sorted(rows, reverse=True)


def test_parts_keep_neighbourhoods_near() -> None:
    law = lognormal_law(1e5, 20.0, 1.0)

    def rows(crossing: float) -> FloatArray:
        groups = Groups.own_and_others(4, crossing)
        found = expected_neighbours(law, np.array([0.04, 0.0]), (5, 5), groups)
        return counted(law, groups, found.chance[0])

    near, far = rows(0.1), rows(0.75)
    assert near[1] < 0.3 * far[1]
    assert near.sum() < far.sum()
    assert far[1] / far.sum() == pytest.approx(0.72, abs=0.03), "as many entries leave as parts at random have"
    assert Groups.own_and_others(1, 0.0).size.tolist() == [1.0]


def test_everything_is_reached_at_most_once() -> None:
    law = lognormal_law(1000.0, 50.0, 1.0)
    assert expected(law, 1000, (10, 10))[0] <= 1000.0 + 1e-6
    assert expected(law, 500, (1.0, 1.0, 1.0))[0] <= 1000.0 + 1e-6
