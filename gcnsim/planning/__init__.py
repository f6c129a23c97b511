"""Planning: many studies answer one question."""

from gcnsim.planning.accuracy import Subject, Target, to_target
from gcnsim.planning.grid import OVERLAP
from gcnsim.planning.measured import read_measurement
from gcnsim.planning.patience import announced, expected_sweep_s
from gcnsim.planning.payload import knobs_told, links_of, memory_told, row_of, setting_text
from gcnsim.planning.provenance import provenance
from gcnsim.planning.recommend import LEAST_RATE, Rule
from gcnsim.planning.steps import Step, next_steps
from gcnsim.planning.what_if import SCHEMA, Answer, Extras, Grid, Progress, scenarios, sweep_bandwidth, what_if
from gcnsim.planning.workshop import Candidate, Estimate, Workshop, counted

__all__ = [
    "LEAST_RATE",
    "OVERLAP",
    "SCHEMA",
    "Answer",
    "Candidate",
    "Estimate",
    "Extras",
    "Grid",
    "Progress",
    "Rule",
    "Step",
    "Subject",
    "Target",
    "Workshop",
    "announced",
    "counted",
    "expected_sweep_s",
    "knobs_told",
    "links_of",
    "memory_told",
    "next_steps",
    "provenance",
    "read_measurement",
    "row_of",
    "scenarios",
    "setting_text",
    "sweep_bandwidth",
    "to_target",
    "what_if",
]
