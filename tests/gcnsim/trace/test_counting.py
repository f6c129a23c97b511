from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gcnsim.core.streams import stream
from gcnsim.trace import AccessTrace, access, record_trace
from gcnsim.trace.access import counts
from gcnsim.workload.caching import CacheSize, cached_mask, capacity


@pytest.fixture
def trace(small: Any) -> AccessTrace:
    return record_trace(small.parts, small.owners, sampler="vr", epsilon=0.2, iterations=6, seed=3)


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("policy", ["inclusion", "degree", "random"])
def test_rows_and_hits_equal_a_node_by_node_count(
    trace: AccessTrace, policy: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_FEW", few)
    found = counts(trace, CacheSize(fraction=0.3), policy, 16, seed=5)
    for n, worker in enumerate(trace.workers):
        size = capacity(CacheSize(fraction=0.3), worker.boundary_nodes, 16)
        cached = cached_mask(policy, size, worker.inclusion, worker.boundary_degree, stream(5, "cache", n))
        owner = np.repeat(np.arange(trace.parts), np.diff(worker.boundary_ptr))
        assert found.cached_rows[n] == cached.sum() == size
        for t in range(trace.iterations):
            needed = np.unpackbits(worker.bits[t], bitorder="little")[: worker.boundary_nodes].astype(bool)
            assert np.array_equal(found.rows[t, n], np.bincount(owner[needed], minlength=trace.parts))
            assert np.array_equal(found.hits[t, n], np.bincount(owner[needed & cached], minlength=trace.parts))


def test_laws(trace: AccessTrace) -> None:
    found = counts(trace, CacheSize(fraction=0.5), "inclusion", 16, seed=0)
    assert (found.hits <= found.rows).all()
    assert (found.hits.sum(axis=2) <= found.cached_rows).all()
    assert found.hits.sum() > 0
    assert not np.diagonal(found.rows, axis1=1, axis2=2).any()
    popcount = np.array([np.bitwise_count(worker.bits).sum(axis=1) for worker in trace.workers]).T
    assert np.array_equal(found.rows.sum(axis=2), popcount)
    assert (found.rows.sum(axis=2) <= found.boundary_edges).all()
    assert (found.inner_edges + found.boundary_edges <= found.entries).all()


def test_owners_without_boundary_nodes_have_no_rows(line: Any) -> None:
    trace = record_trace(line.parts, line.owners, sampler="full", epsilon=1.0, iterations=2, seed=0)
    found = counts(trace, CacheSize(fraction=1.0), "inclusion", 16, seed=0)
    neighbours = (np.abs(np.subtract.outer(np.arange(4), np.arange(4))) == 1).astype(int)
    assert np.array_equal(found.rows, np.stack([neighbours, neighbours]))
    assert np.array_equal(found.hits, found.rows)
    assert found.hit_rate == 1.0


def test_a_bigger_cache_never_hits_less(trace: AccessTrace) -> None:
    hits = [counts(trace, CacheSize(fraction=f), "inclusion", 16, seed=0).hits for f in (0.0, 0.2, 0.5, 1.0)]
    for less, more in itertools.pairwise(hits):
        assert (less <= more).all()


def test_blocks_of_iterations_do_not_change_the_counts(trace: AccessTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = counts(trace, CacheSize(fraction=0.3), "degree", 16, seed=0)
    monkeypatch.setattr(access, "_UNPACKED", 1)
    pieces = counts(trace, CacheSize(fraction=0.3), "degree", 16, seed=0)
    assert np.array_equal(whole.rows, pieces.rows)
    assert np.array_equal(whole.hits, pieces.hits)
