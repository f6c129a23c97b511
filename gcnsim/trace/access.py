"""The access trace: which boundary nodes every sampled graph of every worker needs, and how many edges it keeps.

Its file is version 1 or 2 of kind `trace`, bits memory-mapped, checksums as in `gcnsim.core.container`. `counts` turns
a trace and a cache into the counts that a simulation needs. `summarise` describes a trace in a few numbers per worker.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.container import Sections, read_sections, section_of, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.fields import COUNT, POSITIVE, SHARE, check_values
from gcnsim.core.ids import AnyArray, BoolArray, ByteArray, Float32Array, IntArray, Rank, frozen
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Partitioning
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.caching import CacheSize, cached_mask, capacity


@dataclass(frozen=True, slots=True)
class TraceOrigin:
    """The origin of a trace: the graph, its partition, and the sampling."""

    graph_name: str
    graph_hash: str
    partition_method: str
    partition_seed: int
    sampler: str
    epsilon: float
    seed: int
    norms_hash: str | None
    """SHA-256 of the norms s_j the sampler used; None: all 1."""
    floored: int
    """The number of edge probabilities raised to the sampler's least value, over all workers."""

    @classmethod
    def of(
        cls,
        partitioning: Partitioning,
        sampler: str,
        epsilon: float,
        seed: int,
        norms_hash: str | None = None,
        floored: int = 0,
    ) -> TraceOrigin:
        """The origin of graphs sampled from the parts of `partitioning`."""
        return cls(
            graph_name=partitioning.graph_name,
            graph_hash=partitioning.graph_hash,
            partition_method=partitioning.method,
            partition_seed=partitioning.seed,
            sampler=sampler,
            epsilon=float(epsilon),
            seed=seed,
            norms_hash=norms_hash,
            floored=floored,
        )


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """One worker's part of a trace.

    bits: uint8[T, ceil(B / 8)]; bit k of row t (little-endian within a byte): graph t needs boundary index k.
    boundary_ptr: int64[P + 1]; owner m's boundary indices are boundary_ptr[m] to boundary_ptr[m + 1].
    inclusion: float32[B]: the chance that a graph needs the node. boundary_degree: uint32[B]: in the whole graph.
    """

    bits: ByteArray
    boundary_ptr: IntArray
    inclusion: Float32Array
    boundary_degree: AnyArray

    @property
    def boundary_nodes(self) -> int:
        """B, the number of boundary nodes."""
        return int(self.boundary_ptr[-1])

    def needed(self, first: int = 0, last: int | None = None) -> BoolArray:
        """The boundary nodes needed by graphs first..last-1, unpacked: bool[T', B]."""
        unpacked = np.unpackbits(self.bits[first:last], axis=1, count=self.boundary_nodes, bitorder="little")
        return unpacked.view(np.bool_)


@dataclass(frozen=True, slots=True)
class AccessTrace:
    """T sampled graphs of P workers.

    edges: int64[T, P, 2]: inner and boundary entries kept, without self-loops. inner_nodes, entries: int64[P]: nodes
    and stored entries of each worker's rows.
    """

    origin: TraceOrigin
    workers: tuple[WorkerAccess, ...]
    edges: IntArray
    inner_nodes: IntArray
    entries: IntArray

    @property
    def iterations(self) -> int:
        """T, the number of sampled graphs."""
        return int(self.edges.shape[0])

    @property
    def parts(self) -> int:
        """P, the number of workers."""
        return len(self.workers)

    @property
    def boundary_nodes(self) -> IntArray:
        """B of every worker, int64[P]."""
        return np.array([worker.boundary_nodes for worker in self.workers], np.int64)

    def beginning(self, iterations: int) -> AccessTrace:
        """The trace of the first `iterations` graphs, or of all. Every graph has a separate random stream, so a shorter
        recording would give the same trace.
        """
        if iterations >= self.iterations:
            return self
        workers = tuple(replace(worker, bits=worker.bits[:iterations]) for worker in self.workers)
        return replace(self, workers=workers, edges=self.edges[:iterations])

    @property
    def expected_rows(self) -> float:
        """The expected boundary rows of a graph over all workers: the sum of the inclusion probabilities."""
        return float(sum(worker.inclusion.sum(dtype=np.float64) for worker in self.workers))


KIND = "trace"
VERSION = 1
OLDER = 2
"""Of files with sections `reuse` besides, which nothing reads."""

_ORIGIN_TYPES: dict[str, tuple[type, ...]] = {
    "graph_name": (str,),
    "graph_hash": (str,),
    "partition_method": (str,),
    "partition_seed": (int,),
    "sampler": (str,),
    "epsilon": (float, int),
    "seed": (int,),
    "norms_hash": (str, type(None)),
    "floored": (int,),
}


