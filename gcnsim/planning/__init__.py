"""Planning: many studies answer one question."""

from gcnsim.planning.accuracy import Subject, Target, to_target
from gcnsim.planning.payload import knobs_told, links_of, memory_told, row_of
from gcnsim.planning.provenance import provenance
from gcnsim.planning.recommend import recommend
from gcnsim.planning.steps import Step, next_steps
from gcnsim.planning.what_if import OVERLAP, SCHEMA, Answer, Grid, Progress, scenarios, sweep_bandwidth, what_if
from gcnsim.planning.workshop import Estimate, Workshop, counted

__all__ = [
    "OVERLAP",
    "SCHEMA",
    "Answer",
    "Estimate",
    "Grid",
    "Progress",
    "Step",
    "Subject",
    "Target",
    "Workshop",
    "counted",
    "knobs_told",
    "links_of",
    "memory_told",
    "next_steps",
    "provenance",
    "recommend",
    "row_of",
    "scenarios",
    "sweep_bandwidth",
    "to_target",
    "what_if",
]
