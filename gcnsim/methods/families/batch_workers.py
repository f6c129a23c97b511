"""Mini-batch training: the iteration that all systems share whose workers load a batch, train it and sum gradients.

One iteration is one mini-batch on every worker and one update of the model. A batch is drawn by a CPU thread; its input
rows are picked out of host memory by the worker's share of the server's cores, copied to the GPU, and trained. What
differs (`mini_batch.Loading`) is whether loading runs ahead of training, whether drawing does, and whether rows of
other servers are asked for.

Assumptions: a worker has its share of its server's cores, one of which draws; copies are pinned; gradients are summed
by a ring all-reduce after the backward pass; batches are dropped from memory once they are trained.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.boundary import BatchCounts
from gcnsim.cost import (
    LayerCost,
    batch_layer_cost,
    batch_loss_seconds,
    gradient_bytes,
    graph_bytes,
    id_bytes,
    row_bytes,
    rows_seconds,
    step_seconds,
)
from gcnsim.ids import FloatArray, IntArray, Rank
from gcnsim.methods.facts import Facts
from gcnsim.methods.families.mini_batch import MiniBatch, Plan
from gcnsim.schedule import Builder, Schedule, allreduce
from gcnsim.timeline import Direction, OpKind

ONE_THREAD = 1.0
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def mini_batches(method: MiniBatch, facts: Facts) -> Schedule:
    """The schedule of a mini-batch method for `facts`. Raises ValueError where facts have no mini-batches."""
    if facts.counts.batches is None:
        raise ValueError(f"{method.name}: the counts have no mini-batches")
    plan = method.plan(facts.shapes)
    return _Writer(method, replace(facts, shapes=plan.shapes), facts.counts.batches, plan).write()


class _Writer:
    """Writes one schedule. Demand of what runs ahead is that of the batch it prepares: rolled by as many iterations.

    One thread loads: it picks the rows of a batch, then copies them, then begins with the next."""

    def __init__(self, method: MiniBatch, facts: Facts, batches: BatchCounts, plan: Plan) -> None:
        self.facts, self.batches, self.loading, self.width = facts, batches, method.loading, plan.width
        loading = self.loading
        self.builder = Builder(method.name, facts.cluster, batches.iterations)
        self.workers = range(facts.cluster.gpus)
        # Hits are nobody's to send.
        self.loaded: IntArray = np.roll(batches.wanted - batches.hits, -loading.ahead, axis=0)
        self.costs = [self._costs(rank) for rank in self.workers]

    def write(self) -> Schedule:
        loads = [self._load(rank) for rank in self.workers]
        last = [self._train(rank, *load) for rank, load in zip(self.workers, loads, strict=True)]
        reduced = allreduce(self.builder, gradient_bytes(self.facts.shapes), last)
        steps = [self._step(rank, reduced[rank]) for rank in self.workers]
        if not self.loading.ahead:
            for rank, (begins, _) in zip(self.workers, loads, strict=True):
                for op in begins:
                    self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def _step(self, rank: Rank, reduced: int) -> int:
        """The optimizer's step, once the gradients are summed."""
        seconds = step_seconds(self.facts.device_of(rank), self.facts.shapes)
        return self.builder.compute(OpKind.STEP, rank, seconds, after=[reduced])

    def _load(self, rank: Rank) -> tuple[list[int], list[int]]:
        """Draw a batch and bring its rows to the GPU; the ops that begin to load, and those that end it."""
        drawn = self._draw(rank)
        after = [] if self.loading.draws_ahead else [drawn]
        begins, arrived = self._rows(rank, after)
        entries = np.roll(self.batches.entries[:, rank].sum(axis=1), -self.loading.ahead)
        made = int(self.batches.levels[:, rank, 1:].sum(axis=1).mean())
        graph = self.builder.flow(
            OpKind.INDEX,
            rank,
            graph_bytes(entries, made),
            self.facts.cluster.to_device(rank),
            stream="graph.h2d",
            after=after,
        )
        begins.append(graph)
        if self.loading.draws_ahead:
            for op in begins:
                self.builder.wait_for(op, (drawn, 1))
                self.builder.reuse(drawn, op)
            return begins, [*arrived, graph]
        return [drawn], [*arrived, graph]

    def _draw(self, rank: Rank) -> int:
        """The thread that draws: entries are looked at, those kept made into a matrix."""
        host, cluster = self.facts.host, self.facts.cluster
        ahead = self.loading.ahead + self.loading.draws_ahead
        looked = np.roll(self.batches.looked[:, rank], -ahead)
        kept = np.roll(self.batches.entries[:, rank].sum(axis=1), -ahead)
        work = looked / host.sample_edges_per_s.value + kept / host.build_entries_per_s.value
        return self.builder.flow(OpKind.SAMPLE, rank, work, cluster.cores(rank), stream="sampler", cap=ONE_THREAD)

    def _rows(self, rank: Rank, after: list[int]) -> tuple[list[int], list[int]]:
        """Rows from the server's memory, and from others' where asked; the ops that begin, and those that end it."""
        cluster, width = self.facts.cluster, self.width
        here = [peer for peer in self.workers if not self.loading.asks or self._together(rank, peer)]
        gathered = self._gather(rank, rank, self.loaded[:, rank, here].sum(axis=1), "load", after)
        begins, ready = [gathered], [gathered]
        for peer in self.workers:
            if peer not in here:
                rows = self.loaded[:, rank, peer]
                ids = self.builder.flow(
                    OpKind.WIRE,
                    rank,
                    id_bytes(rows),
                    cluster.between(rank, peer),
                    stream=f"ids.tx{peer}",
                    after=after,
                    peer=peer,
                )
                picked = self._gather(rank, peer, rows, f"load.gather{peer}", [ids])
                begins.append(ids)
                ready.append(
                    self.builder.flow(
                        OpKind.WIRE,
                        rank,
                        row_bytes(rows, width),
                        cluster.between(peer, rank),
                        stream=f"load.rx{peer}",
                        after=[picked],
                        peer=peer,
                        layer=0,
                        direction=FORWARD,
                    )
                )
        nbytes = row_bytes(self.loaded[:, rank].sum(axis=1), width)
        copied = self.builder.flow(
            OpKind.H2D,
            rank,
            nbytes,
            cluster.to_device(rank),
            stream="load",
            after=ready,
            layer=0,
            direction=FORWARD,
        )
        return begins, [copied]

    def _gather(self, rank: Rank, place: Rank, rows: IntArray, stream: str, after: list[int]) -> int:
        """Rows for `rank` picked out of the memory of the server of `place`, by that worker's cores."""
        facts = self.facts
        work = row_bytes(rows, self.width) / facts.host.gather_bandwidth.value
        beside = sum(self._together(place, peer) for peer in self.workers)
        threads = max(ONE_THREAD, facts.host.cores.value / beside - ONE_THREAD)
        return self.builder.flow(
            OpKind.GATHER,
            rank,
            work,
            facts.cluster.cores(place),
            stream=stream,
            after=after,
            cap=threads,
            layer=0,
            direction=FORWARD,
        )

    def _together(self, rank: Rank, peer: Rank) -> bool:
        """Whether two workers share a server's memory."""
        return self.facts.cluster.server_of[rank] == self.facts.cluster.server_of[peer]

    def _costs(self, rank: Rank) -> list[LayerCost]:
        levels, entries = self.batches.levels[:, rank], self.batches.entries[:, rank]
        return [
            batch_layer_cost(
                self.facts.device_of(rank),
                shape,
                first=layer == 0,
                rows_in=levels[:, layer],
                rows_out=levels[:, layer + 1],
                entries=entries[:, layer],
                norm=self.facts.norm,
                last=layer + 1 == len(self.facts.shapes),
                dropout=self.facts.dropout,
            )
            for layer, shape in enumerate(self.facts.shapes)
        ]

    def _train(self, rank: Rank, begins: list[int], arrived: list[int]) -> int:
        """Take a loaded batch, go forward and back; the op that makes the last gradient."""
        facts, builder = self.facts, self.builder
        ahead = self.loading.ahead
        taken = builder.compute(OpKind.LOOKUP, rank, self._taking(rank), after=[(op, ahead) for op in arrived])
        if ahead:
            for op in begins:
                builder.reuse(op, taken)
        for layer in range(len(facts.shapes)):
            cost = self.costs[rank][layer]
            builder.compute(OpKind.AGGREGATE, rank, cost.aggregate, layer=layer, direction=FORWARD)
            builder.compute(OpKind.UPDATE, rank, cost.update, layer=layer, direction=FORWARD)
        targets = self.batches.levels[:, rank, -1]
        builder.compute(OpKind.LOSS, rank, batch_loss_seconds(facts.device_of(rank), targets, facts.shapes[-1].d_out))
        last = -1
        for layer in reversed(range(len(facts.shapes))):
            cost = self.costs[rank][layer]
            last = builder.compute(OpKind.UPDATE, rank, cost.update_backward, layer=layer, direction=BACKWARD)
            if layer:
                builder.compute(OpKind.AGGREGATE, rank, cost.aggregate_backward, layer=layer, direction=BACKWARD)
        return last

    def _taking(self, rank: Rank) -> FloatArray:
        """Seconds in which cached and loaded rows are put together; 0 where nothing is cached."""
        batches = self.batches
        if not batches.cached[rank]:
            return np.zeros(batches.iterations)
        rows = batches.wanted[:, rank].sum(axis=1)
        return rows_seconds(self.facts.device_of(rank), rows, self.width)
