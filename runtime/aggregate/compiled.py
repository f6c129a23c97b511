"""Sums over neighbours as machine code: one row of the result at a time, eight vectors of it in registers.

The columns of a row are summed in the order of its entries, one entry after the other, for any width, number of threads
and processor. LLVM may not fuse a product with a sum, so the same entries give the same bytes. Rows of later entries
are prefetched, because no processor can predict them.

Each function is compiled when it is first called with a type, and cached in this folder or in the user's cache folder.
"""

from __future__ import annotations

from typing import Any, Final

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


@compiled(nogil=True)
def turn(
    indptr: IntArray, columns: AnyArray, turned_indptr: IntArray, turned_columns: AnyArray, place: AnyArray
) -> None:
    """Write the transpose, with ascending entries per row, and the position of each of its entries in the matrix.

    turned_indptr: int64[m + 1] of zeros; turned_columns, place: int32[nnz].
    """
    for e in range(columns.size):
        turned_indptr[columns[e] + 1] += 1
    for j in range(turned_indptr.size - 1):
        turned_indptr[j + 1] += turned_indptr[j]
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            spot = turned_indptr[columns[e]]
            turned_columns[spot], place[spot] = i, e
            turned_indptr[columns[e]] = spot + 1
    for j in range(turned_indptr.size - 1, 0, -1):
        turned_indptr[j] = turned_indptr[j - 1]
    turned_indptr[0] = 0
