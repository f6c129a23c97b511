"""Engines: schedule in, times out. The only package that imports SimPy and Numba."""

from gcnsim.engine.choice import compile_in_background, compile_now, engine, simulate, use_reference
from gcnsim.engine.run import Run, begun, link_rates, timeline, timeline_near
from gcnsim.engine.stopping import lookahead
