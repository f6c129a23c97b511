"""Compute times that `python -m runtime.measure` took on one device (docs/files.md)."""

from gcnsim.measured_compute.command import measure_command
from gcnsim.measured_compute.facts import MeasuredCompute, MeasuredPart, MeasuredSetting, OpKey, iteration_weights
from gcnsim.measured_compute.reading import measured_compute, measured_files, read_measured_compute

__all__ = [
    "MeasuredCompute",
    "MeasuredPart",
    "MeasuredSetting",
    "OpKey",
    "iteration_weights",
    "measure_command",
    "measured_compute",
    "measured_files",
    "read_measured_compute",
]
