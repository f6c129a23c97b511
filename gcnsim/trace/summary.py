"""What a trace says in a few numbers per worker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.caching import CacheSize
from gcnsim.ids import Rank
from gcnsim.trace.access import AccessTrace, WorkerAccess
from gcnsim.trace.counting import counts


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
