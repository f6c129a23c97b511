"""Traces of graphs that draw boundary nodes, and the same counts from a profile."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.trace import AccessTrace, read_trace, record_nodes, record_trace, write_trace
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts, profile_of
from gcnsim.trace.sample_counts import node_counts
from gcnsim.workload.caching import CacheSize


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


def test_pairs_without_a_boundary_draw_nothing(line: Any) -> None:
    found = counted(traced(line, 0.5))
    assert not found.rows[:, 0, 2:].any()
    assert found.rows[:, 1, 0].mean() == pytest.approx(0.5, abs=0.3)


def test_the_seed_decides_and_files_keep_it(small: Any, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "three")]
    for path, seed in zip(paths, (2, 2, 3), strict=True):
        write_trace(path, traced(small, 0.3, seed=seed))
    one, two, three = (path.read_bytes() for path in paths)
    assert one == two != three
    assert read_trace(paths[0]).origin.epsilon == 0.3


def test_a_bad_share_or_length_is_refused(small: Any) -> None:
    with pytest.raises(ScenarioError, match=r"rate: 1.2 is outside \[0, 1\]"):
        traced(small, 1.2)
    with pytest.raises(ScenarioError, match="iterations: 0 is not 1 or more"):
        traced(small, 0.2, 0)


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
