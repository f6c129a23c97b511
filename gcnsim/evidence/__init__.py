"""Evidence for a question: recorded runs of the same setting, and measured times of similar settings."""

from typing import TYPE_CHECKING

from gcnsim.evidence.like_questions import like_questions
from gcnsim.hardware import CORE
from gcnsim.lazy import lazily

if TYPE_CHECKING:
    from gcnsim.evidence.recorded_run import device_of, refuse_other_trace, scenario_of

_OF_RUNS = ("device_of", "refuse_other_trace", "scenario_of")

__getattr__ = lazily(__name__, dict.fromkeys(_OF_RUNS, "gcnsim.evidence.recorded_run"))

__all__ = [
    "CORE",
    "device_of",
    "like_questions",
    "refuse_other_trace",
    "scenario_of",
]
