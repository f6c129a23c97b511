"""Mini-batch training: the iteration that all systems share whose workers load a batch, train it and sum gradients.

One iteration is one mini-batch on every worker and one update of the model. How a batch comes to the GPU is in
`batch_loading`; here it is trained. What differs (`mini_batch.Loading`, `placement.Placement`) is whether loading runs
ahead of training, whether drawing does, who draws, where input rows lie, and whether rows of other servers are asked
for. The framework's calls are counted (`gcnsim.cost.batch_loading`): those of drawing a layer, each of which waits for
what it drew, and those of training, which take the longer of host and GPU for the whole batch.

Assumptions: copies are pinned; gradients are summed by a ring all-reduce after the backward pass; batches are dropped
from memory once they are trained.
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
    rows_seconds,
    step_seconds,
    training_calls,
)
from gcnsim.ids import FloatArray, Rank
from gcnsim.methods.facts import Facts
from gcnsim.methods.families.batch_loading import BatchLoader
from gcnsim.methods.families.mini_batch import MiniBatch, Plan
from gcnsim.methods.placement import ON_GPU
from gcnsim.schedule import Builder, Schedule, allreduce
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def mini_batches(method: MiniBatch, facts: Facts) -> Schedule:
    """The schedule of a mini-batch method for `facts`. Raises ValueError where facts have no mini-batches."""
    if facts.counts.batches is None:
        raise ValueError(f"{method.name}: the counts have no mini-batches")
    plan = method.plan(facts.shapes)
    return _Writer(method, replace(facts, shapes=plan.shapes), facts.counts.batches, plan).write()


class _Writer:
    """Writes one schedule. Demand of what runs ahead is that of the batch it prepares: rolled by as many iterations."""

    def __init__(self, method: MiniBatch, facts: Facts, batches: BatchCounts, plan: Plan) -> None:
        self.facts, self.batches, self.loading, self.width = facts, batches, method.loading, plan.width
        self.builder = Builder(method.name, facts.cluster, batches.iterations)
        self.loader = BatchLoader(self.builder, method, facts, batches, plan)
        self.workers = range(facts.cluster.gpus)
        self.costs = [self._costs(rank) for rank in self.workers]

    def write(self) -> Schedule:
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
        """The optimizer's step, once the gradients are summed."""
        seconds = step_seconds(self.facts.device_of(rank), self.facts.shapes)
        return self.builder.compute(OpKind.STEP, rank, seconds, after=[reduced])

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
        builder.compute(OpKind.LOSS, rank, self._loss(rank))
        last = -1
        for layer in reversed(range(len(facts.shapes))):
            cost = self.costs[rank][layer]
            last = builder.compute(OpKind.UPDATE, rank, cost.update_backward, layer=layer, direction=BACKWARD)
            if layer:
                builder.compute(OpKind.AGGREGATE, rank, cost.aggregate_backward, layer=layer, direction=BACKWARD)
        return last

    def _loss(self, rank: Rank) -> FloatArray:
        """Seconds of the loss, and of the host's calls that no kernel of the batch hides: nothing waits between its
        layers, so that the host runs ahead of the GPU until it is done with the batch. None of a batch of no nodes."""
        facts, targets = self.facts, self.batches.levels[:, rank, -1]
        loss = batch_loss_seconds(facts.device_of(rank), targets, facts.shapes[-1].d_out)
        kernels = sum((cost.seconds for cost in self.costs[rank]), self._taking(rank) + loss)
        calls = training_calls(len(facts.shapes)) * facts.host.operation_s.value
        return np.asarray(loss + np.where(targets > 0, np.maximum(calls - kernels, 0.0), 0.0), dtype=np.float64)

    def _taking(self, rank: Rank) -> FloatArray:
        """Seconds in which rows on the GPU are put beside those loaded; 0 where none are there."""
        batches = self.batches
        if self.loader.placement.features != ON_GPU and not batches.cached[rank]:
            return np.zeros(batches.iterations)
        rows = batches.wanted[:, rank].sum(axis=1)
        return rows_seconds(self.facts.device_of(rank), rows, self.width)
