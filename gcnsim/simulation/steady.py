"""When a run has shown its steady state, and which of its iterations are measured.

A pipelined run starts empty: while its queues fill it is faster than it will ever be again, and while they settle it
is slower; saturated ones alternate between a few iteration times for ever. So neither equal iteration times nor a
small spread tell. What tells is the state: how late every op is against the end of its iteration. When the state of
an earlier iteration has returned, the iterations in between are whole periods of the pipeline, and their mean is its
steady pace. An op that falls behind by a share x of an iteration per iteration will set the pace in the end, so the
mean is wrong by at most x; one that gets ahead by y only says that a queue is still settling
(measured: up to 0.6 y in the mean).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcnsim.ids import FloatArray, IntArray
from gcnsim.schedule import Schedule, resource_loads

BEHIND = 0.01
"""The most an op may fall behind, per iteration, in a state that counts as returned: 1 % of an iteration."""

AHEAD = 0.04
"""The most an op may get ahead, per iteration, in a state that counts as returned: 4 % of an iteration."""

HEAVY = 0.5
"""Resources with at least this share of the largest load decide how much the iteration time varies between draws."""

SETTLING = 0.6
"""How much of `ahead` may be in the mean: the most seen in near-critical runs against runs of 400 iterations."""

WIDEST = 30
"""Iterations that a run may settle over, however few are asked for: a few graphs in turn, or an alternating pipeline,
may take several rounds until a state returns."""

STUDENT_90 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75)
"""Two-sided 90 % quantiles of Student's t for 1, 2, ... degrees of freedom; 1.75 beyond the last."""


def quantile_90(count: int) -> float:
    """Two-sided 90 % quantile of Student's t for the mean of `count` values."""
    return STUDENT_90[min(max(count - 1, 1), len(STUDENT_90)) - 1]


UNLIKE = 0.015
"""The most by which the drawn graphs that are measured may differ in their mean load from all that are drawn: 1.5 %."""


class Window(NamedTuple):
    """Measured iterations [first, T); behind, ahead: how the worst op moved, in iterations per iteration.

    unlike: how far the mean load of the measured graphs is from that of all, as a share of it.
    """

    first: int
    behind: float
    ahead: float
    unlike: float = 0.0

    @property
    def off(self) -> float:
        """How far the state at the end is from that before `first`, over what is allowed: at most 1 when settled."""
        return max(self.behind / BEHIND, self.ahead / AHEAD, self.unlike / UNLIKE)

    @property
    def settled(self) -> bool:
        """Whether the state at the end is that before `first`."""
        return self.behind <= BEHIND and self.ahead <= AHEAD and self.unlike <= UNLIKE


