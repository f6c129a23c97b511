"""Cache curves of traces made by hand, so that every hit can be counted on paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import frozen
from gcnsim.trace import (
    AccessTrace,
    CacheCurve,
    CacheTally,
    Replay,
    TraceOrigin,
    WorkerAccess,
    cache_curve,
    record_nodes,
    record_trace,
)
from gcnsim.trace.access import counts
from gcnsim.workload.caching import DEMAND, RANKINGS, CacheSize

STREAM = [0, 1, 2, 0, 3, 0, 1, 2, 0, 4, 1, 0]


def worker(rank: int, graphs: Sequence[Sequence[int]], inclusion: list[float], degree: list[int]) -> WorkerAccess:
    """The access of one of two workers, who needs the rows that each of `graphs` lists."""
    needed = np.zeros((len(graphs), len(degree)), np.bool_)
    for t, rows in enumerate(graphs):
        needed[t, list(rows)] = True
    return WorkerAccess(
        bits=frozen(np.packbits(needed, axis=1, bitorder="little")),
        boundary_ptr=frozen(np.array([0, 0, len(degree)] if rank == 0 else [0, len(degree), len(degree)], np.int64)),
        inclusion=frozen(np.array(inclusion, np.float32)),
        boundary_degree=frozen(np.array(degree, np.uint32)),
    )


def trace_of(*workers: WorkerAccess, graphs: int, sampler: str = "uniform", epsilon: float = 0.1) -> AccessTrace:
    return AccessTrace(
        origin=TraceOrigin("made", "0" * 64, "block", 0, sampler, epsilon, 0, None, 0),
        workers=workers,
        edges=frozen(np.ones((graphs, len(workers), 2), np.int64)),
        inner_nodes=frozen(np.full(len(workers), 10)),
        entries=frozen(np.full(len(workers), 100)),
    )


@pytest.fixture(scope="module")
def four() -> AccessTrace:
    """Four graphs of two workers; the second's are the first's backwards."""
    graphs = [[0, 1], [0, 2], [0, 1, 3], [0]]
    facts = [0.9, 0.6, 0.3, 0.2], [4, 8, 6, 1]
    return trace_of(worker(0, graphs, *facts), worker(1, graphs[::-1], *facts), graphs=4)


@pytest.fixture(scope="module")
def single() -> AccessTrace:
    """Twelve graphs that need one row each: whatever the order within a graph, the stream of test_demand."""
    return trace_of(
        worker(0, [[row] for row in STREAM], [0.1] * 5, [1] * 5), worker(1, [[]] * 12, [], []), graphs=len(STREAM)
    )


def tally(curve: CacheCurve, policy: str, rank: int = 0) -> CacheTally:
    return next(point for point in curve.points if point.policy == policy).workers[rank]


def hits(trace: AccessTrace, policy: str, size: float, **how: Any) -> int:
    return cache_curve(trace, [policy], [size], Replay(**how)).points[0].total.hits


@pytest.mark.parametrize(
    ("policy", "by_hand"),
    # Row 0 is needed 4 times, row 1 twice, rows 2 and 3 once. Best two rows by inclusion: 0 1; by degree: 1 2;
    # by -ln(1 - p) / degree = 0.58, 0.11, 0.06, 0.22: 0 3.
    [("inclusion", 6), ("degree", 3), ("degree-ratio", 5)],
)
def test_static_rules_by_hand(four: AccessTrace, policy: str, by_hand: int) -> None:
    curve = cache_curve(four, [policy], [0.5])
    for rank in (0, 1):
        assert tally(curve, policy, rank) == CacheTally(4, 2, 8, by_hand, 2, 0)
    assert curve.points[0].total == CacheTally(8, 4, 16, 2 * by_hand, 4, 0)
    assert curve.points[0].total.hit_rate == by_hand / 8


def test_refresh_every_graph_by_hand(four: AccessTrace) -> None:
    # Worker 0 holds 0 1 and hits 2. Graph 0 leaves it so (0.95, 0.8, 0.15, 0.1): graph 1 hits 0. Graph 1 makes it
    # 0 2 (0.95, 0.3, 0.65, 0.1), one row: graph 2 hits 0. Graph 2 makes it 0 1 (0.95, 0.8, 0.15, 0.6), one row, and
    # graph 3 hits 0. Worker 1: 0; then 0 1 (0.95, 0.3, 0.15, 0.1) hits 2 of 0 1 3; then 0 1 hits 0 of 0 2; then 0 2,
    # one row, hits 0 of 0 1.
    curve = cache_curve(four, ["inclusion-refresh"], [0.5], Replay(refresh=1))
    assert tally(curve, "inclusion-refresh", 0) == CacheTally(4, 2, 8, 5, 2, 2)
    assert tally(curve, "inclusion-refresh", 1) == CacheTally(4, 2, 8, 5, 2, 1)


def test_refresh_every_other_graph_by_hand(four: AccessTrace) -> None:
    # Worker 0 after graphs 0 and 1: 0.95, 0.55, 0.4, 0.1: still 0 1, and the hits of the cache filled once.
    curve = cache_curve(four, ["inclusion-refresh"], [0.5], Replay(refresh=2))
    assert tally(curve, "inclusion-refresh", 0) == CacheTally(4, 2, 8, 6, 2, 0)


def test_warm_up_is_replayed_but_not_counted(four: AccessTrace) -> None:
    how = Replay(refresh=1, warm_up=3)
    curve = cache_curve(four, ["inclusion", "inclusion-refresh"], [0.5], how)
    assert tally(curve, "inclusion") == CacheTally(4, 2, 1, 1, 2, 0)
    # Of the two rows that enter, the one before graph 3 counts.
    assert tally(curve, "inclusion-refresh") == CacheTally(4, 2, 1, 1, 2, 1)


def test_refresh_follows_needs_that_change() -> None:
    graphs = [[0, 1]] * 10 + [[2, 3]] * 10
    drifting = trace_of(worker(0, graphs, [0.9, 0.9, 0.5, 0.5], [1] * 4), worker(1, [[]] * 20, [], []), graphs=20)
    # At 12 it has seen two graphs of either kind (0.7, 0.7, 0.5, 0.5); from 16 on it holds 2 and 3, four graphs more.
    assert hits(drifting, "inclusion", 0.5) == 20
    assert hits(drifting, "inclusion-refresh", 0.5, refresh=4) == 28


@pytest.mark.parametrize(
    ("policy", "rows", "by_hand"),
    [
        ("fifo", 2, 1),
        ("lru", 2, 1),
        ("sieve", 2, 1),
        ("lfu", 2, 3),
        ("arc", 2, 3),
        ("belady", 2, 4),
        ("s3-fifo", 3, 3),
    ],
)
def test_demand_rules_by_hand(single: AccessTrace, policy: str, rows: int, by_hand: int) -> None:
    pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")
    curve = cache_curve(single, [policy], [rows / 5])
    assert tally(curve, policy, 0) == CacheTally(5, rows, 12, by_hand, 0, 0)
    assert tally(curve, policy, 1) == CacheTally(0, 0, 0, 0, 0, 0)


def test_order_within_a_graph_is_drawn_or_ascending() -> None:
    pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")
    loop = trace_of(worker(0, [list(range(20))] * 10, [0.5] * 20, [1] * 20), worker(1, [[]] * 10, [], []), graphs=10)
    # In ascending order, twenty rows over and over flush ten before any returns; in any other some return in time.
    assert hits(loop, "lru", 0.5, order="index") == 0
    assert 0 < hits(loop, "lru", 0.5) < hits(loop, "belady", 0.5)
    assert hits(loop, "lru", 0.5, seed=1) != hits(loop, "lru", 0.5)


def test_inclusion_hits_no_less_than_degree_nor_degree_than_random() -> None:
    # Node j is needed by 40 - j graphs, its recorded chance; degrees fall with j but for neighbours swapped.
    nodes = 40
    graphs = [[j for j in range(nodes) if t < nodes - j] for t in range(nodes)]
    chance = [(nodes - j) / nodes for j in range(nodes)]
    degree = [100 - (j ^ 1) for j in range(nodes)]
    made = trace_of(worker(0, graphs, chance, degree), worker(1, [[]] * nodes, [], []), graphs=nodes)
    for size in (0.05, 0.125, 0.3, 0.525):
        by_degree = hits(made, "degree", size)
        assert hits(made, "inclusion", size) >= by_degree
        for seed in range(10):
            assert by_degree > hits(made, "random", size, seed=seed)
    assert hits(made, "inclusion", 0.125) > hits(made, "degree", 0.125)


def test_belady_hits_most_of_all_demand_rules(small: Any) -> None:
    pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")
    recorded = record_trace(small.parts, small.owners, sampler="vr", epsilon=0.2, iterations=8, seed=3)
    for order in ("random", "index"):
        curve = cache_curve(recorded, ["demand"], [0.01, 0.1, 0.3, 0.6, 1.0], Replay(order=order))
        best = {point.size: point.workers for point in curve.points if point.policy == "belady"}
        for point in curve.points:
            for mine, most in zip(point.workers, best[point.size], strict=True):
                assert mine.hits <= most.hits
                assert mine.requests == most.requests
        assert curve.policies == DEMAND


def test_static_rules_agree_with_the_counts_of_a_simulation(small: Any) -> None:
    recorded = record_trace(small.parts, small.owners, sampler="vr", epsilon=0.2, iterations=5, seed=3)
    curve = cache_curve(recorded, ["random", "degree", "inclusion"], [0.1, 0.3], Replay(seed=7))
    for point in curve.points:
        simulated = counts(recorded, CacheSize(fraction=point.size), point.policy, 16, seed=7)
        assert [worker.hits for worker in point.workers] == simulated.hits.sum(axis=(0, 2)).tolist()
        assert [worker.cached_rows for worker in point.workers] == simulated.cached_rows.tolist()
        assert [worker.requests for worker in point.workers] == simulated.rows.sum(axis=(0, 2)).tolist()


def test_sizes_are_sorted_and_counted_once(four: AccessTrace) -> None:
    curve = cache_curve(four, ["static"], [0.5, 0.0, 0.5, 1.0])
    assert curve.sizes == (0.0, 0.5, 1.0)
    assert [point.total.cached_rows for point in curve.points[:3]] == [0, 4, 8]
    assert [point.total.hit_rate for point in curve.points if point.policy == "degree"] == [0.0, 3 / 8, 1.0]


@pytest.mark.parametrize(
    ("names", "sizes", "message"),
    [
        (["lur"], [0.1], r"cache policy: unknown 'lur'; did you mean 'lru'"),
        ([], [0.1], "cache policy: none is given"),
        (["degree"], [1.5], r"size: 150% is outside 0%..100%"),
        (["degree"], [-0.1], r"size: -10% is outside 0%..100%"),
        (["degree"], [], "size: none is given"),
    ],
)
def test_bad_questions(four: AccessTrace, names: list[str], sizes: list[float], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        cache_curve(four, names, sizes)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"refresh": 0}, "refresh: 0 graphs; allowed: 1 or more"),
        ({"warm_up": -1}, "warm-up: -1 graphs; allowed: 0 or more"),
        ({"order": "idnex"}, r"order: unknown 'idnex'; did you mean 'index'"),
        ({"warm_up": 4}, "warm-up: 4 graphs; x.trace has 4, one must be left"),
    ],
)
def test_bad_settings(four: AccessTrace, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        cache_curve(four, ["degree"], how=Replay(**how), path="x.trace")


def test_a_trace_that_does_not_tell_cross_edges(small: Any, four: AccessTrace) -> None:
    parts, owners = small.parts, small.owners
    access_trace = record_nodes(parts, owners, rate=0.5, iterations=2, seed=0)
    whole = record_trace(parts, owners, sampler="full", epsilon=1.0, iterations=1, seed=0)
    for trace in (access_trace, whole):
        with pytest.raises(ScenarioError, match="determine cross edges, which degree-ratio needs; allowed: random"):
            cache_curve(trace, ["degree-ratio"])
        curve = cache_curve(trace, ["static"], [0.3])
        assert curve.policies == ("random", "degree", "inclusion", "inclusion-refresh")
        assert curve.notes[0].startswith("degree-ratio left out: trace: graphs drawn by")
    assert cache_curve(four, ["static"]).policies == (*RANKINGS, "inclusion-refresh")


def test_a_refresh_that_never_comes_is_said(four: AccessTrace) -> None:
    assert cache_curve(four, ["inclusion-refresh"], how=Replay(refresh=4)).notes == (
        "inclusion-refresh never refreshes: every 4 graphs, and the trace has 4",
    )
    assert cache_curve(four, ["inclusion-refresh"], how=Replay(refresh=3)).notes == ()


def test_static_rules_need_no_library(four: AccessTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcachesim", None)
    assert cache_curve(four).points
    with pytest.raises(ScenarioError, match="libcachesim, which is not installed"):
        cache_curve(four, ["all"])


def test_a_trace_without_rows_is_refused() -> None:
    empty = trace_of(worker(0, [[]], [0.1], [1]), worker(1, [[]], [], []), graphs=1)
    with pytest.raises(ScenarioError, match=r"x.trace: none of its graphs needs a row of another worker"):
        cache_curve(empty, path="x.trace")
