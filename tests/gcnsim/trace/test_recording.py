"""Recorded accesses of nodes and edges, by this package and by users."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.trace import (
    AccessRecorder,
    AccessTrace,
    local_norms,
    prepared_sampling,
    read_trace,
    record_nodes,
    record_prepared,
    record_trace,
    recorded_trace,
    recording,
    write_trace,
)
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.sample_counts import node_counts
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import inclusion
from gcnsim.workload.samplers import sampler
from studies.boundaries import profile_of
from tests.sampled import draw_edges


def record(case: Any, **changes: Any) -> AccessTrace:
    settings: dict[str, Any] = {"sampler": "vr", "epsilon": 0.2, "iterations": 5, "seed": 3}
    return record_trace(case.parts, case.owners, **(settings | changes))


def same(left: AccessTrace, right: AccessTrace) -> bool:
    pairs = zip(left.workers, right.workers, strict=True)
    return np.array_equal(left.edges, right.edges) and all(np.array_equal(a.bits, b.bits) for a, b in pairs)


def test_fewer_iterations_are_a_prefix(small: Any) -> None:
    long, short = record(small, iterations=6), record(small, iterations=2)
    assert np.array_equal(long.edges[:2], short.edges)
    assert np.array_equal(long.workers[1].bits[:2], short.workers[1].bits)
    cut = long.beginning(2)
    assert same(cut, short)
    assert cut.iterations == 2
    assert (cut.origin, cut.expected_rows) == (short.origin, short.expected_rows)
    assert long.beginning(6) is long.beginning(9) is long


def test_a_prepared_rule_records_every_rate_alike(small: Any) -> None:
    prepared = prepared_sampling("vr", small.parts)
    for epsilon in (0.5, 0.2):
        once = record_prepared(prepared, small.owners, epsilon=epsilon, iterations=5, seed=3)
        assert same(once, record(small, epsilon=epsilon))


def test_bits_and_edges_are_those_of_the_runtime_draw(small: Any) -> None:
    trace = record(small)
    for part, worker in zip(small.parts, trace.workers, strict=True):
        p = sampler("vr")(part).probabilities(0.2).p
        for t in range(trace.iterations):
            columns = part.columns[draw_edges(part, p, stream(3, "trace", part.rank, t))]
            cross = columns[columns >= part.inner_nodes]
            assert np.array_equal(np.flatnonzero(worker.needed()[t]), np.unique(cross) - part.inner_nodes)
            assert trace.edges[t, part.rank].tolist() == [columns.size - cross.size, cross.size]
        assert worker.inclusion == pytest.approx(inclusion(part, p), rel=1e-6)


@pytest.mark.parametrize("changes", [{"sampler": "full"}, {"epsilon": 1.0}, {"sampler": "uniform", "epsilon": 1.0}])
def test_a_full_rate_needs_every_row_and_edge(small: Any, changes: dict[str, Any]) -> None:
    trace = record(small, **changes)
    assert all(worker.needed().all() for worker in trace.workers)
    assert all((worker.inclusion == 1.0).all() for worker in trace.workers)
    assert np.array_equal(trace.edges.sum(axis=2), np.broadcast_to(trace.entries, (5, 4)))
    assert trace.origin.epsilon == 1.0


def test_mean_rows_equal_expected_rows(small: Any) -> None:
    trace = record(small, iterations=400)
    rows = np.array([worker.needed().sum(axis=1) for worker in trace.workers]).sum(axis=0)
    spread = sum(float((worker.inclusion * (1 - worker.inclusion)).sum()) for worker in trace.workers)
    assert abs(rows.mean() - trace.expected_rows) < 4 * np.sqrt(spread / 400)


def test_norms_reach_the_sampler_and_the_origin(small: Any) -> None:
    norms = np.random.default_rng(0).uniform(0.5, 2.0, small.graph.nodes).astype(np.float32)
    trace = record(small, norms=norms)
    part = small.parts[2]
    p = sampler("vr")(part, local_norms(part, norms)).probabilities(0.2).p
    assert trace.workers[2].inclusion == pytest.approx(inclusion(part, p), rel=1e-6)
    assert trace.origin.norms_hash is not None
    assert trace.origin.norms_hash != record(small, norms=2 * norms).origin.norms_hash
    assert record(small).origin.norms_hash is None


def test_origin_says_where_the_trace_comes_from(small: Any) -> None:
    origin = record(small).origin
    assert (origin.graph_name, origin.graph_hash) == ("small", small.graph.content_hash())
    assert (origin.partition_method, origin.sampler, origin.epsilon, origin.seed) == ("block", "vr", 0.2, 3)


@pytest.mark.parametrize("processes", [1, 2])
def test_progress_is_told_of_every_entry_drawn(small: Any, processes: int) -> None:
    content: list[int] = []
    record(small, iterations=3, on_entries=content.append, processes=processes)
    assert sum(content) == 3 * small.graph.entries


@pytest.mark.parametrize(
    ("sampler_name", "epsilon", "normed"),
    [("uniform", 0.3, False), ("vr", 0.05, True)],
)
@pytest.mark.parametrize("block", [1, 97])
@pytest.mark.parametrize("processes", [1, 2])
def test_blocks_and_processes_leave_every_byte(
    small: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sampler_name: str,
    epsilon: float,
    normed: bool,
    block: int,
    processes: int,
) -> None:
    weights = np.random.default_rng(0).uniform(0.0, 2.0, small.graph.nodes).astype(np.float32) if normed else None
    prepared = prepared_sampling(sampler_name, small.parts, weights)
    whole = record_prepared(prepared, small.owners, epsilon=epsilon, iterations=4, seed=3)
    write_trace(tmp_path / "whole", whole)
    monkeypatch.setattr(recording, "BLOCK", block)
    changes = {"sampler": sampler_name, "epsilon": epsilon, "norms": weights, "processes": processes}
    write_trace(tmp_path / "blocks", record(small, iterations=4, **changes))
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "whole").read_bytes()


def traced(case: Any, rate: float, iterations: int = 30, seed: int = 2) -> AccessTrace:
    return record_nodes(case.parts, case.owners, rate=rate, iterations=iterations, seed=seed)


def counted(trace: AccessTrace) -> AccessCounts:
    return counts(trace, CacheSize.none(), "inclusion", 8, 0)


def test_every_pair_keeps_its_share(small: Any) -> None:
    trace = traced(small, 0.3)
    found = counted(trace)
    for rank, worker in enumerate(trace.workers):
        for owner, (first, last) in enumerate(itertools.pairwise(worker.boundary_ptr.tolist())):
            share = 0.3 * (last - first)
            assert set(found.rows[:, rank, owner].tolist()) <= {int(share), int(share) + 1}
    assert len({row.tobytes() for row in found.rows}) > 1
    assert (trace.origin.sampler, trace.origin.epsilon) == ("bns", 0.3)
    assert all((worker.inclusion == np.float32(0.3)).all() for worker in trace.workers)


def test_inner_entries_are_all_kept_and_others_with_their_node(small: Any) -> None:
    trace = traced(small, 0.3, 4)
    for rank, part in enumerate(small.parts):
        crossing = part.columns[part.columns >= part.inner_nodes] - part.inner_nodes
        for t, needed in enumerate(trace.workers[rank].needed()):
            assert trace.edges[t, rank].tolist() == [part.entries - crossing.size, int(needed[crossing].sum())]


def test_the_ends_are_everything_and_nothing(small: Any) -> None:
    whole = record_trace(small.parts, small.owners, sampler="full", epsilon=1.0, iterations=1, seed=2)
    everything, nothing = (counted(traced(small, rate, 1)) for rate in (1.0, 0.0))
    full = counted(whole)
    assert everything.rows.tolist() == full.rows.tolist()
    assert everything.boundary_edges.tolist() == full.boundary_edges.tolist()
    assert not nothing.rows.any()
    assert not nothing.boundary_edges.any()
    assert nothing.inner_edges.tolist() == full.inner_edges.tolist()


def test_the_seed_decides_and_files_keep_it(small: Any, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "three")]
    for path, seed in zip(paths, (2, 2, 3), strict=True):
        write_trace(path, traced(small, 0.3, seed=seed))
    one, two, three = (path.read_bytes() for path in paths)
    assert one == two != three
    assert read_trace(paths[0]).origin.epsilon == 0.3


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.35, 1.0])
def test_a_profile_gives_the_means_of_recorded_draws(small: Any, rate: float) -> None:
    check(small, rate)


@pytest.mark.parametrize("name", ["amazon_cs", "coauthor_phy"])
def test_a_profile_gives_the_means_on_real_graphs(real: Callable[[str], Any], name: str) -> None:
    check(real(name), 0.1)


def check(case: Any, rate: float) -> None:
    """Means of 60 recorded draws: rows of each pair within one, kept entries within four standard errors."""
    found, drawn = node_counts(profile_of(case.parts), rate), counted(traced(case, rate, 60))
    assert found.iterations == 1
    assert np.abs(found.rows[0] - drawn.rows.mean(axis=0)).max() <= 1.0
    error = drawn.boundary_edges.std(axis=0, ddof=1) / np.sqrt(60)
    assert (np.abs(found.boundary_edges[0] - drawn.boundary_edges.mean(axis=0)) <= 4 * error + 0.5).all()
    assert found.inner_edges[0].tolist() == drawn.inner_edges[0].tolist()
    assert found.entries.tolist() == drawn.entries.tolist()
    assert not found.hits.any()


def again(case: Any, trace: AccessTrace, *, edges: bool, rng: np.random.Generator) -> AccessTrace:
    """What a loop that drew the graphs of `trace` records."""
    gathered = []
    for rank, part in enumerate(case.parts):
        recorder = AccessRecorder(part)
        for t, needed in enumerate(trace.workers[rank].needed()):
            kept = tuple(trace.edges[t, rank].tolist())
            recorder.add(rng.permutation(part.boundary[needed]), kept if edges else None)
        gathered.append(recorder.arrays())
    origin = trace.origin
    return recorded_trace(case.owners, gathered, rate=origin.epsilon, sampler=origin.sampler, seed=origin.seed)


def test_graphs_of_drawn_nodes_are_recorded_as_they_were_drawn(small: Any, tmp_path: Path) -> None:
    wanted = record_nodes(small.parts, small.owners, rate=0.3, iterations=5, seed=2)
    access_trace = again(small, wanted, edges=False, rng=np.random.default_rng(0))
    write_trace(tmp_path / "own.trace", access_trace)
    for trace in (access_trace, read_trace(tmp_path / "own.trace")):
        assert trace.origin == wanted.origin
        assert trace.edges.tolist() == wanted.edges.tolist()
        assert trace.inner_nodes.tolist() == wanted.inner_nodes.tolist()
        assert trace.entries.tolist() == wanted.entries.tolist()
        for own, other in zip(trace.workers, wanted.workers, strict=True):
            assert own.bits.tobytes() == other.bits.tobytes()
            assert own.boundary_ptr.tolist() == other.boundary_ptr.tolist()
            assert own.boundary_degree.tolist() == other.boundary_degree.tolist()
            assert own.inclusion.tolist() == np.float32(other.needed().mean(axis=0)).tolist()


def test_graphs_of_drawn_edges_say_how_many_they_kept(small: Any) -> None:
    wanted = record_trace(small.parts, small.owners, sampler="uniform", epsilon=0.3, iterations=4, seed=2)
    access_trace = again(small, wanted, edges=True, rng=np.random.default_rng(0))
    assert access_trace.edges.tolist() == wanted.edges.tolist()
    assert (access_trace.origin.sampler, access_trace.origin.epsilon) == ("uniform", 0.3)


def test_whatever_is_no_boundary_node_is_refused(small: Any) -> None:
    part = small.parts[1]
    recorder = AccessRecorder(part)
    for stranger in (int(part.inner[0]), -1, 10**6):
        with pytest.raises(ScenarioError, match=rf"^nodes: {stranger} is not a boundary node of worker 1$"):
            recorder.add([stranger])
    with pytest.raises(ScenarioError, match=r"^nodes: float64 are not ids of nodes; give whole numbers$"):
        recorder.add([0.5])
    with pytest.raises(ScenarioError, match=r"^worker 1: no iteration is recorded$"):
        recorder.arrays()


def test_more_entries_than_there_are_are_refused(small: Any) -> None:
    recorder = AccessRecorder(small.parts[0])
    for kept in ((10**9, 0), (0, 1), (-1, 0)):
        with pytest.raises(ScenarioError, match=r"^edges: "):
            recorder.add([], kept)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"rate": 1.5}, r"^rate: "),
        ({"rate": float("nan")}, r"^rate: "),
        ({"rate": 1.0, "sampler": "unifrom"}, r"^sampler: unknown 'unifrom'.*uniform"),
    ],
)
def test_how_it_was_drawn_is_checked(small: Any, given: dict[str, Any], line: str) -> None:
    recorders = [AccessRecorder(part) for part in small.parts]
    for recorder in recorders:
        recorder.add([])
    with pytest.raises(ScenarioError, match=line):
        recorded_trace(small.owners, [access_recorder.arrays() for access_recorder in recorders], **given)


def test_every_worker_is_needed_with_as_many_iterations(small: Any) -> None:
    recorders = [AccessRecorder(part) for part in small.parts]
    for recorder in recorders:
        recorder.add([])
    recorders[2].add([])
    gathered = [access_recorder.arrays() for access_recorder in recorders]
    with pytest.raises(ScenarioError, match=r"^workers: have 1, 1, 2, 1 iterations; all need the same number$"):
        recorded_trace(small.owners, gathered, rate=1.0)
    with pytest.raises(ScenarioError, match=r"^workers: 3 were recorded, the partition has 4$"):
        recorded_trace(small.owners, gathered[:3], rate=1.0)


def test_bad_settings_are_refused(small: Any) -> None:
    with pytest.raises(ScenarioError, match="iterations: 0 is not 1 or more"):
        record(small, iterations=0)
    with pytest.raises(ScenarioError, match="epsilon: 2 is outside"):
        record(small, epsilon=2.0)
    with pytest.raises(ScenarioError, match="sampler: unknown"):
        record(small, sampler="ful")


def test_a_bad_share_or_length_is_refused(small: Any) -> None:
    with pytest.raises(ScenarioError, match=r"rate: 1.2 is outside \[0, 1\]"):
        traced(small, 1.2)
    with pytest.raises(ScenarioError, match="iterations: 0 is not 1 or more"):
        traced(small, 0.2, 0)
