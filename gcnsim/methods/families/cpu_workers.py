"""Partition-parallel training on CPU cores, as the training runtime does it with gloo.

Differences from GPU workers: all of a worker's threads share the cores of its server, including its transfers. Nothing
is copied to a device. Sums over inner and over boundary columns are two products, and rows are received where they are
read. Order of ops, from the runtime's loop:

- synchronous: rows leave at the start of a layer; inner columns are summed during the transfer (`overlap: central`) or
after it (`none`), boundary columns last; backward, the boundary's gradients are computed and sent first;

- rows of earlier iterations: boundary columns are summed first, which frees their slot; then this iteration's rows
leave, and inner columns are summed. Backward, received gradients are added before this iteration's leave;

- a message moves once both ends have posted it; weight gradients are reduced layer by layer during the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gcnsim.cost import (
    CoreCost,
    CoreDropout,
    Kept,
    average_seconds,
    build_core_seconds,
    bytes_between,
    core_attention_cost,
    core_cost,
    core_dropout,
    core_pooling_cost,
    draw_core_seconds,
    host_in_training,
    id_bytes,
    logits_seconds,
    norms_seconds,
    row_bytes,
    rows_seconds,
    step_seconds,
)
from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.methods.families.cpu_ops import SAMPLER, TAG, WOKEN_S, CpuOps
from gcnsim.methods.method import CENTRAL, Facts
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import LayerShape

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

INTERPRETER_HELD = 0.6
"""The share of a sampling thread's work during which the training thread is blocked.

Both threads share one interpreter, whose lock numpy keeps while it indexes and builds, so the other waits between
kernels. Measured as the extra time between kernels of psc-gcn over full-graph training, relative to the sampler's work,
on five graphs with two workers on two cores: 0.26 to 1.3, geometric mean 0.6.
"""

JOINED_GRAPH = 1.2
"""The relative time to build a sampled graph for attention, which reads its inner and boundary entries together.

