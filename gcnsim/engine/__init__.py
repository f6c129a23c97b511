"""Engines: schedule in, times out. The only package that imports SimPy and Numba."""

from gcnsim.engine.choice import compile_in_background, compile_now, engine, simulate, use_reference
from gcnsim.engine.run import Run, begun, link_rates, timeline, timeline_near
from gcnsim.engine.stopping import lookahead

__all__ = [
    "Run",
    "begun",
    "compile_in_background",
    "compile_now",
    "engine",
    "link_rates",
    "lookahead",
    "simulate",
    "timeline",
    "timeline_near",
    "use_reference",
]
