"""Engines: schedule in, times out. The only room that knows SimPy and Numba."""

from gcnsim.engine.choice import by_reference, compile_later, compile_now, engine, simulate
from gcnsim.engine.run import Run, begun, link_rates, timeline, timeline_near
from gcnsim.engine.stopping import spare

__all__ = [
    "Run",
    "begun",
    "by_reference",
    "compile_later",
    "compile_now",
    "engine",
    "link_rates",
    "simulate",
    "spare",
    "timeline",
    "timeline_near",
]