class Steady:
    """The judge of one schedule.

    measured: most iterations that are measured; least: the fewest (constant schedules repeat exactly, sampled ones are
    averaged). settling: most iterations that are measured where no state returns over so few: whole rounds of the drawn
    graphs. warm_up: iterations that are never measured, the first and those that fill the pipeline. most: iterations
    after which a run ends even if it has not settled.
    """

    def __init__(self, schedule: Schedule, measured: int) -> None:
        self.cycle = schedule.demand.shape[0] if schedule.periodic else 1
        self.measured = measured = -(-measured // self.cycle) * self.cycle
        constant = bool((schedule.demand == schedule.demand[0]).all())
        # Where work varies by chance, chance may bring a state back: the mean over all iterations is the pace.
        varies = bool((schedule.columns.thread >= 0).any()) and not constant
        self.least = measured if varies else min(measured, 2 if constant else 6)
        if self.cycle > 1:
            self.least = self.cycle
        self.settling = measured if varies else max(measured, WIDEST)
        self._round = 1 if constant else schedule.demand.shape[0]
        self.warm_up = 1 + schedule.depth
        self.most = self.warm_up + 2 * self.settling + 20 * schedule.depth
        self._load = self._loads(schedule) if not (constant or varies or self.cycle > 1) else None
        self._closing = list(schedule.ends)
        self._ops = schedule.columns.size

    def _loads(self, schedule: Schedule) -> FloatArray:
        """Load of the busiest resource over its mean, summed up to each iteration, float64[most + 1]."""
        loads = resource_loads(schedule).seconds
        busiest = loads[:, int(np.argmax(loads.mean(axis=0)))]
        each = busiest[np.arange(self.most) % busiest.size] / busiest.mean()
        return np.concatenate([[0.0], np.cumsum(each)])

    def enough(self, ends: IntArray) -> bool:
        """Whether the state of an earlier iteration has returned."""
        return ends.shape[0] >= self.warm_up + self.least and self.window(ends).settled

    def window(self, ends: IntArray) -> Window:
        """The iterations to measure: in the later half of the run, those whose state returns best.

        More than are asked for only where the state returns over them and over no fewer, or comes nearer by half.
        """
        found = self._best(ends, self.measured, self.cycle)
        if found.settled or self.settling == self.measured or ends.shape[0] <= self.warm_up + self._round:
            return found
        wider = self._best(ends, self.settling, self._round)
        return wider if wider.settled or wider.off < found.off / 2 else found

    def _best(self, ends: IntArray, measured: int, whole: int) -> Window:
        """Of at most `measured` iterations, a multiple of `whole` of them, those whose state returns best."""
        last = int(ends.shape[0]) - 1
        latest = max(0, last - self.least)
        earliest = min(max(self.warm_up, (last + 1) // 2, last - measured), latest)
        since = ends[earliest : latest + 1]
        passed = ends[last, self._closing].max() - since[:, self._closing].max(axis=1)
        # Division keeps the order: of the differences only the extremes are divided.
        moved = ends[last] - since
        behind, ahead = (moved.max(axis=1) - passed) / passed, -((moved.min(axis=1) - passed) / passed)
        unlike = np.zeros_like(behind)
        if self._load is not None and last < self.most:
            first = np.arange(earliest, latest + 1) + 1
            unlike = np.abs((self._load[last + 1] - self._load[first]) / (last + 1 - first) - 1.0)
        returned = np.maximum(np.maximum(behind / BEHIND, ahead / AHEAD), unlike / UNLIKE)
        returned[(last - earliest - np.arange(returned.size)) % whole != 0] = np.inf
        best = int(np.argmin(returned))
        if not np.isfinite(returned[best]):
            return Window(earliest + best + 1, np.inf, np.inf)
        return Window(earliest + best + 1, float(behind[best]), float(ahead[best]), float(unlike[best]))

    def moved(self, ends: IntArray, since: int) -> tuple[float, float]:
        """How far the worst op fell behind, and got ahead, per iteration from iteration `since` to the last."""
        pair = ends[[since, -1]]
        closing = pair[:, self._closing].max(axis=1)
        state = pair[:, : self._ops] - closing[:, None]
        moved = (state[1] - state[0]) / (closing[1] - closing[0])
        return float(moved.max()), float(-moved.min())

    def spread(self, window: Window, measured: Schedule) -> float:
        """Half-width of the 90 % interval of the mean iteration, as a share of it.

        Two parts: how far the mean of the drawn graphs may be from that of other draws, from the variation of the load
        they put on the resources that matter; and what the state's not quite returning may hide (`Window`).
        """
        if self.cycle > 1:
            return max(window.behind, SETTLING * window.ahead, 0.0)
        loads = resource_loads(measured).seconds
        mean = loads.mean(axis=0)
        heavy = mean >= HEAVY * mean.max()
        varies = float((loads[:, heavy].std(axis=0, ddof=1) / mean[heavy]).max()) if loads.shape[0] > 1 else 0.0
        chance = quantile_90(loads.shape[0]) * varies / float(np.sqrt(loads.shape[0]))
        return chance + max(window.behind, SETTLING * window.ahead, 0.0)
