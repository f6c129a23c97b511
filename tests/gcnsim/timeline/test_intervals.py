"""Intervals against plain sets of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.timeline import Intervals

Pairs = list[tuple[int, int]]
PAIRS = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=12)


def intervals(pairs: Pairs) -> Intervals:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Intervals.of(table[:, 0], table[:, 1])


def instants(pairs: Pairs) -> set[int]:
    return {instant for start, end in pairs for instant in range(start, end)}


def covered(found: Intervals) -> set[int]:
    """The integers inside; the intervals must be non-empty, ascending and apart."""
    assert (found.ends > found.starts).all()
    assert (found.starts[1:] > found.ends[:-1]).all()
    return instants(list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)))


@settings(deadline=None, max_examples=200)
@given(PAIRS, PAIRS)
def test_union_difference_and_intersection(a: Pairs, b: Pairs) -> None:
    one, two, first, second = intervals(a), intervals(b), instants(a), instants(b)
    assert covered(one) == first
    assert covered(one.union(two)) == first | second
    assert covered(one.difference(two)) == first - second
    assert covered(one.intersection(two)) == first & second
    assert one.length == len(first)
    assert one.difference(two).length + one.intersection(two).length == one.length


@settings(deadline=None, max_examples=100)
@given(PAIRS, st.integers(-5, 40), st.integers(0, 20))
def test_within_a_window(a: Pairs, start: int, size: int) -> None:
    window = set(range(start, start + size))
    assert covered(intervals(a).within(start, start + size)) == instants(a) & window


def test_touching_intervals_are_one() -> None:
    found = intervals([(3, 5), (0, 3), (7, 9)])
    assert (found.starts.tolist(), found.ends.tolist()) == ([0, 7], [5, 9])


def test_empty_and_reversed_intervals_vanish() -> None:
    assert intervals([(4, 4), (9, 2)]).length == 0
    assert intervals([]).union(intervals([(1, 2)])).length == 1
    assert intervals([]).difference(intervals([(1, 2)])).length == 0


def test_picoseconds_of_days_stay_exact() -> None:
    day = 86_400 * 10**12
    assert intervals([(0, 10 * day), (10 * day - 1, 10 * day + 1)]).length == 10 * day + 1
