"""The worker of PipeGCN (Algorithm 1).

At iteration t a layer reads the boundary rows of t - 1, and the boundary gradients computed in t - 1 are added to those
of the inner rows; the first iteration reads zeros (`cold_start`). Weights are never stale. Smoothing: at the receiver,
per layer and peer, avg = gamma avg + (1 - gamma) received. The average starts at 0 and is not corrected for that (as in
the released code; the paper does not say).
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from gcnsim.core.ids import Iteration, Layer
from gcnsim.timeline import Direction
from runtime.methods.worker import Context, MethodWorker


class PipeGcnWorker(MethodWorker):
    """The worker of PipeGCN; see the module."""

    def __init__(
        self, context: Context, cold_start: str, smoothed: Collection[Direction] = (), gamma: float = 0.0
    ) -> None:
        """Rows one iteration old. smoothed: the directions of the running averages, which decay by `gamma`."""
        self._smoothed, self._gamma = smoothed, float(gamma)
        self._average: dict[tuple[Direction, Layer], Tensor] = {}
        super().__init__(context, 1, cold_start, self._smooth if smoothed else None)

    def state(self) -> dict[str, Tensor]:
        """Rows in transit, and the running averages."""
        averages = {
            f"average.{direction.name.lower()}.{layer}": average.cpu().clone()
            for (direction, layer), average in self._average.items()
        }
        return super().state() | averages

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Continue from `state`."""
        super().restore(done, state)
        for name, average in state.items():
            word, *rest = name.split(".")
            if word == "average":
                key = Direction[rest[0].upper()], int(rest[1])
                self._average[key] = average.to(self.context.device)

    def _smooth(self, direction: Direction, layer: Layer, received: Tensor) -> Tensor:
        if direction not in self._smoothed:
            return received
        average = self._average.setdefault((direction, layer), torch.zeros_like(received))
        return average.mul_(self._gamma).add_(received, alpha=1.0 - self._gamma)
