"""Schedules: ops, streams, dependencies, collectives and analytic bounds."""

from gcnsim.schedule.bounds import Bounds, Loads, bounds, estimate, resource_loads
from gcnsim.schedule.builder import Builder, Dependency, Work
from gcnsim.schedule.collectives import (
    all_to_all,
    allreduce,
    ring_allreduce,
    ring_broadcast,
    ring_reduce_among,
    tree_allreduce,
)
from gcnsim.schedule.joint import Variants, estimates
from gcnsim.schedule.messages import host_message
from gcnsim.schedule.order import all_waits, predecessors, topological
from gcnsim.schedule.schedule import COMPUTE_STREAM, Op, Schedule, Stream

__all__ = [
    "COMPUTE_STREAM",
    "Bounds",
    "Builder",
    "Dependency",
    "Loads",
    "Op",
    "Schedule",
    "Stream",
    "Variants",
    "Work",
    "all_to_all",
    "all_waits",
    "allreduce",
    "bounds",
    "estimate",
    "estimates",
    "host_message",
    "predecessors",
    "resource_loads",
    "ring_allreduce",
    "ring_broadcast",
    "ring_reduce_among",
    "topological",
    "tree_allreduce",
]
