"""The training loop: `Trainer.iteration` is one model update, on one screen.

`MethodWorker` hides the differences between methods: the trained graph, and the age of others' rows.

Mini-batches use the same network, optimizer and sums over workers, with another graph in each step. Their loss is
summed over the training nodes of all workers' batches and divided by their number, which the all-reduce counts;
gradients likewise. The trained model therefore does not depend on how many training nodes each worker has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.core.errors import GcnsimError
from gcnsim.core.ids import Iteration, Layer, Rank
from gcnsim.timeline import Direction, OpKind
from runtime.exchange import (
    BatchBoundaries,
    Channel,
    DropoutConfig,
    IterationContext,
    LoadedBatch,
    SampledGraph,
    Stopwatch,
)
from runtime.methods.batches.worker import BatchWorker
from runtime.methods.worker import MethodWorker
from runtime.model import Network
from runtime.options import Options
from runtime.record import Mark, Recorder
from runtime.train.reduce import Adam, FlatGradients, GlobalSums, LocalSums, Optimizer, Sgd


class DivergedError(GcnsimError):
    """The loss is not a finite number any more: all later results would be meaningless."""


@dataclass(frozen=True)
class Targets:
    """The labels of this worker's training nodes.

    nodes: int64[K] local ids of training nodes. labels: int64[K], or float[K, C] for several labels per node. total:
    training nodes of all workers, each counted as often as it is trained. counted: indices among `nodes` of those that
    this worker counts for accuracy, if others train them too; None: all.
    """

    nodes: Tensor
    labels: Tensor
    total: int
    counted: Tensor | None = None

    def chosen(self, logits: Tensor) -> Tensor:
        """The logits of the training nodes, [K, C]."""
        return logits.index_select(0, self.nodes)

    def loss(self, chosen: Tensor) -> Tensor:
        """The sum over this worker's training nodes, divided by the number of all workers': its share of the global
        mean.
        """
        if self.labels.dim() == 2:
            return (
                torch.nn.functional.binary_cross_entropy_with_logits(chosen, self.labels, reduction="sum") / self.total
            )
        return torch.nn.functional.cross_entropy(chosen, self.labels, reduction="sum") / self.total

    @property
    def trained(self) -> int:
        """Training nodes that this worker counts."""
        return (self.nodes if self.counted is None else self.counted).numel()

    def correct(self, chosen: Tensor) -> Tensor:
        """Training nodes whose labels are all correct."""
        tensor = right(chosen.detach(), self.labels)
        return (tensor if self.counted is None else tensor[self.counted]).sum()


def right(logits: Tensor, labels: Tensor) -> Tensor:
    """Which rows are predicted correctly, bool[K]: the largest logit, or every logit's sign."""
    if labels.dim() == 2:
        return ((logits > 0) == (labels > 0)).all(1)
    return logits.argmax(1) == labels


