"""Attention by the compiled kernels: no row per entry is ever written, and one number per entry and head is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from runtime.aggregate.numba_matrix import NumbaMatrix, shared


def fused_attention(matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """See `attention_sum`; slope: of the leaky rectifier."""
    result: Tensor = _Attention.apply(matrix, h, target, source, slope)  # type: ignore[no-untyped-call]
    return result


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
        from runtime.aggregate.compiled_attention import attend

        count, heads = target.shape
        h, target, source = h.contiguous(), target.contiguous(), source.contiguous()
        indptr, columns = matrix.forward
        alpha = h.new_empty(columns.numel(), heads)
        _by_rows(attend, heads, indptr, columns, target, source, _number(slope, alpha), alpha)
        out = h.new_empty(count, heads, h.shape[2])
        matrix.multiply(h.flatten(1), out.flatten(1), values=alpha)
        ctx.matrix, ctx.slope = matrix, slope
        ctx.save_for_backward(h, target, source, alpha)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor, None]:
        from runtime.aggregate.compiled_attention import attend_back, scores_back, sum_places

        h, target, source, alpha = ctx.saved_tensors
        matrix: NumbaMatrix = ctx.matrix
        (indptr, columns), (turned, rows), place = matrix.forward, matrix.backward, matrix.place
        grad_h, grad_target, grad_source = (torch.empty_like(each) for each in (h, target, source))
        products = torch.empty_like(alpha)
        heads, width = h.shape[1], h.shape[1] * h.shape[2]
        wide = grad.flatten(1).contiguous(), h.flatten(1)
        _by_rows(attend_back, width, turned, rows, place, *wide, alpha, grad_h.flatten(1), products)
        number = _number(ctx.slope, alpha)
        _by_rows(scores_back, heads, indptr, columns, target, source, number, alpha, products, grad_target)
        _by_rows(sum_places, heads, turned, place, products, grad_source)
        return None, grad_h, grad_target, grad_source, None


def _number(value: float, like: Tensor) -> Any:
    """`value` as a number of the type of `like`."""
    return like.numpy().dtype.type(value)


def _by_rows(kernel: Callable[..., None], width: int, indptr: Tensor, *given: Any) -> None:
    """Run a compiled kernel over the rows of `indptr`, `width` values an entry."""
    start, *others = (each.detach().numpy() if isinstance(each, Tensor) else each for each in (indptr, *given))
    shared(start, width, lambda low, high: kernel(start, *others, low, high))
