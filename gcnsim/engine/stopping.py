"""When a run is over: asked by both engines at the same iterations, so both stop at the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gcnsim.engine.periods import watched
from gcnsim.engine.run import Period, Run
from gcnsim.ids import IntArray, Iteration
from gcnsim.schedule import Schedule

Enough: TypeAlias = Callable[[IntArray], bool]
"""Asked after each iteration with the ends so far, int64[T, ops]; True stops the run there."""


def spare(schedule: Schedule) -> Iteration:
    """Iterations that follow the last of an endless run: twice as many as ops reach back, so that none of its ops ends
    early for want of those that would have followed it."""
    return 2 * schedule.depth


class Stop:
    """Says when a run of at most `iterations` iterations is over.

    endless: what the run shows goes on beyond its last iteration. Then `spare` more are opened; and once the run is
    known to repeat itself (`gcnsim.engine.periods`) the rest is not simulated. A run that `enough` would stop later is
    simulated until then.
    """

    def __init__(self, schedule: Schedule, iterations: Iteration, enough: Enough | None, *, endless: bool) -> None:
        self.opened = iterations + (spare(schedule) if endless else 0)
        """The most iterations that may open."""
        self._schedule, self._iterations, self._enough = schedule, iterations, enough
        self._watch = watched(schedule, iterations) if endless else None
        self._period: Period | None = None
        self._simulated = 0

    def asked_next(self, complete: Iteration) -> Iteration:
        """How many complete iterations to ask about next, when `complete` were not enough."""
        if self._enough is not None:
            return complete + 1
        return self._iterations if self._watch is None else min(self._watch.next, self._iterations)

    def over(self, starts: IntArray, ends: IntArray, complete: Iteration) -> bool:
        """Whether the first `complete` iterations are enough; starts, ends: int64[>= complete, ops]."""
        if complete >= self._iterations or (self._enough is not None and self._enough(ends[:complete])):
            return True
        if self._watch is None or complete < self._watch.next:
            return False
        self._period = self._watch.look(starts, ends, complete)
        if self._period is None:
            return False
        self._watch, self._simulated = None, complete
        if self._settles_later(starts, ends):
            self._period = None
        return self._period is not None

    def _settles_later(self, starts: IntArray, ends: IntArray) -> bool:
        """Whether one of the iterations that need not be simulated would be enough."""
        if self._enough is None:
            return False
        whole = self.run(starts, ends, self._simulated).ends
        return any(self._enough(whole[:count]) for count in range(self._simulated + 1, whole.shape[0] + 1))

    def run(self, starts: IntArray, ends: IntArray, complete: Iteration) -> Run:
        """What the run gave, of which the first `complete` iterations were simulated until it was over."""
        if self._period is not None:
            done = self._simulated
            return Run(self._schedule, starts[:done], ends[:done], self._iterations, self._period)
        done = min(complete, self._iterations)
        return Run(self._schedule, starts[:done], ends[:done], done)
