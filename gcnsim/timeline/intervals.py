"""Sets of instants as disjoint, sorted intervals of integer picoseconds: union, intersection, difference, length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.ids import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint half-open intervals [start, end), ascending; build them with `of`, which merges overlaps.

    >>> Intervals.of(np.array([0, 5]), np.array([3, 9])).difference(Intervals.of(np.array([2]), np.array([6]))).length
    5
    """

    starts: IntArray
    ends: IntArray

    @classmethod
    def of(cls, starts: IntArray, ends: IntArray) -> Intervals:
        """The union of the intervals [starts[i], ends[i]); empty ones vanish."""
        real = ends > starts
        starts, ends = starts[real], ends[real]
        if not starts.size:
            return cls(starts, ends)
        order = np.argsort(starts, kind="stable")
        starts, reach = starts[order], np.maximum.accumulate(ends[order])
        # Where an interval begins behind all before it, one is over and the next opens.
        bounds = np.ones(starts.size + 1, np.bool_)
        np.greater(starts[1:], reach[:-1], out=bounds[1:-1])
        return cls(starts[bounds[:-1]], reach[bounds[1:]])

    @property
    def length(self) -> int:
        """Picoseconds covered."""
        return int((self.ends - self.starts).sum())

    def within(self, start: int, end: int) -> Intervals:
        """The part inside [start, end)."""
        return Intervals.of(np.clip(self.starts, start, end), np.clip(self.ends, start, end))

    def union(self, other: Intervals) -> Intervals:
        """Instants in either."""
        return Intervals.of(np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends)))

    def difference(self, other: Intervals) -> Intervals:
        """Instants in this and not in the other."""
        sweep = Sweep(self, other)
        return sweep.instants(sweep.has(self) & ~sweep.has(other))

    def intersection(self, other: Intervals) -> Intervals:
        """Instants in this and in the other."""
        sweep = Sweep(self, other)
        return sweep.instants(sweep.has(self) & sweep.has(other))


class Sweep:
    """The stretches between neighbouring edges of several sets: each set has all of a stretch, or nothing of it."""

    def __init__(self, *sets: Intervals) -> None:
        edges = np.concatenate([edge for each in sets for edge in (each.starts, each.ends)])
        edges.sort()
        self._starts, self._ends = edges[:-1], edges[1:]

    def has(self, instants: Intervals) -> BoolArray:
        """Which stretches `instants` has, bool[stretches]; one of the sets, or made of some of them."""
        if not instants.starts.size:
            return np.zeros(self._starts.shape, dtype=np.bool_)
        at = instants.starts.searchsorted(self._starts, side="right") - 1
        inside: BoolArray = (at >= 0) & (self._starts < instants.ends[np.maximum(at, 0)])
        return inside

    def instants(self, chosen: BoolArray) -> Intervals:
        """The instants of the stretches that are `chosen`."""
        return Intervals.of(self._starts[chosen], self._ends[chosen])
