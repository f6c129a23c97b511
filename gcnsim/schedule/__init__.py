"""Schedules: ops, streams, dependencies, collectives and analytic bounds."""

from gcnsim.schedule.bounds import Bounds, Loads, bounds, estimate, resource_loads
from gcnsim.schedule.builder import Builder, Dependency, Work
from gcnsim.schedule.collectives import ring_allreduce
from gcnsim.schedule.order import predecessors, topological
from gcnsim.schedule.schedule import Op, Schedule, Stream

__all__ = [
    "Bounds",
    "Builder",
    "Dependency",
    "Loads",
    "Op",
    "Schedule",
    "Stream",
    "Work",
    "bounds",
    "estimate",
    "predecessors",
    "resource_loads",
    "ring_allreduce",
    "topological",
]
