"""Samplers, their draws, and the nodes that they reach."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Int32Array
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.parts import Part
from gcnsim.workload import samplers
from gcnsim.workload import samplers as samplers_module
from gcnsim.workload.draws import Draws, draw, inclusion
from gcnsim.workload.mini_batches import layer_batch, neighbour_batch
from gcnsim.workload.reach import DegreeLaw, Groups, counted, expected_layers, expected_neighbours, lognormal_law
from gcnsim.workload.samplers import VarianceReduction, sampler
from tests.sampled import draw_edges, edge_probabilities, edge_weights, law_of


@pytest.mark.parametrize("name", ["vr"])
@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.5, float("nan")])
def test_rates_outside_the_range_are_refused(parts: tuple[Part, ...], name: str, epsilon: float) -> None:
    with pytest.raises(ScenarioError, match=r"epsilon: .* is outside \(0, 1\]"):
        sampler(name)(parts[0]).probabilities(epsilon)


def test_full_and_uniform_are_constant(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    assert np.array_equal(edge_probabilities("full", part, 0.1), np.ones(part.entries, np.float32))
    assert np.array_equal(edge_probabilities("uniform", part, 0.1), np.full(part.entries, 0.1, np.float32))


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 0.99])
def test_vr_rows_use_up_their_budget(parts: tuple[Part, ...], epsilon: float) -> None:
    for part in parts:
        p = VarianceReduction(part).probabilities(epsilon).p
        degree = np.diff(part.indptr)
        rows = np.repeat(np.arange(part.inner_nodes), degree)
        budget = np.bincount(rows, weights=p, minlength=part.inner_nodes)
        assert budget == pytest.approx(epsilon * degree, rel=1e-5)
        assert p.dtype == np.float32
        assert 0.0 < p.min() <= p.max() <= 1.0


def test_vr_prefers_inner_neighbours_by_the_root_of_their_factor(parts: tuple[Part, ...]) -> None:
    part = parts[1]
    part = replace(part, inner_degree=np.full(part.inner_nodes, 4), boundary_degree=np.full(part.boundary_nodes, 4))
    p = VarianceReduction(part).probabilities(0.1).p
    row = next(
        slice(a, b)
        for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)
        if 0 < np.count_nonzero(part.columns[a:b] < part.inner_nodes) < b - a
    )
    inner = part.columns[row] < part.inner_nodes
    assert p[row][inner].min() / p[row][~inner].max() == pytest.approx(np.sqrt(1.1), rel=1e-5)


def test_vr_is_proportional_to_weight_and_norm(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    norms = np.random.default_rng(2).uniform(1.0, 2.0, part.inner_nodes + part.boundary_nodes).astype(np.float32)
    answer = VarianceReduction(part, norms).probabilities(0.01)
    q = edge_weights(part) * norms[part.columns] * np.where(part.columns < part.inner_nodes, np.sqrt(1.1), 1.0)
    rows = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
    total = np.bincount(rows, weights=q, minlength=part.inner_nodes)[rows]
    wanted = 0.01 * np.diff(part.indptr)[rows] * q / total
    assert answer.floored == 0
    assert answer.p == pytest.approx(wanted, rel=1e-5)


def test_floored_entries_are_counted(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    norms = np.ones(part.inner_nodes + part.boundary_nodes, np.float32)
    norms[part.inner_nodes :] = 0.0
    rows = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
    cross = part.columns >= part.inner_nodes
    blank = ~np.isin(np.arange(part.inner_nodes), rows[~cross])
    answer = VarianceReduction(part, norms).probabilities(0.1)
    assert answer.floored == np.count_nonzero(cross & ~blank[rows])
    assert answer.p[cross].min() == pytest.approx(0.01)


def test_one_preparation_answers_every_rate_the_same(parts: tuple[Part, ...]) -> None:
    rule = VarianceReduction(parts[2])
    first = rule.probabilities(0.1).p
    rule.probabilities(0.5)
    assert np.array_equal(first, rule.probabilities(0.1).p)
    assert np.array_equal(first, edge_probabilities("vr", parts[2], 0.1))


def test_chunks_do_not_change_the_answer(parts: tuple[Part, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = VarianceReduction(parts[0]).probabilities(0.3).p
    monkeypatch.setattr(samplers_module, "BLOCK", 16)
    monkeypatch.setattr(samplers, "BLOCK", 16)
    assert np.array_equal(VarianceReduction(parts[0]).probabilities(0.3).p, whole)


def test_rows_without_neighbours_are_left_alone() -> None:
    part = Part(
        rank=0,
        parts=2,
        inner=np.arange(4),
        boundary=np.array([4]),
        boundary_ptr=np.array([0, 0, 1]),
        indptr=np.array([0, 0, 2, 2, 3]),
        columns=np.array([3, 4, 1], np.int32),
        inner_degree=np.array([0, 2, 0, 1]),
        boundary_degree=np.array([1]),
    )
    p = VarianceReduction(part).probabilities(0.5).p
    assert p.size == 3
    assert p[:2].sum() == pytest.approx(1.0)
    assert p[2] == pytest.approx(0.5)


def test_no_rows_are_sorted_rows() -> None:
    rows = samplers.sort_rows(np.array([0]), np.empty(0, np.float32))
    assert (rows.counts.size, rows.values.size, rows.sums.size) == (0, 0, 0)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_bad_norms_are_refused(parts: tuple[Part, ...], bad: float) -> None:
    norms = np.ones(parts[0].inner_nodes + parts[0].boundary_nodes, np.float32)
    norms[3] = bad
    with pytest.raises(ValueError, match="finite and not negative"):
        VarianceReduction(parts[0], norms)
    with pytest.raises(ValueError, match="local ids"):
        VarianceReduction(parts[0], norms[1:])


def two_boundary_nodes() -> Part:
    """Inner 0, 1, 2; boundary 0 has three cross edges, boundary 1 has one."""
    return Part(
        rank=0,
        parts=2,
        inner=np.arange(3),
        boundary=np.array([3, 4]),
        boundary_ptr=np.array([0, 0, 2]),
        indptr=np.array([0, 2, 5, 6]),
        columns=np.array([1, 3, 0, 3, 4, 3], np.int32),
        inner_degree=np.array([2, 3, 1]),
        boundary_degree=np.array([3, 1]),
    )


def test_inclusion_equals_enumeration_of_all_graphs() -> None:
    part = two_boundary_nodes()
    p = np.array([0.5, 0.1, 0.7, 0.25, 0.3, 0.9], np.float32)
    total = np.zeros(2)
    for kept in itertools.product([False, True], repeat=6):
        chance = float(np.prod(np.where(kept, p.astype(float), 1 - p.astype(float))))
        columns = part.columns[np.array(kept)]
        total += chance * np.array([(columns == 3).any(), (columns == 4).any()])
    assert inclusion(part, p) == pytest.approx(total, rel=1e-12)


def test_inclusion_is_one_where_an_edge_is_certain() -> None:
    part = two_boundary_nodes()
    p = np.array([0.5, 1.0, 0.7, 0.25, 0.3, 0.9], np.float32)
    assert inclusion(part, p)[0] == 1.0
    assert inclusion(part, np.ones(6, np.float32)).tolist() == [1.0, 1.0]


def test_draw_and_draw_edges_are_the_same_graph(parts: tuple[Part, ...]) -> None:
    for part in parts:
        p = VarianceReduction(part).probabilities(0.2).p
        needed, inner, boundary = draw(part, p, stream(4, "trace", part.rank, 0))
        edges = draw_edges(part, p, stream(4, "trace", part.rank, 0))
        columns = part.columns[edges]
        assert inner == np.count_nonzero(columns < part.inner_nodes)
        assert boundary == np.count_nonzero(columns >= part.inner_nodes)
        wanted = np.unique(columns[columns >= part.inner_nodes]) - part.inner_nodes
        assert np.array_equal(np.flatnonzero(needed), wanted)


def test_mean_rows_drawn_equal_the_sum_of_inclusion(parts: tuple[Part, ...]) -> None:
    part, draws = parts[1], 400
    p = VarianceReduction(part).probabilities(0.1).p
    chance = inclusion(part, p)
    rows = np.array([draw(part, p, stream(7, t))[0].sum() for t in range(draws)])
    # Draws of different boundary nodes are independent: the variance of a draw is the sum of p (1 - p).
    error = np.sqrt((chance * (1 - chance)).sum() / draws)
    assert abs(rows.mean() - chance.sum()) < 4 * error


def test_mean_edges_drawn_equal_the_budget(parts: tuple[Part, ...]) -> None:
    part, draws = parts[2], 400
    p = VarianceReduction(part).probabilities(0.3).p
    kept = np.array([sum(draw(part, p, stream(8, t))[1:]) for t in range(draws)])
    error = np.sqrt((p * (1.0 - p)).sum() / draws)
    assert abs(kept.mean() - 0.3 * part.entries) < 4 * error


@pytest.mark.parametrize("before", [0, 1, 2, 7])
@pytest.mark.parametrize("entries", [0, 1, 2, 3, (1 << 16) + 1, 150_001])
def test_many_draws_use_the_uniforms_of_the_generator_in_their_order(before: int, entries: int) -> None:
    """Also from the middle of a step of it, over several pieces, and what they leave to whoever draws next."""
    draw_p = stream(5, "p")
    part = one_row(draw_p.integers(0, 40, entries).astype(np.int32), inner=10, boundary=30)
    steps = draw_p.integers(0, 1 << 24, entries, endpoint=True)
    p = np.where(draw_p.random(entries) < 0.5, steps * 2.0**-24, draw_p.random(entries) ** 8).astype(np.float32)
    p[: entries // 5] = np.arange(entries // 5) % 2
    ready = Draws(part, p)
    for t in range(2):
        plain, generator, other = (stream(6, t) for _ in range(3))
        for item in (plain, generator, other):
            item.random(before, dtype=np.float32)
        mask = plain.random(entries, dtype=np.float32) < p
        assert np.array_equal(ready.edges(other), mask)
        kept = part.columns[mask]
        needed, inner, boundary = ready.draw(generator)
        assert np.array_equal(np.flatnonzero(needed), np.unique(kept[kept >= 10]) - 10)
        assert inner == np.count_nonzero(kept < 10)
        assert boundary == np.count_nonzero(kept >= 10)
        assert generator.random(3, dtype=np.float32).tolist() == plain.random(3, dtype=np.float32).tolist()


def one_row(columns: Int32Array, inner: int, boundary: int) -> Part:
    """A part whose entries are all in its first row."""
    return Part(
        rank=0,
        parts=2,
        inner=np.arange(inner),
        boundary=np.arange(inner, inner + boundary),
        boundary_ptr=np.array([0, 0, boundary]),
        indptr=np.array([0, *[columns.size] * inner]),
        columns=columns,
        inner_degree=np.zeros(inner, np.int64),
        boundary_degree=np.zeros(boundary, np.int64),
    )


DRAWN = 10
CASES = [(1000, (2, 2)), (1000, (10, 10)), (200, (25, 10)), (1000, (0.1, 0.1)), (500, (5, 5, 5))]


@pytest.fixture(scope="module")
def wide_graph() -> Graph:
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
def test_rows_of_a_generated_graph_within_3_percent(
    wide_graph: Graph, batch: int, fanout: tuple[int | float, ...]
) -> None:
    assert expected(law_of(wide_graph.degrees), batch, fanout) == pytest.approx(
        really(wide_graph, batch, fanout), rel=0.03
    )


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
@pytest.mark.parametrize("name", ["amazon_cs", "tolokers"])
@pytest.mark.skipif("GCNSIM_DATA" not in os.environ, reason="GCNSIM_DATA names no folder of graphs")
def test_rows_of_real_graphs_within_6_percent(name: str, batch: int, fanout: tuple[int | float, ...]) -> None:
    graph = load_graph(str(Path(os.environ["GCNSIM_DATA"]) / f"{name}.npz"))
    assert expected(law_of(graph.degrees), batch, fanout) == pytest.approx(really(graph, batch, fanout), rel=0.06)


def test_entries_are_those_that_nodes_draw(wide_graph: Graph) -> None:
    law = law_of(wide_graph.degrees)
    found = expected_neighbours(law, np.array([0.05]), (3, 2))
    assert found.entries[1] == pytest.approx(1000 * np.minimum(wide_graph.degrees, 2).mean())
    assert found.looked == pytest.approx(sum(found.entries))
    shared = expected_neighbours(law, np.array([0.05]), (0.5,))
    assert shared.looked == pytest.approx(2 * shared.entries[0]) == pytest.approx(1000 * law.mean)


def test_layers_of_a_generated_graph(wide_graph: Graph) -> None:
    law = law_of(wide_graph.degrees)
    found = expected_layers(law, 1000 / wide_graph.nodes, (400, 400))
    rows = [float(counted(law, Groups.one(), chance)[0]) for chance in found.chance]
    sizes = []
    for k in range(DRAWN):
        nodes = stream(0, "batch", k).choice(wide_graph.nodes, size=1000, replace=False)
        batch = layer_batch(wide_graph, nodes, (400, 400), stream(0, "draw", k))
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
