"""When a run has shown its steady state, and which of its iterations are warm-up.

A pipelined run starts empty: while its buffers fill it can be faster than it will ever be again. So equal iteration times
are not enough; no op may drift against the end of its iteration either. A run whose ops drift at no more than TOLERANCE of
an iteration per iteration is steady.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.ids import IntArray
from gcnsim.schedule import Schedule

TOLERANCE = 0.002
"""Largest drift per iteration, and half-width of the mean's 90 % interval, at which a run may stop: 0.2 %."""

NORMAL_90 = 1.645
"""Two-sided 90 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The judge of one schedule: at least `least` measured iterations after `warm_up`, at most `most` in all.

    Constant schedules repeat exactly, so few iterations show it; sampled ones are averaged over more.
    """

    schedule: Schedule
    measured: int

    @property
    def warm_up(self) -> int:
        """Iterations that are never measured: the first, and those that fill the pipeline."""
        return 1 + self.schedule.depth

    @property
    def most(self) -> int:
        """Iterations after which the run ends even if it still drifts."""
        return self.warm_up + self.measured + 40 * self.schedule.depth

    @property
    def least(self) -> int:
        """Measured iterations before the first judgement."""
        constant = bool((self.schedule.demand == self.schedule.demand[0]).all())
        return min(self.measured, 3 if constant else 8)

    def enough(self, ends: IntArray) -> bool:
        """Whether the last `least` iterations are steady and their mean is known well enough."""
        if ends.shape[0] < self.warm_up + self.least:
            return False
        first = self.first_measured(ends)
        times = self.iteration_times(ends)[first - 1 :]
        if drift(self.schedule, ends, first) > TOLERANCE:
            return False
        error = NORMAL_90 * float(times.std(ddof=1)) / np.sqrt(times.size) if times.size > 1 else 0.0
        return times.size >= self.measured or error <= TOLERANCE * float(times.mean())

    def iteration_times(self, ends: IntArray) -> IntArray:
        """int64[T - 1]: picoseconds from the end of one iteration (of its last worker) to the end of the next."""
        return np.diff(ends[:, list(self.schedule.ends)].max(axis=1))

    def first_measured(self, ends: IntArray) -> int:
        """The first iteration of the measured window: the last `measured` ones, less if the run is shorter."""
        return max(self.warm_up, ends.shape[0] - self.measured)


def drift(schedule: Schedule, ends: IntArray, first: int) -> float:
    """How fast the op that falls behind most falls behind, as a share of an iteration per iteration.

    Compares each op's lateness against the end of its iteration in the later and the earlier half of the window.
    """
    closing = ends[:, list(schedule.ends)].max(axis=1)
    late = (ends - closing[:, None])[first:].astype(np.float64)
    half = late.shape[0] // 2
    if half == 0:
        return 0.0
    period = float(closing[-1] - closing[first]) / (closing.size - 1 - first) if closing.size - 1 > first else np.inf
    moved = late[-half:].mean(axis=0) - late[:half].mean(axis=0)
    return float(moved.max() / (late.shape[0] - half) / period)
