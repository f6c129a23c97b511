"""Evaluation on the full graph: exact boundary rows of the present weights, for every training method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcnsim.timeline import OpKind
from runtime.data import Share
from runtime.exchange import (
    BoundaryView,
    Channel,
    Channels,
    Exchange,
    IterationContext,
    SampledGraph,
    StepBoundaries,
    Stopwatch,
)
from runtime.methods.worker import completed
from runtime.model import Network
from runtime.record import Recorder

SETS = ("train", "val", "test")


@dataclass(frozen=True)
class Scores:
    """Accuracy (micro-F1 with several labels per node) on each set; None for an empty set."""

    train: float | None
    val: float | None
    test: float | None


class Evaluator:
    """Forward passes over the whole graph, with a separate exchange that is not recorded."""

    def __init__(
        self,
        share: Share,
        whole: SampledGraph,
        channels: Channels,
        channel: Channel | None,
        widths: tuple[int, ...],
        labels: Tensor,
        own: Tensor | None = None,
    ) -> None:
        """whole: this worker's graph with all entries. labels: of all inner nodes. channel: for the counts.

        own: indices of its inner nodes among the rows that it trains, which it then evaluates; None: these are all.
        """
        self._own = own
        self._whole, self._channel, self._labels = whole, channel, labels
        self._recorder = Recorder(share.part.rank, enabled=False)
        self._masks = [torch.from_numpy(getattr(share, name).copy()).to(labels.device) for name in SETS]
        self._exchange: Exchange | None = None
        dtype, device = whole.inner.dtype, whole.inner.device
        if channels.world > 1:
            self._exchange = Exchange(
                channels, self._recorder, widths, 0, dtype, device, name="evaluation.", threaded=False
            )

    def logits(self, network: Network, x: Tensor, fixed: Tensor | None = None) -> Tensor:
        """The logits of every inner node, [I, classes]. x: of the trained rows. fixed: layer 0's sum, if it is computed
        once.
        """
        with torch.no_grad():
            logits: Tensor = network(x if self._own is None else x[self._own], StepBoundaries(self._step(), fixed))
        return logits

    def first_sum(self, x: Tensor) -> Tensor:
        """P [x; boundary features], [I, d_0]: the permanent sum of layer 0."""
        with torch.no_grad():
            return StepBoundaries(self._step()).of(0).weighted_sum(x)[0]

    def scores(self, network: Network, x: Tensor, fixed: Tensor | None = None) -> Scores:
        """Accuracy on each set, over all workers."""
        logits = self.logits(network, x, fixed)
        counts = torch.stack([self._counts(logits[mask], self._labels[mask]) for mask in self._masks]).cpu()
        if self._channel is not None:
            self._channel.wait(self._channel.all_reduce(counts))
        return Scores(*(right / total if total else None for right, total in counts.tolist()))

    def _step(self) -> IterationContext:
        boundary = None if self._exchange is None else BoundaryView(self._exchange, self._whole, completed(self._whole))
        watch = Stopwatch(self._recorder, 0, OpKind.UPDATE)
        return IterationContext(0, self._whole, boundary, self._recorder, watch, overlap=False)

    @staticmethod
    def _counts(logits: Tensor, labels: Tensor) -> Tensor:
        """Correct and total; with several labels 2 TP and 2 TP + FP + FN, whose ratio is micro-F1. float64[2]."""
        if labels.dim() == 2:
            predicted, true = logits > 0, labels > 0
            both = 2 * (predicted & true).sum()
            return torch.stack([both, predicted.sum() + true.sum()]).double()
        right = (logits.argmax(1) == labels).sum()
        return torch.stack([right, torch.tensor(labels.shape[0], device=right.device)]).double()