def write_trace(path: str | Path, trace: AccessTrace) -> str:
    """Write a trace to a file atomically; return its content hash. Raises FileError."""
    arrays: dict[str, AnyArray] = {"edges": trace.edges, "inner_nodes": trace.inner_nodes, "entries": trace.entries}
    for rank, worker in enumerate(trace.workers):
        for field in fields(WorkerAccess):
            arrays[f"worker{rank}.{field.name}"] = getattr(worker, field.name)
    meta = {"origin": asdict(trace.origin), "parts": trace.parts}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


def read_trace(path: str | Path) -> AccessTrace:
    """Read the trace at `path`, memory-mapped and checked for consistency.

    Raises FileError if the file is missing, truncated, altered, of another kind, or inconsistent.
    """
    stored = read_sections(path, kind=KIND, version=(VERSION, OLDER))
    parts = stored.meta.get("parts")
    if type(parts) is not int or parts < 1:
        raise FileError(f"{path}: parts is {parts!r}; allowed: 1 or more")
    edges = section_of(path, stored, "edges", "<i8", 3)
    if edges.shape[0] < 1 or edges.shape[1:] != (parts, 2):
        raise FileError(f"{path}: section 'edges' has shape {edges.shape}, wanted (1 or more, {parts}, 2)")
    inner = section_of(path, stored, "inner_nodes", "<i8", 1, (parts,))
    entries = section_of(path, stored, "entries", "<i8", 1, (parts,))
    check_values(inner, POSITIVE, f"{path}: section 'inner_nodes'")
    check_values(entries, COUNT, f"{path}: section 'entries'")
    check_values(edges, COUNT, f"{path}: section 'edges'")
    if (edges.sum(axis=2) > entries).any():
        raise FileError(f"{path}: section 'edges' keeps more edges than 'entries' has")
    workers = tuple(_worker(path, stored, rank, inner, edges.shape[0]) for rank in range(parts))
    return AccessTrace(_origin(path, stored.meta.get("origin")), workers, edges, inner, entries)


def _worker(path: str | Path, stored: Sections, rank: int, inner: IntArray, iterations: int) -> WorkerAccess:
    name, parts = f"worker{rank}", inner.size
    ptr = section_of(path, stored, f"{name}.boundary_ptr", "<i8", 1, (parts + 1,))
    if ptr[0] != 0 or (np.diff(ptr) < 0).any() or ptr[rank] != ptr[rank + 1]:
        raise FileError(f"{path}: section '{name}.boundary_ptr' does not ascend from 0 with no rows of {rank} itself")
    if (np.diff(ptr) > inner).any():
        raise FileError(f"{path}: section '{name}.boundary_ptr' has more rows of a worker than 'inner_nodes' it has")
    boundary = int(ptr[-1])
    bits = section_of(path, stored, f"{name}.bits", "|u1", 2, (iterations, -(-boundary // 8)))
    if boundary % 8 and (bits[:, -1] >> (boundary % 8)).any():
        raise FileError(f"{path}: section '{name}.bits' names boundary nodes beyond the last, {boundary - 1}")
    chance = section_of(path, stored, f"{name}.inclusion", "<f4", 1, (boundary,))
    check_values(chance, SHARE, f"{path}: section '{name}.inclusion'")
    degree = section_of(path, stored, f"{name}.boundary_degree", "<u4", 1, (boundary,))
    return WorkerAccess(bits, ptr, chance, degree)


def _origin(path: str | Path, stored: Any) -> TraceOrigin:
    if not isinstance(stored, dict) or stored.keys() != _ORIGIN_TYPES.keys():
        raise FileError(f"{path}: origin is incomplete; wanted {', '.join(_ORIGIN_TYPES)}")
    for name, types in _ORIGIN_TYPES.items():
        if type(stored[name]) not in types:
            raise FileError(f"{path}: origin.{name} is {stored[name]!r}, wanted {types[0].__name__}")
    if wrong := SHARE.wrong(stored["epsilon"]):
        raise FileError(f"{path}: origin.epsilon: {wrong}")
    return TraceOrigin(**stored)


_UNPACKED = 1 << 25
"""Unpacked bits held at a time."""

_FEW = 100
"""If owners have fewer boundary nodes than this on average, all owners are counted in one pass.

That is slower per node, but avoids a call for each of a thousand owners.
"""


def counts(trace: AccessTrace, cache: CacheSize, policy: str, feature_width: int, seed: int) -> AccessCounts:
    """Rows and layer-0 hits per graph, worker and owner, with every worker's static cache filled by `policy`.

    feature_width: values per cached row. seed: for the `random` policy, stream ("cache", rank). Raises ScenarioError
    for an unknown policy.
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
    """One worker: its size, the mean rows its graphs needed, and the inclusion probability of its boundary nodes.

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
