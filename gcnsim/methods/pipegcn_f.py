"""PipeGCN-F (`pipegcn-f`): PipeGCN that averages the boundary features it receives over time.

Source: PipeGCN, section on smoothing: avg <- gamma avg + (1 - gamma) received, and the average is used. Readings: the
average is the receiver's, as in the released code, so nothing more travels; it is updated in place by two elementwise
kernels (scale, add) before the rows are used. gamma changes accuracy, not time.
"""

from __future__ import annotations

from dataclasses import replace

from gcnsim.methods.facts import Facts
from gcnsim.methods.partition_parallel import partition_parallel
from gcnsim.schedule import Schedule
from gcnsim.timeline import Direction


def build(facts: Facts) -> Schedule:
    """The schedule: tau 1, every edge, received boundary features averaged."""
    return partition_parallel("pipegcn-f", replace(facts, tau=1, sampled=False, smooths=(Direction.FORWARD,)))
