"""Graph attention as machine code: the softmax over each row's entries and the weighted sum of rows, and back.

Forward each entry is met twice: for its score, and for the row it weighs, whose weight is then divided by the sum of
the row's. Backward the entries are met in the transpose's order: the gradient of a result's row, once read, gives its
share of an input row's gradient and the weight's own; the sums over the matrix's rows follow.

Vectors and entries are added in the same order whatever the threads (`vectors`).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from gcnsim.ids import AnyArray, IntArray
from runtime.aggregate.vectors import AHEAD, Code, compiled


def _data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value).data


def _asked() -> Any:
    """A function that asks the memory for the line at `place` of x."""

    @intrinsic
    def ask(typing, x, place):  # type: ignore[no-untyped-def]
        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = _data(context, builder, signature.args[0], values[0])
            Code(builder, data.type.pointee, None).prefetch(data, values[1])
            return context.get_dummy_value()

        return types.void(x, types.int64), write

    return ask


def _weighed(vectors: int, *, cut: bool = False) -> Any:
    """A function that adds `weight` times `vectors` vectors of x, from `place` on, to those of `sums` from `at` on."""

    @intrinsic
    def weighed(typing, sums, at, x, place, weight, rest):  # type: ignore[no-untyped-def]
        whole = types.int64

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, given = (_data(context, builder, signature.args[k], values[k]) for k in (0, 2))
            code = Code(builder, given.type.pointee, values[5] if cut else None)
            factor = code.spread(values[4], code.kind)
            for k in range(vectors):
                to, found = code.plus(values[1], k * code.lanes), code.load(given, code.plus(values[3], k * code.lanes))
                code.store(into, to, builder.fadd(code.load(into, to), builder.fmul(found, factor)))
            return context.get_dummy_value()

        return types.void(sums, whole, x, whole, x.dtype, whole), write

    return weighed


def _met(vectors: int, *, cut: bool = False) -> Any:
    """As `_weighed`, and the sum of the products of x's vectors with those of y from `spot` on."""

    @intrinsic
    def met(typing, sums, at, x, place, y, spot, weight, rest):  # type: ignore[no-untyped-def]
        whole = types.int64

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, given, other = (_data(context, builder, signature.args[k], values[k]) for k in (0, 2, 4))
            code = Code(builder, given.type.pointee, values[7] if cut else None)
            factor, dots = code.spread(values[6], code.kind), code.zero
            for k in range(vectors):
                to, found = code.plus(values[1], k * code.lanes), code.load(given, code.plus(values[3], k * code.lanes))
                code.store(into, to, builder.fadd(code.load(into, to), builder.fmul(found, factor)))
                facing = code.load(other, code.plus(values[5], k * code.lanes))
                dots = builder.fadd(dots, builder.fmul(found, facing))
            return code.total(dots)

        return x.dtype(sums, whole, x, whole, x, whole, x.dtype, whole), write

    return met


_ask = _asked()
_weighed4, _weighed1, _weighed_cut = _weighed(4), _weighed(1), _weighed(1, cut=True)
_met4, _met1, _met_cut = _met(4), _met(1), _met(1, cut=True)


@compiled
def scores(
    indptr: IntArray,
    columns: AnyArray,
    target: AnyArray,
    source: AnyArray,
    slope: Any,
    out: AnyArray,
    low: int,
    high: int,
) -> None:
    """out[e] = LeakyReLU(target[i] + source[columns[e]]), less the most of row i, of each head.

    indptr: int64[n + 1]; columns: int32[nnz]; target: [n, K], source: [m, K] and out: [nnz, K] of one type.
    """
    heads = target.shape[1]
    most = target[0].copy()
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        for e in range(first, last):
            j = columns[e]
            for k in range(heads):
                score = target[i, k] + source[j, k]
                if score < 0:
                    score *= slope
                out[e, k] = score
                if e == first or score > most[k]:
                    most[k] = score
        for e in range(first, last):
            for k in range(heads):
                out[e, k] -= most[k]


