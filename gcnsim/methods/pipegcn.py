"""PipeGCN (`pipegcn`): boundary features and gradients one iteration old, so transfers run under the compute.

Source: PipeGCN, Algorithm 1. Weights are never stale. Assumption: a second GPU stream and one thread per direction
carry all transfers, as its implementation section says.

Its smoothed variants (`pipegcn-g`, `-f` and `-gf`) average the boundary gradients, features or both that they receive
over time. Source: section on smoothing: avg <- gamma avg + (1 - gamma) received, and the average is used. Readings: the
average is the receiver's, as in the released code, so nothing more travels; it is updated in place by two elementwise
kernels (scale, add) before the rows are used. gamma changes accuracy, not time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.timeline import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcn(BoundaryRows):
    """Every edge, boundary values of the iteration before."""

    name: ClassVar[str] = "pipegcn"
    about: ClassVar[str] = "every boundary row, one iteration old, sent while computing"

    @property
    def tau(self) -> int:
        """One iteration."""
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcnG(PipeGcn):
    """PipeGCN, received boundary gradients averaged."""

    name: ClassVar[str] = "pipegcn-g"
    about: ClassVar[str] = "pipegcn with a moving average of boundary gradients"
    smooths: ClassVar[tuple[Direction, ...]] = (Direction.BACKWARD,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcnF(PipeGcn):
    """PipeGCN, received boundary rows averaged."""

    name: ClassVar[str] = "pipegcn-f"
    about: ClassVar[str] = "pipegcn with a moving average of boundary rows"
    smooths: ClassVar[tuple[Direction, ...]] = (Direction.FORWARD,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcnGf(PipeGcn):
    """PipeGCN, received rows and gradients averaged."""

    name: ClassVar[str] = "pipegcn-gf"
    about: ClassVar[str] = "pipegcn with moving averages of both"
    smooths: ClassVar[tuple[Direction, ...]] = (Direction.FORWARD, Direction.BACKWARD)
