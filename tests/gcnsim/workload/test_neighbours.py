"""Mini-batches really drawn: what they hold, and that draws are fair."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.workload.mini_batches import layer_batch, neighbour_batch, subgraph_batch, walked_nodes


@pytest.fixture(scope="module")
def graph() -> Graph:
    return block_model(BlockModel(nodes=2000, edges=20_000), 3, "drawn")


@pytest.fixture(scope="module")
def batch(graph: Graph) -> IntArray:
    return np.sort(stream(0, "batch").choice(graph.nodes, size=100, replace=False))


def drawn(graph: Graph, nodes: IntArray, amount: int | float, generator: np.random.Generator) -> tuple[IntArray, int]:
    """Neighbours that each of `nodes` draws for one layer, and how many entries were looked at."""
    found = neighbour_batch(graph, nodes, (amount,), generator, keep=True)
    return graph.indices[found.places[0]].astype(np.int64), found.looked


def rows_of(graph: Graph, nodes: IntArray) -> list[set[int]]:
    return [set(graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()) for node in nodes]


@pytest.mark.parametrize("amount", [1, 3, 32, 33, 10_000])
def test_neighbours_are_distinct_and_as_many_as_asked_or_all(graph: Graph, batch: IntArray, amount: int) -> None:
    near = rows_of(graph, batch)
    columns, looked = drawn(graph, batch, amount, stream(0, "draw"))
    assert columns.size == looked == sum(min(len(row), amount) for row in near)
    for node, row in zip(batch, near, strict=True):
        alone, _ = drawn(graph, np.array([node]), amount, stream(0, "draw"))
        assert len(set(alone.tolist())) == alone.size == min(len(row), amount)
        assert set(alone.tolist()) <= row


@pytest.mark.parametrize("amount", [5, 40])
def test_every_neighbour_is_drawn_as_often_as_the_others(amount: int) -> None:
    ring = 60
    ids = np.arange(1, ring + 1, dtype=np.int32)
    star = Graph(np.r_[0, ring, ring + np.arange(1, ring + 1)], np.r_[ids, np.zeros(ring, np.int32)], "star")
    hub = np.array([0])
    draws = [drawn(star, hub, amount, stream(0, "fair", k))[0] for k in range(3000)]
    share = np.bincount(np.concatenate(draws), minlength=ring + 1)[1:] / 3000
    assert share == pytest.approx(np.full(ring, amount / ring), abs=0.05)


def test_a_share_draws_each_entry_by_chance(graph: Graph, batch: IntArray) -> None:
    sizes = [drawn(graph, batch, 0.25, stream(0, "share", k)) for k in range(200)]
    entries = int(graph.degrees[batch].sum())
    assert {looked for _, looked in sizes} == {entries}
    assert np.mean([columns.size for columns, _ in sizes]) == pytest.approx(0.25 * entries, rel=0.02)


def test_levels_hold_the_next_level_and_grow_from_the_batch(graph: Graph, batch: IntArray) -> None:
    found = neighbour_batch(graph, batch, (3, 2), stream(0, "levels"))
    first, second, targets = found.levels
    assert targets.tolist() == batch.tolist()
    assert set(targets) < set(second) < set(first)
    assert found.entries == (
        sum(min(len(row), 3) for row in rows_of(graph, second)),
        sum(min(len(row), 2) for row in rows_of(graph, batch)),
    )
    assert set(second) <= set(batch).union(*rows_of(graph, batch))


def test_a_fanout_above_all_degrees_is_the_whole_neighbourhood(graph: Graph, batch: IntArray) -> None:
    found = neighbour_batch(graph, batch, (10_000,), stream(0, "all"))
    assert set(found.levels[0]) == set(batch).union(*rows_of(graph, batch))
    assert found.entries[0] == graph.degrees[batch].sum()


def test_layers_draw_so_many_nodes_among_neighbours(graph: Graph, batch: IntArray) -> None:
    found = layer_batch(graph, batch, (300, 50), stream(0, "layers"))
    near = set().union(*rows_of(graph, batch))
    drawn = set(found.levels[1]) - set(batch)
    assert drawn <= near
    assert found.levels[1].size <= 150
    # All entries between the two levels, of nodes that were drawn.
    assert found.entries[1] <= sum(len(row & set(found.levels[1])) for row in rows_of(graph, batch))
    most = layer_batch(graph, batch, (10_000,), stream(0, "layers"))
    assert set(most.levels[0]) == near | set(batch)


def test_a_subgraph_has_the_entries_between_its_nodes(graph: Graph, batch: IntArray) -> None:
    found = subgraph_batch(graph, batch, 3)
    inside = sum(len(row & set(batch.tolist())) for row in rows_of(graph, batch))
    assert found.entries == (inside,) * 3
    assert all(level.tolist() == batch.tolist() for level in found.levels)
    assert found.looked == graph.degrees[batch].sum()


def test_walks_follow_entries(graph: Graph) -> None:
    nodes = walked_nodes(graph, 300, stream(0, "walks"))
    assert 150 < nodes.size <= 300
    assert (np.diff(nodes) > 0).all()
    assert walked_nodes(graph, 1, stream(0, "walks")).size <= 3


def test_the_same_stream_gives_the_same_batch(graph: Graph, batch: IntArray) -> None:
    one, two = (neighbour_batch(graph, batch, (5, 5), stream(0, "same")) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one.levels, two.levels, strict=True))


def test_an_empty_batch_reaches_nothing(graph: Graph) -> None:
    none = np.zeros(0, np.int64)
    for found in (
        neighbour_batch(graph, none, (2, 0.5), stream(0, "none")),
        layer_batch(graph, none, (5, 5), stream(0, "none")),
        subgraph_batch(graph, none, 2),
    ):
        assert [level.size for level in found.levels] == [0, 0, 0]
        assert found.entries == (0, 0)
