"""Partition-parallel training on GPUs: the iteration that full-graph, PipeGCN, BNS-GCN and PSC-GCN share.

Every worker trains its partition; before each layer it needs the rows of its boundary nodes from their owners, and
after each layer's backward pass it returns their gradients. What differs is tau, the age of the rows that a layer
reads (0 waits for this iteration's), and whether the graph is sampled anew each iteration.

Reading of the published algorithms (PipeGCN, Algorithm 1; PSC-GCN, Algorithm 1):
- graph t is trained in iteration t; it is drawn, and its boundary rows start to travel, in iteration t - tau;
- the gradients of graph t's boundary rows are sent in iteration t and added by their owners in iteration t + tau;
- a layer's transfer of iteration t leaves once sender and receiver have read that of t - tau: a ring of tau slots;
- wanted ids are sent once per iteration, owners answer layer by layer as soon as their rows exist (pull);
- packing runs on its own GPU stream, copies are staged through host memory, one message per peer, layer and direction;
- what a worker sends to another, rows and gradients, goes over one connection, in the order in which it is ready;
- the sampler is one CPU thread per worker that starts with the iteration; not published, as a question of what it would
  bring: several threads that share its work, or the GPU itself, before its forward pass (`Facts.sampler_threads`,
  `Facts.samples_on_gpu`).
"""

from __future__ import annotations

import numpy as np

from gcnsim.cost import (
    LayerCost,
    attention_cost,
    average_seconds,
    draw_core_seconds,
    gradient_bytes,
    graph_bytes,
    id_bytes,
    layer_cost,
    loss_seconds,
    pack_seconds,
    payload_bytes,
    rows_seconds,
    sampler_seconds,
    spmm_seconds,
    step_seconds,
    unpack_seconds,
)
from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.methods.facts import Facts
from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.methods.families.overlap_slowdown import slowdown, slowed_beneath
from gcnsim.methods.method import CENTRAL
from gcnsim.schedule import Builder, Schedule, allreduce, host_message
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

TAG = {FORWARD: "f", BACKWARD: "b"}
"""Streams of the forward and the backward thread."""

ROWS = "rows"
"""The process group that rows and their gradients travel by: a pair of workers has one connection each way, on which
both follow one another in the order in which they are ready. Ids and the sums of gradients have groups of their own."""

ONE_THREAD = 1.0
"""A sampler is one thread: it never uses more than one core."""


