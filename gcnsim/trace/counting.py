"""From a trace and a cache to the counts a simulation needs, and what a trace says in a few numbers per worker."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from gcnsim.boundary.counts import AccessCounts
from gcnsim.caching import CacheSize, cached_mask, capacity
from gcnsim.ids import BoolArray, IntArray, Rank, frozen
from gcnsim.streams import stream
from gcnsim.trace.access import AccessTrace, WorkerAccess

_UNPACKED = 1 << 25
"""Unpacked bits held at a time."""

_FEW = 100
"""Boundary nodes of an owner, in the mean, below which all owners are counted in one pass: that is slower by the node,
but has no call for each of a thousand owners."""


def counts(trace: AccessTrace, cache: CacheSize, policy: str, feature_width: int, seed: int) -> AccessCounts:
    """Rows and layer-0 hits per graph, worker and owner, with every worker's cache filled once by `policy`.

    feature_width: values per cached row. seed: of the `random` policy, stream ("cache", rank).
    Raises ScenarioError for an unknown policy.
    """
    shape = (trace.iterations, trace.parts, trace.parts)
    rows, hits = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    held = np.zeros(trace.parts, np.int64)
    for rank, worker in enumerate(trace.workers):
        size = capacity(cache, worker.boundary_nodes, feature_width)
        generator = stream(seed, "cache", rank)
        cached = cached_mask(policy, size, worker.inclusion, worker.boundary_degree, generator)
        held[rank] = size
        _count(worker, cached, rows[:, rank], hits[:, rank])
    return AccessCounts(
        rows=frozen(rows),
        hits=frozen(hits),
        inner_edges=frozen(trace.edges[:, :, 0]),
        boundary_edges=frozen(trace.edges[:, :, 1]),
        inner_nodes=trace.inner_nodes,
        boundary_nodes=frozen(trace.boundary_nodes),
        entries=trace.entries,
        cached_rows=frozen(held),
        reuse=trace.reuse,
    )


def _count(worker: WorkerAccess, cached: BoolArray, rows: IntArray, hits: IntArray) -> None:
    """Fill rows and hits, int64[T, P], a block of iterations at a time."""
    step = max(1, _UNPACKED // max(1, worker.boundary_nodes))
    anything = bool(cached.any())
    for first in range(0, rows.shape[0], step):
        needed = worker.needed(first, first + step)
        rows[first : first + step] = _per_owner(needed, worker.boundary_ptr)
        if anything:
            hits[first : first + step] = _per_owner(needed & cached, worker.boundary_ptr)


def _per_owner(needed: BoolArray, boundary_ptr: IntArray) -> IntArray:
    """Set bits per owner, int64[T', P]; an owner without boundary nodes has 0."""
    if boundary_ptr[-1] < _FEW * boundary_ptr.size:
        held = np.flatnonzero(np.diff(boundary_ptr))
        counted = np.zeros((len(needed), boundary_ptr.size - 1), np.int64)
        if held.size:
            counted[:, held] = np.add.reduceat(needed.view(np.uint8), boundary_ptr[held], axis=1, dtype=np.int64)
        return counted
    bounds = boundary_ptr.tolist()
    segments = [np.count_nonzero(needed[:, a:b], axis=1) for a, b in itertools.pairwise(bounds)]
    return np.stack(segments, axis=1).astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """One worker: its size, what its graphs needed in the mean, and how likely its boundary nodes were to be needed.

    rows: mean boundary nodes needed per graph; rows_by_owner: the same per owner; expected_rows: the sum of the
    inclusion probabilities. inclusion_low, _median, _high: 10 %, 50 % and 90 % quantiles over its boundary nodes (0
    without any).
    """

    rank: Rank
    inner_nodes: int
    boundary_nodes: int
    entries: int
    rows: float
    rows_by_owner: tuple[float, ...]
    expected_rows: float
    inner_edges: float
    boundary_edges: float
    inclusion_low: float
    inclusion_median: float
    inclusion_high: float


def summarise(trace: AccessTrace) -> tuple[WorkerSummary, ...]:
    """One summary per worker, in rank order."""
    rows = counts(trace, CacheSize.none(), "inclusion", 1, 0).rows.mean(axis=0)
    edges = trace.edges.mean(axis=0)
    return tuple(
        _summary(rank, worker, trace, tuple(rows[rank].tolist()), edges[rank].tolist())
        for rank, worker in enumerate(trace.workers)
    )


def _summary(
    rank: Rank, worker: WorkerAccess, trace: AccessTrace, rows: tuple[float, ...], edges: list[float]
) -> WorkerSummary:
    chance = worker.inclusion if worker.boundary_nodes else np.zeros(1, np.float32)
    low, median, high = (float(value) for value in np.quantile(chance, (0.1, 0.5, 0.9)))
    return WorkerSummary(
        rank=rank,
        inner_nodes=int(trace.inner_nodes[rank]),
        boundary_nodes=worker.boundary_nodes,
        entries=int(trace.entries[rank]),
        rows=sum(rows),
        rows_by_owner=rows,
        expected_rows=float(worker.inclusion.sum(dtype=np.float64)),
        inner_edges=edges[0],
        boundary_edges=edges[1],
        inclusion_low=low,
        inclusion_median=median,
        inclusion_high=high,
    )
