"""A sparse matrix with its transpose, multiplied from the left into given buffers.

torch's gradient of a CSR product builds the transpose in every call; here it is built once per graph. Products write
into (or add to) a buffer, so a sum over inner and over boundary columns needs no temporary.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import AnyArray, FloatArray, IntArray


@dataclass(frozen=True)
class Rows:
    """Compressed rows as arrays. indptr: int64[n + 1], columns: int32[nnz], values: float[nnz], width: columns m.

    factors: if every value is a product of a row factor and a column factor, these, float64[n] and float64[m] (None:
    ones); kernels then need no value per entry.
    """

    indptr: IntArray
    columns: AnyArray
    values: AnyArray
    width: int
    factors: tuple[FloatArray | None, FloatArray | None] | None = None

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Row and column of every entry, int64[nnz] each."""
        row = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        return row, self.columns.astype(np.int64)

    def places_on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """`places` on `device`; the copy on a GPU is made once."""
        if device not in self._copies:
            row, column = (torch.from_numpy(array).to(device) for array in self.places)
            if device.type == "cpu":
                return row, column
            self._copies[device] = row, column
        return self._copies[device]

    @cached_property
    def _copies(self) -> dict[torch.device, tuple[Tensor, Tensor]]:
        return {}

    def transposed(self) -> tuple[IntArray, AnyArray, AnyArray]:
        """indptr, columns of the transpose, and the place in `values` of each of its entries, in row order."""
        from runtime.aggregate.patterns import turn

        assert not self.columns.size or self.columns.min() >= 0, "compiled code checks no index"
        indptr = np.zeros(self.width + 1, np.int64)
        columns, place = (np.empty(self.columns.size, np.int32) for _ in range(2))
        turn(
            self.indptr.astype(np.int64, copy=False), self.columns.astype(np.int32, copy=False), indptr, columns, place
        )
        return indptr, columns, place


class Matrix(Protocol):
    """A sparse matrix of n rows and m columns on the training device."""

    rows: Rows
    dtype: torch.dtype
    device: torch.device

    def __init__(self, rows: Rows, dtype: torch.dtype, device: torch.device, *, turned: bool = True) -> None:
        """turned: whether to build the transpose, which `multiply_transposed` needs."""
        ...

    def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """out = A x, or out += A x. x: [m, d], out: [n, d]; values: replace A's, [nnz]."""
        ...

    def multiply_transposed(self, g: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """out = A^T g, or out += A^T g. g: [n, d], out: [m, d]."""
        ...


with warnings.catch_warnings():
    # torch warns once per process that CSR tensors are in beta and their indices unchecked: users cannot act on it, and
    # the indices are correct by construction.
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), size=(1, 1))


class PlainMatrix:
    """torch's CSR product: MKL's kernel on CPU, cuSPARSE's on CUDA, torch's own in a CPU build without MKL."""

    def __init__(self, rows: Rows, dtype: torch.dtype, device: torch.device, *, turned: bool = True) -> None:
        """Put the matrix and, unless not `turned`, its transpose on `device`; on CPUs without a copy if types agree."""
        self.rows, self.dtype, self.device = rows, dtype, device
        count = rows.indptr.size - 1
        self._shape, self._flipped_shape = (count, rows.width), (rows.width, count)
        self._index = _index(rows.indptr, device), _index(rows.columns, device)
        values = torch.from_numpy(np.ascontiguousarray(rows.values)).to(device, dtype)
        self._matrix = _csr(self._index, values, self._shape)
        kept_for_compute(*self._index, values)
        if not turned:
            return
        indptr, columns, place = rows.transposed()
        self._flipped_index = _index(indptr, device), _index(columns, device)
        self._place = _index(place, device).long()
        turned_values = values[self._place]
        self._flipped = _csr(self._flipped_index, turned_values, self._flipped_shape)
        kept_for_compute(*self._flipped_index, self._place, turned_values)

    def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        matrix = self._matrix if values is None else _csr(self._index, values, self._shape)
        _product(matrix, x, out, add)

    def multiply_transposed(self, g: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        matrix = self._flipped
        if values is not None:
            matrix = _csr(self._flipped_index, values[self._place], self._flipped_shape)
        _product(matrix, g, out, add)


def kept_for_compute(*tensors: Tensor) -> None:
    """Keep the memory of tensors that a side stream made until the default stream, which computes, has read them."""
    for tensor in tensors:
        if tensor.is_cuda:
            tensor.record_stream(torch.cuda.default_stream(tensor.device))


_MKL = bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]


def _index(array: AnyArray, device: torch.device) -> Tensor:
    """Indices as int32: MKL's faster kernel, and half the memory traffic. Torch takes no array that is read-only."""
    return torch.from_numpy(array.astype(np.int32, copy=not array.flags.writeable)).to(device)


def _csr(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)


def _product(matrix: Tensor, x: Tensor, out: Tensor, add: bool) -> None:
    if not out.numel():
        return
    if not x.numel() or not matrix.values().numel():
        if not add:
            out.zero_()
        return
    if x.is_cuda or _MKL:
        torch.addmm(out, matrix, x, beta=1 if add else 0, out=out)
        return
    product = torch.sparse.mm(matrix, x, reduce="sum")
    if add:
        out += product
    else:
        out.copy_(product)
