"""Samples of nodes, neighbours and blocks, and their boundary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.workload import BoundaryRow, boundary_at, dataset, datasets, growth_between, left_open
from gcnsim.workload.cuts import leave_one_out
from gcnsim.workload.draws import checked_share, draw_nodes
from gcnsim.workload.mini_batches import layer_batch, neighbour_batch, subgraph_batch, walked_nodes
from gcnsim.workload.staleness import CYCLE, BlockRule, is_due, periods, sent_blocks


@pytest.mark.parametrize(("nodes", "rate"), [(1, 0.1), (7, 0.1), (95, 0.31), (1000, 0.05), (40, 0.5)])
def test_each_node_is_in_with_the_rate_and_their_number_hardly_varies(nodes: int, rate: float) -> None:
    drawn = [draw_nodes(nodes, rate, stream(3, "test", t)) for t in range(4000)]
    counts = np.array([places.size for places in drawn])
    assert set(counts.tolist()) <= {int(rate * nodes), int(rate * nodes) + 1}
    often = np.bincount(np.concatenate(drawn), minlength=nodes) / 4000
    assert np.abs(often - rate).max() < 5 * np.sqrt(rate * (1 - rate) / 4000)


def test_places_are_ascending_and_distinct() -> None:
    places = draw_nodes(500, 0.4, stream(0, "test"))
    assert places.size == 200
    assert (np.diff(places) > 0).all()
    assert places.min() >= 0
    assert places.max() < 500


def test_the_ends() -> None:
    assert draw_nodes(0, 0.5, stream(0, "test")).tolist() == []
    assert draw_nodes(9, 0.0, stream(0, "test")).tolist() == []
    assert draw_nodes(9, 1.0, stream(0, "test")).tolist() == list(range(9))
    assert (checked_share(0.0), checked_share(1.0)) == (0.0, 1.0)
    for bad in (-0.01, 1.01, float("nan")):
        with pytest.raises(ScenarioError, match=r"is outside \[0, 1\]"):
            checked_share(bad)


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
    assert 200 < nodes.size <= 300, "100 roots of two steps each"
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


@pytest.mark.parametrize("threshold", [0, 1, 2, 5])
def test_the_fixed_test_has_a_period_of_one_more_than_its_threshold(threshold: int) -> None:
    sent = sent_blocks(BlockRule("fixed", float(threshold)), 2, 3)
    assert sent.shape == (threshold + 1, 2, 3)
    assert sent[0].all()
    assert not sent[1:].any()


def test_what_readers_find_is_sent_an_iteration_later() -> None:
    """The paper's example: a block of epoch 7 is found at 9 with a threshold of 1, and sent at 10."""
    assert sent_blocks(BlockRule("adaptive", 1.0), 1, 1)[:, 0, 0].tolist() == [True, False, False]
    assert sent_blocks(BlockRule("adaptive", 1.0, delayed=False), 1, 1)[:, 0, 0].tolist() == [True, False]


def test_the_gap_test_waits_until_rows_have_moved() -> None:
    sent = sent_blocks(BlockRule("gap", 0.03, drift=0.01), 3, 8, seed=4)
    shares = sent.mean(axis=0)
    assert sent[0].all()
    assert 0.2 < shares.mean() < 0.45
    assert np.unique(shares).size > 1, "blocks drift unlike"
    assert sent_blocks(BlockRule("gap", 0.0, drift=0.01), 3, 8).all()
    assert not sent_blocks(BlockRule("gap", 0.5, drift=0.0), 3, 8).any()


def test_the_same_seed_gives_the_same_flags() -> None:
    rule = BlockRule("gap", 0.03)
    assert np.array_equal(sent_blocks(rule, 2, 4, seed=1), sent_blocks(rule, 2, 4, seed=1))
    assert not np.array_equal(sent_blocks(rule, 4, 8, seed=1), sent_blocks(rule, 4, 8, seed=2))


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.2, 0.5, 1.0, 20.0])
def test_blocks_of_unlike_periods_are_sent_as_often_as_these_say(threshold: float) -> None:
    rule = BlockRule("gap", threshold, drift=0.01)
    sent = sent_blocks(rule, 4, 6)
    assert sent.mean(axis=0) == pytest.approx(1.0 / periods(rule, 4, 6, 0), rel=1e-3)
    assert ((sent >= 0.0) & (sent <= 1.0)).all()
    assert sent.shape[0] <= CYCLE


def test_broadcasts_are_spread_evenly() -> None:
    sent = sent_blocks(BlockRule("gap", 0.05, drift=0.01), 2, 4)
    for block in sent.reshape(sent.shape[0], -1).T:
        falls = np.flatnonzero(block)
        gaps = np.diff(np.append(falls, falls[0] + sent.shape[0]))
        assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("threshold", [3.0, 1000.0])
@pytest.mark.parametrize("warmup", [0.001, 50 / 300, 0.5, 0.99])
def test_the_warm_up_has_its_share(threshold: float, warmup: float) -> None:
    """50 of 300 epochs with a threshold of 10: 1/6 and 5/6 of 1/11."""
    sent = sent_blocks(BlockRule("fixed", threshold, warmup=warmup), 1, 2)
    assert sent.mean() == pytest.approx(warmup + (1.0 - warmup) / (threshold + 1.0), rel=1e-3)


