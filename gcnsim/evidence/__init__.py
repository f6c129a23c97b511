"""Evidence for a question: recorded runs of the same setting, and measured times of similar settings."""

from gcnsim.evidence.like_questions import like_questions
from gcnsim.evidence.recorded_run import CORE, device_of, refuse_other_kernels, refuse_other_trace, scenario_of

__all__ = [
    "CORE",
    "device_of",
    "like_questions",
    "refuse_other_kernels",
    "refuse_other_trace",
    "scenario_of",
]
