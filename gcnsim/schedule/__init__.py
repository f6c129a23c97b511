"""Schedules: ops, streams, dependencies and collectives."""

from gcnsim.schedule.builder import Builder, Dependency, Work
from gcnsim.schedule.collectives import ring_allreduce
from gcnsim.schedule.order import predecessors, topological
from gcnsim.schedule.schedule import Op, Schedule, Stream

__all__ = ["Builder", "Dependency", "Op", "Schedule", "Stream", "Work", "predecessors", "ring_allreduce", "topological"]
