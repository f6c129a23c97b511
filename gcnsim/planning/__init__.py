"""Planning: many studies answer one question."""

from gcnsim.planning.recommend import recommend
from gcnsim.planning.steps import Step, next_steps
from gcnsim.planning.what_if import SCHEMA, Answer, Grid, scenarios, sweep_bandwidth, what_if
from gcnsim.planning.workshop import Estimate, Workshop

__all__ = [
    "SCHEMA",
    "Answer",
    "Estimate",
    "Grid",
    "Step",
    "Workshop",
    "next_steps",
    "recommend",
    "scenarios",
    "sweep_bandwidth",
    "what_if",
]
