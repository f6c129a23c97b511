"""Recorded runs as questions: the same cluster, model, method and accesses."""

from gcnsim.evidence.recorded_run import CORE, device_of, refuse_other_kernels, scenario_of
from gcnsim.evidence.run_trace import refuse_other_trace

__all__ = [
    "CORE",
    "device_of",
    "refuse_other_kernels",
    "refuse_other_trace",
    "scenario_of",
]
