"""Mini-batch training on GPUs: the iteration of all systems whose workers load a batch, train it and sum gradients.

One iteration is one mini-batch on every worker and one update of the model. Systems differ (`Loading`, `Placement`) in
these points:
- whether loading runs ahead of training, and whether drawing does;
- who draws, and where input rows lie;
- whether rows of other servers are requested.

A batch is drawn by threads of the host, ahead or in turn, or by the GPU before it trains. The GPU reads a graph in host
memory by unified addressing. Rows lie on the GPU or in host memory; from there the worker's cores pick them or the GPU
reads them. Rows of other servers are requested, picked by their cores and sent, wherever the worker's own rows lie.

The framework's calls are counted (`gcnsim.cost.sampling`). Each call that draws a layer waits for its result.
Calls of training take the longer of host and GPU for the whole batch.

Assumptions: copies are pinned; gradients are summed by a ring all-reduce after the backward pass. Batches are freed
once they are trained. A worker picks rows with its share of its server's cores, minus one core where the host draws.
Threads that each draw a batch of their own are as fast together as if they shared each one evenly. A GPU that loads
ahead draws beside its training at no cost to it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Rank
from gcnsim.cost import (
    LayerCost,
    batch_attention_cost,
    batch_layer_cost,
    batch_loss_seconds,
    gpu_draw_seconds,
    gradient_bytes,
    graph_bytes,
    host_draw_core_seconds,
    id_bytes,
    pick_core_seconds,
    row_bytes,
    rows_seconds,
    step_seconds,
    training_calls,
    uva_graph_bytes,
    uva_row_bytes,
)
from gcnsim.methods.method import HOST, ON_GPU, Facts, Loading, Placement
from gcnsim.schedule import COMPUTE_STREAM, Builder, Schedule, allreduce
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import BatchCounts

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


class BatchWriter:
    """Builds the schedule of the method `name`. The demand of work done in advance is shifted by that number of
    iterations.
    """

    def __init__(
        self, name: str, facts: Facts, batches: BatchCounts, loading: Loading, width: int, *, one_graph: bool
    ) -> None:
        """width: values of an input row. one_graph: whether all layers sum over the same entries."""
        self.facts, self.batches, self.loading, self.width = facts, batches, loading, width
        self.builder = Builder(name, facts.cluster, batches.iterations)
        self.loader = BatchLoader(self.builder, facts, batches, loading, width, one_graph=one_graph)
        self.workers = range(facts.cluster.gpus)
        self.costs = [self._costs(rank) for rank in self.workers]

    def write(self) -> Schedule:
        """Build the schedule."""
        loads = [self.loader.load(rank) for rank in self.workers]
        last = [self._train(rank, *load) for rank, load in zip(self.workers, loads, strict=True)]
        reduced = allreduce(self.builder, gradient_bytes(self.facts.shapes), last)
        steps = [self._step(rank, reduced[rank]) for rank in self.workers]
        if not self.loading.ahead:
            for rank, (begins, _) in zip(self.workers, loads, strict=True):
                for op in begins:
                    self.builder.wait_for(op, (steps[rank], 1))
        return self.builder.close(steps)

    def _step(self, rank: Rank, reduced: int) -> int:
        """The optimizer's step, after the gradients are reduced."""
        seconds = step_seconds(self.facts.device_of(rank), self.facts.shapes)
        return self.builder.compute(OpKind.STEP, rank, seconds, after=[reduced])

    def _costs(self, rank: Rank) -> list[LayerCost]:
        levels, entries = self.batches.levels[:, rank], self.batches.entries[:, rank]
        return [
            (batch_attention_cost if shape.heads else batch_layer_cost)(
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
        """Take a loaded batch and run forward and backward; returns the op that computes the last gradient."""
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
        builder.compute(OpKind.LOSS, rank, self._loss(rank))
        last = -1
        for layer in reversed(range(len(facts.shapes))):
            cost = self.costs[rank][layer]
            last = builder.compute(OpKind.UPDATE, rank, cost.update_backward, layer=layer, direction=BACKWARD)
            # Attention applies the weights before the sum: the first layer's need the sum's gradient.
            if layer or facts.shapes[layer].heads:
                last = builder.compute(OpKind.AGGREGATE, rank, cost.aggregate_backward, layer=layer, direction=BACKWARD)
        return last

    def _loss(self, rank: Rank) -> FloatArray:
        """Seconds of the loss, plus host calls that are longer than the kernels of the batch.

        Nothing waits between layers, so the host runs ahead of the GPU until it has issued the batch. 0 for an empty
        batch.
        """
        facts, targets = self.facts, self.batches.levels[:, rank, -1]
        loss = batch_loss_seconds(facts.device_of(rank), targets, facts.shapes[-1].d_out)
        kernels = sum((cost.seconds for cost in self.costs[rank]), self._taking(rank) + loss)
        calls = training_calls(len(facts.shapes)) * facts.host.operation_s.value
        return np.asarray(loss + np.where(targets > 0, np.maximum(calls - kernels, 0.0), 0.0), dtype=np.float64)

    def _taking(self, rank: Rank) -> FloatArray:
        """Seconds to combine cached rows with loaded ones; 0 without cached rows."""
        batches = self.batches
        if self.loader.placement.features != ON_GPU and not batches.cached[rank]:
            return np.zeros(batches.iterations)
        rows = batches.wanted[:, rank].sum(axis=1)
        return rows_seconds(self.facts.device_of(rank), rows, self.width)


ONE_THREAD = 1.0


class BatchLoader:
    """Adds the ops that load one worker's batches.

    One thread loads: it gathers the rows of a batch, copies them, then starts the next batch.
    """

    def __init__(
        self, builder: Builder, facts: Facts, batches: BatchCounts, loading: Loading, width: int, *, one_graph: bool
    ) -> None:
        self.builder, self.facts, self.batches = builder, facts, batches
        self.loading, self.width, self.one_graph = loading, width, one_graph
        assert facts.placement is not None
        self.placement: Placement = replace(facts.placement, features=facts.placement.features or ON_GPU)
        self.workers = range(facts.cluster.gpus)
        self.drawn_layers = [layer for layer, shape in enumerate(facts.shapes) if shape.gathers]
        # Cached rows are never sent.
        self.loaded: IntArray = np.roll(batches.wanted - batches.hits, -self.loading.ahead, axis=0)

    def load(self, rank: Rank) -> tuple[list[int], list[int]]:
        """Sample a batch and load its rows; returns the ops that begin loading, and those that end it."""
        sample_op, graph = self._draw(rank)
        ahead = self.placement.ahead
        after = [] if ahead else graph
        begins, arrived = self._rows(rank, after)
        if not self.placement.on_gpu:
            copied = self._graph(rank, after)
            begins, arrived = [*begins, copied], [*arrived, copied]
        if not ahead:
            return [sample_op], arrived or graph
        for op in begins:
            self.builder.wait_for(op, (sample_op, 1))
            self.builder.reuse(sample_op, op)
        return begins, arrived

    def _draw(self, rank: Rank) -> tuple[int, list[int]]:
        """Sample a batch; returns the op that begins, and those after which it is sampled."""
        if self.placement.on_gpu:
            return self._draw_on_gpu(rank)
        host, cluster = self.facts.host, self.facts.cluster
        work = host_draw_core_seconds(host, self._looked(rank), self._kept(rank), self._layers, subgraph=self.one_graph)
        threads = ONE_THREAD * max(1, self.placement.threads)
        sample_op = self.builder.flow(OpKind.SAMPLE, rank, work, cluster.cores(rank), stream="sampler", cap=threads)
        return sample_op, [sample_op]

    def _draw_on_gpu(self, rank: Rank) -> tuple[int, list[int]]:
        """The same on the GPU, in turn with training, or concurrently if loading runs ahead."""
        facts, entries = self.facts, self._kept(rank)
        seconds = gpu_draw_seconds(facts.device_of(rank), facts.host, entries, self._layers)
        stream = "sampler" if self.loading.ahead else COMPUTE_STREAM
        sample_op = self.builder.compute(OpKind.SAMPLE, rank, seconds, stream=stream)
        if self.placement.graph_on_gpu:
            return sample_op, [sample_op]
        nbytes = uva_graph_bytes(facts.host, self._looked(rank), entries, self._made(rank), subgraph=self.one_graph)
        route = facts.cluster.to_device(rank)
        read = self.builder.flow(OpKind.INDEX, rank, nbytes, route, stream="graph.h2d", after=[sample_op])
        return sample_op, [read]

    def _graph(self, rank: Rank, after: list[int]) -> int:
        """A sampled graph on its way to the GPU."""
        nbytes = graph_bytes(self._kept(rank, drawing=False), self._made(rank, drawing=False))
        return self.builder.flow(
            OpKind.INDEX, rank, nbytes, self.facts.cluster.to_device(rank), stream="graph.h2d", after=after
        )

    @property
    def _layers(self) -> int:
        """The layers that are sampled separately."""
        return min(1, len(self.drawn_layers)) if self.one_graph else len(self.drawn_layers)

    def _shift(self, *, drawing: bool) -> int:
        """By how many iterations the sampled or loaded batch is ahead of the trained one."""
        return self.loading.ahead + (drawing and self.placement.ahead)

    def _looked(self, rank: Rank) -> IntArray:
        return np.roll(self.batches.looked[:, rank], -self._shift(drawing=True))

    def _kept(self, rank: Rank, *, drawing: bool = True) -> IntArray:
        """Entries of the batch's graphs; a graph shared by all layers counts once."""
        entries = self.batches.entries[:, rank, : 1 if self.one_graph else None]
        return np.roll(entries.sum(axis=1), -self._shift(drawing=drawing))

    def _made(self, rank: Rank, *, drawing: bool = True) -> IntArray:
        """Rows of these graphs."""
        rows = self.batches.levels[:, rank, 1 : 2 if self.one_graph else None]
        return np.roll(rows.sum(axis=1), -self._shift(drawing=drawing))

    def _rows(self, rank: Rank, after: list[int]) -> tuple[list[int], list[int]]:
        """Rows from the server's memory, and from other servers if requested; returns the ops that begin, and those
        that end it.
        """
        here = [peer for peer in self.workers if not self.loading.asks or self._together(rank, peer)]
        far = [peer for peer in self.workers if peer not in here]
        own = self.loaded[:, rank, here].sum(axis=1)
        begins, ready = [], []
        if self.placement.features == HOST:
            gathered = self._gather(rank, rank, own, "load", after)
            begins, ready = [gathered], [gathered]
        for peer in far:
            request, sent = self._far_rows(rank, peer, after)
            begins.append(request)
            ready.append(sent)
        if self.placement.features == ON_GPU:
            return begins, ready
        copied = self.builder.flow(
            OpKind.H2D,
            rank,
            self._copied(rank, own, far),
            self.facts.cluster.to_device(rank),
            stream="load",
            after=ready or after,
            layer=0,
            direction=FORWARD,
        )
        return begins or [copied], [copied]

    def _copied(self, rank: Rank, own: IntArray, far: list[Rank]) -> FloatArray:
        """Bytes of a batch's rows over PCIe; the GPU's direct reads count as the copy that takes equally long."""
        others = row_bytes(self.loaded[:, rank, far].sum(axis=1), self.width)
        if self.placement.features == HOST:
            return row_bytes(own, self.width) + others
        return uva_row_bytes(self.facts.host, own, self.width) + others

    def _far_rows(self, rank: Rank, peer: Rank, after: list[int]) -> tuple[int, int]:
        """Rows owned by a peer on another server: requested, gathered, sent; returns the first and the last of these
        ops.
        """
        cluster, rows = self.facts.cluster, self.loaded[:, rank, peer]
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
        sent = self.builder.flow(
            OpKind.WIRE,
            rank,
            row_bytes(rows, self.width),
            cluster.between(peer, rank),
            stream=f"load.rx{peer}",
            after=[picked],
            peer=peer,
            layer=0,
            direction=FORWARD,
        )
        return ids, sent

    def _gather(self, rank: Rank, place: Rank, rows: IntArray, stream: str, after: list[int]) -> int:
        """Rows for `rank` gathered from the memory of the server of `place`, by that worker's cores."""
        host, beside = self.facts.host, sum(self._together(place, peer) for peer in self.workers)
        # Of several sampling threads all but one mostly wait; otherwise they share cores.
        drawing = 0.0 if self.placement.on_gpu else ONE_THREAD
        threads = max(ONE_THREAD, host.cores.value / beside - drawing)
        return self.builder.flow(
            OpKind.GATHER,
            rank,
            pick_core_seconds(host, rows, self.width, threads, 1.0 / beside),
            self.facts.cluster.cores(place),
            stream=stream,
            after=after,
            cap=threads,
            layer=0,
            direction=FORWARD,
        )

    def _together(self, rank: Rank, peer: Rank) -> bool:
        """Whether two workers share a server's memory."""
        return self.facts.cluster.server_of[rank] == self.facts.cluster.server_of[peer]
