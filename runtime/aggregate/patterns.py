"""The patterns of sampled matrices as machine code: their entries selected, and their transposes.

Each function is compiled when it is first called with a type, and cached as those of `compiled.py`.
"""

from __future__ import annotations

import numpy as np

from gcnsim.core.compiling import compiled
from gcnsim.core.ids import AnyArray, BoolArray, IntArray


@compiled(nogil=True)
def select(
    kept: BoolArray,
    indptr: IntArray,
    columns: AnyArray,
    weight: AnyArray,
    own: AnyArray,
    inner_indptr: IntArray,
    inner_columns: AnyArray,
    inner_weight: AnyArray,
    cross_indptr: IntArray,
    cross_columns: AnyArray,
    cross_weight: AnyArray,
) -> None:
    """Write the `kept` entries of a part, bool[nnz]: those of inner columns, and those of boundary columns.

    indptr, columns: of the part. weight: [nnz]. own: weights of self-loops, which follow the inner entries of a row,
    [I]; empty: none. The results' columns and weights have room for one entry more than there are.
    """
    rows, longest = indptr.size - 1, 0
    for i in range(rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    found = np.empty(longest + 1, np.int64)
    inner = cross = 0
    inner_indptr[0] = cross_indptr[0] = 0
    # No processor can predict a draw, so every place is written, and the next one overwrites it if it did not count.
    for i in range(rows):
        count = 0
        for entry in range(indptr[i], indptr[i + 1]):
            found[count] = entry
            count += kept[entry]
        for k in range(count):
            column, value = columns[found[k]], weight[found[k]]
            inside = column < rows
            inner_columns[inner], inner_weight[inner] = column, value
            cross_columns[cross], cross_weight[cross] = column - rows, value
            inner += inside
            cross += not inside
        if own.size:
            inner_columns[inner], inner_weight[inner] = i, own[i]
            inner += 1
        inner_indptr[i + 1], cross_indptr[i + 1] = inner, cross


@compiled(nogil=True)
def turn(
    indptr: IntArray, columns: AnyArray, turned_indptr: IntArray, turned_columns: AnyArray, place: AnyArray
) -> None:
    """Write the transpose, with ascending entries per row, and the position of each of its entries in the matrix.

    turned_indptr: int64[m + 1] of zeros; turned_columns, place: int32[nnz].
    """
    # Unsigned numbers need no check for an index from the end.
    for e in range(columns.size):
        turned_indptr[np.uint32(columns[e]) + 1] += 1
    for j in range(turned_indptr.size - 1):
        turned_indptr[j + 1] += turned_indptr[j]
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            column = np.uint32(columns[e])
            spot = np.uint64(turned_indptr[column])
            turned_columns[spot], place[spot] = i, e
            turned_indptr[column] = spot + 1
    for j in range(turned_indptr.size - 1, 0, -1):
        turned_indptr[j] = turned_indptr[j - 1]
    turned_indptr[0] = 0
