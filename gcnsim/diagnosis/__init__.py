"""What holds a run up: the worker, and how busy everything is."""

from gcnsim.diagnosis.straggler import EvenPartition, Straggler, evened, straggler_of
from gcnsim.diagnosis.utilization import utilization_of
from gcnsim.diagnosis.wire_time import impossible, impossible_time, least_wire_s

__all__ = [
    "EvenPartition",
    "Straggler",
    "evened",
    "impossible",
    "impossible_time",
    "least_wire_s",
    "straggler_of",
    "utilization_of",
]
