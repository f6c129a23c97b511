"""Partition-parallel training on GPUs: the iteration that full-graph, PipeGCN, BNS-GCN and PSC-GCN share.

Every worker trains its partition. Before each layer it needs the rows of its boundary nodes from their owners, and
after each layer's backward pass it returns their gradients. The methods differ in tau, the age of the rows that a layer
reads (0 waits for this iteration's), and in whether the graph is sampled anew each iteration.

Interpretation of the published algorithms (PipeGCN, Algorithm 1; PSC-GCN, Algorithm 1):

- graph t is trained in iteration t; it is sampled, and its boundary rows start to travel, in iteration t - tau;

- the gradients of graph t's boundary rows are sent in iteration t and added by their owners in iteration t + tau;

- a layer's transfer of iteration t leaves once sender and receiver have read that of t - tau: a ring of tau slots;

- with tau 0 a message moves once its receiver has reached that layer and posts a receive, as in gloo and NCCL;

- ids are requested once per iteration, and owners answer layer by layer as soon as their rows exist (pull);

- packing runs on a separate GPU stream, copies are staged through host memory, one message per peer, layer and
direction;

- all rows and gradients from one worker to another use one connection, in the order in which they are ready;

- the sampler is one CPU thread per worker that starts with the iteration. Unpublished options show their possible gain:
several threads that share its work, or the GPU, before its forward pass (`Facts.sampler_threads`,
`Facts.samples_on_gpu`).
"""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer
from gcnsim.cost import (
    average_seconds,
    draw_core_seconds,
    gradient_bytes,
    graph_bytes,
    id_bytes,
    pack_seconds,
    payload_bytes,
    rows_seconds,
    sampler_seconds,
    unpack_seconds,
)
from gcnsim.methods.families.gpu_ops import TAG
from gcnsim.methods.families.released_code import ReleasedOps, id_streams, id_width, reduced_layer
from gcnsim.schedule import Schedule, Waits, allreduce, host_messages, message_sizes
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

ROWS = "rows"
"""The process group of rows and their gradients.

A pair of workers has one connection in each direction, on which both follow one another in the order in which they are
ready. Ids and all-reduces have separate groups.
"""

ONE_THREAD = 1.0
"""A sampler is one thread, so it never uses more than one core."""


