"""BNS-GCN (`bns-gcn`): every iteration a random share of the boundary nodes, synchronously.

Source: BNS-GCN, Algorithm 1. Readings, those of the training runtime: owners draw what they send, once per iteration
for all layers. They send two messages to each peer: how many ids, and which. Receivers then build the matrix of the
entries that cross to drawn nodes. Inner entries are all kept, so their matrix is made once. All of this precedes the
rest of the iteration, on the thread that trains. Rate 1 draws nothing and is full-graph training. Rate 0 exchanges
neither rows nor ids, and only gradients of the weights are shared.

The knob `sample` selects the two baselines of BNS-GCN's section on edge sampling. Both drop as many edges as
boundary-node sampling at the same rate: `boundary-edges` from those that cross, `edges` (DropEdge) from all. Readings:
the worker that sums an entry draws it on its GPU, and asks the owners for the remaining rows. It sorts the kept entries
into a matrix, forward and backward; with `edges` the whole matrix.

For GPUs, a CPU thread draws nodes, or with `sampler_device: gpu` their owners' GPUs, which read and write one number
for each.

Assumption: GPUs hold all crossing entries and select those of drawn nodes themselves; only ids are copied to them.
Workers on CPU cores build where they compute, as the runtime does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.cost import (
    MemoryCounts,
    boundary_core_seconds,
    boundary_seconds,
    draw_nodes_core_seconds,
    drawing_core_seconds,
    edges_seconds,
    elementwise_seconds,
    id_bytes,
    rebuild_seconds,
)
from gcnsim.methods.families.boundary_rows import BoundaryRows, with_drawn_crossing
from gcnsim.methods.families.cpu_workers import CpuWriter
from gcnsim.methods.families.gpu_workers import ONE_THREAD, GpuWriter
from gcnsim.methods.families.released_code import id_streams, id_width
from gcnsim.methods.full_graph import FullGraph
from gcnsim.methods.method import RATE_STEPS, WHOLE_NODES, Facts, KnobStep, Method, Sampling
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.draws import NODES
from gcnsim.workload.knobs import RATE, choice, knob

SAMPLE: Final = choice(
    "sample",
    WHOLE_NODES,
    (WHOLE_NODES, "boundary-edges", "edges"),
    "what is dropped: boundary nodes, or as many edges as these have: only cross edges, or any edges (DropEdge)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BnsGcn(BoundaryRows):
    """Boundary nodes drawn at a rate, or as many edges dropped."""

    name: ClassVar[str] = "bns-gcn"
    about: ClassVar[str] = "a random share of the boundary rows in every iteration, which waits for them"
    overlaps: ClassVar[bool] = True
    simulated_only: ClassVar[tuple[str, ...]] = ("sample",)
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"sample": "boundary-edges"}, {"sample": "edges"})

    rate: float = knob(RATE)
    sample: str = knob(SAMPLE)

    def sampling(self) -> Sampling:
        """The sampling of nodes, or of as many edges, at the rate; none at 1."""
        return Sampling() if self.rate == 1.0 else Sampling(NODES, self.rate, self.sample)

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """The GPU that aggregates edges samples them."""
        if self.sampling().whole:
            return ()
        return ("cpu", "gpu") if self.sample == WHOLE_NODES else ("gpu",)

    def samples(self, facts: Facts) -> bool:
        """Whether it samples: a single worker has no boundary."""
        return self.rate < 1.0 and facts.cluster.gpus > 1

    def schedule(self, facts: Facts) -> Schedule:
        """The schedule: every inner edge, with crossing ones sampled first. Raises ScenarioError for edges on CPU
        cores.
        """

        nodes = self.sample == WHOLE_NODES
        if facts.device.kind != "cpu":
            return (NodesOnGpu if nodes else EdgesOnGpu)(self, facts).write()
        if not nodes:
            raise ScenarioError(
                f"method.sample: {self.sample} is modelled for GPUs only; cluster.device is {facts.device.name}"
            )
        return NodesOnCpu(self, facts).write()

    def held(self, counts: AccessCounts, rank: Rank) -> MemoryCounts:
        """All inner entries, and the sampled crossing entries."""
        if self.rate == 1.0:
            return self.held_at_most(counts, rank)
        return with_drawn_crossing(self.held_at_most(counts, rank, inner_whole=True), counts, rank)

    def canonical(self) -> Method:
        """At rate 1 full-graph training."""
        return self if self.rate < 1.0 else FullGraph(overlap=self.overlap)

    def candidates(self, rates: Sequence[float]) -> Iterator[Method]:
        """Every rate."""
        for rate in rates:
            yield replace(self, rate=rate)

    def steps(self) -> Iterator[KnobStep]:
        """The next lower rate."""
        lower = [step for step in RATE_STEPS if step < self.rate]
        if lower:
            yield KnobStep("rate", self.rate, lower[0], replace(self, rate=lower[0]))


COUNT = 4
"""Bytes of the message with the number of ids that follow."""

DRAW_PASSES = 4
"""Reads and writes of a node that a GPU samples or not: its number, twice, and its mark, twice."""


class NodesOnCpu(CpuWriter):
    """Samples, sends ids and builds matrices on the thread that trains."""

    def _drawn(self) -> list[list[int]]:
        """Per worker, the op that ends its graph; no row leaves before."""
        facts = self.facts
        if not self.sampled:
            return super()._drawn()
        waits: list[list[Dependency]] = [[] for _ in self.workers]
        if self.method.rate:
            sample_ops = [
                self.work(OpKind.SAMPLE, rank, draw_seconds(facts, rank, self.method.rate)) for rank in self.workers
            ]
            waits = self._exchanged(sample_ops)
        return [[self._built(rank, waits[rank])] for rank in self.workers]

    def _built(self, rank: Rank, after: list[Dependency]) -> int:
        counts = self.facts.counts
        entries, rows = counts.boundary_edges[:, rank], int(counts.inner_nodes[rank])
        seconds = boundary_core_seconds(self.facts.host, crossing(self.facts, rank), entries, rows)
        return self.work(OpKind.INDEX, rank, seconds, after=after)

    def _exchanged(self, sample_ops: list[int]) -> list[list[Dependency]]:
        """Add both messages of every pair; per worker, the messages it receives last.

        Each starts once both ends are ready, like the runtime's exchange with all peers at once.
        """
        counted: list[list[Dependency]] = [[] for _ in sample_ops]
        received: list[list[Dependency]] = [[] for _ in sample_ops]
        pairs = list(zip(*(ends.tolist() for ends in id_pairs(self.facts)), strict=True))
        for rank, peer in pairs:
            counted[peer].append(self._send_ids(rank, peer, COUNT, [sample_ops[rank], sample_ops[peer]]))
        met = [self.work(OpKind.INDEX, rank, 0.0, after=after) for rank, after in enumerate(counted)]
        for rank, peer in pairs:
            ids = id_bytes(self.facts.counts.rows[:, peer, rank], id_width(self.facts))
            received[peer].append(self._send_ids(rank, peer, ids, [met[rank], met[peer]]))
        return received

    def _send_ids(self, rank: Rank, peer: Rank, nbytes: Work, after: list[Dependency]) -> int:
        return self.message(OpKind.WIRE, rank, peer, nbytes, after, f"ids.tx{peer}").got

    def _transfer(
        self,
        layer: Layer,
        direction: Direction,
        rows: IntArray,
        width: int,
        sources: list[list[int]],
        reads: list[int],
        frees: list[int],
        held: IntArray | None,
    ) -> None:
        """No transfer at rate 0: workers do not even wait for one another."""
        if self.method.rate:
            super()._transfer(layer, direction, rows, width, sources, reads, frees, held)


class NodesOnGpu(GpuWriter):
    """Samples on a CPU thread or the GPU; it waits for the ids, then selects the entries of sampled nodes."""

    def __init__(self, method: Method, facts: Facts) -> None:
        super().__init__(method, facts)
        if not method.rate:
            self.exchanges = self.beneath = False

    def sample(self) -> IntArray:
        """Per worker, the op that ends its graph, int64[P, 1]; no row leaves before."""
        facts, cluster = self.facts, self.facts.cluster
        if not self.method.rate:
            return np.array([[self._built(rank, [])] for rank in self.workers])
        sample_ops = []
        for rank in self.workers:
            if facts.samples_on_gpu:
                sample_ops.append(self.builder.compute(OpKind.SAMPLE, rank, self._drawn_on_gpu(rank)))
                continue
            route, seconds = cluster.cores(rank), draw_seconds(facts, rank, self.method.rate) + self._calls()
            cap = ONE_THREAD * facts.sampler_threads
            sample_ops.append(self.builder.flow(OpKind.SAMPLE, rank, seconds, route, stream="sampler", cap=cap))
        self.first.append(np.array(sample_ops))
        waits = self.exchanged(sample_ops, facts.counts.rows.transpose(0, 2, 1))
        ids = id_bytes(facts.counts.rows, id_width(facts))
        built = []
        for rank in self.workers:
            nbytes, route = ids[:, rank].sum(axis=1) + ids[:, :, rank].sum(axis=1), cluster.to_device(rank)
            upload = self.builder.flow(
                OpKind.INDEX, rank, nbytes, route, stream="graph.h2d", after=waits[rank].tolist()
            )
            built.append([self._built(rank, [upload])])
        return np.array(built)

    def _drawn_on_gpu(self, rank: Rank) -> Work:
        """Seconds in which the worker's GPU samples its outgoing nodes: a random number per node, written, read,
        compared.
        """
        nodes = bordered(self.facts, rank, self.method.rate)
        return elementwise_seconds(self.facts.device_of(rank), nodes, DRAW_PASSES) + self._calls()

    def _built(self, rank: Rank, after: list[Dependency]) -> int:
        counts = self.facts.counts
        entries, rows = counts.boundary_edges[:, rank], int(counts.inner_nodes[rank])
        seconds = boundary_seconds(self.facts.device_of(rank), crossing(self.facts, rank), entries, rows)
        if self.facts.released:
            seconds = seconds + self._rebuilt(rank)
        return self.builder.compute(OpKind.INDEX, rank, seconds, after=after)

    def _rebuilt(self, rank: Rank) -> FloatArray:
        """Seconds in which the released code rebuilds the iteration's graph from all inner and kept entries."""
        facts = self.facts
        entries = (self.kept + self.inner)[:, rank]
        return rebuild_seconds(facts.device_of(rank), facts.host, entries, self.size - 1)

    def _calls(self) -> Work:
        """Host seconds of the released code's framework calls during sampling."""
        return drawing_core_seconds(self.facts.host, self.size - 1) if self.facts.released else 0.0

    def exchanged(self, sample_ops: list[int], rows: IntArray) -> IntArray:
        """Add both messages of every pair, as for workers on cores; rows: ids in a message, int64[T, sender, receiver].

        Returns, per worker, the messages it receives last, int64[P, P - 1].
        """
        facts, ready = self.facts, np.array(sample_ops)
        rank, peer = id_pairs(facts)
        into = np.argsort(peer, kind="stable").reshape(self.size, -1)
        named = id_streams(facts)
        streams = self.builder.names(named[other] for other in peer.tolist())
        ways = self.builder.ways(map(facts.cluster.between, rank.tolist(), peer.tolist()))

        def sent(nbytes: Work, ready: IntArray) -> IntArray:
            after = [ready[rank], ready[peer]]
            return self.builder.block(OpKind.WIRE, rank, nbytes, after=after, stream=streams, ways=ways, peers=peer)

        counted = sent(COUNT, ready)
        met = self.builder.block(OpKind.INDEX, self.ranks, 0.0, after=[counted[into]], stream="sampler")
        return np.asarray(sent(id_bytes(rows[:, rank, peer], id_width(facts)), met)[into])


