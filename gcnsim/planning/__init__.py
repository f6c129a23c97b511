"""Planning: answer one question from many simulated settings."""

from gcnsim.machine.odd_rates import rate_warnings
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.measured import read_measurement
from gcnsim.planning.provenance import provenance
from gcnsim.planning.recommend import MAX_STALENESS, MIN_SAMPLING_RATE, Rule
from gcnsim.planning.rows import RowEvaluator, links_of, memory_report, rent_of, row_of, run_length
from gcnsim.planning.simulated_draws import read_max_wait
from gcnsim.planning.steps import next_steps
from gcnsim.planning.study_cache import StudyCache, counted
from gcnsim.planning.time_to_accuracy import Failures, Subject, Target
from gcnsim.planning.what_if import Extras, Grid, Progress, scenarios, sweep_bandwidth, what_if

__all__ = [
    "MAX_STALENESS",
    "MIN_SAMPLING_RATE",
    "Candidate",
    "Extras",
    "Failures",
    "Grid",
    "Progress",
    "RowEvaluator",
    "Rule",
    "StudyCache",
    "Subject",
    "Target",
    "counted",
    "links_of",
    "memory_report",
    "next_steps",
    "provenance",
    "rate_warnings",
    "read_max_wait",
    "read_measurement",
    "rent_of",
    "row_of",
    "run_length",
    "scenarios",
    "sweep_bandwidth",
    "what_if",
]
