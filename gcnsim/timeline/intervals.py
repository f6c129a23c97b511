"""Sets of instants as disjoint, sorted intervals of integer picoseconds: union, intersection, difference, length."""

from __future__ import annotations

from collections.abc import Callable
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
        return self._swept(other, lambda own, others: own & ~others)

    def intersection(self, other: Intervals) -> Intervals:
        """Instants in this and in the other."""
        return self._swept(other, lambda own, others: own & others)

    def _swept(self, other: Intervals, kept: Callable[[BoolArray, BoolArray], BoolArray]) -> Intervals:
        """Instants that are `kept` by whether this and the other have them: one answer between neighbouring edges."""
        edges = np.sort(np.concatenate((self.starts, self.ends, other.starts, other.ends)))
        left = edges[:-1]
        wanted = kept(self._covers(left), other._covers(left))
        return Intervals.of(left[wanted], edges[1:][wanted])

    def _covers(self, instants: IntArray) -> BoolArray:
        if not self.starts.size:
            return np.zeros(instants.shape, dtype=np.bool_)
        at = np.searchsorted(self.starts, instants, side="right") - 1
        inside: BoolArray = (at >= 0) & (instants < self.ends[np.maximum(at, 0)])
        return inside
