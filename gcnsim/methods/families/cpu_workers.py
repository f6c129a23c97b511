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

from dataclasses import replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.cost import (
    CoreShares,
    Kept,
    average_seconds,
    core_shares,
    draw_core_seconds,
    id_bytes,
    loss_seconds,
    norms_seconds,
    row_bytes,
    rows_seconds,
    step_seconds,
)
from gcnsim.methods.families.cpu_ops import SAMPLER, TAG, WOKEN_S, CpuOps
from gcnsim.methods.method import CENTRAL, Facts, Method
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import NO_DROPOUT

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

COUNTS = 8
"""Bytes of the message with the number of ids that follow."""


class CpuWriter(CpuOps):
    """Builds the schedule of `method` for workers on CPU cores."""

    def __init__(self, method: Method, facts: Facts) -> None:
        super().__init__(method.name, facts, facts.counts.iterations)
        self.method, self.tau = method, method.tau
        self.facts = replace(self.facts, counts=facts.counts.repeated(self.iterations // facts.counts.iterations))
        counts = self.facts.counts
        # A softmax needs all entries of a row, including crossing ones.
        self.overlap = method.overlap == CENTRAL and not any(shape.heads for shape in facts.shapes)
        self.sampled = method.samples(facts)
        self.trained = counts.rows
        self.ahead = np.roll(counts.rows, -self.tau, axis=0)
        self.costs = [self._costs(rank) for rank in self.workers]
        self.drops = facts.dropout != NO_DROPOUT
        self.first: list[list[int]] = [[] for _ in self.workers]
        """Ops off the compute stream that wait for the end of the worker's previous iteration."""

    def write(self) -> Schedule:
        """Build the schedule."""
        facts = self.facts
        ids = self._drawn()
        ready: list[int | None] = [None for _ in self.workers]
        for layer in range(len(facts.shapes)):
            ready = self._forward(layer, ready, ids)
        for rank in self.workers:
            inner = int(facts.counts.inner_nodes[rank])
            self.work(OpKind.LOSS, rank, loss_seconds(facts.device, inner, facts.shapes[-1].d_out))
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
            steps.append(self.handed_over(rank))
        for rank in self.workers:
            for op in self.first[rank]:
                self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def _costs(self, rank: Rank) -> list[CoreShares]:
        facts, counts = self.facts, self.facts.counts
        inner, entries = int(counts.inner_nodes[rank]), counts.inner_edges[:, rank]
        kept = Kept(
            np.full_like(entries, inner),
            entries + inner,
            counts.boundary_edges[:, rank],
            counts.rows[:, rank].sum(axis=1),
        )
        return [core_shares(facts.device, shape, kept, facts.dropout) for shape in facts.shapes]

    def _drawn(self) -> list[list[int]]:
        """Sample this iteration's graph, or a later one; per worker, the ids that its answers wait for."""
        heard: list[list[int]] = [[] for _ in self.workers]
        facts, counts = self.facts, self.facts.counts
        if not self.sampled:
            return heard
        ready: list[int] = []
        received: list[list[Dependency]] = [[] for _ in self.workers]
        for rank in self.workers:
            entries, kept = int(counts.entries[rank]), counts.inner_edges[:, rank] + counts.boundary_edges[:, rank]
            seconds = draw_core_seconds(facts.host, entries, self.method.refresh, weighted=self.method.weighted)
            built = np.roll(kept, -self.tau) + int(counts.inner_nodes[rank])
            seconds = seconds + built / facts.host.build_entries_per_s.value
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
            cost, made = self.costs[rank][layer], ready[rank]
            before = [] if made is None else [made]
            if layer:
                self.handed_over(rank)
            if self.drops:
                before = [self.work(OpKind.UPDATE, rank, cost.dropped, layer, FORWARD)]
            if not self.exchanges or not sums:
                if sums:
                    self._drop_received(rank, layer)
                    # An op that reads all rows takes the place of the boundary's op, because it waits for the boundary
                    # if there is one.
                    alone = cost.boundary if facts.shapes[layer].heads else cost.inner
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
        dropped = self.costs[rank][layer].dropped_boundary
        if dropped.any():
            self.work(OpKind.UPDATE, rank, dropped, layer, FORWARD)

    def _drop_gradients(self, rank: Rank, layer: Layer) -> None:
        """The gradients of a worker's rows are multiplied by the dropout mask."""
        if self.drops:
            self.work(OpKind.UPDATE, rank, self.costs[rank][layer].dropped, layer, BACKWARD)

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op that computes its weight gradient."""
        facts, width = self.facts, self.facts.shapes[layer].d_in
        weights, leaving, reads = [], [], []
        for rank in self.workers:
            cost = self.costs[rank][layer]
            self.handed_over(rank)
            weights.append(self.work(OpKind.UPDATE, rank, cost.update, layer, BACKWARD))
            if layer == 0:
                continue
            if not self.exchanges:
                alone = cost.boundary_backward if facts.shapes[layer].heads else cost.inner
                self.work(OpKind.AGGREGATE, rank, alone, layer, BACKWARD)
                if cost.dropped_boundary.any():
                    self.work(OpKind.UPDATE, rank, cost.dropped_boundary, layer, BACKWARD)
                self._drop_gradients(rank, layer)
                continue
            arrived = np.roll(self.trained, self.tau, axis=0).sum(axis=1)[:, rank]
            adding = rows_seconds(facts.device, arrived, width)
            adding += self._averaging(BACKWARD, np.roll(self.trained, self.tau, axis=0)[:, :, rank], width)
            made = self.work(OpKind.AGGREGATE, rank, cost.boundary_backward, layer, BACKWARD)
            if cost.dropped_boundary.any():
                made = self.work(OpKind.UPDATE, rank, cost.dropped_boundary, layer, BACKWARD)
            if self.tau or self.overlap:
                self.work(OpKind.AGGREGATE, rank, cost.inner, layer, BACKWARD)
                reads.append(self._read(rank, layer, BACKWARD, adding))
            else:
                waited = self._read(rank, layer, BACKWARD, 0.0)
                self.work(OpKind.AGGREGATE, rank, cost.inner, layer, BACKWARD)
                self.work(OpKind.SCATTER, rank, adding, layer, BACKWARD)
                reads.append(waited)
            self._drop_gradients(rank, layer)
            leaving.append([made])
        if layer and self.exchanges:
            self._transfer(layer, BACKWARD, self.trained, width, leaving, reads, reads if self.tau else [], None)
        return weights

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
        facts, tag, posted = self.facts, TAG[direction], list[int]()
        for rank in self.workers:
            # Gradients are computed in the send buffer; rows are gathered from all inner rows.
            out = rows[:, rank].sum(axis=1)
            work = rows_seconds(facts.device, out, width) if direction is FORWARD else np.zeros(out.shape)
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
                seconds = rows_seconds(facts.device, held[:, rank], width)
                stream, after = f"{tag}.pack", [posted[rank]]
                through[rank].append(
                    self.work(OpKind.LOOKUP, rank, seconds, layer, direction, after=after, stream=stream)
                )
        for rank in self.workers:
            # One thread awaits the transfers of a direction in order, both outgoing and incoming.
            awaited = self.work(OpKind.UNPACK, rank, 0.0, layer, direction, after=through[rank], stream=f"{tag}.fetch")
            self.builder.wait_for(reads[rank], (awaited, self.tau))
