"""What a run gave: every start and end, of its last iterations perhaps as repetitions of a period."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gcnsim.ids import IntArray
from gcnsim.schedule import Schedule


class Period(NamedTuple):
    """Iterations after which a run repeats itself, and picoseconds from each to its repetition."""

    iterations: int
    lasts_ps: int


@dataclass(frozen=True)
class Run:
    """What happened: starts and ends of every op, int64[T, ops] picoseconds, T whole iterations of all workers.

    first_starts, first_ends: int64[simulated, ops], those that were simulated. iterations: T. period: what the
    iterations beyond them repeat, picosecond by picosecond; None where all were simulated.
    """

    schedule: Schedule
    first_starts: IntArray
    first_ends: IntArray
    iterations: int
    period: Period | None = None

    @property
    def simulated(self) -> int:
        """How many of the iterations were simulated; the others repeat the last of these."""
        return int(self.first_ends.shape[0])

    @property
    def by_period(self) -> int:
        """How many of the iterations were not simulated."""
        return self.iterations - self.simulated

    @property
    def finished_ops(self) -> int:
        """Compute ops and flows that ended, in all iterations."""
        return self.iterations * int(self.first_ends.shape[1])

    @cached_property
    def starts(self) -> IntArray:
        """When each op of each iteration started, int64[T, ops]: written out when first asked for."""
        return self._repeated(self.first_starts)

    @cached_property
    def ends(self) -> IntArray:
        """When each op of each iteration ended, int64[T, ops]: written out when first asked for."""
        return self._repeated(self.first_ends)

    def ends_of(self, ops: list[int]) -> IntArray:
        """`ends` of these ops alone, int64[T, len(ops)]."""
        return self._repeated(self.first_ends[:, ops])

    def _repeated(self, times: IntArray) -> IntArray:
        """Instants of the simulated iterations, int64[simulated, n], followed by those of the others, int64[T, n]."""
        if self.period is None:
            return times
        beyond = np.arange(self.by_period, dtype=np.int64)
        rounds, place = np.divmod(beyond, self.period.iterations)
        later = times[self.simulated - self.period.iterations + place]
        later += ((rounds + 1) * self.period.lasts_ps)[:, None]
        return np.concatenate([times, later])
