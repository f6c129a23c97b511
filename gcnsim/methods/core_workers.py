"""Partition-parallel training by workers that compute on CPU cores, as the training runtime does it with gloo.

What differs from GPU workers: everything a worker does takes turns on the cores of its server, its transfers included
(an equal share for every runnable thread); nothing is copied to a device; sums over inner and over boundary columns are
two products, and rows are received where they are read. Order of ops, from the runtime's loop:
- synchronous: rows leave at the start of a layer; inner columns are summed beneath the transfer (`overlap: central`)
  or after it (`none`), boundary columns last; backward, the boundary's gradients are made and sent first;
- rows of earlier iterations: boundary columns are summed first, which frees their slot; then this iteration's rows
  leave, and inner columns are summed. Backward, received gradients are added before this iteration's leave;
- a message moves once both ends have asked for it; weights' gradients are reduced layer by layer during the backward
  pass.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gcnsim.cost import (
    CoreCost,
    Kept,
    build_core_seconds,
    core_cost,
    draw_core_seconds,
    elementwise_seconds,
    gradient_bytes,
    id_bytes,
    loss_seconds,
    row_bytes,
    rows_seconds,
    socket_core_seconds,
    step_seconds,
)
from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.methods.facts import Facts
from gcnsim.schedule import COMPUTE_STREAM, Builder, Schedule
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TAG = {FORWARD: "f", BACKWARD: "b"}
ONE_THREAD = 1.0
COUNTS = 8
"""Bytes of the message that says how many ids follow."""


class CoreWriter:
    """Writes the schedule of method `name` for `facts`."""

    def __init__(self, name: str, facts: Facts) -> None:
        self.facts = facts
        self.builder = Builder(name, facts.cluster, facts.counts.iterations)
        self.workers = range(facts.cluster.gpus)
        self.exchanges = facts.cluster.gpus > 1
        counts, tau = facts.counts, facts.tau
        self.trained = counts.rows
        self.ahead = np.roll(counts.rows, -tau, axis=0)
        self.costs = [self._costs(rank) for rank in self.workers]
        self.first: list[list[int]] = [[] for _ in self.workers]
        """Ops off the compute stream that wait for the end of the worker's previous iteration."""

    def write(self) -> Schedule:
        """The schedule."""
        facts = self.facts
        ids = self._drawn()
        ready: list[int | None] = [None for _ in self.workers]
        for layer in range(len(facts.shapes)):
            ready = self._forward(layer, ready, ids)
        for rank in self.workers:
            inner = int(facts.counts.inner_nodes[rank])
            seconds = loss_seconds(facts.device, inner, facts.shapes[-1].d_out)
            self._work(OpKind.LOSS, rank, seconds)
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in reversed(range(len(facts.shapes))):
            made = self._backward(layer)
            for rank, op in enumerate(self._reduce(layer, made)):
                reduced[rank].append(op)
        seconds = step_seconds(facts.device, facts.shapes)
        steps = []
        for rank in self.workers:
            self._work(OpKind.STEP, rank, seconds, after=reduced[rank])
            # Hand-overs between threads and the interpreter: mostly waits, so no work for the cores.
            steps.append(self.builder.compute(OpKind.STEP, rank, facts.host.iteration_s.value))
        for rank in self.workers:
            for op in self.first[rank]:
                self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def _costs(self, rank: Rank) -> list[CoreCost]:
        facts, counts = self.facts, self.facts.counts
        inner = int(counts.inner_nodes[rank])
        kept = Kept(
            inner,
            counts.inner_edges[:, rank] + inner,
            counts.boundary_edges[:, rank],
            counts.rows[:, rank].sum(axis=1),
        )
        last = len(facts.shapes) - 1
        return [
            core_cost(facts.device, shape, kept, first=layer == 0, last=layer == last, norm=facts.norm)
            for layer, shape in enumerate(facts.shapes)
        ]

    def _work(
        self,
        kind: OpKind,
        rank: Rank,
        seconds: Work,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        *,
        after: Iterable[Dependency] = (),
        stream: str = COMPUTE_STREAM,
        crowded_s: float = 0.0,
    ) -> int:
        """Core-seconds of one thread."""
        return self.builder.flow(
            kind,
            rank,
            seconds,
            self.facts.cluster.cores(rank),
            stream=stream,
            after=after,
            cap=ONE_THREAD,
            layer=layer,
            direction=direction,
            crowded_s=crowded_s,
        )

    def _drawn(self) -> list[list[int]]:
        """What draws this iteration's graph, or one to come; per worker, the ids that its answers wait for."""
        heard: list[list[int]] = [[] for _ in self.workers]
        facts, counts = self.facts, self.facts.counts
        if not facts.sampled:
            return heard
        told: list[list[int]] = [[] for _ in self.workers]
        for rank in self.workers:
            entries = int(counts.entries[rank])
            kept = np.roll(counts.inner_edges[:, rank] + counts.boundary_edges[:, rank], -facts.tau)
            work = draw_core_seconds(facts.host, entries, facts.refresh, weighted=facts.weighted)
            seconds = work + build_core_seconds(facts.host, kept + int(counts.inner_nodes[rank]))
            drawn = self._work(OpKind.SAMPLE, rank, seconds, stream="sampler")
            self.first[rank].append(drawn)
            for peer in self.workers:
                if peer != rank:
                    count = self._message(OpKind.INDEX, rank, peer, COUNTS, [drawn], f"ids.tx{peer}")
                    ids = id_bytes(self.ahead[:, rank, peer])
                    told[peer].append(self._message(OpKind.INDEX, rank, peer, ids, [count], f"ids.tx{peer}"))
        for rank in self.workers:
            answered = self._work(OpKind.INDEX, rank, 0.0, after=told[rank], stream="sampler")
            heard[rank].append(answered)
            self._work(OpKind.INDEX, rank, 0.0, after=[(answered, facts.tau)])
        return heard

    def _message(
        self,
        kind: OpKind,
        rank: Rank,
        peer: Rank,
        nbytes: Work,
        after: list[Dependency],
        stream: str,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
    ) -> int:
        """Bytes to a peer, and the cores' work at both ends; the op that ends when all of it is done."""
        facts = self.facts
        size = np.zeros(facts.counts.iterations) + nbytes
        work = socket_core_seconds(facts.host, size)
        lane = stream.partition(".")[0]
        crowded = facts.host.crowded_message_s.value
        route = facts.cluster.between(rank, peer)
        wire = self.builder.flow(
            kind, rank, size, route, stream=stream, after=after, peer=peer, layer=layer, direction=direction
        )
        ends = [
            self._work(
                kind, end, work, layer, direction, after=after, stream=f"{lane}.io{side}{far}", crowded_s=crowded
            )
            for end, side, far in ((rank, "tx", peer), (peer, "rx", rank))
        ]
        got = f"{lane}.got{rank}"
        return self.builder.compute(kind, peer, 0.0, after=[wire, *ends], stream=got, layer=layer, direction=direction)

    def _forward(self, layer: Layer, ready: list[int | None], ids: list[list[int]]) -> list[int | None]:
        facts, width = self.facts, self.facts.shapes[layer].d_in
        hits = facts.counts.hits if layer == 0 else np.zeros_like(facts.counts.hits)
        reads: list[int] = []
        frees: list[int] = []
        leaving: list[list[int]] = []
        done: list[int | None] = []
        for rank in self.workers:
            cost, made = self.costs[rank][layer], ready[rank]
            before = [] if made is None else [made]
            if not self.exchanges:
                self._work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
            elif facts.tau:
                reads.append(self._read(rank, layer, FORWARD, 0.0))
                frees.append(self._work(OpKind.AGGREGATE, rank, cost.boundary, layer, FORWARD))
                self._work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
            else:
                if facts.overlap:
                    self._work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
                reads.append(self._read(rank, layer, FORWARD, 0.0))
                if not facts.overlap:
                    self._work(OpKind.AGGREGATE, rank, cost.inner, layer, FORWARD)
                self._work(OpKind.AGGREGATE, rank, cost.boundary, layer, FORWARD)
            leaving.append(before)
            done.append(self._work(OpKind.UPDATE, rank, cost.update, layer, FORWARD))
        if self.exchanges:
            sources = [leaving[rank] + (ids[rank] if layer == 0 else []) for rank in self.workers]
            misses = (self.ahead - np.roll(hits, -facts.tau, axis=0)).transpose(0, 2, 1)
            held = np.roll(hits, -facts.tau, axis=0).sum(axis=2)
            self._transfer(layer, FORWARD, misses, width, sources, reads, frees, held if layer == 0 else None)
        return done

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op that makes its weights' gradient."""
        facts, width = self.facts, self.facts.shapes[layer].d_in
        weights, leaving, reads = [], [], []
        for rank in self.workers:
            cost = self.costs[rank][layer]
            weights.append(self._work(OpKind.UPDATE, rank, cost.update_backward, layer, BACKWARD))
            if layer == 0:
                continue
            if not self.exchanges:
                self._work(OpKind.AGGREGATE, rank, cost.inner_backward, layer, BACKWARD)
                continue
            arrived = np.roll(self.trained, facts.tau, axis=0).sum(axis=1)[:, rank]
            adding = rows_seconds(facts.device, arrived, width)
            made = self._work(OpKind.AGGREGATE, rank, cost.boundary_backward, layer, BACKWARD)
            if facts.tau or facts.overlap:
                self._work(OpKind.AGGREGATE, rank, cost.inner_backward, layer, BACKWARD)
                reads.append(self._read(rank, layer, BACKWARD, adding))
            else:
                waited = self._read(rank, layer, BACKWARD, 0.0)
                self._work(OpKind.AGGREGATE, rank, cost.inner_backward, layer, BACKWARD)
                self._work(OpKind.SCATTER, rank, adding, layer, BACKWARD)
                reads.append(waited)
            leaving.append([made])
        if layer and self.exchanges:
            self._transfer(layer, BACKWARD, self.trained, width, leaving, reads, reads if facts.tau else [], None)
        return weights

    def _read(self, rank: Rank, layer: Layer, direction: Direction, seconds: Work) -> int:
        """The op that waits for what arrives, and adds it where it must be added."""
        return self._work(OpKind.SCATTER, rank, seconds, layer=layer, direction=direction)

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

        held[t, n]: rows that n's cache puts beside those it receives.
        """
        facts, tag = self.facts, TAG[direction]
        posted = []
        for rank in self.workers:
            # Gradients are made where they leave from; rows are gathered out of all inner rows.
            out = rows[:, rank].sum(axis=1)
            work: FloatArray = rows_seconds(facts.device, out, width) if direction is FORWARD else np.zeros(out.shape)
            pack = self._work(OpKind.PACK, rank, work, layer, direction, after=sources[rank], stream=f"{tag}.pack")
            if direction is FORWARD and layer == 0 and not sources[rank]:
                self.first[rank].append(pack)
            if frees:
                self.builder.reuse(pack, frees[rank])
            posted.append(pack)
        arriving: list[list[int]] = [[] for _ in self.workers]
        for rank in self.workers:
            for peer in self.workers:
                if peer != rank:
                    both: list[Dependency] = [posted[rank], posted[peer]]
                    nbytes = row_bytes(rows[:, rank, peer], width)
                    arriving[peer].append(
                        self._message(OpKind.WIRE, rank, peer, nbytes, both, f"{tag}.tx{peer}", layer, direction)
                    )
            if held is not None and held[:, rank].any():
                seconds = rows_seconds(facts.device, held[:, rank], width)
                stream, after = f"{tag}.pack", [posted[rank]]
                arriving[rank].append(
                    self._work(OpKind.LOOKUP, rank, seconds, layer, direction, after=after, stream=stream)
                )
        for rank in self.workers:
            for op in arriving[rank]:
                self.builder.wait_for(reads[rank], (op, facts.tau))

    def _reduce(self, layer: Layer, made: list[int]) -> list[int]:
        """All-reduce one layer's gradient around the ring; per worker, the op that ends it."""
        facts = self.facts
        if not self.exchanges:
            return made
        nbytes = gradient_bytes((facts.shapes[layer],))
        chunk = nbytes / facts.cluster.gpus
        adding = elementwise_seconds(facts.device, chunk / 4, 3)
        ready = list(made)
        for step in range(2 * (facts.cluster.gpus - 1)):
            sent = [self._pass_on(rank, chunk, ready[rank], layer) for rank in self.workers]
            ready = [sent[rank - 1] for rank in self.workers]
            if step < facts.cluster.gpus - 1:
                ready = [
                    self._work(OpKind.ALLREDUCE, rank, adding, after=[ready[rank]], stream="reduce.add")
                    for rank in self.workers
                ]
        return ready

    def _pass_on(self, rank: Rank, chunk: float, ready: int, layer: Layer) -> int:
        """One step of the ring: a chunk to the right neighbour."""
        right = (rank + 1) % self.facts.cluster.gpus
        return self._message(OpKind.ALLREDUCE, rank, right, chunk, [ready], f"reduce.ring{right}", layer)
