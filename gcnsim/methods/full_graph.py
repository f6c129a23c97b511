"""Vanilla partition-parallel training (`full-graph`; "GCN" in the papers' tables).

Every layer waits for this iteration's boundary rows, every backward layer for this iteration's boundary gradients;
the time is the plain sum of compute, exchange (waiting for the slowest included) and all-reduce. Source: PipeGCN,
section 2; BNS-GCN, section 2. Assumption: transfers do not overlap the rows that need none (the published systems do
not split them).
"""

from __future__ import annotations

from dataclasses import replace

from gcnsim.methods.facts import Facts
from gcnsim.methods.partition_parallel import partition_parallel
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: tau 0, every edge."""
    return partition_parallel("full-graph", replace(facts, tau=0, sampled=False))
