"""Spans of the linear layers, forward and backward.

Forward, a linear layer runs from the end of its sum over neighbours to the layer's end. The backward pass is
autograd's: an identity in each layer's output notices when its gradient passes, which is when the linear layer's
backward pass begins. It ends when the gradient of the sum over neighbours is requested, or when the backward pass ends.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcnsim.core.ids import Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from runtime.record import Mark, Recorder


class Stopwatch:
    """The spans of one iteration's linear layers, as ops of `kind`."""

    def __init__(self, recorder: Recorder, t: Iteration, kind: OpKind) -> None:
        """Start now."""
        self._recorder, self._t, self._kind = recorder, t, kind
        self._since: Mark = recorder.mark_compute()
        self._undoing: Layer | None = None

    def summed(self) -> None:
        """A sum over neighbours has ended: a linear layer begins."""
        self._since = self._recorder.mark_compute()

    def mapped(self, layer: Layer, out: Tensor) -> Tensor:
        """The linear layer of `layer` has computed `out`; returns it, with a hook on its gradient."""
        self._add(self._kind, layer, Direction.FORWARD)
        if not out.requires_grad:
            return out
        noticed: Tensor = _Notice.apply(out, self, layer)  # type: ignore[no-untyped-call]
        return noticed

    def backward(self, loss: Tensor, start: Mark) -> None:
        """The whole backward pass, from `start` on."""
        self._since = start
        loss.backward()  # type: ignore[no-untyped-call]
        if self._undoing is not None:
            self.undone()

    def undo(self, layer: Layer) -> None:
        """The gradient of `layer`'s output has been computed."""
        now = self._recorder.mark_compute()
        if self._undoing is None:
            self._add(OpKind.LOSS, -1, Direction.BACKWARD, now)
        self._undoing, self._since = layer, now

    def undone(self) -> None:
        """The gradient of the sum over neighbours has been computed."""
        if self._undoing is not None:
            self._add(self._kind, self._undoing, Direction.BACKWARD)

    def resumed(self, start: Mark, layer: Layer) -> None:
        """The backward pass of `layer`'s linear layer has continued from `start` until now, after the sum of its
        gradient.
        """
        now = self._recorder.mark_compute()
        self._since = start
        self._add(self._kind, layer, Direction.BACKWARD, now)
        self._undoing, self._since = layer, now

    def _add(self, kind: OpKind, layer: Layer, direction: Direction, end: Mark | None = None) -> None:
        now = self._recorder.mark_compute() if end is None else end
        self._recorder.add(kind, "compute", self._t, self._since, now, layer=layer, direction=direction)


class _Notice(torch.autograd.Function):
    """The identity; notifies the stopwatch when its gradient passes."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, watch: Stopwatch, layer: Layer) -> Tensor:
        ctx.watch, ctx.layer = watch, layer
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        ctx.watch.undo(ctx.layer)
        return grads[0], None, None