The reference is the same for sums; graphs for attention have no transposes. Measured in processor time on four graphs,
two and four workers, epsilon 0.1 and 0.3: 1.03 to 1.42, geometric mean 1.17. The time for pooling, without any
transpose, was not measured and is assumed equal to sums.
"""

COUNTS = 8
"""Bytes of the message with the number of ids that follow."""


def _law(shape: LayerShape) -> Callable[..., CoreCost]:
    """The cost law of a layer of this kind on a core."""
    if shape.heads:
        return core_attention_cost
    return core_pooling_cost if shape.pooled else core_cost


class CpuWriter(CpuOps):
    """Builds the schedule of `method` for workers on CPU cores."""

    def __init__(self, method: BoundaryRows, facts: Facts) -> None:
        super().__init__(method.name, facts, facts.counts.iterations)
        self.method, self.tau = method, method.tau
        self.facts = replace(self.facts, counts=facts.counts.repeated(self.iterations // facts.counts.iterations))
        counts = self.facts.counts
        # A softmax or a maximum needs all entries of a row, including crossing ones.
        self.overlap = method.overlap == CENTRAL and not any(shape.joins for shape in facts.shapes)
        self.sampled = method.samples(facts)
        self.trained = counts.rows
        self.ahead = np.roll(counts.rows, -self.tau, axis=0)
        self.between = [sum(self._touched(item) for item in self._beside(rank)) for rank in self.workers]
        """Per worker, bytes that the workers with the same last-level cache touch in an iteration."""
        self.costs = [self._costs(rank) for rank in self.workers]
        self.dropped = [self._dropped(rank) for rank in self.workers]
        self.first: list[list[int]] = [[] for _ in self.workers]
        """Ops off the compute stream that wait for the end of the worker's previous iteration."""
        self.stalled: list[Work] = [0.0 for _ in self.workers]
        """Seconds of an iteration in which a worker's sampling thread keeps the interpreter lock from its other thread.
        """

    def write(self) -> Schedule:
        """Build the schedule."""
        facts = self.facts
        ids = self._drawn()
        ready: list[int | None] = [None for _ in self.workers]
        for layer in range(len(facts.shapes)):
            ready = self._forward(layer, ready, ids)
        for rank in self.workers:
            inner = int(facts.counts.inner_nodes[rank])
            self.work(OpKind.LOSS, rank, logits_seconds(facts.device, facts.host, inner, facts.shapes[-1].d_out))
            if self.sampled and self.method.weighted:
                norms = norms_seconds(facts.device, inner, facts.shapes) / self.method.refresh
                self.work(OpKind.SAMPLE, rank, norms)
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in reversed(range(len(facts.shapes))):
            made = self._backward(layer)
            for rank, op in enumerate(self.reduce(layer, made)):
                reduced[rank].append(op)
        seconds = float(step_seconds(facts.device, facts.shapes))
        steps = []
        for rank in self.workers:
            self.work(OpKind.STEP, rank, seconds, after=reduced[rank])
            steps.append(self._handed_over(rank))
        for rank in self.workers:
            for op in self.first[rank]:
                self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def _costs(self, rank: Rank) -> list[CoreCost]:
        facts, counts = self.facts, self.facts.counts
        inner = int(counts.inner_nodes[rank])
        beside = self._beside(rank)
        matrix = Kept(
            inner,
            counts.inner_edges[:, rank] + inner,
            counts.boundary_edges[:, rank],
            counts.rows[:, rank].sum(axis=1),
            None if counts.reuse is None else counts.reuse[rank],
            self.between[rank],
            min(len(beside), len(facts.cluster.cores(rank))),
        )
        last = len(facts.shapes) - 1
        return [
            _law(shape)(facts.device, shape, matrix, first=layer == 0, last=layer == last, norm=facts.norm)
            for layer, shape in enumerate(facts.shapes)
        ]

    def _dropped(self, rank: Rank) -> list[CoreDropout | None]:
        facts, own = self.facts, float(self.facts.counts.inner_nodes[rank])
        received = facts.counts.rows[:, rank].sum(axis=1).astype(np.float64)
        return [
            core_dropout(facts.device, facts.host, facts.dropout, shape, own, received, first=layer == 0)
            for layer, shape in enumerate(facts.shapes)
        ]

    def _beside(self, rank: Rank) -> list[Rank]:
        """The workers that share the last-level cache of `rank`: those of its machine, including itself."""
        cores = self.facts.cluster.cores(rank)
        return [worker for worker in self.workers if self.facts.cluster.cores(worker) == cores]

    def _touched(self, rank: Rank) -> float:
        """Bytes that a worker touches in an iteration."""
        counts = self.facts.counts
        rows = float(counts.rows[:, rank].sum(axis=1).mean())
        return bytes_between(float(counts.inner_nodes[rank]), rows, self.facts.shapes, norm=self.facts.norm)

    def _drawn(self) -> list[list[int]]:
        """Sample this iteration's graph, or a later one; per worker, the ids that its answers wait for."""
        heard: list[list[int]] = [[] for _ in self.workers]
        facts, counts = self.facts, self.facts.counts
        if not self.sampled:
            return heard
        ready: list[int] = []
        received: list[list[Dependency]] = [[] for _ in self.workers]
        for rank in self.workers:
            host = host_in_training(facts.host, facts.device.far, self.between[rank])
            entries = int(counts.entries[rank])
            entries_kept = np.roll(counts.inner_edges[:, rank] + counts.boundary_edges[:, rank], -self.tau)
            work = draw_core_seconds(host, entries, self.method.refresh, weighted=self.method.weighted)
            more = JOINED_GRAPH if any(shape.heads for shape in facts.shapes) else 1.0
            built = more * build_core_seconds(host, entries_kept + int(counts.inner_nodes[rank]))
            seconds = host.draw_s.value + work + built
            self.stalled[rank] = INTERPRETER_HELD * seconds
            sample_op = self.work(OpKind.SAMPLE, rank, seconds, stream=SAMPLER)
            self.first[rank].append(sample_op)
            ready.append(sample_op)
        heads: list[list[Dependency]] = [[] for _ in self.workers]
        for rank, peer in self.pairs():
            stream = f"ids.tx{peer}"
            head = self.message(OpKind.INDEX, rank, peer, COUNTS, [ready[rank], ready[peer]], stream)
            heads[rank] += head.sent
            heads[peer].append(head.got)
        counted = [self.work(OpKind.INDEX, rank, 0.0, after=heads[rank], stream=SAMPLER) for rank in self.workers]
        for rank, peer in self.pairs():
            ids = id_bytes(self.ahead[:, rank, peer])
            stream = f"ids.tx{peer}"
            named = self.message(OpKind.INDEX, rank, peer, ids, [counted[rank], counted[peer]], stream)
            received[rank] += named.sent
            received[peer].append(named.got)
        for rank in self.workers:
            answered = self.work(OpKind.INDEX, rank, 0.0, after=received[rank], stream=SAMPLER)
            heard[rank].append(answered)
            self.work(OpKind.INDEX, rank, 0.0, after=[(answered, self.tau)])
        return heard

    def _forward(self, layer: Layer, ready: list[int | None], ids: list[list[int]]) -> list[int | None]:
        facts, width = self.facts, self.facts.shapes[layer].d_in
        # Sums computed before training need no rows: nothing moves.
        sums = facts.shapes[layer].gathers
        hits = facts.counts.hits if layer == 0 else np.zeros_like(facts.counts.hits)
        reads: list[int] = []
        frees: list[int] = []
        leaving: list[list[int]] = []
        done: list[int | None] = []
        for rank in self.workers:
            cost, made, dropped = self.costs[rank][layer], ready[rank], self.dropped[rank][layer]
            before = [] if made is None else [made]
            if layer:
                self._handed_over(rank)
            if dropped is not None:
                before = [self.work(OpKind.UPDATE, rank, dropped.inner, layer, FORWARD)]
            if not self.exchanges or not sums:
                if sums:
                    self._drop_received(rank, layer)
                    # An op that reads all rows takes the place of the boundary's op, because it waits for the boundary
                    # if there is one.
                    alone = cost.boundary if facts.shapes[layer].joins else cost.inner
                    self.work(OpKind.AGGREGATE, rank, alone, layer, FORWARD)
            elif self.tau:
                reads.append(self._read(rank, layer, FORWARD, self._averaging(FORWARD, self.trained[:, rank], width)))
                self._drop_received(rank, layer)
                frees.append(self.work(OpKind.AGGREGATE, rank, cost.boundary, layer, FORWARD))
                self.work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
            else:
                if self.overlap:
                    self.work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
                reads.append(self._read(rank, layer, FORWARD, 0.0))
                if not self.overlap:
                    self.work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
                self._drop_received(rank, layer)
                self.work(OpKind.AGGREGATE, rank, cost.boundary, layer, FORWARD)
            leaving.append(before)
            done.append(self.work(OpKind.UPDATE, rank, cost.update, layer, FORWARD))
        if self.exchanges and sums:
            sources = [leaving[rank] + (ids[rank] if layer == 0 else []) for rank in self.workers]
            misses = (self.ahead - np.roll(hits, -self.tau, axis=0)).transpose(0, 2, 1)
            held = np.roll(hits, -self.tau, axis=0).sum(axis=2)
            self._transfer(layer, FORWARD, misses, width, sources, reads, frees, held if layer == 0 else None)
        return done

    def _drop_received(self, rank: Rank, layer: Layer) -> None:
        """Dropout of received rows, applied where they are read."""
        dropped = self.dropped[rank][layer]
        if dropped is not None and dropped.boundary.any():
            self.work(OpKind.UPDATE, rank, dropped.boundary, layer, FORWARD)

    def _drop_gradients(self, rank: Rank, layer: Layer) -> None:
        """The gradients of a worker's rows are multiplied by the dropout mask."""
        dropped = self.dropped[rank][layer]
        if dropped is not None:
            self.work(OpKind.UPDATE, rank, dropped.inner_backward, layer, BACKWARD)

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op that computes its weight gradient."""
        facts, width = self.facts, self.facts.shapes[layer].d_in
        weights, leaving, reads = [], [], []
        for rank in self.workers:
            cost, dropped = self.costs[rank][layer], self.dropped[rank][layer]
            self._handed_over(rank)
            weights.append(self.work(OpKind.UPDATE, rank, cost.update_backward, layer, BACKWARD))
            if layer == 0:
                continue
            if not self.exchanges:
                alone = cost.boundary_backward if facts.shapes[layer].joins else cost.inner_backward
                self.work(OpKind.AGGREGATE, rank, alone, layer, BACKWARD)
                if dropped is not None and dropped.boundary_backward.any():
                    self.work(OpKind.UPDATE, rank, dropped.boundary_backward, layer, BACKWARD)
                self._drop_gradients(rank, layer)
                continue
            arrived = np.roll(self.trained, self.tau, axis=0).sum(axis=1)[:, rank]
            adding = rows_seconds(facts.device, arrived, width)
            adding += self._averaging(BACKWARD, np.roll(self.trained, self.tau, axis=0)[:, :, rank], width)
            made = self.work(OpKind.AGGREGATE, rank, cost.boundary_backward, layer, BACKWARD)
            if dropped is not None and dropped.boundary_backward.any():
                made = self.work(OpKind.UPDATE, rank, dropped.boundary_backward, layer, BACKWARD)
            if self.tau or self.overlap:
                self.work(OpKind.AGGREGATE, rank, cost.inner_backward, layer, BACKWARD)
                reads.append(self._read(rank, layer, BACKWARD, adding))
            else:
                waited = self._read(rank, layer, BACKWARD, 0.0)
                self.work(OpKind.AGGREGATE, rank, cost.inner_backward, layer, BACKWARD)
                self.work(OpKind.SCATTER, rank, adding, layer, BACKWARD)
                reads.append(waited)
            self._drop_gradients(rank, layer)
            leaving.append([made])
        if layer and self.exchanges:
            self._transfer(layer, BACKWARD, self.trained, width, leaving, reads, reads if self.tau else [], None)
        return weights

    def _handed_over(self, rank: Rank) -> int:
        """The time of the interpreter and of thread switches, spread evenly over the layers' two passes."""
        passes = 2 * len(self.facts.shapes)
        self.stands_still(rank, self.stalled[rank] / passes)
        return self.work(OpKind.STEP, rank, self.facts.host.iteration_s.value / passes)

    def _read(self, rank: Rank, layer: Layer, direction: Direction, seconds: Work) -> int:
        """The op that waits for the arriving values, and adds them where needed."""
        return self.work(OpKind.SCATTER, rank, seconds + WOKEN_S, layer=layer, direction=direction)

    def _averaging(self, direction: Direction, rows: IntArray, width: int) -> FloatArray:
        """Core-seconds in which received rows, rows[t, peer], enter their moving average; 0 without one."""
        every = rows.sum(axis=1)
        smooths = direction in self.method.smooths
        return average_seconds(self.facts.device, every, width) if smooths else np.zeros(every.shape)

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
        """Move rows[t, n, m] rows from n to m, once the ops `frees` have read the slots they go to.

        held[t, n]: rows that n's cache adds to the received ones.
        """
        tag, posted = TAG[direction], list[int]()
        for rank in self.workers:
            # Gradients are computed in the send buffer; rows are gathered from all inner rows.
            out = rows[:, rank].sum(axis=1)
            work = self.moved(self.between[rank], out, width) if direction is FORWARD else np.zeros(out.shape)
            pack = self.work(OpKind.PACK, rank, work, layer, direction, after=sources[rank], stream=f"{tag}.pack")
            if direction is FORWARD and layer == 0 and not sources[rank]:
                self.first[rank].append(pack)
            if frees:
                self.builder.reuse(pack, frees[rank])
            posted.append(pack)
        through: list[list[Dependency]] = [[] for _ in self.workers]
        for rank in self.workers:
            for peer in self.workers:
                if peer != rank:
                    nbytes, stream = row_bytes(rows[:, rank, peer], width), f"{tag}.tx{peer}.{layer}"
                    both: list[Dependency] = [posted[rank], posted[peer]]
                    message = self.message(OpKind.WIRE, rank, peer, nbytes, both, stream, layer, direction)
                    through[rank] += message.sent
                    through[peer].append(message.got)
            if held is not None and held[:, rank].any():
                seconds = self.moved(self.between[rank], held[:, rank], width)
                stream, after = f"{tag}.pack", [posted[rank]]
                through[rank].append(
                    self.work(OpKind.LOOKUP, rank, seconds, layer, direction, after=after, stream=stream)
                )
        for rank in self.workers:
            # One thread awaits the transfers of a direction in order, both outgoing and incoming.
            awaited = self.work(OpKind.UNPACK, rank, 0.0, layer, direction, after=through[rank], stream=f"{tag}.fetch")
            self.builder.wait_for(reads[rank], (awaited, self.tau))
