"""The order in which one iteration can run: proof that a schedule cannot deadlock, and base of the analytic bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gcnsim.ids import FloatArray, IntArray
from gcnsim.schedule.columns import KIND_OF, narrow, rows_by, stream_waits
from gcnsim.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """n ops of one iteration in L levels: each op follows ops of earlier levels alone, one of the level just before.

    order: int64[n], the ops level by level. at: where each level begins in it, L + 1 places. before_at: int64[n + 1]
    and before: for each place of `order`, the places of the ops that it follows.
    """

    order: IntArray
    at: tuple[int, ...]
    before_at: IntArray
    before: IntArray

    def longest(self, seconds: FloatArray, begin: FloatArray | None = None) -> FloatArray:
        """Per op, the length of the longest chain that ends with it, float64[n] or float64[n, K].

        seconds: float64[n], or float64[n, K] of K variants. begin: of the same shape, what a chain that begins with an
        op has behind it, -inf where none begins; by default chains begin anywhere, with nothing behind them.
        """
        work = seconds[self.order]
        end = np.zeros_like(work) if begin is None else begin[self.order]
        for level, (first, last) in enumerate(pairwise(self.at)):
            here = end[first:last]
            if level:
                low, high = self.before_at[first], self.before_at[last]
                chains = np.maximum.reduceat(end[self.before[low:high]], self.before_at[first:last] - low, axis=0)
                np.maximum(here, chains, out=here)
            here += work[first:last]
        found = np.empty_like(end)
        found[self.order] = end
        return found

    def remaining(self, seconds: FloatArray, last: FloatArray) -> FloatArray:
        """Per op, the length of the longest chain that begins with it, float64[n]: `longest` the other way round.

        seconds: float64[n]. last: float64[n], what follows a chain that ends with an op, -inf where none ends.
        """
        work, behind = seconds[self.order], last[self.order]
        for first, end in reversed(list(pairwise(self.at))):
            behind[first:end] += work[first:end]
            low, high = self.before_at[first], self.before_at[end]
            often = np.diff(self.before_at[first : end + 1])
            np.maximum.at(behind, self.before[low:high], np.repeat(behind[first:end], often))
        found = np.empty_like(behind)
        found[self.order] = behind
        return found


def predecessors(schedule: Schedule, *, collapse: bool = False) -> tuple[IntArray, IntArray]:
    """Pairs (op, an op of the same iteration that it must follow): its stream's previous op, and waits of lag 0.

    With `collapse`, the synchronous reading of the same schedule: dependencies of any lag count except a worker's
    wait for the end of its previous iteration, and no buffer is reused while it is in use.
    """
    columns = schedule.columns
    if collapse:
        counts = ~columns.is_reuse() & ((columns.lag == 0) | ~np.isin(columns.wait, schedule.ends))
    else:
        counts = columns.lag == 0
    streams = stream_waits(columns)
    own = np.flatnonzero(streams.lag == 0)
    ops = np.concatenate([columns.rows_of_waits()[counts], own])
    return ops, np.concatenate([columns.wait[counts], streams.before[own]])


def levels(schedule: Schedule, *, collapse: bool = False) -> Levels:
    """The levels of the schedule's ops by `predecessors`.

    Found once for a structure. Raises ValueError naming an op on a cycle: such a schedule would wait for itself.
    """
    if collapse:
        return schedule.columns.shortly(
            f"levels {schedule.ends}", lambda: _levels(schedule, *predecessors(schedule, collapse=True))
        )
    return schedule.columns.derived("levels", lambda: _levels(schedule, *predecessors(schedule)))


def _levels(schedule: Schedule, ops: IntArray, before: IntArray) -> Levels:
    count = schedule.columns.size
    missing = np.bincount(ops, minlength=count)
    follower_at, places = rows_by(before, count)
    follower = ops[places]
    at, every = [0], []
    ready = np.flatnonzero(missing == 0)
    while ready.size:
        every.append(ready)
        at.append(at[-1] + ready.size)
        following, fewer = np.unique(follower[_rows(follower_at, ready)], return_counts=True)
        missing[following] -= fewer
        ready = following[missing[following] == 0]
    if at[-1] < count:
        stuck = int(np.flatnonzero(missing)[0])
        kind, worker = KIND_OF[int(schedule.columns.kind[stuck])], int(schedule.columns.worker[stuck])
        raise ValueError(f"{schedule.method}: op {stuck} ({kind}, worker {worker}) waits for itself")
    order = np.concatenate(every) if every else np.empty(0, np.int64)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    before_at, rows = rows_by(place[ops], count)
    before_at, found = narrow(before_at, count), narrow(place, count)[before[rows]]
    return Levels(narrow(order, count), tuple(at), before_at, found)


def _rows(at: IntArray, rows: IntArray) -> IntArray:
    """The places of the values of these rows, one row after another."""
    sizes = at[rows + 1] - at[rows]
    ends = np.cumsum(sizes)
    places: IntArray = np.arange(int(ends[-1])) + np.repeat(at[rows] - (ends - sizes), sizes)
    return places