class Trainer:
    """One worker's replica: network, optimizer, method. x: features of its inner nodes, [I, d_0].

    row: the meaning of a row of a layer's output.
    """

    row = "inner node"

    def __init__(
        self,
        options: Options,
        network: Network,
        method: MethodWorker,
        x: Tensor,
        targets: Targets,
        channel: Channel | None,
        control: Channel | None,
        recorder: Recorder,
        rank: Rank,
    ) -> None:
        """Attach the flat gradient buffer and the optimizer. channel: for the all-reduce; control: for small data on
        the host; both None for a single worker.
        """
        self.options, self.network, self.method = options, network, method
        self.x, self.targets, self.recorder = x, targets, recorder
        self.gradients = FlatGradients(network, channel, recorder)
        self.optimizer = _optimizer(options, network)
        self.fixed: Tensor | None = None
        """Layer 0's sum over neighbours if it is computed once for all iterations."""
        self.measured: Tensor | None = None
        """Norms s_j of the inner nodes, float32[I], if the last iteration measured them."""
        first = options.dropout_order == "dropout-first"
        self._dropping = DropoutConfig(options.dropout, first, options.seed, rank) if options.dropout else None
        self._control = control

    def iteration(self, t: Iteration, own: LocalSums) -> tuple[GlobalSums, SampledGraph | LoadedBatch]:
        """Model update t; returns run-wide sums and the trained graph.

        own: bytes sent since the previous iteration, and whether this worker was asked to stop. Raises DivergedError if
        the global loss is not finite; the weights are then unchanged.
        """
        graph, boundary = self.method.begin(t)
        watch = Stopwatch(self.recorder, t, OpKind.ATTENTION if self.options.model == "gat" else OpKind.UPDATE)
        step = IterationContext(
            t, graph, boundary, self.recorder, watch, self._dropping, self.options.overlap == "central"
        )
        seen = Seen(watch)
        logits = self.network(self.x, self.method.neighbours(step, self.fixed), seen.layer)
        self.measured = self.network.row_norms(seen.inputs) if self.method.measures(t) else None
        if self.measured is not None:
            self.method.measured(t, self.measured)
        start = self.recorder.mark_compute()
        chosen = self.targets.chosen(logits)
        loss = self.targets.loss(chosen)
        own = replace(own, hits=graph.hits, lookups=graph.rows, trained=self.targets.trained)
        self.gradients.begin(t, loss, self.targets.correct(chosen), own)
        return self.descend(t, start, loss, watch, seen), graph

    def descend(self, t: Iteration, start: Mark, loss: Tensor, watch: Stopwatch, seen: Seen) -> GlobalSums:
        """The second half of iteration t: backward, sums over workers, step. start: when its loss began.

        Raises DivergedError.
        """
        end = self.recorder.mark_compute()
        self.recorder.add(OpKind.LOSS, "compute", t, start, end, direction=Direction.FORWARD)
        watch.backward(loss, end)
        sums = self.summed()
        if sums.loss is None or not math.isfinite(sums.loss):
            raise DivergedError(f"iteration {t}: the loss is {sums.loss}; {self._where(seen.outputs)}")
        start = self.recorder.mark_compute()
        self.optimizer.step()
        self.recorder.add(OpKind.STEP, "compute", t, start, self.recorder.mark_compute())
        return sums

    def summed(self) -> GlobalSums:
        """The sums over all workers, including the gradients."""
        return self.gradients.finish()

    def took(self, seconds: float) -> float:
        """The reported length of the last iteration; seconds: measured by the caller's clock."""
        return seconds

    def close(self) -> None:
        """Close resources that only the loop has."""

    def _where(self, outputs: list[Tensor]) -> str:
        """The layer whose output first became not finite, in the same words on every worker."""
        tensor = torch.tensor([len(outputs), 0])
        for layer, rows in enumerate(outputs):
            bad = (~torch.isfinite(rows)).any(1).nonzero()
            if bad.numel():
                tensor = torch.tensor([layer, int(bad[0])])
                break
        everywhere = [tensor] if self._control is None else self._control.gather(tensor)
        rank = min(range(len(everywhere)), key=lambda n: int(everywhere[n][0]))
        layer, node = everywhere[rank].tolist()
        if layer == len(outputs):
            return "every layer's output is finite"
        return f"first in the output of layer {layer}, worker {rank}, {self.row} {node}"


class Seen:
    """Every layer's input and output in one iteration."""

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def layer(self, layer: Layer, inputs: Tensor, out: Tensor) -> Tensor:
        """Record that `layer` computed `out` from `inputs`."""
        self.inputs.append(inputs.detach())
        self.outputs.append(out.detach())
        return self._watch.mapped(layer, out)


def _optimizer(options: Options, network: Network) -> Optimizer:
    kind = Sgd if options.optimizer == "sgd" else Adam
    return kind(network.parameters(), lr=options.lr, weight_decay=options.weight_decay)


class BatchTrainer(Trainer):
    """One worker's replica, trained on mini-batches."""

    row = "row"

    def iteration(self, t: Iteration, own: LocalSums) -> tuple[GlobalSums, LoadedBatch]:
        """See `Trainer`; with a mini-batch as the graph."""
        assert isinstance(self.method, BatchWorker)
        batch = self.method.batch(t)
        watch = Stopwatch(self.recorder, t, OpKind.ATTENTION if self.options.model == "gat" else OpKind.UPDATE)
        step = IterationContext(t, self.method.context.whole, None, self.recorder, watch, self._dropping)
        seen = Seen(watch)
        logits = self.network(batch.x, BatchBoundaries(step, batch.matrices, self.network.widths[0]), seen.layer)
        start = self.recorder.mark_compute()
        chosen = logits.index_select(0, batch.targets)
        loss, correct = _loss(chosen, batch), right(chosen.detach(), batch.labels).sum()
        own = replace(own, hits=batch.hits, lookups=batch.rows, trained=batch.targets.numel())
        self.gradients.begin(t, loss, correct, own)
        self._shared_out = batch.shares is not None
        return self.descend(t, start, loss, watch, seen), batch

    def summed(self) -> GlobalSums:
        """Divided by the training nodes of all batches, unless each has its weight; without any, nothing is updated."""
        sums = super().summed()
        if self._shared_out:
            return sums
        self.gradients.divide(max(1, sums.trained))
        return self.gradients.sums()


def _loss(chosen: Tensor, batch: LoadedBatch) -> Tensor:
    """Summed over the batch's training nodes, whose logits are `chosen`."""
    labels = batch.labels
    if labels.dim() == 2:
        each = functional.binary_cross_entropy_with_logits(chosen, labels, reduction="none").sum(1)
    else:
        each = functional.cross_entropy(chosen, labels, reduction="none")
    total: Tensor = torch.sum(each if batch.shares is None else each * batch.shares)
    return total
