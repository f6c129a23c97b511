"""Engines: schedule in, times out. The only room that knows SimPy."""

from gcnsim.engine.fairness import max_min_rates
from gcnsim.engine.reference import Run, simulate
from gcnsim.engine.spans import timeline

__all__ = ["Run", "max_min_rates", "simulate", "timeline"]
