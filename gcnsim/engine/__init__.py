"""Engines: schedule in, times out. The only room that knows SimPy."""

from gcnsim.engine.fairness import max_min_rates
from gcnsim.engine.rates import begun, link_rates
from gcnsim.engine.reference import Run, simulate
from gcnsim.engine.spans import timeline

__all__ = ["Run", "begun", "link_rates", "max_min_rates", "simulate", "timeline"]
