"""Recording an access trace from a real partition: the same rules and draws that the training runtime uses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.ids import BoolArray, ByteArray, Float32Array, IntArray, frozen
from gcnsim.partition import Part, Partitioning
from gcnsim.processes import each
from gcnsim.sampling import Full, Probabilities, Sampler, draw, inclusion
from gcnsim.sampling import sampler as sampling_rule
from gcnsim.streams import stream
from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess


@dataclass(frozen=True, slots=True)
class PreparedSampling:
    """A sampling rule prepared for every part, to record several rates without preparing again."""

    name: str
    parts: tuple[Part, ...]
    samplers: tuple[Sampler, ...]
    norms_hash: str | None


def prepared_sampling(name: str, parts: Sequence[Part], norms: Float32Array | None = None) -> PreparedSampling:
    """The rule `name` on all `parts`. norms: s_j per node of the whole graph, float32[N]; None: all 1.

    Raises ScenarioError for an unknown rule.
    """
    rule = sampling_rule(name)
    samplers = tuple(rule(part, None if norms is None else local_norms(part, norms)) for part in parts)
    digest = None if norms is None else hashlib.sha256(np.ascontiguousarray(norms, "<f4").tobytes()).hexdigest()
    return PreparedSampling(name, tuple(parts), samplers, digest)


def local_norms(part: Part, norms: Float32Array) -> Float32Array:
    """The norms of a part's local ids, float32[I + B], out of those of the whole graph."""
    local: Float32Array = norms[np.concatenate([part.inner, part.boundary])]
    return local


def record_trace(
    parts: Sequence[Part],
    partitioning: Partitioning,
    *,
    sampler: str,
    epsilon: float,
    iterations: int,
    seed: int,
    norms: Float32Array | None = None,
) -> AccessTrace:
    """Draw `iterations` graphs on every worker with the rule `sampler` at rate `epsilon`.

    The same arguments give the same bytes. norms: s_j per node of the whole graph, float32[N]; None: all 1.
    Raises ScenarioError for an unknown rule, an epsilon outside (0, 1] or fewer than one iteration.
    """
    prepared = prepared_sampling(sampler, parts, norms)
    return record_prepared(prepared, partitioning, epsilon=epsilon, iterations=iterations, seed=seed)


def record_prepared(
    prepared: PreparedSampling,
    partitioning: Partitioning,
    *,
    epsilon: float,
    iterations: int,
    seed: int,
    on_graph: Callable[[], object] = lambda: None,
    processes: int = 1,
) -> AccessTrace:
    """The trace of a rule prepared before; the same as `record_trace`, for one rate of several.

    Graph t of worker n comes from the stream ("trace", n, t) of `seed`. A rule that keeps every edge draws nothing.
    on_graph: called after every graph and worker drawn, for a progress bar (in one process only). processes: how many
    to draw with; the trace does not depend on it.
    """
    if iterations < 1:
        raise ScenarioError(f"iterations: {iterations} is not 1 or more")
    rates = [rule.probabilities(epsilon) for rule in prepared.samplers]
    pairs = list(zip(prepared.parts, rates, strict=True))
    drawn = each(lambda pair: _worker(*pair, iterations, seed, on_graph), pairs, processes)
    workers = tuple(worker for worker, _ in drawn)
    edges = np.stack([kept for _, kept in drawn], axis=1)
    return AccessTrace(
        origin=_origin(prepared, partitioning, epsilon, seed, sum(rate.floored for rate in rates)),
        workers=workers,
        edges=frozen(edges),
        inner_nodes=frozen(np.array([part.inner_nodes for part in prepared.parts], np.int64)),
        entries=frozen(np.array([part.entries for part in prepared.parts], np.int64)),
    )


def _origin(
    prepared: PreparedSampling, partitioning: Partitioning, epsilon: float, seed: int, floored: int
) -> TraceOrigin:
    return TraceOrigin(
        graph_name=partitioning.graph_name,
        graph_hash=partitioning.graph_hash,
        partition_method=partitioning.method,
        partition_seed=partitioning.seed,
        sampler=prepared.name,
        epsilon=1.0 if prepared.name == Full.name else float(epsilon),
        seed=seed,
        norms_hash=prepared.norms_hash,
        floored=floored,
    )


def _worker(
    part: Part, rate: Probabilities, iterations: int, seed: int, on_graph: Callable[[], object]
) -> tuple[WorkerAccess, IntArray]:
    """One worker's draws, and the inner and boundary edges kept, int64[T, 2]."""
    bits = np.empty((iterations, -(-part.boundary_nodes // 8)), np.uint8)
    edges = np.empty((iterations, 2), np.int64)
    if rate.p.size and rate.p.min() == 1.0:
        bits[:] = _packed(np.ones(part.boundary_nodes, np.bool_))
        inner = int(np.count_nonzero(part.columns < part.inner_nodes))
        edges[:] = inner, part.entries - inner
    else:
        for t in range(iterations):
            needed, *kept = draw(part, rate.p, stream(seed, "trace", part.rank, t))
            bits[t], edges[t] = _packed(needed), kept
            on_graph()
    access = WorkerAccess(
        bits=frozen(bits),
        boundary_ptr=part.boundary_ptr,
        inclusion=frozen(inclusion(part, rate.p).astype(np.float32)),
        boundary_degree=frozen(part.boundary_degree.astype(np.uint32)),
    )
    return access, edges


def _packed(needed: BoolArray) -> ByteArray:
    return np.packbits(needed, bitorder="little")
