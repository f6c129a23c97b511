"""Recording an access trace whose graphs draw boundary nodes, not edges: the draws of the training runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.boundary.profile import cross_edges
from gcnsim.errors import ScenarioError
from gcnsim.ids import BoolArray, IntArray, frozen
from gcnsim.partition import Part, Partitioning, graph_reuse
from gcnsim.sampling import NODES, checked_share, draw_nodes
from gcnsim.streams import stream
from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess


def record_nodes(
    parts: Sequence[Part], partitioning: Partitioning, *, rate: float, iterations: int, seed: int, reuse: bool = True
) -> AccessTrace:
    """Draw `iterations` graphs of all inner edges and a share `rate` of every worker's boundary nodes.

    What worker m sends to n in graph t comes from the stream ("bns", m, n, t) of `seed`: owners draw. An entry that
    crosses is kept with its boundary node. reuse: as of `record_prepared`.
    Raises ScenarioError for a rate outside [0, 1] or fewer than one iteration.
    """
    checked_share(rate)
    if iterations < 1:
        raise ScenarioError(f"iterations: {iterations} is not 1 or more")
    drawn = [_worker(part, rate, iterations, seed, reuse=reuse) for part in parts]
    return AccessTrace(
        origin=TraceOrigin.of(partitioning, NODES, rate, seed),
        workers=tuple(worker for worker, _ in drawn),
        edges=frozen(np.stack([kept for _, kept in drawn], axis=1)),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        entries=frozen(np.array([part.entries for part in parts], np.int64)),
    )


def _worker(part: Part, rate: float, iterations: int, seed: int, *, reuse: bool) -> tuple[WorkerAccess, IntArray]:
    """What one worker receives, and the inner and boundary entries kept, int64[T, 2]."""
    bits = np.empty((iterations, -(-part.boundary_nodes // 8)), np.uint8)
    edges = np.empty((iterations, 2), np.int64)
    crossing = cross_edges(part)
    edges[:, 0] = part.entries - int(crossing.sum())
    for t in range(iterations):
        needed = _needed(part, rate, seed, t)
        bits[t] = np.packbits(needed, bitorder="little")
        edges[t, 1] = crossing[needed].sum()
    kept = np.append(np.ones(part.inner_nodes, np.bool_), _needed(part, rate, seed, 0))[part.columns]
    access = WorkerAccess(
        bits=frozen(bits),
        boundary_ptr=part.boundary_ptr,
        inclusion=frozen(np.full(part.boundary_nodes, rate, np.float32)),
        boundary_degree=frozen(part.boundary_degree.astype(np.uint32)),
        reuse=graph_reuse(part, kept) if reuse else None,
    )
    return access, edges


def _needed(part: Part, rate: float, seed: int, t: int) -> BoolArray:
    """The boundary nodes whose owners drew them for graph t, bool[B]."""
    needed = np.zeros(part.boundary_nodes, np.bool_)
    bounds = part.boundary_ptr.tolist()
    for owner in np.flatnonzero(np.diff(part.boundary_ptr)).tolist():
        first, last = bounds[owner], bounds[owner + 1]
        needed[first + draw_nodes(last - first, rate, stream(seed, "bns", owner, part.rank, t))] = True
    return needed
