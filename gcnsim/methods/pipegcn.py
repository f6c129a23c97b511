"""PipeGCN (`pipegcn`): boundary features and gradients one iteration old, so transfers run under the compute.

Source: PipeGCN, Algorithm 1. Weights are never stale. Assumption: a second GPU stream and one thread per direction
carry all transfers, as its implementation section says. Its smoothed variants are `pipegcn-g`, `-f` and `-gf`.
"""

from __future__ import annotations

from dataclasses import replace

from gcnsim.methods.facts import Facts
from gcnsim.methods.partition_parallel import partition_parallel
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: tau 1, every edge."""
    return partition_parallel("pipegcn", replace(facts, tau=1, sampled=False))
