"""Record an access trace: from a real partition, or in your own training loop.

From a partition, with the same rules and random draws as the training runtime: graphs sample edges (`record_trace`) or
boundary nodes (`record_nodes`).

In your own loop: which boundary rows each iteration requested. Each worker has an `AccessRecorder`, passes it the nodes
whose rows it used, and gets plain arrays; those of all workers make one trace (`recorded_trace`), which `write_trace`
writes and `gcnsim simulate` replays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import SHARE
from gcnsim.core.ids import AnyArray, BoolArray, ByteArray, Float32Array, IntArray, frozen
from gcnsim.core.processes import parallel_map_counted
from gcnsim.core.streams import skipped, stream
from gcnsim.graph.parts import Part, Partitioning
from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess
from gcnsim.trace.counts import cross_edges
from gcnsim.workload.draws import NODES, Draws, add_log_missed, checked_share, draw, draw_nodes, inclusion_of
from gcnsim.workload.samplers import Full, Probabilities, Sampler, checked_rate, row_blocks
from gcnsim.workload.samplers import sampler as sampler_of
from gcnsim.workload.samplers import sampler as sampling_rule

BLOCK: Final = 1 << 22
"""Entries of the rows whose probabilities `record_trace` stores at a time: about 150 MB per process."""

_Piece: TypeAlias = tuple[int, Probabilities]
"""An entry, and the probabilities from it on."""


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
    return PreparedSampling(name, tuple(parts), samplers, _norms_hash(norms))


def local_norms(part: Part, norms: Float32Array) -> Float32Array:
    """The norms of a part's local ids, float32[I + B], taken from those of the whole graph."""
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
    on_entries: Callable[[int], object] = lambda _: None,
    processes: int = 1,
) -> AccessTrace:
    """Sample `iterations` graphs on every worker with the rule `sampler` at rate `epsilon`.

    A block of rows at a time is prepared, sampled for all graphs and released, so that memory beyond the parts does not
    grow; up to `processes` parts at once. The same arguments give the same bytes, for any number of processes and any
    block size. norms: s_j per node of the whole graph, float32[N]; None: all 1. on_entries: a callback with the number
    of sampled entries, for a progress bar; the total is iterations times all entries. Raises ScenarioError for an
    unknown rule, an epsilon outside (0, 1] or fewer than one iteration.
    """
    rule = sampling_rule(sampler)
    checked_rate(epsilon)

    def pieces(part: Part) -> Iterator[_Piece]:
        local = None if norms is None else local_norms(part, norms)
        for rows in row_blocks(part.indptr, BLOCK):
            yield int(part.indptr[rows[0]]), rule(part, local, rows).probabilities(epsilon)

    settings = _Settings(sampler, epsilon, iterations, seed, _norms_hash(norms))
    return _recorded(parts, partitioning, settings, pieces, on_entries, processes)


def record_prepared(
    prepared: PreparedSampling,
    partitioning: Partitioning,
    *,
    epsilon: float,
    iterations: int,
    seed: int,
    processes: int = 1,
) -> AccessTrace:
    """The trace of a rule prepared before; the same as `record_trace`, for one rate of several.

    Raises ScenarioError as `record_trace` does.
    """
    checked_rate(epsilon)

    def pieces(part: Part) -> Iterator[_Piece]:
        yield 0, prepared.samplers[part.rank].probabilities(epsilon)

    settings = _Settings(prepared.name, epsilon, iterations, seed, prepared.norms_hash)
    return _recorded(prepared.parts, partitioning, settings, pieces, lambda _: None, processes)


@dataclass(frozen=True, slots=True)
class _Settings:
    sampler: str
    epsilon: float
    iterations: int
    seed: int
    norms_hash: str | None


def _recorded(
    parts: Sequence[Part],
    partitioning: Partitioning,
    settings: _Settings,
    pieces: Callable[[Part], Iterator[_Piece]],
    on_entries: Callable[[int], object],
    processes: int,
) -> AccessTrace:
    """Graph t of worker n comes from the stream ("trace", n, t) of the seed."""
    if settings.iterations < 1:
        raise ScenarioError(f"iterations: {settings.iterations} is not 1 or more")

    def work(part: Part, report: Callable[[int], object]) -> tuple[WorkerAccess, IntArray, int]:
        return _worker(part, pieces(part), settings, report)

    recorded = parallel_map_counted(work, parts, processes, on_entries)
    return AccessTrace(
        origin=_origin(settings, partitioning, sum(floored for _, _, floored in recorded)),
        workers=tuple(worker for worker, _, _ in recorded),
        edges=frozen(np.stack([edges for _, edges, _ in recorded], axis=1)),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        entries=frozen(np.array([part.entries for part in parts], np.int64)),
    )


