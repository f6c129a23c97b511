"""The largest values over neighbours by the compiled kernels: rows are compared where they lie, none is gathered."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from runtime.aggregate.numba_matrix import NumbaMatrix, shared

_LINE = 64
"""Bytes: threads that write the same line of a cache wait for each other."""


def fused_max(matrix: NumbaMatrix, x: Tensor) -> Tensor:
    """See `neighbour_max`."""
    result: Tensor = _Largest.apply(matrix, x)  # type: ignore[no-untyped-call]
    return result


class _Largest(torch.autograd.Function):
    """The row that each value came from is kept, int32[n, d]: -1 where it came from none."""

    @staticmethod
    def forward(ctx: Any, matrix: NumbaMatrix, x: Tensor) -> Tensor:
        from runtime.aggregate.compiled_maximum import largest

        indptr, columns = (each.numpy() for each in matrix.forward)
        given, width = x.detach().contiguous().numpy(), x.shape[1]
        out = x.new_empty(indptr.size - 1, width)
        winner = torch.empty(out.shape, dtype=torch.int32)
        found, whose = out.numpy(), winner.numpy()
        if out.numel():
            shared(indptr, width, lambda low, high: largest(indptr, columns, given, found, whose, low, high))
        ctx.count = x.shape[0]
        ctx.save_for_backward(winner)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        """A thread has columns of its own, a line of them or more, so no two add to the same value."""
        from runtime.aggregate.compiled_maximum import to_winners

        (winner,) = ctx.saved_tensors
        back = grad.new_zeros(ctx.count, grad.shape[1])
        given, whose, found = grad.contiguous().numpy(), winner.numpy(), back.numpy()
        block = _LINE // given.itemsize
        blocks = -(-given.shape[1] // block)

        def part(low: int, high: int) -> None:
            to_winners(whose, given, found, low * block, min(high * block, given.shape[1]))

        shared(np.arange(blocks + 1) * given.shape[0], block, part)
        return None, back
