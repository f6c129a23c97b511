from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.trace import (
    AccessTrace,
    local_norms,
    prepared_sampling,
    record_prepared,
    record_trace,
    recording,
    write_trace,
)
from gcnsim.workload.draws import draw_edges, inclusion
from gcnsim.workload.samplers import sampler


def record(case: Any, **changes: Any) -> AccessTrace:
    settings: dict[str, Any] = {"sampler": "vr", "epsilon": 0.2, "iterations": 5, "seed": 3}
    return record_trace(case.parts, case.owners, **(settings | changes))


def same(left: AccessTrace, right: AccessTrace) -> bool:
    pairs = zip(left.workers, right.workers, strict=True)
    return np.array_equal(left.edges, right.edges) and all(np.array_equal(a.bits, b.bits) for a, b in pairs)


def test_the_same_arguments_give_the_same_trace(small: Any) -> None:
    assert same(record(small), record(small))
    assert not same(record(small), record(small, seed=4))


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
    [("uniform", 0.3, False), ("vr", 0.2, False), ("vr", 0.05, True), ("full", 1.0, False)],
)
@pytest.mark.parametrize("block", [1, 97, 700])
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


def test_bad_settings_are_refused(small: Any) -> None:
    with pytest.raises(ScenarioError, match="iterations: 0 is not 1 or more"):
        record(small, iterations=0)
    with pytest.raises(ScenarioError, match="epsilon: 2 is outside"):
        record(small, epsilon=2.0)
    with pytest.raises(ScenarioError, match="sampler: unknown"):
        record(small, sampler="ful")
