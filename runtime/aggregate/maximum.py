"""The largest value of each column over a row's neighbours (GraphSAGE's pooling), and its gradient.

The compiled kernels compare rows in place and gather none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsim.core.ids import AnyArray
from runtime.aggregate.matrix import Matrix
from runtime.aggregate.numba_matrix import NumbaMatrix, shared

_CHUNK = {"cpu": 1 << 19, "cuda": 1 << 25}
"""Values of the rows gathered at a time, which bounds the working memory; on a CPU the size of one core's cache."""


def neighbour_max(matrix: Matrix, x: Tensor) -> Tensor:
    """max over the entries j of row i of x[j], for each column separately, [n, d] of x [m, d].

    Only the matrix's pattern is used; rows without an entry become zero. Of equal values the first entry's counts, and
    only its row gets the gradient. On CUDA its sums have no fixed order.
    """
    if isinstance(matrix, NumbaMatrix):
        return fused_max(matrix, x)
    result: Tensor = _Largest.apply(matrix, x)  # type: ignore[no-untyped-call]
    return result


class _Largest(torch.autograd.Function):
    """out[i, c] = max over j of x[j, c]; the index of its row is stored."""

    @staticmethod
    def forward(ctx: Any, matrix: Matrix, x: Tensor) -> Tensor:
        indptr, (row, columns) = matrix.rows.indptr, matrix.rows.places_on(x.device)
        rows, width = indptr.size - 1, x.shape[1]
        out = x.new_zeros(rows, width)
        winner = torch.full((rows, width), -1, dtype=torch.int64, device=x.device)
        for low, high in _spans(indptr, max(1, _CHUNK[x.device.type] // max(1, width))):
            first, last = int(indptr[low]), int(indptr[high])
            if first == last:
                continue
            rows_in, place = x[columns[first:last]], row[first:last] - low
            most = rows_in.new_full((high - low, width), -torch.inf)
            most.scatter_reduce_(0, place.unsqueeze(1).expand_as(rows_in), rows_in, "amax")
            nobody, entry = last - first, torch.arange(last - first, device=x.device).unsqueeze(1)
            reached = torch.where(rows_in == most[place], entry, nobody)
            at = reached.new_full((high - low, width), nobody)
            at.scatter_reduce_(0, place.unsqueeze(1).expand_as(rows_in), reached, "amin")
            empty = torch.ones(high - low, 1, dtype=torch.bool, device=x.device).index_fill_(0, place, False)
            out[low:high] = most.masked_fill_(empty, 0.0)
            # NaN is never equal to a value, so no row gets its gradient.
            found = columns[first:last][at.clamp_max(nobody - 1)]
            winner[low:high] = torch.where(at < nobody, found, -1)
        ctx.count = x.shape[0]
        ctx.save_for_backward(winner)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        (winner,) = ctx.saved_tensors
        back = grads[0].new_zeros(ctx.count, grads[0].shape[1])
        if ctx.count:
            back.scatter_add_(0, winner.clamp_min(0), grads[0] * (winner >= 0))
        return None, back


def _spans(indptr: AnyArray, entries: int) -> list[tuple[int, int]]:
    """Spans of rows of about `entries` entries each, at least one row."""
    spans, low, rows = [], 0, indptr.size - 1
    while low < rows:
        high = int(np.searchsorted(indptr, indptr[low] + entries, side="right")) - 1
        spans.append((low, min(rows, max(high, low + 1))))
        low = spans[-1][1]
    return spans


_LINE = 64
"""Bytes of a cache line: threads that write the same line wait for each other."""


def fused_max(matrix: NumbaMatrix, x: Tensor) -> Tensor:
    """See `neighbour_max`."""
    result: Tensor = _FusedLargest.apply(matrix, x)  # type: ignore[no-untyped-call]
    return result


class _FusedLargest(torch.autograd.Function):
    """The row of each value is stored, int32[n, d]; -1 for none."""

    @staticmethod
    def forward(ctx: Any, matrix: NumbaMatrix, x: Tensor) -> Tensor:
        from runtime.aggregate.compiled_maximum import largest

        indptr, columns = (item.numpy() for item in matrix.forward)
        values, width = x.detach().contiguous().numpy(), x.shape[1]
        out = x.new_empty(indptr.size - 1, width)
        winner = torch.empty(out.shape, dtype=torch.int32)
        found, whose = out.numpy(), winner.numpy()
        if out.numel():
            shared(indptr, width, lambda low, high: largest(indptr, columns, values, found, whose, low, high))
        ctx.count = x.shape[0]
        ctx.save_for_backward(winner)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        """A thread has separate columns, at least one cache line of them, so no two add to the same value."""
        from runtime.aggregate.compiled_maximum import to_winners

        (winner,) = ctx.saved_tensors
        back = grad.new_zeros(ctx.count, grad.shape[1])
        gradient, whose, found = grad.contiguous().numpy(), winner.numpy(), back.numpy()
        block = _LINE // gradient.itemsize
        blocks = -(-gradient.shape[1] // block)

        def part(low: int, high: int) -> None:
            to_winners(whose, gradient, found, low * block, min(high * block, gradient.shape[1]))

        shared(np.arange(blocks + 1) * gradient.shape[0], block, part)
        return None, back
