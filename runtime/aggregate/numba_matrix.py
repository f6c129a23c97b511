"""Sums over neighbours by kernels that Numba compiles (`compiled.py`), on CPUs only.

Weights that are products of row and column factors are never stored or read per entry. `matrix_kind` selects the
library that computes the sums: plain torch, these kernels, or DGL.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import AnyArray, IntArray
from runtime.aggregate.matrix import Matrix, PlainMatrix, Rows

_PIECE = 1 << 15
"""Entries times width that justify another thread."""


class NumbaMatrix:
    """See `Matrix`; values of products may also be [nnz, heads], for that many equal-width parts of a row.

    forward, backward: row starts, int64, and columns, int32, of the matrix and of its transpose; place: the position in
    the matrix of each entry of the transpose.
    """

    def __init__(self, rows: Rows, dtype: torch.dtype, device: torch.device, *, turned: bool = True) -> None:
        """Use the matrix without a copy; device: the CPU."""
        assert device.type == "cpu", device
        self.rows, self.dtype, self.device = rows, dtype, device
        self.forward = _side(rows.indptr, rows.columns)
        if turned:
            indptr, columns, place = rows.transposed()
            self.backward, self.place = _side(indptr, columns), torch.from_numpy(place)
        self._values: tuple[Tensor, Tensor | None] | None = None
        self._scales: tuple[Tensor | None, Tensor | None] = (None, None)
        if rows.factors is None:
            values = torch.from_numpy(np.ascontiguousarray(rows.values)).to(dtype)
            self._values = values, values[self.place] if turned else None
        else:
            left, right = (None if factor is None else torch.from_numpy(factor).to(dtype) for factor in rows.factors)
            self._scales = left, right

    def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        weights = values
        if values is None and self._values is not None:
            weights = self._values[0]
        _product(self.forward, x, out, weights, (None, None) if weights is not None else self._scales, add)

    def multiply_transposed(self, g: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        weights = None if values is None else values[self.place]
        if values is None and self._values is not None:
            weights = self._values[1]
        scales = (None, None) if weights is not None else self._scales[::-1]
        _product(self.backward, g, out, weights, scales, add)


def _side(indptr: AnyArray, columns: AnyArray) -> tuple[Tensor, Tensor]:
    """Tensors (so that memory can be counted) on the arrays, without a copy if their types are right."""
    own = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(columns, np.int32)
    start, places = (torch.from_numpy(array if array.flags.writeable else array.copy()) for array in own)
    return start, places


def _product(
    side: tuple[Tensor, Tensor],
    x: Tensor,
    out: Tensor,
    weights: Tensor | None,
    scales: tuple[Tensor | None, Tensor | None],
    add: bool,
) -> None:
    """out = S_0 W S_1 x with the pattern of `side`, or added to it; S: factors of rows, of columns; W: of entries."""
    from runtime.aggregate import compiled

    indptr, columns = (tensor.numpy() for tensor in side)
    if not out.numel():
        return
    if not out.is_contiguous():
        whole = out.contiguous()
        _product(side, x, whole, weights, scales, add)
        out.copy_(whole)
        return
    values, found = x.detach().contiguous().numpy(), out.detach().numpy()
    scale = _ones(indptr.size - 1, out.dtype) if scales[0] is None else scales[0].numpy()
    wanted: Any = None if scales[1] is None else (scales[1].numpy(),)
    spans = 1
    if weights is not None:
        wanted = weights.detach().contiguous().numpy()
        spans = _spans(wanted, values)

    def part(low: int, high: int) -> None:
        compiled.sum_rows(indptr, columns, values, wanted, scale, found, spans, int(add), low, high)

    shared(indptr, values.shape[1], part)


def _spans(weights: AnyArray, x: AnyArray) -> int:
    """The number of parts of a row of x that share no vector: its heads, or 1 if all their vectors are full."""
    heads = 1 if weights.ndim == 1 else weights.shape[1]
    return 1 if x.shape[1] // heads * x.itemsize % 64 == 0 else heads


def shared(indptr: IntArray, width: int, part: Callable[[int, int], None]) -> None:
    """Call `part` with ranges of rows of about equal cost, one thread each."""
    rows, entries = indptr.size - 1, int(indptr[-1])
    pieces = min(torch.get_num_threads(), max(1, entries * width // _PIECE))
    if pieces == 1:
        part(0, rows)
        return
    # A row costs about as much as one more entry.
    ends = np.searchsorted(indptr + np.arange(rows + 1), np.linspace(0, entries + rows, pieces + 1))
    ends[0], ends[-1] = 0, rows
    first, *others = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    under_way = [_threads(torch.get_num_threads()).submit(part, *span) for span in others]
    part(*first)
    for entry in under_way:
        entry.result()


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count - 1, "sums")


def _ones(count: int, dtype: torch.dtype) -> AnyArray:
    return _power_of_ones(count.bit_length(), dtype)[:count]


@cache
def _power_of_ones(bits: int, dtype: torch.dtype) -> AnyArray:
    """2^bits ones, so that only as many lengths exist as there are bits."""
    ones: AnyArray = torch.ones(1 << bits, dtype=dtype).numpy()
    return ones


def matrix_kind(name: str) -> type[Matrix]:
    """The class behind `--aggregator name`; raises ScenarioError if DGL is requested and cannot be imported."""
    if name == "plain":
        return PlainMatrix
    if name == "numba":
        return NumbaMatrix
    try:
        from runtime.aggregate.dgl_matrix import DglMatrix
    except ImportError as error:
        raise ScenarioError(
            f"--aggregator: dgl cannot be imported ({error}); install it (pip install 'gcnsim[dgl]') or use plain"
        ) from None
    return DglMatrix
