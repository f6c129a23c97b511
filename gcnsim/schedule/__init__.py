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
from gcnsim.schedule.collectives import (
    allreduce,
    host_message,
    host_messages,
    message_sizes,
    ring_allreduce,
    ring_broadcast,
    ring_reduce_among,
    tree_allreduce,
)
from gcnsim.schedule.columns import Columns, stream_waits, with_op
from gcnsim.schedule.joint import Variants, estimates
from gcnsim.schedule.schedule import COMPUTE_STREAM, Op, Schedule, Stream, levels, predecessors

__all__ = [
    "COMPUTE_STREAM",
    "Builder",
    "Columns",
    "Dependency",
    "Op",
    "Schedule",
    "ScheduleBounds",
    "Stream",
    "Variants",
    "Waits",
    "allreduce",
    "bounds",
    "estimate",
    "estimates",
    "host_message",
    "host_messages",
    "least_seconds",
    "levels",
    "lower_bound",
    "mean_loads",
    "message_sizes",
    "predecessors",
    "resource_loads",
    "ring_allreduce",
    "ring_broadcast",
    "ring_reduce_among",
    "stream_waits",
    "tree_allreduce",
    "with_op",
]
