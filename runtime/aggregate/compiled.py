"""Sums over neighbours as machine code: a row of the result at a time, eight vectors of it in registers.

The columns of a row are summed in the order of its entries, one entry after the other, whatever the width
(`vectors`). The rows of entries to come are asked of the memory ahead, since no processor foresees which they are.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gcnsim.ids import AnyArray, IntArray
from runtime.aggregate.vectors import AHEAD, PLACE, Code, compiled


def _summed(code: Code, vectors: int, weighing: str, given: dict[str, Any]) -> list[Any]:
    """The sum over the entries from `first` to `last`: a loop that carries its vectors in registers."""
    builder, lanes = code.builder, code.lanes
    before = builder.basic_block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    entry = builder.phi(PLACE)
    entry.add_incoming(given["first"], before)
    sums = [builder.phi(code.kind) for _ in range(vectors)]
    for each in sums:
        each.add_incoming(code.zero, before)
    builder.cbranch(builder.icmp_signed("<", entry, given["last"]), inside, after)
    builder.position_at_end(inside)

    def column(place: Any) -> Any:
        return builder.sext(builder.load(builder.gep(given["columns"], [place])), PLACE)

    def row(of: Any) -> Any:
        return builder.add(builder.mul(of, given["width"]), given["at"])

    coming = code.plus(entry, AHEAD)
    coming = row(column(builder.select(builder.icmp_signed("<", coming, given["total"]), coming, entry)))
    for k in range(vectors):
        code.prefetch(given["x"], code.plus(coming, k * lanes))
    source = column(entry)
    weight = None
    if weighing != "one":
        place = entry if weighing == "entry" else source
        weight = code.spread(builder.load(builder.gep(given["weights"], [place])), code.kind)
    start = row(source)
    for k, each in enumerate(sums):
        values = code.load(given["x"], code.plus(start, k * lanes))
        each.add_incoming(builder.fadd(each, values if weight is None else builder.fmul(values, weight)), inside)
    entry.add_incoming(code.plus(entry, 1), inside)
    builder.branch(head)
    builder.position_at_end(after)
    return sums


_ARRAYS: Final = ("columns", "x", "weights", "out")
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


def _block(vectors: int, weighing: str, *, cut: bool = False) -> Any:
    """A function that sums `vectors` vectors of one row; see `_row` for its arguments. cut: only `rest` values of one.

    weighing: entries weigh `one`, what stands at their place (`entry`), or at that of their column (`column`).
    """

    @intrinsic
    def block(  # type: ignore[no-untyped-def]
        typing, columns, first, last, total, x, width, at, weights, scale, out, place, add, rest
    ):
        whole = types.int64
        kinds = (columns, whole, whole, whole, x, whole, whole, weights, x.dtype, out, whole, whole, whole)

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = dict(zip(_NAMES, values, strict=True))
            for name, kind in zip(_NAMES, signature.args, strict=True):
                if name in _ARRAYS:
                    given[name] = context.make_array(kind)(context, builder, given[name]).data
            code = Code(builder, given["x"].type.pointee, given["rest"] if cut else None)
            scale_ = code.spread(given["scale"], code.kind)
            sums = [builder.fmul(each, scale_) for each in _summed(code, vectors, weighing, given)]
            places = [code.plus(given["place"], k * code.lanes) for k in range(vectors)]
            with builder.if_else(builder.icmp_signed("!=", given["add"], ir.Constant(PLACE, 0))) as (more, anew):
                with more:
                    for spot, each in zip(places, sums, strict=True):
                        code.store(given["out"], spot, builder.fadd(code.load(given["out"], spot), each))
                with anew:
                    for spot, each in zip(places, sums, strict=True):
                        code.store(given["out"], spot, each)
            return context.get_dummy_value()

        return types.void(*kinds), write

    return block


_one8, _one2, _one1, _one_cut = (_block(8, "one"), _block(2, "one"), _block(1, "one"), _block(1, "one", cut=True))
_entry8, _entry2, _entry1 = (_block(n, "entry") for n in (8, 2, 1))
_entry_cut = _block(1, "entry", cut=True)
_column8, _column2, _column1 = (_block(n, "column") for n in (8, 2, 1))
_column_cut = _block(1, "column", cut=True)


@compiled
def sum_plain(
    indptr: IntArray, columns: AnyArray, x: AnyArray, scale: AnyArray, out: AnyArray, add: int, low: int, high: int
) -> None:
    """out[i] = scale[i] sum of x[columns[e]] over the entries e of row i, for rows `low` to `high` - 1; or added to it.

    indptr: int64[n + 1]; columns: int32[nnz]; x: [m, d], scale: [n] and out: [n, d] of one type, rows side by side.
    """
    width, total, lanes = x.shape[1], columns.size, 64 // x.itemsize
    for i in range(low, high):
        first, last, place, at = indptr[i], indptr[i + 1], i * width, 0
        while at + 8 * lanes <= width:
            _one8(columns, first, last, total, x, width, at, scale, scale[i], out, place + at, add, 0)
            at += 8 * lanes
        while at + 2 * lanes <= width:
            _one2(columns, first, last, total, x, width, at, scale, scale[i], out, place + at, add, 0)
            at += 2 * lanes
        while at + lanes <= width:
            _one1(columns, first, last, total, x, width, at, scale, scale[i], out, place + at, add, 0)
            at += lanes
        if at < width:
            _one_cut(columns, first, last, total, x, width, at, scale, scale[i], out, place + at, add, width - at)


@compiled
def sum_entries(
    indptr: IntArray,
    columns: AnyArray,
    x: AnyArray,
    weights: AnyArray,
    scale: AnyArray,
    out: AnyArray,
    add: int,
    low: int,
    high: int,
) -> None:
    """As `sum_plain`, entry e times weights[e]."""
    width, total, lanes = x.shape[1], columns.size, 64 // x.itemsize
    for i in range(low, high):
        first, last, place, at = indptr[i], indptr[i + 1], i * width, 0
        while at + 8 * lanes <= width:
            _entry8(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += 8 * lanes
        while at + 2 * lanes <= width:
            _entry2(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += 2 * lanes
        while at + lanes <= width:
            _entry1(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += lanes
        if at < width:
            _entry_cut(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, width - at)


@compiled
def sum_columns(
    indptr: IntArray,
    columns: AnyArray,
    x: AnyArray,
    weights: AnyArray,
    scale: AnyArray,
    out: AnyArray,
    add: int,
    low: int,
    high: int,
) -> None:
    """As `sum_plain`, entry e times weights[columns[e]]."""
    width, total, lanes = x.shape[1], columns.size, 64 // x.itemsize
    for i in range(low, high):
        first, last, place, at = indptr[i], indptr[i + 1], i * width, 0
        while at + 8 * lanes <= width:
            _column8(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += 8 * lanes
        while at + 2 * lanes <= width:
            _column2(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += 2 * lanes
        while at + lanes <= width:
            _column1(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, 0)
            at += lanes
        if at < width:
            _column_cut(columns, first, last, total, x, width, at, weights, scale[i], out, place + at, add, width - at)


@compiled
def turn(
    indptr: IntArray, columns: AnyArray, turned_indptr: IntArray, turned_columns: AnyArray, place: AnyArray
) -> None:
    """Write the transpose, its rows' entries ascending, and where each of its entries stands in the matrix.

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
