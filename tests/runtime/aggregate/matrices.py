"""Sparse matrices beside their dense counterparts."""

from __future__ import annotations

import numpy as np
import torch

from gcnsim.core.ids import FloatArray
from runtime.aggregate import Matrix, Rows


def rows_of(dense: FloatArray) -> Rows:
    """The entries of `dense` that are not zero."""
    row, column = np.nonzero(dense)
    indptr = np.searchsorted(row, np.arange(dense.shape[0] + 1))
    return Rows(indptr, column.astype(np.int32), dense[row, column], dense.shape[1])


def made(kind: type[Matrix], dense: FloatArray, dtype: torch.dtype = torch.float64) -> Matrix:
    """A matrix of class `kind` with the entries of `dense`."""
    return kind(rows_of(dense), dtype, torch.device("cpu"))
