"""PipeGCN-F (`pipegcn-f`): PipeGCN that averages the boundary features it receives over time.

Source: PipeGCN, section on smoothing: avg <- gamma avg + (1 - gamma) received, and the average is used. Readings: the
average is the receiver's, as in the released code, so nothing more travels; it is updated in place by two elementwise
kernels (scale, add) before the rows are used. gamma changes accuracy, not time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.pipegcn import PipeGcn
from gcnsim.timeline import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcnF(PipeGcn):
    """PipeGCN, received boundary rows averaged."""

    name: ClassVar[str] = "pipegcn-f"
    about: ClassVar[str] = "pipegcn with a moving average of boundary rows"
    smooths: ClassVar[tuple[Direction, ...]] = (Direction.FORWARD,)
