"""How soon a worker's sums over neighbours read a row again: what caches can save, computed from the matrix alone.

A product goes through its matrix row by row and reads, per entry, the row of its operand that the entry's column names.
Whether that row is still in a cache depends on how many others were read since (Denning, CACM 11(5), 1968): the share
of the entries whose column is also that of one of the w entries before, for a few windows w, says it for every cache.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.ids import AnyArray, BoolArray, Float32Array, FloatArray, IntArray, frozen
from gcnsim.partition.parts import Part

WINDOWS: Final = tuple(4**power for power in range(14))
"""Entries before one among which its column is sought: 1, 4, 16 .. 67,108,864."""

_WORDS: Final = ("1", "4", "16", "64", "256", "1k", "4k", "16k", "64k", "256k", "1m", "4m", "16m", "64m")
REUSE_NAMES: Final = tuple(f"reuse_{word}" for word in _WORDS)
TURNED_NAMES: Final = tuple(f"turned_{word}" for word in _WORDS)
"""What measurements call the shares of a matrix, and of its transpose."""

PRODUCTS: Final = ("inner", "inner transposed", "boundary", "boundary transposed")
"""Of which a worker's statistics are, in this order."""

REUSE_ENTRIES: Final = 1 << 22
"""Entries of a matrix that are looked at, at most: the first rows that hold so many, one at least."""


def reuse_of(indptr: AnyArray, columns: AnyArray, width: int) -> FloatArray:
    """Of a product with a matrix in compressed rows, and of one with its transpose: float64[2, len(WINDOWS)].

    Each the share of the entries whose column (of the transpose: row) is also that of one of the w entries before, by
    window; 0 without entries. What is missing of 1 in the last is what is read for the first time. width: columns.
    Of a large matrix REUSE_ENTRIES count.
    """
    from scipy.sparse import csr_array

    indptr = indptr[: _rows(indptr) + 1]
    columns = columns[: int(indptr[-1])]
    count = columns.size
    if not count:
        return np.zeros((2, len(WINDOWS)))
    order = np.arange(count, dtype=np.int64)
    matrix = csr_array((order, columns, indptr), shape=(indptr.size - 1, width))
    flipped = matrix.tocsc()
    place = np.empty(count, np.int64)
    place[flipped.data] = order
    ahead = _shares(flipped.data, flipped.indptr)
    # Of the transpose an entry stands where `place` says; a row's places need not ascend where its columns do not.
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    back = _shares(place[np.lexsort((place, row))], indptr)
    return np.stack([ahead, back])


def _shares(places: IntArray, ptr: AnyArray) -> AnyArray:
    """places: where each line's entries stand in the order of reading, ascending in a line; ptr: where lines begin."""
    gap = np.diff(places, prepend=0)
    starts = ptr[:-1][np.diff(ptr) > 0]
    gap[starts] = WINDOWS[-1] + 1
    return np.array([np.count_nonzero(gap <= window) for window in WINDOWS]) / places.size


def _rows(indptr: AnyArray) -> int:
    """How many of the first rows hold REUSE_ENTRIES entries at most, one at least."""
    return max(1, int(np.searchsorted(indptr, REUSE_ENTRIES, side="right")) - 1)


def graph_reuse(part: Part, kept: BoolArray) -> Float32Array:
    """Of the products of one drawn graph on one worker, float32[4, len(WINDOWS)], ordered as PRODUCTS.

    kept: bool[n], which of the part's first n entries the graph has, n at least those that count. Of a large part
    REUSE_ENTRIES count.
    """
    rows = _rows(part.indptr)
    row = np.repeat(np.arange(rows), np.diff(part.indptr[: rows + 1]))
    chosen = kept[: row.size]
    return entries_reuse(row[chosen], part.columns[: row.size][chosen], rows, part.inner_nodes, part.boundary_nodes)


def entries_reuse(row: IntArray, columns: AnyArray, rows: int, inner: int, boundary: int) -> Float32Array:
    """The same of entries given one by one: ascending rows of `rows` nodes, and columns as local ids.

    Each node has a self-loop after its other inner entries, as GCN's sums have; one that is given is not told apart.
    """
    columns = columns.astype(np.int64)
    crossing = columns >= inner
    stored = ~crossing & (columns != row)
    loops = np.arange(rows)
    inner_row = np.concatenate([row[stored], loops])
    order = np.argsort(inner_row, kind="stable")
    inner_column = np.concatenate([columns[stored], loops])[order]
    bounds = np.arange(rows + 1)
    within = reuse_of(np.searchsorted(inner_row[order], bounds), inner_column, inner)
    across = reuse_of(np.searchsorted(row[crossing], bounds), columns[crossing] - inner, max(1, boundary))
    return frozen(np.concatenate([within, across]).astype(np.float32))