class GpuWriter:
    """Writes the schedule of `method` for workers on GPUs."""

    def __init__(self, method: BoundaryRows, facts: Facts) -> None:
        self.method = method
        self.tau = method.tau
        self.facts = facts
        self.builder = Builder(method.name, facts.cluster, facts.counts.iterations)
        self.workers = range(facts.cluster.gpus)
        self.exchanges = facts.cluster.gpus > 1
        self.beneath = method.overlap == CENTRAL and not self.tau and self.exchanges
        """Whether inner columns are summed beneath this iteration's transfers, boundary columns after them."""
        self.first: list[list[int]] = [[] for _ in self.workers]
        """Ops off the compute stream that wait for the end of the worker's previous iteration."""
        counts = facts.counts
        self.trained = counts.rows
        """rows[t, n, m] of the graph trained in iteration t."""
        self.ahead = facts.ahead(counts.rows, self.tau)
        """rows of the graph whose transfer starts in iteration t."""
        self.costs = [self.worker_costs(rank) for rank in self.workers]
        self.gathering = next((layer for layer, shape in enumerate(facts.shapes) if shape.gathers), 0)
        """The first layer that sums neighbours: its rows leave as soon as it is known who wants them."""

    def worker_costs(self, rank: Rank) -> list[LayerCost]:
        counts = self.facts.counts
        inner = int(counts.inner_nodes[rank])
        entries = counts.inner_edges[:, rank] + counts.boundary_edges[:, rank] + inner
        rows = counts.rows[:, rank].sum(axis=1)
        costs = [
            (attention_cost if shape.heads else layer_cost)(
                self.facts.device_of(rank),
                shape,
                first=layer == 0,
                inner=inner,
                entries=entries,
                boundary_rows=rows,
                norm=self.facts.norm,
            )
            for layer, shape in enumerate(self.facts.shapes)
        ]
        costs = [cost if shape.gathers else cost.dense for cost, shape in zip(costs, self.facts.shapes, strict=True)]
        factor = slowdown(self.facts, rank, np.sum([cost.seconds for cost in costs], axis=0), stale=self.tau > 0)
        return [cost.slowed(factor) for cost in costs]

    def write(self) -> Schedule:
        ids = self.sample() if self.method.samples(self.facts) else [[] for _ in self.workers]
        ready: list[int | None] = [None for _ in self.workers]
        for layer in range(len(self.facts.shapes)):
            ready = self.forward(layer, ready, ids)
        classes = self.facts.shapes[-1].d_out
        for rank in self.workers:
            inner = int(self.facts.counts.inner_nodes[rank])
            self.builder.compute(OpKind.LOSS, rank, loss_seconds(self.facts.device_of(rank), inner, classes))
        last: list[int] = []
        for layer in reversed(range(len(self.facts.shapes))):
            last = self.backward(layer)
        reduced = allreduce(self.builder, gradient_bytes(self.facts.shapes), last)
        steps = [self.step(rank, reduced[rank]) for rank in self.workers]
        for rank in self.workers:
            for op in self.first[rank]:
                self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def sample(self) -> list[list[int]]:
        """Draw the graph of iteration t + tau and tell owners which rows it will want; per worker, the ids it gets."""
        facts, counts = self.facts, self.facts.counts
        heard: list[list[int]] = [[] for _ in self.workers]
        for rank in self.workers:
            kept = facts.ahead(counts.inner_edges[:, rank] + counts.boundary_edges[:, rank], self.tau)
            drawn = self.draw_on_gpu(rank, kept) if facts.samples_on_gpu else self.draw_on_host(rank, kept)
            for peer in self.workers:
                if peer != rank:
                    ids = id_bytes(self.ahead[:, rank, peer])
                    stream = f"ids.tx{peer}"
                    sent = host_message(self.builder, OpKind.INDEX, rank, peer, ids, [drawn], stream=stream)
                    heard[peer].append(sent[-1])
        return heard

    def draw_on_host(self, rank: Rank, kept: IntArray) -> int:
        """Draw on CPU threads and copy the graph to the GPU; the op after which the ids are known to the host."""
        facts, counts, cluster = self.facts, self.facts.counts, self.facts.cluster
        refresh, weighted = self.method.refresh, self.method.weighted
        work = draw_core_seconds(facts.host, int(counts.entries[rank]), refresh, weighted=weighted)
        cap = ONE_THREAD * facts.sampler_threads
        drawn = self.builder.flow(OpKind.SAMPLE, rank, work, cluster.cores(rank), stream="sampler", cap=cap)
        self.first[rank].append(drawn)
        nbytes = graph_bytes(kept, int(counts.inner_nodes[rank]))
        upload = self.builder.flow(
            OpKind.INDEX, rank, nbytes, cluster.to_device(rank), stream="graph.h2d", after=[drawn]
        )
        self.builder.compute(OpKind.INDEX, rank, 0.0, after=[(upload, self.tau)])
        return drawn

    def draw_on_gpu(self, rank: Rank, kept: IntArray) -> int:
        """Draw on the GPU and copy the wanted ids to the host; the op after which they are there."""
        facts, counts = self.facts, self.facts.counts
        entries, inner = int(counts.entries[rank]), int(counts.inner_nodes[rank])
        refresh, weighted = self.method.refresh, self.method.weighted
        seconds = sampler_seconds(facts.device_of(rank), entries, kept, inner, refresh, weighted=weighted)
        drawn = self.builder.compute(OpKind.SAMPLE, rank, seconds)
        ids = id_bytes(self.ahead[:, rank].sum(axis=1))
        route = facts.cluster.to_host(rank)
        return self.builder.flow(OpKind.INDEX, rank, ids, route, stream="ids.d2h", after=[drawn])

    def forward(self, layer: Layer, ready: list[int | None], ids: list[list[int]]) -> list[int | None]:
        """One layer's forward pass and the transfer of its input rows; per worker, the op that makes its output."""
        facts = self.facts
        if not facts.shapes[layer].gathers:
            return [self.update(rank, layer) for rank in self.workers]
        width = facts.shapes[layer].d_in
        hits = facts.counts.hits if layer == 0 else np.zeros_like(facts.counts.hits)
        received = (self.trained - hits).sum(axis=2)
        if self.beneath:
            for rank in self.workers:
                self.aggregate(rank, self.inner_sum(rank, layer, FORWARD), layer, FORWARD)
        reads = self.read(layer, FORWARD, received, width) if self.exchanges else []
        done: list[int | None] = []
        for rank in self.workers:
            if layer == 0 and facts.counts.cached_rows[rank]:
                rows = hits[:, rank].sum(axis=1)
                self.builder.compute(
                    OpKind.LOOKUP,
                    rank,
                    rows_seconds(facts.device_of(rank), rows, width),
                    layer=layer,
                    direction=FORWARD,
                )
            cost = self.costs[rank][layer]
            self.aggregate(rank, self.cross_sum(rank, width) if self.beneath else cost.aggregate, layer, FORWARD)
            done.append(self.update(rank, layer))
        if reads:
            misses = self.ahead - facts.ahead(hits, self.tau)
            wanted = ids if layer == self.gathering else [[] for _ in self.workers]
            made = [[] if op is None else [op] for op in ready]
            sources = [made[rank] + wanted[rank] for rank in self.workers]
            self.transfer(layer, FORWARD, misses.transpose(0, 2, 1), width, sources, reads)
        return done

    def backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass and the transfer of its boundary gradients; per worker, its last gradient op."""
        facts = self.facts
        width = facts.shapes[layer].d_in
        last = [
            self.builder.compute(
                OpKind.UPDATE, rank, self.costs[rank][layer].update_backward, layer=layer, direction=BACKWARD
            )
            for rank in self.workers
        ]
        if not facts.shapes[layer].gathers:
            return last
        if layer == 0:
            # Nobody asks for the input's gradient, but weights that act before the sum need it undone.
            attends = facts.shapes[0].heads
            return [self.undo(rank, 0) for rank in self.workers] if attends else last
        made = []
        for rank in self.workers:
            if self.beneath:
                made.append(self.aggregate(rank, self.cross_sum(rank, width, back=True), layer, BACKWARD))
                self.aggregate(rank, self.inner_sum(rank, layer, BACKWARD), layer, BACKWARD)
            else:
                made.append(self.undo(rank, layer))
        if self.exchanges:
            arrived = facts.earlier(self.trained, self.tau).sum(axis=1)
            reads = self.read(layer, BACKWARD, arrived, width)
            self.transfer(layer, BACKWARD, self.trained, width, [[op] for op in made], reads)
        return last

    def step(self, rank: Rank, reduced: int) -> int:
        """The optimizer's step, once the gradients are summed."""
        seconds = step_seconds(self.facts.device_of(rank), self.facts.shapes)
        return self.builder.compute(OpKind.STEP, rank, seconds, after=[reduced])

    def update(self, rank: Rank, layer: Layer) -> int:
        """A layer's dense product and activation, forward."""
        seconds = self.costs[rank][layer].update
        return self.builder.compute(OpKind.UPDATE, rank, seconds, layer=layer, direction=FORWARD)

    def aggregate(self, rank: Rank, seconds: FloatArray, layer: Layer, direction: Direction) -> int:
        """A sum over neighbours."""
        return self.builder.compute(OpKind.AGGREGATE, rank, seconds, layer=layer, direction=direction)

    def undo(self, rank: Rank, layer: Layer) -> int:
        """A layer's sum over neighbours, backward and whole."""
        return self.aggregate(rank, self.costs[rank][layer].aggregate_backward, layer, BACKWARD)

    def inner_sum(self, rank: Rank, layer: Layer, direction: Direction) -> FloatArray:
        """Seconds of the sum over inner columns alone, beneath the layer's transfer of that direction."""
        counts, inner = self.facts.counts, int(self.facts.counts.inner_nodes[rank])
        width, kept = self.facts.shapes[layer].d_in, counts.inner_edges[:, rank] + inner
        alone = spmm_seconds(self.facts.device_of(rank), kept, inner, width, inner)
        return slowed_beneath(self.facts, rank, layer, direction, alone)

    def cross_sum(self, rank: Rank, width: int, *, back: bool = False) -> FloatArray:
        """Seconds of the sum over boundary columns alone; back: to the boundary's gradients."""
        counts = self.facts.counts
        outer, inner = counts.rows[:, rank].sum(axis=1), counts.inner_nodes[rank]
        written, gathered = (outer, inner) if back else (inner, outer)
        kept = counts.boundary_edges[:, rank]
        seconds = spmm_seconds(self.facts.device_of(rank), kept, written, width, gathered)
        return np.where(kept > 0, seconds, 0.0)

    def read(self, layer: Layer, direction: Direction, rows: IntArray, width: int) -> list[int]:
        """Per worker, the compute-stream op that takes received rows in: it waits for them and copies `rows[t, n]`."""
        reads = []
        for rank in self.workers:
            seconds = unpack_seconds(self.facts.device_of(rank), rows[:, rank], width, self.facts.payload)
            reads.append(self.builder.compute(OpKind.SCATTER, rank, seconds, layer=layer, direction=direction))
            if direction in self.method.smooths:
                self.aggregate(
                    rank, average_seconds(self.facts.device_of(rank), rows[:, rank], width), layer, direction
                )
        return reads

    def transfer(
        self,
        layer: Layer,
        direction: Direction,
        rows: IntArray,
        width: int,
        sources: list[list[int]],
        reads: list[int],
    ) -> None:
        """Move rows[t, n, m] rows from n to m: pack, copy to host, one message per peer, copy to device, then be read.

        Where the cluster has a direct path between two GPUs, nothing is copied to or from the host for it.
        sources: per worker, the ops that make its rows. reads: per worker, the op that waits for what arrives.
        """
        packed = self.pack(layer, direction, rows, width, sources, reads)
        cluster, payload = self.facts.cluster, self.facts.payload
        arriving: list[list[int]] = [[] for _ in self.workers]
        staged = [[peer for peer in self.workers if self.staged(rank, peer)] for rank in self.workers]
        for rank in self.workers:
            ready = packed[rank]
            if staged[rank]:
                nbytes = payload_bytes(rows[:, rank, staged[rank]].sum(axis=1), width, payload)
                ready = self.copy(OpKind.D2H, rank, nbytes, [packed[rank]], layer, direction)
            for peer in self.others(rank):
                direct = cluster.direct(rank, peer)
                made = packed[rank] if direct else ready
                nbytes = payload_bytes(rows[:, rank, peer], width, payload)
                ops = self.send(rank, peer, nbytes, made, layer, direction)
                if self.tau:
                    self.builder.reuse(ops[0], reads[peer])
                if direct:
                    self.builder.wait_for(reads[peer], (ops[-1], self.tau))
                else:
                    arriving[peer].append(ops[-1])
        for rank in self.workers:
            if arriving[rank]:
                # Paths are the same both ways: those that a worker stages to are those it hears staged from.
                nbytes = payload_bytes(rows[:, staged[rank], rank].sum(axis=1), width, payload)
                up = self.copy(OpKind.H2D, rank, nbytes, arriving[rank], layer, direction)
                self.builder.wait_for(reads[rank], (up, self.tau))

    def send(
        self, rank: Rank, peer: Rank, nbytes: FloatArray, made: int, layer: Layer, direction: Direction
    ) -> list[int]:
        """A message to a peer, once `made` has ended; its ops, from the first to start to the last to end."""
        stream = f"{TAG[direction]}.tx" if self.facts.serial else f"{TAG[direction]}.tx{peer}"
        direct = self.facts.cluster.direct(rank, peer)
        if direct is None:
            return host_message(
                self.builder,
                OpKind.WIRE,
                rank,
                peer,
                nbytes,
                [made],
                stream=stream,
                connection=ROWS,
                layer=layer,
                direction=direction,
            )
        return [
            self.builder.flow(
                OpKind.WIRE,
                rank,
                nbytes,
                direct,
                stream=stream,
                after=[made],
                peer=peer,
                layer=layer,
                direction=direction,
                connection=ROWS,
            )
        ]

    def others(self, rank: Rank) -> list[Rank]:
        """The peers of a worker in the order in which it writes to them: from the next one on.

        In ascending order all would begin with the same receiver.
        """
        return [(rank + step) % len(self.workers) for step in range(1, len(self.workers))]

    def staged(self, rank: Rank, peer: Rank) -> bool:
        """Whether rows between two workers are copied to the host first."""
        return peer != rank and self.facts.cluster.direct(rank, peer) is None

    def pack(
        self,
        layer: Layer,
        direction: Direction,
        rows: IntArray,
        width: int,
        sources: list[list[int]],
        reads: list[int],
    ) -> list[int]:
        """Per worker, the op that gathers the rows it sends, once they are made and the buffer of t - tau is read."""
        packed = []
        for rank in self.workers:
            leaving, payload = rows[:, rank].sum(axis=1), self.facts.payload
            seconds = pack_seconds(self.facts.device_of(rank), leaving, width, payload)
            stream = f"{TAG[direction]}.pack"
            op = self.builder.compute(
                OpKind.PACK, rank, seconds, after=sources[rank], stream=stream, layer=layer, direction=direction
            )
            if self.tau:
                self.builder.reuse(op, reads[rank])
            if direction is FORWARD and layer == 0:
                self.first[rank].append(op)
            packed.append(op)
        return packed

    def copy(
        self, kind: OpKind, rank: Rank, nbytes: FloatArray, after: list[int], layer: Layer, direction: Direction
    ) -> int:
        """A copy between a worker's GPU and its host, in a stream of its own."""
        cluster = self.facts.cluster
        route = cluster.to_host(rank) if kind is OpKind.D2H else cluster.to_device(rank)
        stream = f"{TAG[direction]}.{kind}"
        return self.builder.flow(
            kind, rank, nbytes, route, stream=stream, after=after, layer=layer, direction=direction
        )
