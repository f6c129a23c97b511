"""PipeGCN (`pipegcn`): boundary features and gradients one iteration old, so transfers run under the compute.

Source: PipeGCN, Algorithm 1. Weights are never stale. Assumption: a second GPU stream and one thread per direction
carry all transfers, as its implementation section says. Its smoothed variants are `pipegcn-g`, `-f` and `-gf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.boundary_rows import BoundaryRows


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeGcn(BoundaryRows):
    """Every edge, boundary values of the iteration before."""

    name: ClassVar[str] = "pipegcn"
    about: ClassVar[str] = "every boundary row, one iteration old, sent while computing"

    @property
    def tau(self) -> int:
        """One iteration."""
        return 1
