"""Theorem 2 of PSC-GCN: the edge probabilities of least variance under a budget, for all rows of a CSR matrix at once.

For one row with q_j = sqrt(a_j) ||y_ij||, n entries and budget B = epsilon n the theorem sorts q, finds the largest k
with c_k q_k <= S_k (c_k = B + k - n, S_k the sum of the k smallest) and sets p_j = min(1, q_j c_k / S_k). Entries that
would get less than the floor 0.1 epsilon get the floor, since p > 0 is needed and 1/p must stay bounded; the rule is
then applied to the others with the budget that is left, until no new entry falls below. That is the exact optimum
under floor <= p <= 1, and the theorem itself where nothing falls below the floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gcnsim.ids import BoolArray, FloatArray, IntArray
from gcnsim.sampling.sorted_rows import SortedRows

FLOOR = 0.1
"""The least probability of an edge, as a share of epsilon."""

_SLACK = 1.0 + 1e-12
"""Rounding allowed in the test of the theorem; at the threshold both branches give p = 1."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Per row: p_j = min(1, max(lower, scale q_j)). scale, lower: float64[I]. floored: int64[I], entries at it."""

    scale: FloatArray
    lower: FloatArray
    floored: IntArray


def water_fill(rows: SortedRows, epsilon: float) -> Filling:
    """The filling of every row for the budget epsilon n; needs 0 < epsilon < 1.

    A row whose values are all zero gets p = epsilon. Where the non-zero entries cannot use up the budget even at p = 1,
    the zero ones share the rest equally.
    """
    least = FLOOR * epsilon
    floored = rows.zeros.copy()
    scale, lower = np.zeros(floored.size), np.full(floored.size, least)
    blank = rows.zeros == rows.counts
    lower[blank], floored[blank] = epsilon, 0
    rest = epsilon * rows.counts - (rows.counts - rows.zeros)
    ample = ~blank & (rows.zeros > 0) & (rest >= least * rows.zeros)
    lower[ample] = rest[ample] / rows.zeros[ample]
    scale[ample] = _SLACK / rows.values[(rows.start + rows.zeros)[ample]].astype(np.float64)
    active = np.flatnonzero(~blank & ~ample)
    while active.size:
        scale[active] = _scale(rows, active, floored[active], epsilon)
        below = _below(rows, active, floored[active], least / scale[active])
        grew = below > floored[active]
        floored[active] = below
        active = active[grew]
    return Filling(scale, lower, floored)


def _scale(rows: SortedRows, active: IntArray, floored: IntArray, epsilon: float) -> FloatArray:
    """c_k / S_k of the rows `active` when their `floored` smallest entries are held at the floor."""
    start, counts = rows.start[active], rows.counts[active]
    offset = epsilon * (counts - FLOOR * floored) - counts
    held = np.where(floored > 0, rows.sums[start + np.maximum(floored, 1) - 1], 0.0)

    def holds(k: IntArray) -> BoolArray:
        at = start + k - 1
        true: BoolArray = (offset + k) * rows.values[at] <= (rows.sums[at] - held) * _SLACK
        return true

    k = _last(floored + 1, counts, holds)
    result: FloatArray = (offset + k) / (rows.sums[start + k - 1] - held)
    return result


def _below(rows: SortedRows, active: IntArray, floored: IntArray, limit: FloatArray) -> IntArray:
    """How many entries of each row are below `limit`, never fewer than `floored`."""
    start = rows.start[active]

    def holds(count: IntArray) -> BoolArray:
        true: BoolArray = rows.values[start + count - 1] < limit
        return true

    return _last(floored, rows.counts[active], holds)


def _last(low: IntArray, high: IntArray, holds: Callable[[IntArray], BoolArray]) -> IntArray:
    """The largest integer in [low, high] for which `holds`, element by element, by bisection.

    `holds` is true up to some integer and false after it; it is taken to be true at `low`.
    """
    while bool(np.any(low < high)):
        middle = (low + high + 1) // 2
        true = holds(middle)
        low, high = np.where(true, middle, low), np.where(true, high, middle - 1)
    return low
