"""Sums over neighbours and attention as machine code: one row of the result at a time, vectors of it in registers.

The columns of a row are summed in the order of its entries, one entry after the other, for any width, number of threads
and processor. LLVM may not fuse a product with a sum, so the same entries give the same bytes. Rows of later entries
are prefetched, because no processor can predict them.

Attention computes scores, softmax and weighted sums without a row per entry. The gradients of weights and of rows are
computed in one pass over the rows of the transpose, so every gathered row is read once.

Each function is compiled when it is first called with a type, and cached in this folder or in the user's cache folder.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gcnsim.core.compiling import compiled
from gcnsim.core.ids import AnyArray, IntArray
from runtime.aggregate.vectors import PLACE, VectorCode, Weigh, summed


def _weighing(code: VectorCode, vectors: int, named: dict[str, Any], kind: Any, value: Any, context: Any) -> Weigh:
    """The kinds of weights of a sum: None, one; [nnz], by entry; ([m],), by column; [nnz, heads], by entry and head."""
    builder = code.builder
    if kind == types.none:
        return lambda entry, source, coming: [None] * vectors
    by_column = isinstance(kind, types.UniTuple)
    made = context.make_array(kind.dtype if by_column else kind)
    array = made(context, builder, builder.extract_value(value, 0) if by_column else value)
    if by_column or kind.ndim == 1:

        def weigh(entry: Any, source: Any, coming: Any) -> list[Any]:
            at = builder.gep(array.data, [source if by_column else entry])
            return [code.spread(builder.load(at), code.kind)] * vectors

        return weigh
    heads = builder.extract_value(array.shape, 1)
    each = builder.sdiv(named["width"], heads)
    own = [builder.sdiv(code.plus(named["at"], k * code.lanes), each) for k in range(vectors)]

    def weigh_heads(entry: Any, source: Any, coming: Any) -> list[Any]:
        start = builder.mul(entry, heads)
        return [code.spread(builder.load(builder.gep(array.data, [builder.add(start, k)])), code.kind) for k in own]

    return weigh_heads


VECTORS: Final = "f8cf46bb6c4d7de9"
"""Digest of the `vectors.py` that these kernels are made of."""

_NAMES: Final = (
    "columns",
    "first",
    "last",
    "total",
    "x",
    "width",
    "at",
    "weights",
    "scale",
    "out",
    "place",
    "add",
    "rest",
)


def _block(vectors: int, *, cut: bool = False) -> Any:
    """A function that sums `vectors` vectors of one row; see `sum_rows`. cut: only `rest` values of the last one."""

    @intrinsic
    def block(  # type: ignore[no-untyped-def]
        typing, columns, first, last, total, x, width, at, weights, scale, out, place, add, rest
    ):
        whole = types.int64
        kinds = (columns, whole, whole, whole, x, whole, whole, weights, x.dtype, out, whole, whole, whole)

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            named = dict(zip(_NAMES, values, strict=True))
            for name, kind in zip(_NAMES, signature.args, strict=True):
                if name in ("columns", "x", "out"):
                    named[name] = context.make_array(kind)(context, builder, named[name]).data
            code = VectorCode(builder, named["x"].type.pointee, named["rest"] if cut else None)
            weigh = _weighing(code, vectors, named, weights, named["weights"], context)
            scale_ = code.spread(named["scale"], code.kind)
            sums = [builder.fmul(item, scale_) for item in summed(code, vectors, named, weigh)]
            places = [code.plus(named["place"], k * code.lanes) for k in range(vectors)]
            with builder.if_else(builder.icmp_signed("!=", named["add"], ir.Constant(PLACE, 0))) as (more, anew):
                with more:
                    for spot, item in zip(places, sums, strict=True):
                        code.store(named["out"], spot, builder.fadd(code.load(named["out"], spot), item))
                with anew:
                    for spot, item in zip(places, sums, strict=True):
                        code.store(named["out"], spot, item)
            return context.get_dummy_value()

        return types.void(*kinds), write

    return block


_sum8, _sum2, _sum1, _sum_cut = _block(8), _block(2), _block(1), _block(1, cut=True)


@compiled(nogil=True)
def sum_rows(
    indptr: IntArray,
    columns: AnyArray,
    x: AnyArray,
    weights: Any,
    scale: AnyArray,
    out: AnyArray,
    spans: int,
    add: int,
    low: int,
    high: int,
) -> None:
    """out[i] = scale[i] sum of w x[columns[e]] over the entries e of row i, for rows `low` to `high` - 1; or added to
    out.

    indptr: int64[n + 1]; columns: int32[nnz]; x: [m, d], scale: [n] and out: [n, d] of one type, rows contiguous.
    weights: None (w is 1), [nnz] (w of e), ([m],) (w of the column) or [nnz, heads] (w of e for d / heads values of x).
    spans: the number of equal-width parts of a row that share no vector: the heads, or 1 if all their vectors are full.
    """
    width, total, lanes = x.shape[1], columns.size, 64 // x.itemsize
    each = width // spans
    for i in range(low, high):
        first, last, place, at = indptr[i], indptr[i + 1], i * width, 0
        for _ in range(spans):
            stop = at + each
            while at + 8 * lanes <= stop:
                _sum8(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
                at += 8 * lanes
            while at + 2 * lanes <= stop:
                _sum2(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
                at += 2 * lanes
            while at + lanes <= stop:
                _sum1(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
                at += lanes
            if at < stop:
                _sum_cut(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, stop - at)
                at = stop


_ARRAYS: Final = ("columns", "place_of", "alpha", "x", "h", "out", "products")
_NUMBERS: Final = ("first", "last", "total", "width", "heads", "row")


def _turned(heads_: int, vectors: int, *, cut: bool = False) -> Any:
    """A function for `heads_` heads of `vectors` vectors each of one row of the transpose; see `attend_back`."""

    @intrinsic
    def block(typing, arrays, numbers, at, head, add, rest):  # type: ignore[no-untyped-def]
        whole = types.int64

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            named = dict(zip(("at", "head", "add", "rest"), values[2:], strict=True))
            for k, (name, kind) in enumerate(zip(_ARRAYS, arrays, strict=True)):
                array = context.make_array(kind)(context, builder, builder.extract_value(values[0], k))
                named[name] = array.data
            for k, name in enumerate(_NUMBERS):
                named[name] = builder.extract_value(values[1], k)
            code = VectorCode(builder, named["x"].type.pointee, named["rest"] if cut else None)
            count = heads_ * vectors
            start_ = builder.add(named["row"], named["at"])
            places = [code.plus(start_, k * code.lanes) for k in range(count)]
            own = [code.load(named["h"], place) for place in places]
            more = builder.icmp_signed("!=", named["add"], ir.Constant(PLACE, 0))

            def spot(entry: Any) -> Any:
                start = builder.mul(code.number(named["place_of"], entry), named["heads"])
                return builder.add(start, named["head"])

            def weigh(entry: Any, source: Any, coming: Any) -> list[Any]:
                code.prefetch(named["alpha"], spot(coming))
                code.prefetch(named["products"], spot(coming))
                start = spot(entry)
                found = [builder.load(builder.gep(named["alpha"], [code.plus(start, k)])) for k in range(heads_)]
                return [code.spread(item, code.kind) for item in found for _ in range(vectors)]

            def multiply(entry: Any, given_: list[Any]) -> None:
                start = spot(entry)
                for k in range(heads_):
                    dot = code.zero
                    for item, mine in list(zip(given_, own, strict=True))[k * vectors : (k + 1) * vectors]:
                        term = builder.fmul(item, mine)
                        dot = term if dot is code.zero else builder.fadd(dot, term)
                    at_ = builder.gep(named["products"], [code.plus(start, k)])
                    found = code.across(dot)
                    builder.store(builder.select(more, builder.fadd(builder.load(at_), found), found), at_)

            for place, sum_ in zip(places, summed(code, count, named, weigh, multiply), strict=True):
                code.store(named["out"], place, sum_)
            return context.get_dummy_value()

        return types.void(arrays, numbers, whole, whole, whole, whole), write

    return block


def _power(*, cut: bool = False) -> Any:
    """A function that computes exp of a vector of an array. cut: only `rest` values of it."""

    @intrinsic
    def power(typing, array, place, rest):  # type: ignore[no-untyped-def]
        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, values[0]).data
            code = VectorCode(builder, data.type.pointee, values[2] if cut else None)
            code.store(data, values[1], code.exp(code.load(data, values[1])))
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), write

    return power


_exp, _exp_cut = _power(), _power(cut=True)
_turned8, _turned4, _turned2, _turned1 = (_turned(1, n) for n in (8, 4, 2, 1))
_turned_cut, _turned4x2, _turned2x4, _turned8x1 = _turned(1, 1, cut=True), _turned(4, 2), _turned(2, 4), _turned(8, 1)


@compiled(nogil=True)
def attend(
    indptr: IntArray,
    columns: AnyArray,
    target: AnyArray,
    source: AnyArray,
    slope: Any,
    alpha: AnyArray,
    low: int,
    high: int,
) -> None:
    """alpha[e, k] = softmax over the entries e of row i of LeakyReLU(target[i, k] + source[columns[e], k]).

    target: [n, heads], source: [m, heads], alpha: [nnz, heads] and slope of one type.
    """
    heads, lanes = alpha.shape[1], 64 // alpha.itemsize
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        if first == last:
            continue
        for k in range(heads):
            own = target[i, k]
            top = -alpha.dtype.type(np.inf)
            for e in range(first, last):
                score = own + source[columns[e], k]
                if not score > 0:
                    score *= slope
                alpha[e, k] = score
                top = max(top, score)
            for e in range(first, last):
                alpha[e, k] -= top
        at, stop = first * heads, last * heads
        while at + lanes <= stop:
            _exp(alpha, at, 0)
            at += lanes
        if at < stop:
            _exp_cut(alpha, at, stop - at)
        for k in range(heads):
            total = alpha.dtype.type(0)
            for e in range(first, last):
                total += alpha[e, k]
            for e in range(first, last):
                alpha[e, k] /= total


@compiled(nogil=True)
def attend_back(
    indptr: IntArray,
    columns: AnyArray,
    place_of: AnyArray,
    grad: AnyArray,
    h: AnyArray,
    alpha: AnyArray,
    grad_h: AnyArray,
    products: AnyArray,
    low: int,
    high: int,
) -> None:
    """grad_h[j] = sum of alpha[e] grad[i] over the entries e of column j, and products[e] = <grad[i], h[j]>, per head.

    indptr, columns, place_of: the transpose, as `turn` writes it; its rows `low` to `high` - 1 are done. grad:
    [n, heads * d], h and grad_h: [m, heads * d], alpha and products: [nnz, heads].
    """
    heads, total, lanes = alpha.shape[1], columns.size, 64 // h.itemsize
    width = h.shape[1]
    each = width // heads
    arrays = columns, place_of, alpha, grad, h, grad_h, products
    for j in range(low, high):
        numbers = indptr[j], indptr[j + 1], total, width, heads, j * width
        k = at = 0
        while k < heads:
            if each == lanes and k + 8 <= heads:
                _turned8x1(arrays, numbers, at, k, 0, 0)
                k, at = k + 8, at + 8 * each
                continue
            if each == 2 * lanes and k + 4 <= heads:
                _turned4x2(arrays, numbers, at, k, 0, 0)
                k, at = k + 4, at + 4 * each
                continue
            if each == 4 * lanes and k + 2 <= heads:
                _turned2x4(arrays, numbers, at, k, 0, 0)
                k, at = k + 2, at + 2 * each
                continue
            start, stop = at, at + each
            while at + 8 * lanes <= stop:
                _turned8(arrays, numbers, at, k, at - start, 0)
                at += 8 * lanes
            while at + 4 * lanes <= stop:
                _turned4(arrays, numbers, at, k, at - start, 0)
                at += 4 * lanes
            while at + 2 * lanes <= stop:
                _turned2(arrays, numbers, at, k, at - start, 0)
                at += 2 * lanes
            while at + lanes <= stop:
                _turned1(arrays, numbers, at, k, at - start, 0)
                at += lanes
            if at < stop:
                _turned_cut(arrays, numbers, at, k, at - start, stop - at)
                at = stop
            k += 1


@compiled(nogil=True)
def scores_back(
    indptr: IntArray,
    columns: AnyArray,
    target: AnyArray,
    source: AnyArray,
    slope: Any,
    alpha: AnyArray,
    products: AnyArray,
    grad_target: AnyArray,
    low: int,
    high: int,
) -> None:
    """The gradient of the scores before LeakyReLU, written to `products`, and its sums over rows `low` to `high` - 1.

    See `attend` and `attend_back`.
    """
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        for k in range(alpha.shape[1]):
            dot = total = alpha.dtype.type(0)
            for e in range(first, last):
                dot += alpha[e, k] * products[e, k]
            for e in range(first, last):
                grad = alpha[e, k] * (products[e, k] - dot)
                if not target[i, k] + source[columns[e], k] > 0:
                    grad *= slope
                products[e, k] = grad
                total += grad
            grad_target[i, k] = total


@compiled(nogil=True)
def sum_places(indptr: IntArray, place_of: AnyArray, values: AnyArray, out: AnyArray, low: int, high: int) -> None:
    """out[j] = sum of values[place_of[e]] over the entries e of row j, for rows `low` to `high` - 1.

    values: [nnz, heads], out: [m, heads].
    """
    for j in range(low, high):
        for k in range(out.shape[1]):
            total = out.dtype.type(0)
            for e in range(indptr[j], indptr[j + 1]):
                total += values[place_of[e], k]
            out[j, k] = total
