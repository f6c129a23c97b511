"""What stands beside a question: recorded runs of the same, and measured times of settings like it."""

from gcnsim.evidence.like_questions import like_questions
from gcnsim.evidence.recorded_run import device_of, refuse_other_trace, scenario_of
from gcnsim.hardware import CORE

__all__ = [
    "CORE",
    "device_of",
    "like_questions",
    "refuse_other_trace",
    "scenario_of",
]
