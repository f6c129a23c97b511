"""Summarise the iterations of a measured run from any recorder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.records.profiled_run import read_profiled_run
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.records.trace_events import is_profiler_trace


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds per iteration of `iterations` measured ones.

    low_s, high_s: the 90 % interval of their mean (the value itself for a single one). spread_s: their standard
    deviation. error_s: the standard error of their mean, `spread_s / sqrt(iterations)` (both 0 for a single one).
    phases: of the slowest worker, by `gcnsim.timeline.breakdown.PHASES`. kind: `run` (of runtime.train) or `trace` (of
    the PyTorch profiler). notes: remarks for readers. devices: for a trace, the GPU of each worker; empty for a run.
    """

    path: Path
    kind: str
    workers: int
    iterations: int
    iteration_s: float
    low_s: float
    high_s: float
    spread_s: float
    error_s: float
    phases: Mapping[str, float]
    notes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def read_measured(path: str | Path) -> Measured:
    """The iterations of a run folder, or of a trace or folder of traces that the PyTorch profiler exported.

    Raises FileError, naming the file and what is wrong.
    """
    place = Path(path)
    if place.is_file() or is_profiler_trace(place):
        profiled = read_profiled_run(place)
        measured = _measured(place, "trace", profiled.workers, profiled.iterations, profiled.phases, profiled.notes)
        return replace(measured, devices=tuple(profiled.devices))
    run = read_recorded_run(place)
    return _measured(place, "run", run.workers, run.iterations, run.phases, ())


def _measured(
    path: Path, kind: str, workers: int, times: FloatArray, phases: Mapping[str, float], notes: tuple[str, ...]
) -> Measured:
    low, high = interval_of_mean(times)
    spread = float(times.std(ddof=1)) if times.size > 1 else 0.0
    error = spread / math.sqrt(times.size)
    return Measured(path, kind, workers, times.size, float(times.mean()), low, high, spread, error, phases, notes)


def interval_of_mean(times: FloatArray) -> tuple[float, float]:
    """The 90 % interval of the mean of independent `times`, by Student's t; the value twice for a single one.

    No mean of times is negative, so the interval starts at 0 or above.
    """
    from scipy.special import stdtrit

    mean, count = float(times.mean()), times.size
    if count < 2:
        return mean, mean
    half = float(stdtrit(count - 1, 0.95) * times.std(ddof=1) / np.sqrt(count))
    return max(mean - half, 0.0), mean + half
