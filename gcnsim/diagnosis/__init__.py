"""What holds a run up: the worker, and how busy everything is."""

from gcnsim.diagnosis.straggler import EvenPartition, Straggler, evened, straggler_of
from gcnsim.diagnosis.utilization import utilization_of

__all__ = [
    "EvenPartition",
    "Straggler",
    "evened",
    "straggler_of",
    "utilization_of",
]