class GpuWriter(ReleasedOps):
    """Builds the schedule of `method` for P workers on GPUs, as blocks of ops for all of them."""

    def write(self) -> Schedule:
        """Build the schedule."""
        facts = self.facts
        ids = self.sample() if self.method.samples(facts) else None
        ready: IntArray | None = None
        for layer in range(len(facts.shapes)):
            ready = self.forward(layer, ready, ids)
        self.compute(OpKind.LOSS, self.loss)
        last = self.ranks
        reduced: list[Waits] = []
        for layer in reversed(range(len(facts.shapes))):
            last = self.backward(layer)
            if facts.released:
                reduced.append(reduced_layer(self, layer, last))
        if not facts.released:
            reduced.append(np.array(allreduce(self.builder, gradient_bytes(facts.shapes), last.tolist())))
        steps = self.compute(OpKind.STEP, self.step, after=reduced)
        for ops in self.first:
            self.builder.wait_for(ops, (steps, 1))
        for ops, receivers in self.first_messages:
            self.builder.wait_for(ops, (steps[receivers], 1))
        return self.builder.close(steps)

    def sample(self) -> IntArray:
        """Sample the graph of iteration t + tau and send owners the wanted ids; per worker, the ids it receives."""
        facts, on_gpu = self.facts, self.facts.samples_on_gpu
        entries = facts.ahead(self.kept, self.tau)
        # The sampling worker writes to its peers in ascending order.
        peers = np.array([[peer for peer in self.workers if peer != rank] for rank in self.workers], dtype=np.int64)
        peers = peers.reshape(self.size, -1)
        own = np.repeat(self.ranks, self.size - 1).reshape(peers.shape)
        nbytes = id_bytes(self.ahead, id_width(facts))[:, own, peers]
        sizes = message_sizes(self.builder, nbytes)
        drawing = np.ones((self.size, 2 if on_gpu else 3), np.int64)
        at = self.builder.numbers(np.concatenate([drawing, sizes], axis=1))
        sample_ops = self.draw_on_gpu(at, entries) if on_gpu else self.draw_on_host(at, entries)
        names = self.builder.names(id_streams(facts))
        sent = host_messages(
            self.builder,
            OpKind.INDEX,
            own,
            peers,
            nbytes,
            [sample_ops[:, None]],
            at=at[:, drawing.shape[1] :],
            sizes=sizes,
            stream=names[peers],
        )
        return self.heard(own, peers, sent)

    def heard(self, own: IntArray, peers: IntArray, sent: IntArray) -> IntArray:
        """Per worker, the messages it receives by sender, int64[P, P], -1 for none: `sent` from `own` to `peers`."""
        found = np.full((self.size, self.size), -1, np.int64)
        found[peers, own] = sent
        return found

    def draw_on_host(self, at: IntArray, entries: IntArray) -> IntArray:
        """Sample on CPU threads and copy the graph to the GPU; returns the ops after which the host has the ids."""
        facts = self.facts
        refresh, weighted = self.method.refresh, self.method.weighted
        work = draw_core_seconds(self.host, facts.counts.entries, refresh, weighted=weighted) + self.calls
        sample_ops = self.builder.block(
            OpKind.SAMPLE,
            self.ranks,
            work,
            at=at[:, 0],
            ways=self.builder.ways(map(facts.cluster.cores, self.workers)),
            stream="sampler",
            cap=ONE_THREAD * facts.sampler_threads,
        )
        self.first.append(sample_ops)
        upload = self.builder.block(
            OpKind.INDEX,
            self.ranks,
            graph_bytes(entries, self.inner),
            at=at[:, 1],
            ways=self.to_device,
            stream="graph.h2d",
            after=[sample_ops],
        )
        self.compute(OpKind.INDEX, self.rebuilt, at=at[:, 2], after=[(upload, self.tau)])
        return sample_ops

    def draw_on_gpu(self, at: IntArray, kept_entries: IntArray) -> IntArray:
        """Sample on the GPU and copy the wanted ids to the host; returns the ops after which the host has them."""
        entries, refresh, weighted = self.facts.counts.entries, self.method.refresh, self.method.weighted
        seconds = self.on_devices(
            lambda device, ranks: sampler_seconds(
                device, entries[ranks], kept_entries[:, ranks], self.inner[ranks], refresh, weighted=weighted
            )
        )
        sample_ops = self.compute(OpKind.SAMPLE, np.maximum(seconds, self.rebuilt) + self.calls, at=at[:, 0])
        ids = id_bytes(self.ahead.sum(axis=2), id_width(self.facts))
        return self.builder.block(
            OpKind.INDEX, self.ranks, ids, at=at[:, 1], ways=self.to_host, stream="ids.d2h", after=[sample_ops]
        )

    def forward(self, layer: Layer, ready: IntArray | None, ids: IntArray | None) -> IntArray:
        """One layer's forward pass and the transfer of its input rows; per worker, the op that computes its output.

        ready: per worker, the op that computes its input rows; ids: the messages it needs before the first rows leave.
        """
        facts, cost = self.facts, self.costs[layer]
        if not facts.shapes[layer].gathers:
            return self.compute(OpKind.UPDATE, cost.update, layer, FORWARD)
        width = facts.shapes[layer].d_in
        exchanges = self.exchanges and facts.shapes[layer].exchanges
        hits = facts.counts.hits if layer == 0 else np.zeros_like(facts.counts.hits)
        received = (self.trained - hits).sum(axis=2)
        if self.beneath:
            self.compute(OpKind.AGGREGATE, self.inner_sum(layer, FORWARD), layer, FORWARD)
        reads = self.read(layer, FORWARD, received, width) if exchanges else None
        held, looking = self.held(layer)
        sizes = np.ones((self.size, 3), np.int64)
        sizes[:, 0] = np.isin(self.ranks, looking)
        at = self.builder.numbers(sizes)
        if looking.size:
            seconds = self.on_devices(lambda device, ranks: rows_seconds(device, held[:, ranks], width))
            self.builder.block(
                OpKind.LOOKUP,
                looking,
                np.asarray(seconds)[:, looking],
                at=at[looking, 0],
                layer=layer,
                direction=FORWARD,
            )
        summed = self.cross_sum(width) if self.beneath else cost.aggregate
        self.compute(OpKind.AGGREGATE, summed, layer, FORWARD, at=at[:, 1])
        done = self.compute(OpKind.UPDATE, cost.update, layer, FORWARD, at=at[:, 2])
        if reads is not None:
            misses = self.ahead - facts.ahead(hits, self.tau)
            sources: list[Waits] = [] if ready is None else [ready]
            if ids is not None and layer == self.gathering:
                sources.append(ids)
            self.transfer(layer, FORWARD, misses.transpose(0, 2, 1), width, sources, reads, ready)
        return done

    def backward(self, layer: Layer) -> IntArray:
        """One layer's backward pass and the transfer of its boundary gradients; per worker, its last gradient op."""
        facts, cost = self.facts, self.costs[layer]
        width = facts.shapes[layer].d_in
        last = self.compute(OpKind.UPDATE, cost.update_backward, layer, BACKWARD)
        if not facts.shapes[layer].gathers:
            return last
        if layer == 0:
            # The input's gradient is not needed, but weights applied before the sum need the sum's gradient.
            attends = facts.shapes[0].heads
            return self.compute(OpKind.AGGREGATE, cost.aggregate_backward, 0, BACKWARD) if attends else last
        if self.beneath:
            at = self.builder.numbers(np.ones((self.size, 2), np.int64))
            made = self.compute(OpKind.AGGREGATE, self.cross_sum(width, back=True), layer, BACKWARD, at=at[:, 0])
            self.compute(OpKind.AGGREGATE, self.inner_sum(layer, BACKWARD), layer, BACKWARD, at=at[:, 1])
        else:
            made = self.compute(OpKind.AGGREGATE, cost.aggregate_backward, layer, BACKWARD)
        if self.exchanges:
            arrived = facts.earlier(self.trained, self.tau).sum(axis=1)
            reads = self.read(layer, BACKWARD, arrived, width)
            self.transfer(layer, BACKWARD, self.trained, width, [made], reads, made)
        return last

    def read(self, layer: Layer, direction: Direction, rows: IntArray, width: int) -> IntArray:
        """Per worker, the compute-stream op that waits for received rows and copies `rows[t, n]`."""
        smooths, payload = direction in self.method.smooths, self.facts.payload
        at = self.builder.numbers(np.ones((self.size, 2 if smooths else 1), np.int64))
        seconds = self.on_devices(lambda device, ranks: unpack_seconds(device, rows[:, ranks], width, payload))
        if self.facts.released:
            seconds = self.received(seconds)
        reads = self.compute(OpKind.SCATTER, seconds, layer, direction, at=at[:, 0])
        if smooths:
            averaged = self.on_devices(lambda device, ranks: average_seconds(device, rows[:, ranks], width))
            self.compute(OpKind.AGGREGATE, averaged, layer, direction, at=at[:, 1])
        return reads

    def transfer(
        self,
        layer: Layer,
        direction: Direction,
        rows: IntArray,
        width: int,
        sources: list[Waits],
        reads: IntArray,
        reached: IntArray | None,
    ) -> None:
        """Move rows[t, n, m] rows from n to m: pack, copy to host, one message per peer, copy to device, then be read.

        With a direct path between two GPUs, there are no copies to or from the host. sources: per worker, the ops that
        compute its rows. reads: per worker, the op that waits for the arriving rows. reached: per worker, the op after
        which it has reached this layer; None for the end of its previous iteration.
        """
        packed = self.pack(layer, direction, rows, width, sources, reads)
        own, peers = self.pairs
        payload = self.facts.payload
        nbytes = payload_bytes(rows, width, payload)[:, own, peers]
        staged = self.staged[own, peers]
        copies: BoolArray = np.asarray(self.staged.any(axis=1))
        sizes = np.where(staged, message_sizes(self.builder, nbytes), 1)
        at = self.builder.numbers(np.concatenate([copies[:, None].astype(np.int64), sizes], axis=1))
        copying = np.flatnonzero(copies)
        ready = packed.copy()
        if copying.size:
            down = payload_bytes((rows * self.staged).sum(axis=2), width, payload)[:, copying]
            ready[copying] = self.copy(OpKind.D2H, copying, down, [packed[copying]], layer, direction, at[copying, 0])
        first, last = at[:, 1:], at[:, 1:] + sizes - 1
        self.send(own, peers, staged, nbytes, packed, ready, layer, direction, first, sizes)
        if self.tau:
            self.builder.reuse(first, reads[peers])
        elif reached is None:
            self.first_messages.append((first, peers))
        else:
            self.builder.wait_for(first, reached[peers])
        if not staged.all():
            self.builder.wait_for(reads[peers[~staged]], (last[~staged], self.tau))
        if not copying.size:
            return
        # Paths are the same in both directions: a worker receives staged rows from the workers it stages rows to.
        arriving = self.heard(own, peers, np.where(staged, last, -1))
        up = payload_bytes((rows * self.staged).sum(axis=1), width, payload)[:, copying]
        there = self.copy(OpKind.H2D, copying, up, [arriving[copying]], layer, direction, None)
        self.builder.wait_for(reads[copying], (there, self.tau))

    def send(
        self,
        own: IntArray,
        peers: IntArray,
        staged: BoolArray,
        nbytes: FloatArray,
        packed: IntArray,
        ready: IntArray,
        layer: Layer,
        direction: Direction,
        at: IntArray,
        sizes: IntArray,
    ) -> None:
        """Messages from `own` to `peers`, [P, P - 1] each, with the numbers `at`; `staged` ones go through the hosts.

        packed: per worker, the op after which its rows leave the GPU directly; ready: the op after which they are on
        the host.
        """
        tag = f"{TAG[direction]}.tx"
        names = self.builder.names(tag if self.facts.serial else f"{tag}{peer}" for peer in self.workers)
        if staged.any():
            host_messages(
                self.builder,
                OpKind.WIRE,
                own[staged],
                peers[staged],
                nbytes[:, staged],
                [ready[own[staged]]],
                at=at[staged],
                sizes=sizes[staged],
                stream=names[peers[staged]],
                connection=ROWS,
                layer=layer,
                direction=direction,
            )
        direct = ~staged
        if direct.any():
            self.builder.block(
                OpKind.WIRE,
                own[direct],
                nbytes[:, direct],
                at=at[direct],
                after=[packed[own[direct]]],
                stream=names[peers[direct]],
                ways=self.direct_ways[own[direct], peers[direct]],
                peers=peers[direct],
                layer=layer,
                direction=direction,
                connection=ROWS,
            )

    def pack(
        self, layer: Layer, direction: Direction, rows: IntArray, width: int, sources: list[Waits], reads: IntArray
    ) -> IntArray:
        """Per worker, the op that gathers its outgoing rows, once they and the buffer of t - tau are ready."""
        leaving, payload = rows.sum(axis=2), self.facts.payload
        seconds = self.on_devices(lambda device, ranks: pack_seconds(device, leaving[:, ranks], width, payload))
        if self.facts.released:
            seconds = self.sent(seconds, leaving, width)
        packed = self.compute(OpKind.PACK, seconds, layer, direction, after=sources, stream=f"{TAG[direction]}.pack")
        if self.tau:
            self.builder.reuse(packed, reads)
        if direction is FORWARD and layer == 0:
            self.first.append(packed)
        return packed
