"""The largest values over neighbours as machine code: one row of the result at a time, four vectors of it in registers.

A column's entries are compared in their order and its gradients added in the order of the rows, for any width, number
of threads and processor: the same entries give the same bytes. Later rows are prefetched as in `compiled.py`.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gcnsim.core.compiling import compiled
from gcnsim.core.ids import AnyArray, IntArray
from runtime.aggregate.vectors import AHEAD, INDEX, PLACE, VectorCode

VECTORS: Final = "f8cf46bb6c4d7de9"
"""Digest of the `vectors.py` that these kernels are made of."""

_ARRAYS: Final = ("columns", "x", "out", "winner")
_NUMBERS: Final = ("first", "last", "total", "width", "row")


def _block(vectors: int) -> Any:
    """A function that compares `vectors` vectors of one non-empty row; see `largest`."""

    @intrinsic
    def block(typing, arrays, numbers, at):  # type: ignore[no-untyped-def]
        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            named = {"at": values[2]}
            for k, (name, kind) in enumerate(zip(_ARRAYS, arrays, strict=True)):
                array = context.make_array(kind)(context, builder, builder.extract_value(values[0], k))
                named[name] = array.data
            for k, name in enumerate(_NUMBERS):
                named[name] = builder.extract_value(values[1], k)
            code = VectorCode(builder, named["x"].type.pointee, None)
            rows = ir.VectorType(INDEX, code.lanes)
            nobody = ir.Constant(rows, [-1] * code.lanes)
            start = builder.add(named["row"], named["at"])
            for k, (most, who) in enumerate(_compared(code, vectors, named)):
                place = code.plus(start, k * code.lanes)
                code.store(named["out"], place, most)
                found = builder.select(builder.fcmp_unordered("uno", most, most), nobody, who)
                address = builder.bitcast(builder.gep(named["winner"], [place]), rows.as_pointer())
                builder.store(found, address, align=4)
            return context.get_dummy_value()

        return types.void(arrays, numbers, types.int64), write

    return block


def _compared(code: VectorCode, vectors: int, named: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The largest values over the entries from `first` to `last` and their columns, a pair per vector: see `summed`."""
    builder, lanes = code.builder, code.lanes
    rows = ir.VectorType(INDEX, lanes)
    least = ir.Constant(code.kind, [float("-inf")] * lanes)

    def column(entry: Any) -> Any:
        return builder.load(builder.gep(named["columns"], [entry]))

    def row(of: Any) -> Any:
        return builder.add(builder.mul(builder.sext(of, PLACE), named["width"]), named["at"])

    # If all values are minus infinity, none exceeds the initial one: the first entry counts.
    begin = code.spread(column(named["first"]), rows)
    before = builder.basic_block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    entry = builder.phi(PLACE)
    entry.add_incoming(named["first"], before)
    found = [(builder.phi(code.kind), builder.phi(rows)) for _ in range(vectors)]
    for most, who in found:
        most.add_incoming(least, before)
        who.add_incoming(begin, before)
    builder.cbranch(builder.icmp_signed("<", entry, named["last"]), inside, after)
    builder.position_at_end(inside)
    coming = code.plus(entry, AHEAD)
    coming = builder.select(builder.icmp_signed("<", coming, named["total"]), coming, entry)
    ahead = row(column(coming))
    for k in range(vectors):
        code.prefetch(named["x"], code.plus(ahead, k * lanes))
    source = column(entry)
    start, own = row(source), code.spread(source, rows)
    for k, (most, who) in enumerate(found):
        value = code.load(named["x"], code.plus(start, k * lanes))
        # NaN counts as larger than a number, and no number as larger than NaN.
        none = builder.fcmp_unordered("uno", value, value)
        more = builder.or_(builder.fcmp_ordered(">", value, most), none)
        most.add_incoming(builder.select(more, value, most), inside)
        who.add_incoming(builder.select(more, own, who), inside)
    entry.add_incoming(code.plus(entry, 1), inside)
    builder.branch(head)
    builder.position_at_end(after)
    return found


_largest4, _largest1 = _block(4), _block(1)


@compiled(nogil=True)
def largest(
    indptr: IntArray, columns: AnyArray, x: AnyArray, out: AnyArray, winner: AnyArray, low: int, high: int
) -> None:
    """out[i, c] = max of x[columns[e], c] over the entries e of row i, and winner[i, c] the column of the first such e.

    Rows `low` to `high` - 1. x: [m, d] and out: [n, d] of one type, winner: int32[n, d]. A row without an entry gives 0
    and winner -1. A NaN among the values gives NaN and winner -1.
    """
    width, lanes = x.shape[1], 64 // x.itemsize
    arrays = columns, x, out, winner
    for i in range(low, high):
        first, last, at = indptr[i], indptr[i + 1], 0
        if first == last:
            out[i] = 0
            winner[i] = -1
            continue
        numbers = first, last, columns.size, width, i * width
        while at + 4 * lanes <= width:
            _largest4(arrays, numbers, at)
            at += 4 * lanes
        while at + lanes <= width:
            _largest1(arrays, numbers, at)
            at += lanes
        # The last vector may share columns with the one before; their results are equal.
        if at < width and width >= lanes:
            _largest1(arrays, numbers, width - lanes)
            at = width
        for c in range(at, width):
            most, who = x[columns[first], c], columns[first]
            for e in range(first, last):
                value = x[columns[e], c]
                if value > most or value != value:
                    most, who = value, columns[e]
            out[i, c] = most
            winner[i, c] = who if most == most else -1


@compiled(nogil=True)
def to_winners(winner: AnyArray, grad: AnyArray, back: AnyArray, low: int, high: int) -> None:
    """back[winner[i, c], c] += grad[i, c] for columns `low` to `high` - 1, row after row.

    winner: int32[n, d], -1 for none; grad: [n, d], back: [m, d].
    """
    for i in range(grad.shape[0]):
        for c in range(low, high):
            j = winner[i, c]
            if j >= 0:
                back[j, c] += grad[i, c]
