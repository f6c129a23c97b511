"""When a run has shown its steady state, and which of its iterations are warm-up.

A pipelined run starts empty: while its buffers fill it can be faster than it will ever be again. So equal iteration
times are not enough; no op may drift against the end of its iteration either. The later half of the run is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.ids import IntArray
from gcnsim.schedule import Schedule

TOLERANCE = 0.005
"""Largest drift at which a run counts as steady: 0.5 % of an iteration per iteration."""

PRECISION = 0.005
"""Half-width of the mean's 90 % interval at which a run may stop: 0.5 %."""

NORMAL_90 = 1.645
"""Two-sided 90 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The judge of one schedule: measures between `least` and `measured` iterations, after a warm-up of as many.

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
        return self.warm_up + 2 * self.measured + 20 * self.schedule.depth

    @property
    def least(self) -> int:
        """Measured iterations before the first judgement."""
        constant = bool((self.schedule.demand == self.schedule.demand[0]).all())
        return min(self.measured, 2 if constant else 6)

    def enough(self, ends: IntArray) -> bool:
        """Whether the measured iterations are steady and their mean is known well enough."""
        done = ends.shape[0]
        if done < self.warm_up + self.least or done % 2:
            return False
        first = self.first_measured(ends)
        if drift(self.schedule, ends, first) > TOLERANCE:
            return False
        return done - first >= self.measured or half_width(self.iteration_times(ends, first)) <= PRECISION

    def iteration_times(self, ends: IntArray, first: int) -> IntArray:
        """int64[T - first]: picoseconds from the end of one iteration (of its last worker) to the end of the next."""
        times: IntArray = np.diff(ends[first - 1 :, list(self.schedule.ends)].max(axis=1))
        return times

    def first_measured(self, ends: IntArray) -> int:
        """The first measured iteration: half of the run is measured, from `least` to `measured` iterations."""
        done = int(ends.shape[0])
        count = min(self.measured, max(self.least, done // 2))
        return max(1, min(done - count, done - 1), self.warm_up if done > self.warm_up else 1)


def half_width(times: IntArray) -> float:
    """Half-width of the 90 % interval of the mean of `times`, as a share of it.

    The Cramer-von Mises estimator of the variance of a mean (Goldsman, Kang and Seila, 1999): six times the mean square
    of the bridge of partial sums. Unlike the sample variance it holds for times that alternate or drift, as a
    saturated pipeline's do; for independent ones the two agree.
    """
    count = times.size
    mean = float(times.mean())
    bridge = np.cumsum(times - mean)
    return NORMAL_90 * float(np.sqrt(6.0 * np.mean(bridge**2))) / count / mean


def drift(schedule: Schedule, ends: IntArray, first: int) -> float:
    """How fast the op that falls behind most falls behind, as a share of an iteration per iteration.

    Compares each op's lateness against the end of its iteration in the later and the earlier half of the window.
    """
    closing = ends[:, list(schedule.ends)].max(axis=1)
    late = (ends - closing[:, None])[first:].astype(np.float64)
    half = late.shape[0] // 2
    if half == 0:
        return 0.0
    period = float(closing[-1] - closing[first - 1]) / late.shape[0]
    moved = late[-half:].mean(axis=0) - late[:half].mean(axis=0)
    return float(moved.max() / (late.shape[0] - half) / period)