def _origin(settings: _Settings, partitioning: Partitioning, floored: int) -> TraceOrigin:
    epsilon = 1.0 if settings.sampler == Full.name else settings.epsilon
    return TraceOrigin.of(partitioning, settings.sampler, epsilon, settings.seed, settings.norms_hash, floored)


def _worker(
    part: Part, pieces: Iterator[_Piece], settings: _Settings, report: Callable[[int], object]
) -> tuple[WorkerAccess, IntArray, int]:
    """One worker's samples: inner and boundary edges kept, int64[T, 2], and the entries at the least probability."""
    bits = np.zeros((settings.iterations, -(-part.boundary_nodes // 8)), np.uint8)
    edges = np.zeros((settings.iterations, 2), np.int64)
    log_missed, floored = np.zeros(part.boundary_nodes), 0
    for first, found in pieces:
        add_log_missed(log_missed, part, found.p, first)
        floored += found.floored
        _draw(part, first, found.p, settings.seed, (bits, edges), report)
    access = WorkerAccess(
        bits=frozen(bits),
        boundary_ptr=part.boundary_ptr,
        inclusion=frozen(inclusion_of(log_missed).astype(np.float32)),
        boundary_degree=frozen(part.boundary_degree.astype(np.uint32)),
    )
    return access, edges, floored


def _draw(
    part: Part,
    first: int,
    p: Float32Array,
    seed: int,
    into: tuple[ByteArray, IntArray],
    report: Callable[[int], object],
) -> None:
    """Add the kept entries of every graph, from the entry `first` on, to its bits and edges; certain ones are computed
    once.
    """
    bits, edges = into
    if p.min(initial=1.0) == 1.0:
        needed, *edge_counts = draw(part, p, stream(seed, "trace", part.rank, 0), first)
        bits |= _packed(needed)
        edges += edge_counts
        report(len(bits) * p.size)
        return
    draws = Draws(part, p, first)
    for t in range(len(bits)):
        needed, *edge_counts = draws.draw(skipped(stream(seed, "trace", part.rank, t), first))
        bits[t] |= _packed(needed)
        edges[t] += edge_counts
        report(p.size)


def _norms_hash(norms: Float32Array | None) -> str | None:
    return None if norms is None else hashlib.sha256(np.ascontiguousarray(norms, "<f4").tobytes()).hexdigest()


def _packed(needed: BoolArray) -> ByteArray:
    return np.packbits(needed, bitorder="little")


def record_nodes(
    parts: Sequence[Part], partitioning: Partitioning, *, rate: float, iterations: int, seed: int
) -> AccessTrace:
    """Draw `iterations` graphs of all inner edges and a share `rate` of every worker's boundary nodes.

    What worker m sends to n in graph t comes from the stream ("bns", m, n, t) of `seed`: owners draw. An entry that
    crosses is kept with its boundary node.
    Raises ScenarioError for a rate outside [0, 1] or fewer than one iteration.
    """
    checked_share(rate)
    if iterations < 1:
        raise ScenarioError(f"iterations: {iterations} is not 1 or more")
    recorded = [_node_worker(part, rate, iterations, seed) for part in parts]
    return AccessTrace(
        origin=TraceOrigin.of(partitioning, NODES, rate, seed),
        workers=tuple(worker for worker, _ in recorded),
        edges=frozen(np.stack([edges for _, edges in recorded], axis=1)),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        entries=frozen(np.array([part.entries for part in parts], np.int64)),
    )


def _node_worker(part: Part, rate: float, iterations: int, seed: int) -> tuple[WorkerAccess, IntArray]:
    """The nodes that one worker receives, and the inner and boundary entries kept, int64[T, 2]."""
    bits = np.empty((iterations, -(-part.boundary_nodes // 8)), np.uint8)
    edges = np.empty((iterations, 2), np.int64)
    crossing = cross_edges(part)
    edges[:, 0] = part.entries - int(crossing.sum())
    for t in range(iterations):
        needed = _needed(part, rate, seed, t)
        bits[t] = np.packbits(needed, bitorder="little")
        edges[t, 1] = crossing[needed].sum()
    access = WorkerAccess(
        bits=frozen(bits),
        boundary_ptr=part.boundary_ptr,
        inclusion=frozen(np.full(part.boundary_nodes, rate, np.float32)),
        boundary_degree=frozen(part.boundary_degree.astype(np.uint32)),
    )
    return access, edges


def _needed(part: Part, rate: float, seed: int, t: int) -> BoolArray:
    """The boundary nodes that their owners sampled for graph t, bool[B]."""
    needed = np.zeros(part.boundary_nodes, np.bool_)
    bounds = part.boundary_ptr.tolist()
    for owner in np.flatnonzero(np.diff(part.boundary_ptr)).tolist():
        first, last = bounds[owner], bounds[owner + 1]
        needed[first + draw_nodes(last - first, rate, stream(seed, "bns", owner, part.rank, t))] = True
    return needed


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
