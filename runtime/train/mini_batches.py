"""The training loop of mini-batches: the same network, optimizer and sums over workers, another graph in each step.

The loss is summed over the training nodes of all workers' batches and divided by their number, which is known once it
is summed over the workers; gradients likewise. So what is trained does not depend on how many of them a worker has.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.ids import Iteration
from gcnsim.timeline import OpKind
from runtime.exchange import BatchBoundaries, LoadedBatch, Step, Stopwatch
from runtime.methods.batches.worker import BatchWorker
from runtime.train.loop import Seen, Trainer, right
from runtime.train.reduce import GlobalSums, LocalSums


class BatchTrainer(Trainer):
    """One worker's replica, trained on mini-batches."""

    row = "row"

    def iteration(self, t: Iteration, own: LocalSums) -> tuple[GlobalSums, LoadedBatch]:
        """See `Trainer`; the mini-batch in the place of a graph."""
        assert isinstance(self.method, BatchWorker)
        batch = self.method.batch(t)
        watch = Stopwatch(self.recorder, t, OpKind.ATTENTION if self.options.model == "gat" else OpKind.UPDATE)
        step = Step(t, self.method.context.whole, None, self.recorder, watch, self._dropping)
        seen = Seen(watch)
        logits = self.network(batch.x, BatchBoundaries(step, batch.matrices, self.network.widths[0]), seen.layer)
        start = self.recorder.mark_compute()
        loss, correct = _loss(logits, batch), right(logits[batch.targets], batch.labels).sum()
        own = replace(own, hits=batch.hits, asked=batch.rows, trained=batch.targets.numel())
        self.gradients.begin(t, loss, correct, own)
        self._shared_out = batch.shares is not None
        return self.descend(t, start, loss, watch, seen), batch

    def summed(self) -> GlobalSums:
        """Divided by the training nodes of all batches, unless each has its share; without any nothing is learnt."""
        sums = super().summed()
        if self._shared_out:
            return sums
        self.gradients.divide(max(1, sums.trained))
        return self.gradients.sums()


def _loss(logits: Tensor, batch: LoadedBatch) -> Tensor:
    """Summed over the batch's training nodes."""
    chosen, labels = logits[batch.targets], batch.labels
    if labels.dim() == 2:
        each = functional.binary_cross_entropy_with_logits(chosen, labels, reduction="none").sum(1)
    else:
        each = functional.cross_entropy(chosen, labels, reduction="none")
    total: Tensor = torch.sum(each if batch.shares is None else each * batch.shares)
    return total
