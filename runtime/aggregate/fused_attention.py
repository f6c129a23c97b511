"""Attention by kernels of our own (`compiled_attention`): no array has a row for each entry, only numbers per head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcnsim.ids import AnyArray
from runtime.aggregate.numba_matrix import NumbaMatrix, in_parts


def fused_attention(matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """As `runtime.aggregate.attention_sum`. slope: of the leaky rectifier on the scores."""
    result: Tensor = _Fused.apply(matrix, h, target, source, slope)  # type: ignore[no-untyped-call]
    return result


class _Fused(torch.autograd.Function):
    """out[i, k] = sum over row i's entries of softmax(LeakyReLU(target[i, k] + source[j, k])) h[j, k]."""

    @staticmethod
    def forward(ctx: Any, matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
        from runtime.aggregate import compiled_attention as compiled

        (indptr, columns), heads, width = matrix.pattern, h.shape[1], h.shape[1] * h.shape[2]
        out, alpha = h.new_zeros(indptr.size - 1, *h.shape[1:]), h.new_empty(columns.size, heads)
        ctx.matrix, ctx.slope = matrix, slope
        ctx.save_for_backward(h, target, source, alpha, out)
        if not columns.size or not width:
            return out
        scored, weights = (_array(target), _array(source)), _array(alpha)
        factor = weights.dtype.type(slope)
        in_parts(indptr, heads, lambda low, high: compiled.scores(indptr, columns, *scored, factor, weights, low, high))
        alpha.exp_()
        rows, found = _array(h).reshape(-1, width), _array(out).reshape(-1, width)
        in_parts(indptr, width, lambda low, high: compiled.weigh(indptr, columns, rows, weights, found, low, high))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor, Tensor, None]:
        from runtime.aggregate import compiled_attention as compiled

        h, target, source, alpha, out = ctx.saved_tensors
        made = tuple(torch.zeros_like(each, memory_format=torch.contiguous_format) for each in (h, target, source))
        grad_h, grad_target, grad_source = made
        heads, width = h.shape[1], h.shape[1] * h.shape[2]
        if not alpha.numel() or not width:
            return None, grad_h, grad_target, grad_source, None
        (indptr, _), (turned, rows, place) = ctx.matrix.pattern, ctx.matrix.turned_pattern
        # The mean of a row's gradients of its weights, by these: their product with the row's own result.
        shift = _array((grads[0] * out).sum(2))
        grad_scores = torch.empty_like(alpha)
        given, grad, into = (_array(each).reshape(-1, width) for each in (h, grads[0], grad_h))
        weights, scores, ends, below = (_array(each) for each in (alpha, grad_scores, grad_target, grad_source))
        above, beside, factor = _array(target), _array(source), weights.dtype.type(ctx.slope)

        def part(low: int, high: int) -> None:
            compiled.undo(
                turned, rows, place, given, grad, weights, above, beside, shift, factor, into, below, scores, low, high
            )

        in_parts(turned, 2 * width, part)
        in_parts(indptr, heads, lambda low, high: compiled.sum_rows(indptr, scores, ends, low, high))
        return None, grad_h, grad_target, grad_source, None


def _array(tensor: Tensor) -> AnyArray:
    """Its values, side by side; of one that is so already without a copy."""
    found: AnyArray = tensor.detach().contiguous().numpy()
    return found
