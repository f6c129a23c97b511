"""CSR rows sorted by value with their running sums: what Theorem 2 needs once per graph, whatever the rate.

Rows of similar length are padded into small rectangular blocks, sorted and summed along the block's second axis. Every
row is thus summed on its own: one running sum over all rows would lose a row of small values behind one of large ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gcnsim.ids import Float32Array, FloatArray, IntArray

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
