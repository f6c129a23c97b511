"""Recording an access trace in your own training loop: which boundary rows each iteration requested.

Each worker has an `AccessRecorder`, passes it the nodes whose rows it used, and gets plain arrays; those of all workers
make one trace (`recorded_trace`), which `write_trace` writes and `gcnsim simulate` replays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import SHARE
from gcnsim.core.ids import AnyArray, BoolArray, IntArray, frozen
from gcnsim.graph.parts import Part, Partitioning
from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess
from gcnsim.trace.counts import cross_edges
from gcnsim.workload.draws import NODES
from gcnsim.workload.samplers import sampler as sampler_of


class AccessRecorder:
    """Records which boundary rows one worker requests in each iteration.

    >>> from gcnsim.graph import build_csr
    >>> from gcnsim.graph.assign import partition_graph
    >>> from gcnsim.graph.parts import split
    >>> path = build_csr(np.arange(3), np.arange(1, 4), 4, "path")
    >>> owners = partition_graph(path, 2, "block")
    >>> recorders = [AccessRecorder(part) for part in split(path, owners)]
    >>> for iteration in ([2], []):
    ...     recorders[0].add(iteration)
    ...     recorders[1].add([1])
    >>> trace = recorded_trace(owners, [each.arrays() for each in recorders], rate=0.5)
    >>> trace.workers[0].needed().tolist(), trace.workers[0].inclusion.tolist()
    ([[True], [False]], [0.5])
    """

    def __init__(self, part: Part) -> None:
        """A recorder without iterations. part: the worker's share of the graph (`gcnsim.graph.parts`)."""
        self._part = part
        self._crossing = cross_edges(part)
        self._bits: list[AnyArray] = []
        self._edges: list[tuple[int, int]] = []
        self._order = np.argsort(part.boundary, kind="stable")
        """The boundary is ascending only within an owner."""

    def add(self, nodes: ArrayLike, edges: tuple[int, int] | None = None) -> None:
        """Record an iteration. nodes: global ids of the boundary nodes whose rows it used, in any order.

        edges: numbers of stored entries used inside the part and across, without self-loops; None: all inside, and all
        of the given nodes. Raises ScenarioError for a node that is not a boundary node of this worker, or for more
        entries than exist.
        """
        needed = self._needed(nodes)
        most = (self._part.entries - int(self._crossing.sum()), int(self._crossing[needed].sum()))
        entries = most if edges is None else (int(edges[0]), int(edges[1]))
        if not all(0 <= count <= limit for count, limit in zip(entries, most, strict=True)):
            raise ScenarioError(f"edges: {entries} of worker {self._part.rank}; there are {most}")
        self._bits.append(np.packbits(needed, bitorder="little"))
        self._edges.append(entries)

    def arrays(self) -> dict[str, AnyArray]:
        """This worker's part of the trace as plain arrays by name, for `recorded_trace`.

        Raises ScenarioError before the first iteration.
        """
        if not self._bits:
            raise ScenarioError(f"worker {self._part.rank}: no iteration is recorded")
        part = self._part
        return {
            "bits": np.stack(self._bits),
            "edges": np.array(self._edges, np.int64),
            "boundary_ptr": part.boundary_ptr,
            "boundary_degree": part.boundary_degree.astype(np.uint32),
            "sizes": np.array([part.inner_nodes, part.entries], np.int64),
        }

    def _needed(self, nodes: ArrayLike) -> BoolArray:
        """bool[B] of the nodes."""
        ids = np.asarray(nodes)
        if ids.size and ids.dtype.kind not in "iu":
            raise ScenarioError(f"nodes: {ids.dtype} are not ids of nodes; give whole numbers")
        ids = np.unique(ids.astype(np.int64))
        needed = np.zeros(self._part.boundary_nodes, np.bool_)
        places = np.searchsorted(self._part.boundary, ids, sorter=self._order)
        found = places < self._part.boundary_nodes
        found[found] = self._part.boundary[self._order[places[found]]] == ids[found]
        if not found.all():
            stranger = int(ids[~found][0])
            raise ScenarioError(f"nodes: {stranger} is not a boundary node of worker {self._part.rank}")
        needed[self._order[places]] = True
        return needed


def recorded_trace(
    partitioning: Partitioning,
    workers: Sequence[Mapping[str, AnyArray]],
    *,
    rate: float,
    sampler: str = NODES,
    seed: int = 0,
) -> AccessTrace:
    """Combine the recordings of all workers, in the order of their ranks, into one trace.

    partitioning: the owner of each node. workers: the result of `AccessRecorder.arrays` of each worker. rate, sampler:
    how the iterations were drawn: `bns` (nodes, rate of bns-gcn), `vr` or `uniform` (edges, epsilon of psc-gcn), or
    `full` (nothing). A method that samples must have the same to replay the trace; other methods replay any. The
    inclusion probability of a node is its share of the iterations. Raises ScenarioError for another sampler or rate, a
    missing worker, or unequal numbers of iterations.
    """
    if sampler != NODES:
        sampler_of(sampler)
    if wrong := SHARE.wrong(rate):
        raise ScenarioError(f"rate: {wrong}")
    if len(workers) != partitioning.parts:
        raise ScenarioError(f"workers: {len(workers)} were recorded, the partition has {partitioning.parts}")
    lengths = [len(worker["edges"]) for worker in workers]
    if len(set(lengths)) != 1:
        raise ScenarioError(f"workers: have {', '.join(map(str, lengths))} iterations; all need the same number")
    sizes: IntArray = np.stack([worker["sizes"] for worker in workers])
    return AccessTrace(
        origin=TraceOrigin.of(partitioning, sampler, rate, seed),
        workers=tuple(_access(worker) for worker in workers),
        edges=frozen(np.stack([worker["edges"] for worker in workers], axis=1)),
        inner_nodes=frozen(sizes[:, 0].copy()),
        entries=frozen(sizes[:, 1].copy()),
    )


def _access(worker: Mapping[str, AnyArray]) -> WorkerAccess:
    count = int(worker["boundary_ptr"][-1])
    needed = np.unpackbits(worker["bits"], axis=1, count=count, bitorder="little")
    return WorkerAccess(
        bits=frozen(worker["bits"]),
        boundary_ptr=frozen(worker["boundary_ptr"]),
        inclusion=frozen(needed.mean(axis=0, dtype=np.float64).astype(np.float32)),
        boundary_degree=frozen(worker["boundary_degree"]),
    )
