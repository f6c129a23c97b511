"""Schedules: ops, streams, dependencies, collectives and analytic bounds."""

from gcnsim.schedule.bounds import (
    ScheduleBounds,
    bounds,
    estimate,
    least_seconds,
    lower_bound,
    mean_loads,
    resource_loads,
)
from gcnsim.schedule.builder import Builder, Dependency, Waits
from gcnsim.schedule.collectives import allreduce, host_messages, message_sizes, ring_broadcast, ring_reduce_among
from gcnsim.schedule.columns import stream_waits, with_op
from gcnsim.schedule.joint import Variants, estimates
from gcnsim.schedule.schedule import COMPUTE_STREAM, Schedule

__all__ = [
    "COMPUTE_STREAM",
    "Builder",
    "Dependency",
    "Schedule",
    "ScheduleBounds",
    "Variants",
    "Waits",
    "allreduce",
    "bounds",
    "estimate",
    "estimates",
    "host_messages",
    "least_seconds",
    "lower_bound",
    "mean_loads",
    "message_sizes",
    "resource_loads",
    "ring_broadcast",
    "ring_reduce_among",
    "stream_waits",
    "with_op",
]