class EdgesOnGpu(NodesOnGpu):
    """Samples entries on the GPU of the aggregating worker, and requests the rows that it still needs."""

    def sample(self) -> IntArray:
        """Per worker, the op after which its rows leave, int64[P, 1]: its graph is built, and the requests have
        arrived.
        """
        facts, counts = self.facts, self.facts.counts
        sample_ops = []
        for rank in self.workers:
            looked, entries = crossing(facts, rank), counts.boundary_edges[:, rank]
            if self.method.sampling().sample == "edges":
                looked, entries = np.full_like(looked, counts.entries[rank]), entries + counts.inner_edges[:, rank]
            seconds = edges_seconds(facts.device_of(rank), looked, entries, int(counts.inner_nodes[rank]))
            if facts.released:
                seconds = np.maximum(seconds, self._rebuilt(rank)) + self._calls()
            sample_ops.append(self.builder.compute(OpKind.INDEX, rank, seconds))
        if not self.method.rate:
            return np.array(sample_ops)[:, None]
        waits = self.exchanged(sample_ops, counts.rows)
        return self.builder.block(OpKind.INDEX, self.ranks, 0.0, after=[waits])[:, None]


def id_pairs(facts: Facts) -> tuple[IntArray, IntArray]:
    """Senders and receivers of ids, int64[P (P - 1)] each, in the order in which their messages are written.

    The released code sends them in rounds: in each, all send to the peer at the same offset.
    """
    ranks: IntArray = np.arange(facts.cluster.gpus, dtype=np.int64)
    if facts.released:
        rank, step = np.tile(ranks, ranks.size - 1), np.repeat(ranks[1:], ranks.size)
        return rank, (rank + step) % ranks.size
    rank, peer = np.nonzero(ranks[:, None] != ranks)
    return rank, peer


def draw_seconds(facts: Facts, rank: Rank, rate: float) -> float:
    """Core-seconds in which a worker samples its outgoing nodes; the nodes are counted per peer."""
    return draw_nodes_core_seconds(facts.host, bordered(facts, rank, rate))


def bordered(facts: Facts, rank: Rank, rate: float) -> float:
    """A worker's nodes on the boundary of others, counted once per peer."""
    return float(facts.counts.rows[:, :, rank].sum(axis=1).mean()) / rate


def crossing(facts: Facts, rank: Rank) -> IntArray:
    """A worker's crossing entries, kept or not, int64[T]: all but inner ones, which are always kept."""
    entries: IntArray = facts.counts.entries[rank] - facts.counts.inner_edges[:, rank]
    return entries
