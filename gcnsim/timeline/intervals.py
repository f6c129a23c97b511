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
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        if not starts.size:
            return cls(starts, ends)
        reach = np.maximum.accumulate(ends)
        opens = np.r_[True, starts[1:] > reach[:-1]]
        closes = np.r_[opens[1:], True]
        return cls(starts[opens], reach[closes])

    @property
    def length(self) -> int:
        """Picoseconds covered."""
        return int((self.ends - self.starts).sum())

    def within(self, start: int, end: int) -> Intervals:
        """The part inside [start, end)."""
        return Intervals.of(np.clip(self.starts, start, end), np.clip(self.ends, start, end))

    def union(self, other: Intervals) -> Intervals:
        """Instants in either."""
        return Intervals.of(np.r_[self.starts, other.starts], np.r_[self.ends, other.ends])

    def difference(self, other: Intervals) -> Intervals:
        """Instants in this and not in the other."""
        # Sweep over all edges: inside self and outside other between two neighbouring edges or nowhere between them.
        edges = np.sort(np.r_[self.starts, self.ends, other.starts, other.ends])
        if edges.size < 2:
            return self
        left = edges[:-1]
        kept = self._covers(left) & ~other._covers(left)
        return Intervals.of(left[kept], edges[1:][kept])

    def intersection(self, other: Intervals) -> Intervals:
        """Instants in this and in the other."""
        return self.difference(self.difference(other))

    def _covers(self, instants: IntArray) -> BoolArray:
        if not self.starts.size:
            return np.zeros(instants.shape, dtype=np.bool_)
        at = np.searchsorted(self.starts, instants, side="right") - 1
        inside: BoolArray = (at >= 0) & (instants < self.ends[np.maximum(at, 0)])
        return inside
