"""The access trace: which boundary nodes every drawn graph of every worker needs, and how many edges it keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.ids import AnyArray, BoolArray, ByteArray, Float32Array, IntArray
from gcnsim.partition import Partitioning


@dataclass(frozen=True, slots=True)
class TraceOrigin:
    """Where a trace comes from: the graph, how it was partitioned, and how the graphs were drawn."""

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
    """Edge probabilities that were raised to the sampler's least value, over all workers."""

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
        """That of graphs drawn from the parts of `partitioning`."""
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
    reuse: float32[4, W]: how soon sums of the first graph read rows again (`gcnsim.partition.reuse`); None: unknown.
    """

    bits: ByteArray
    boundary_ptr: IntArray
    inclusion: Float32Array
    boundary_degree: AnyArray
    reuse: Float32Array | None = None

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
    """T drawn graphs of P workers.

    edges: int64[T, P, 2]: inner and boundary entries kept, self-loops not counted.
    inner_nodes, entries: int64[P]: nodes and stored entries of each worker's rows.
    """

    origin: TraceOrigin
    workers: tuple[WorkerAccess, ...]
    edges: IntArray
    inner_nodes: IntArray
    entries: IntArray

    @property
    def iterations(self) -> int:
        """T, the number of drawn graphs."""
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
        """The first `iterations` of the drawn graphs, or all: every graph has draws of its own, so it is the trace of
        so many."""
        if iterations >= self.iterations:
            return self
        workers = tuple(replace(worker, bits=worker.bits[:iterations]) for worker in self.workers)
        return replace(self, workers=workers, edges=self.edges[:iterations])

    @property
    def reuse(self) -> Float32Array | None:
        """How soon every worker's sums read rows again, float32[P, 4, W]; None where it is not known of all."""
        found = [worker.reuse for worker in self.workers if worker.reuse is not None]
        return np.stack(found) if len(found) == self.parts else None

    @property
    def expected_rows(self) -> float:
        """Boundary rows a graph needs in expectation, over all workers: the sum of the inclusion probabilities."""
        return float(sum(worker.inclusion.sum(dtype=np.float64) for worker in self.workers))