@compiled
def weigh(
    indptr: IntArray, columns: AnyArray, x: AnyArray, alpha: AnyArray, out: AnyArray, low: int, high: int
) -> None:
    """alpha becomes itself over the sum of its row; out[i] = the sum of alpha[e] x[columns[e]] over row i's entries.

    x: [m, K d], heads side by side; alpha: [nnz, K]; out: [n, K d], zero where a row has no entry.
    """
    heads, width, total, lanes = alpha.shape[1], x.shape[1], columns.size, 64 // x.itemsize
    each = width // heads
    sums, whole = x[0].copy(), alpha[0].copy()
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        sums[:] = 0
        whole[:] = 0
        for e in range(first, last):
            row, coming = columns[e] * width, columns[min(e + AHEAD, total - 1)] * width
            for c in range(0, width, lanes):
                _ask(x, coming + c)
            for k in range(heads):
                weight, at = alpha[e, k], 0
                whole[k] += weight
                while at + 4 * lanes <= each:
                    _weighed4(sums, k * each + at, x, row + k * each + at, weight, 0)
                    at += 4 * lanes
                while at + lanes <= each:
                    _weighed1(sums, k * each + at, x, row + k * each + at, weight, 0)
                    at += lanes
                if at < each:
                    _weighed_cut(sums, k * each + at, x, row + k * each + at, weight, each - at)
        for k in range(heads):
            for c in range(k * each, (k + 1) * each):
                out[i, c] = sums[c] / whole[k] if last > first else sums[c]
        for e in range(first, last):
            for k in range(heads):
                alpha[e, k] /= whole[k]


@compiled
def undo(
    indptr: IntArray,
    rows: AnyArray,
    place: AnyArray,
    x: AnyArray,
    grad: AnyArray,
    alpha: AnyArray,
    target: AnyArray,
    source: AnyArray,
    shift: AnyArray,
    slope: Any,
    grad_x: AnyArray,
    grad_source: AnyArray,
    grad_scores: AnyArray,
    low: int,
    high: int,
) -> None:
    """The gradients of x, of source and, by entry, of the scores before the rectifier, of columns low to high - 1.

    indptr, rows, place: of the transpose, place: where its entries stand in the matrix. grad: [n, K d], of `weigh`'s
    result; shift: [n, K], its product with that result. grad_scores: [nnz, K], in the matrix's order.
    """
    heads, width, total, lanes = alpha.shape[1], x.shape[1], rows.size, 64 // x.itemsize
    each = width // heads
    sums, scored = x[0].copy(), alpha[0].copy()
    for j in range(low, high):
        sums[:] = 0
        scored[:] = 0
        for e in range(indptr[j], indptr[j + 1]):
            i, p = rows[e], place[e]
            row, own, coming = i * width, j * width, rows[min(e + AHEAD, total - 1)] * width
            for c in range(0, width, lanes):
                _ask(grad, coming + c)
            _ask(alpha, place[min(e + AHEAD, total - 1)] * heads)
            for k in range(heads):
                weight, at = alpha[p, k], 0
                slide = -shift[i, k]
                while at + 4 * lanes <= each:
                    spot = k * each + at
                    slide += _met4(sums, spot, grad, row + spot, x, own + spot, weight, 0)
                    at += 4 * lanes
                while at + lanes <= each:
                    spot = k * each + at
                    slide += _met1(sums, spot, grad, row + spot, x, own + spot, weight, 0)
                    at += lanes
                if at < each:
                    spot = k * each + at
                    slide += _met_cut(sums, spot, grad, row + spot, x, own + spot, weight, each - at)
                slide *= weight
                if not target[i, k] + source[j, k] > 0:
                    slide *= slope
                scored[k] += slide
                grad_scores[p, k] = slide
        grad_x[j] = sums
        grad_source[j] = scored


@compiled
def sum_rows(indptr: IntArray, values: AnyArray, out: AnyArray, low: int, high: int) -> None:
    """out[i] = the sum of values[e] over the entries of row i. values: [nnz, K]; out: [n, K]."""
    for i in range(low, high):
        out[i] = 0
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(values.shape[1]):
                out[i, k] += values[e, k]