def test_a_training_that_only_warms_up_sends_everything() -> None:
    assert sent_blocks(BlockRule("fixed", 3.0, warmup=1.0), 2, 2).all()


def test_cycles_are_short_enough_to_simulate() -> None:
    assert sent_blocks(BlockRule("gap", 0.05, drift=0.004), 4, 8).shape[0] <= 60


@pytest.mark.parametrize("test", ["fixed", "adaptive"])
@pytest.mark.parametrize("delayed", [True, False])
@pytest.mark.parametrize("threshold", [1.0, 1.5, 4.0])
def test_training_sends_what_the_simulation_sends(test: str, delayed: bool, threshold: float) -> None:
    """A block followed from iteration to iteration by the rule that training asks, and a cycle of the simulator's."""
    rule = BlockRule(test, threshold, delayed=delayed)
    sent, last = [], 0
    for t in range(24):
        sent.append(t == 0 or is_due(rule, t - last, 0.0))
        last = t if sent[-1] else last
    cycle = sent_blocks(rule, 1, 1)[:, 0, 0]
    assert sent == [bool(cycle[t % cycle.size]) for t in range(24)]


def test_the_gap_test_asks_how_far_rows_have_moved_and_nothing_else() -> None:
    rule = BlockRule("gap", 0.5)
    assert [is_due(rule, 100, moved) for moved in (0.0, 0.5, 0.6)] == [False, False, True]


COUNTED = [name for name in datasets() if dataset(name).boundary]


@pytest.mark.parametrize("name", COUNTED)
def test_published_counts_are_returned_as_printed(name: str) -> None:
    facts = dataset(name)
    for row in facts.boundary:
        inner, boundary, note = boundary_at(facts, row.partitions)
        assert (inner, boundary) == (row.inner, row.boundary)
        assert "published" in note


@pytest.mark.parametrize("name", COUNTED)
def test_other_counts_are_labelled_and_possible(name: str) -> None:
    facts = dataset(name)
    counts = [row.partitions for row in facts.boundary]
    for gpus in {2, 3, 5, 7, 16, 64, 90, 1000}.difference(counts):
        inner, boundary, note = boundary_at(facts, gpus)
        assert inner == pytest.approx(facts.nodes / gpus)
        assert 0 < boundary <= facts.nodes - inner
        assert ("interpolated" if counts[0] < gpus < counts[-1] else "extrapolated") in note
        assert "leave-one-out error" in note


def test_one_partition_has_no_boundary() -> None:
    assert boundary_at(dataset("reddit"), 1) == (232_965.0, 0.0, "one partition: no boundary")


def test_the_cap_holds_where_the_law_would_exceed_it() -> None:
    facts = dataset("reddit")
    inner, boundary, _ = boundary_at(facts, facts.nodes)
    assert inner == 1.0
    assert boundary == facts.entries / facts.nodes


def test_between_counts_an_exact_power_law_is_recovered() -> None:
    rows = tuple(BoundaryRow(p, 1e6 / p, 0.3 * p**0.7 * 1e6 / p) for p in (2, 9))
    facts = replace(dataset("reddit"), nodes=1_000_000, boundary=rows)
    for gpus in (3, 5, 8):
        assert boundary_at(facts, gpus)[1] == pytest.approx(0.3 * gpus**0.7 * 1e6 / gpus)


def test_beyond_counts_the_boundary_grows_as_that_of_other_graphs() -> None:
    facts = dataset("yelp")
    degree, last = facts.entries / facts.nodes, facts.boundary[-1]
    inner, boundary, _ = boundary_at(facts, 32)
    assert boundary / inner == pytest.approx(last.boundary / last.inner * growth_between(8, 32, degree))
    assert boundary_at(facts, 2)[1] / 358_000 == pytest.approx(120_600 / 179_200 * growth_between(4, 2, degree))


@pytest.mark.parametrize("name", [name for name in COUNTED if len(dataset(name).boundary) > 2])
def test_counts_left_out_are_met(name: str) -> None:
    assert 0.01 < leave_one_out(dataset(name)) < 0.25


@pytest.mark.parametrize("name", COUNTED)
def test_beyond_published_counts_the_growth_is_a_range(name: str) -> None:
    rows = dataset(name).boundary
    first, last = rows[0].partitions, rows[-1].partitions
    assert left_open(rows, first) == left_open(rows, last) == (1.0, 1.0)
    low, high = left_open(rows, 4 * last)
    assert low * high == pytest.approx(1.0)
    assert 1.2 < high < 1.6
    assert left_open(rows, 16 * last)[1] == pytest.approx(high**2)
    assert left_open(rows, 2 * last) == left_open(rows, last + 1), "METIS scatters between any two numbers of parts"


@pytest.mark.parametrize("gpus", [0, -1, 232_966])
def test_impossible_counts_are_refused(gpus: int) -> None:
    with pytest.raises(ScenarioError, match=r"cluster.gpus: .* is not allowed"):
        boundary_at(dataset("reddit"), gpus)


def test_without_any_published_count_only_one_partition_is_answered() -> None:
    facts = dataset("ogbn-papers100M")
    assert boundary_at(facts, 1) == (111_059_956.0, 0.0, "one partition: no boundary")
    with pytest.raises(ScenarioError, match=r"cluster\.gpus: 32 is not allowed; no boundary of .* is published"):
        boundary_at(facts, 32)
