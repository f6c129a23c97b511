"""PipeGCN (`pipegcn`, `-g`, `-f`, `-gf`): boundary rows and gradients of the previous iteration, sent during
computation.

Source: PipeGCN, Algorithm 1. The variants smooth gradients (g), features (f) or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.timeline import Direction
from gcnsim.workload.knobs import COLD_START, GAMMA, knob
from runtime.methods.method import Method

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class PipeGcn(Method):
    """PipeGCN without smoothing."""

    name: ClassVar[str] = "pipegcn"
    waits: ClassVar[bool] = True
    cold_start: str = knob(COLD_START)

    def worker(self, context: Context) -> MethodWorker:
        """The worker with rows one iteration old."""
        from runtime.methods.pipegcn.worker import PipeGcnWorker

        return PipeGcnWorker(context, self.cold_start)


@dataclass(frozen=True)
class _Smoothed(Method):
    """Running averages of received values in some directions."""

    smoothed: ClassVar[frozenset[Direction]]
    gamma: float = knob(GAMMA)
    cold_start: str = knob(COLD_START)

    def worker(self, context: Context) -> MethodWorker:
        """The worker with rows one iteration old, smoothed."""
        from runtime.methods.pipegcn.worker import PipeGcnWorker

        return PipeGcnWorker(context, self.cold_start, self.smoothed, self.gamma)


class PipeGcnG(_Smoothed):
    """PipeGCN with smoothed gradients."""

    name = "pipegcn-g"
    smoothed = frozenset({Direction.BACKWARD})


class PipeGcnF(_Smoothed):
    """PipeGCN with smoothed features."""

    name = "pipegcn-f"
    smoothed = frozenset({Direction.FORWARD})


class PipeGcnGF(_Smoothed):
    """PipeGCN with smoothed gradients and features."""

    name = "pipegcn-gf"
    smoothed = frozenset({Direction.BACKWARD, Direction.FORWARD})
