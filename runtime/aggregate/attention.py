"""Sums over neighbours with learnt weights (GAT): softmax of scores over each row, then a weighted sum per head.

The compiled kernels never write a row per entry, and store one number per entry and head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from runtime.aggregate.matrix import Matrix
from runtime.aggregate.numba_matrix import NumbaMatrix, shared

_CHUNK = {"cpu": 1 << 19, "cuda": 1 << 25}
"""Values of the rows gathered at a time in the gradient of the weights, which bounds the working memory.

On a CPU it is the size of one core's cache: larger chunks took 2 to 4 times as long at widths of 64 and 128, each in
new pages.
"""

SLOPE = 0.2
"""The slope of the leaky rectifier on the scores (GAT)."""


def attention_sum(matrix: Matrix, h: Tensor, target: Tensor, source: Tensor) -> Tensor:
    """sum_j alpha_ij h_j per head, [n, heads, d]; alpha_ij = softmax over row i of LeakyReLU(target_i + source_j).

    h: [m, heads, d] rows of the matrix's columns; target: [n, heads] and source: [m, heads] scores. Only the matrix's
    pattern is used; rows without an entry become zero.
    """
    if isinstance(matrix, NumbaMatrix):
        return fused_attention(matrix, h, target, source, SLOPE)
    result: Tensor = _Attended.apply(matrix, h, target, source)  # type: ignore[no-untyped-call]
    return result


class _Attended(torch.autograd.Function):
    """Of all heads at once, but for the products with rows; the gradient is written out.

    The gradient of indexing sorts the indices on a GPU, which takes longer than all else here.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Matrix, h: Tensor, target: Tensor, source: Tensor) -> Tensor:
        rows, columns = matrix.rows.places_on(h.device)
        scores = target.index_select(0, rows).add_(source.index_select(0, columns))
        positive = scores > 0
        scores = torch.where(positive, scores, scores * SLOPE)
        top = torch.full_like(target, -torch.inf)
        top.scatter_reduce_(0, rows.unsqueeze(1).expand_as(scores), scores, "amax")
        raised = scores.sub_(top.index_select(0, rows)).exp_()
        total = torch.zeros_like(target).index_add_(0, rows, raised)
        alpha = raised.div_(total.index_select(0, rows))
        out = h.new_empty(*target.shape, h.shape[2])
        for k in range(h.shape[1]):
            part = torch.empty_like(out[:, k])
            matrix.multiply(h[:, k].contiguous(), part, values=alpha[:, k].contiguous())
            out[:, k] = part
        ctx.matrix = matrix
        ctx.save_for_backward(h, positive, alpha, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        h, positive, alpha, out = ctx.saved_tensors
        matrix: Matrix = ctx.matrix
        grad = grad.contiguous()
        grad_h = torch.empty_like(h)
        for k in range(h.shape[1]):
            part = torch.empty_like(grad_h[:, k])
            matrix.multiply_transposed(grad[:, k].contiguous(), part, values=alpha[:, k].contiguous())
            grad_h[:, k] = part
        rows, columns = matrix.rows.places_on(h.device)
        scores = _products(grad, h, rows, columns)
        # Of the softmax: the sum of a row's weights times their gradients is the gradient times the result.
        scores.sub_((grad * out).sum(2).index_select(0, rows)).mul_(alpha)
        scores = torch.where(positive, scores, scores * SLOPE)
        grad_target, grad_source = grad.new_zeros(out.shape[:2]), grad.new_zeros(h.shape[:2])
        grad_target.index_add_(0, rows, scores)
        grad_source.index_add_(0, columns, scores)
        return None, grad_h, grad_target, grad_source


def _products(grad: Tensor, h: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """<grad[i], h[j]> of every entry and head, [nnz, heads]."""
    found = grad.new_empty(rows.numel(), h.shape[1])
    size = max(1, _CHUNK[h.device.type] // (h.shape[1] * h.shape[2]))
    for first in range(0, rows.numel(), size):
        chunk = slice(first, first + size)
        pairs = grad.index_select(0, rows[chunk]).mul_(h.index_select(0, columns[chunk]))
        torch.sum(pairs, 2, out=found[chunk])
    return found


def fused_attention(matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """See `attention_sum`; slope: of the leaky rectifier."""
    result: Tensor = _Attention.apply(matrix, h, target, source, slope)  # type: ignore[no-untyped-call]
    return result


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: NumbaMatrix, h: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
        from runtime.aggregate.compiled import attend

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
        from runtime.aggregate.compiled import attend_back, scores_back, sum_places

        h, target, source, alpha = ctx.saved_tensors
        matrix: NumbaMatrix = ctx.matrix
        (indptr, columns), (turned, rows), place = matrix.forward, matrix.backward, matrix.place
        grad_h, grad_target, grad_source = (torch.empty_like(item) for item in (h, target, source))
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


def _by_rows(kernel: Callable[..., None], width: int, indptr: Tensor, *arguments: Any) -> None:
    """Run a compiled kernel over the rows of `indptr`, `width` values an entry."""
    start, *others = (
        argument.detach().numpy() if isinstance(argument, Tensor) else argument for argument in (indptr, *arguments)
    )
    shared(start, width, lambda low, high: kernel(start, *others, low, high))
