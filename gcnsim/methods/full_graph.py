"""Vanilla partition-parallel training (`full-graph`; "GCN" in the papers' tables).

Every layer waits for this iteration's boundary rows, every backward layer for this iteration's boundary gradients;
the time is the plain sum of compute, exchange (waiting for the slowest included) and all-reduce. Source: PipeGCN,
section 2; BNS-GCN, section 2. Assumption: transfers do not overlap the rows that need none (the published systems do
not split them), unless `overlap` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.boundary_rows import BoundaryRows


@dataclass(frozen=True, slots=True, kw_only=True)
class FullGraph(BoundaryRows):
    """Full-graph training, synchronous: the baseline."""

    name: ClassVar[str] = "full-graph"
    about: ClassVar[str] = "all boundary rows in every iteration, which waits for them"
    baseline: ClassVar[bool] = True
    overlaps: ClassVar[bool] = True
