"""Theorem 2 of PSC-GCN: the edge probabilities of least variance under a budget, for all rows of a CSR matrix at once.

For one row with q_j = sqrt(a_j) ||y_ij||, n entries and budget B = epsilon n the theorem sorts q, finds the largest k
with c_k q_k <= S_k (c_k = B + k - n, S_k the sum of the k smallest) and sets p_j = min(1, q_j c_k / S_k). Entries that
would get less than the floor 0.1 epsilon get the floor, since p > 0 is needed and 1/p must stay bounded; the rule is
then applied to the others with the budget that is left, until no new entry falls below. That is the exact optimum under
floor <= p <= 1, and the theorem itself if no value is below the floor.

What the theorem needs once per graph, whatever the rate, are CSR rows sorted by value with their running sums. Rows of
similar length are padded into small rectangular blocks, sorted and summed along the block's second axis. Every row is
thus summed on its own: one running sum over all rows would lose a row of small values behind one of large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gcnsim.ids import BoolArray, Float32Array, FloatArray, IntArray

BLOCK = 1 << 16
"""Padded entries handled at a time: a megabyte or two, which stays in the cache."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows of non-negative values, ascending within a row.

    start, counts, zeros: int64[I]: first entry, entries, and leading zeros of each row.
    values: float32[nnz]. sums: float64[nnz], sums[start + k - 1] = the k smallest values of the row added up.
    """

    start: IntArray
    counts: IntArray
    zeros: IntArray
    values: Float32Array
    sums: FloatArray


def sort_rows(indptr: IntArray, values: Float32Array) -> SortedRows:
    """The rows `values[indptr[i]:indptr[i + 1]]` sorted, with running sums."""
    start, counts = indptr[:-1], np.diff(indptr)
    ordered = np.empty_like(values)
    sums = np.empty(values.size, np.float64)
    zeros = np.zeros(counts.size, np.int64)
    for rows, width in _blocks(counts):
        inside = np.arange(width) < counts[rows, None]
        index = (start[rows, None] + np.arange(width))[inside]
        block = np.full(inside.shape, np.inf, np.float32)
        block[inside] = values[index]
        block.sort(axis=1)
        zeros[rows] = np.count_nonzero(block == 0, axis=1)
        ordered[index] = block[inside]
        sums[index] = np.cumsum(block, axis=1, dtype=np.float64)[inside]
    return SortedRows(start, counts, zeros, ordered, sums)


def _blocks(counts: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Groups of non-empty rows with the padded width of each group: at most half of a block is padding."""
    width_class = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    for power in np.unique(width_class[counts > 0]).tolist():
        members = np.flatnonzero((width_class == power) & (counts > 0))
        step = max(1, BLOCK >> power)
        for first in range(0, members.size, step):
            rows = members[first : first + step]
            yield rows, int(counts[rows].max())


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
