"""`gcnsim.engine.kernel.simd_loops` in vector instructions: the code that Numba compiles in place of its functions.

A compiler does not vectorise these loops: it computes a minimum sequentially because of NaN. So the loops are written
for LLVM directly: every step applies the plain function's operation to `LANES` numbers. LLVM may not fuse a product
with a sum.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, cast

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from gcnsim.engine.kernel import simd_loops
from gcnsim.engine.kernel.simd_loops import LANES

_WORD: Final = ir.IntType(64)
_REAL: Final = ir.DoubleType()
_ROW: Final = ir.VectorType(_REAL, LANES)

Values = list[Any]
"""LLVM values: a function's arguments, or values carried between loop steps."""


class _Code:
    """Writes instructions one after the other."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def row(self, value: Any) -> Any:
        """`value`, a Python number or LLVM value, in every lane."""
        if isinstance(value, float):
            return ir.Constant(_ROW, [value] * LANES)
        nothing = ir.Constant(_ROW, ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.Constant(_WORD, 0))
        return self.builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        )

    def address(self, array: Any, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [place]), _ROW.as_pointer())

    def load(self, array: Any, place: Any) -> Any:
        return self.builder.load(self.address(array, place), align=8)

    def store(self, array: Any, place: Any, row: Any) -> None:
        self.builder.store(row, self.address(array, place), align=8)

    def below(self, one: Any, other: Any) -> Any:
        return self.builder.fcmp_ordered("<", one, other)

    def choose(self, which: Any, one: Any, other: Any) -> Any:
        return self.builder.select(which, one, other)

    def lesser(self, one: Any, other: Any) -> Any:
        return self.choose(self.below(one, other), one, other)

    def least_of(self, row: Any) -> Any:
        """The least number of a row, found by halving it repeatedly."""
        width = LANES
        while width > 1:
            width //= 2
            kind = ir.VectorType(ir.IntType(32), width)
            halves = [ir.Constant(kind, list(range(begin, begin + width))) for begin in (0, width)]
            low, high = (self.builder.shuffle_vector(row, row, half) for half in halves)
            row = self.lesser(low, high)
        return self.builder.extract_element(row, ir.Constant(_WORD, 0))

    def loop(
        self,
        begin: Any,
        end: Any,
        first: Sequence[Any],
        step: Callable[[Any, Values], Values],
        width: Any = None,
    ) -> Values:
        """Loop with `step(place, carried)`, which returns the next carried values, for every `width`-th place (`LANES`
        by default). Returns the last.
        """
        builder = self.builder
        before = builder.basic_block
        head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        place = builder.phi(_WORD)
        carried: Values = [builder.phi(value.type) for value in first]
        builder.cbranch(builder.icmp_signed("<", place, end), inside, after)
        builder.position_at_end(inside)
        new = step(place, carried)
        further = builder.add(place, ir.Constant(_WORD, LANES) if width is None else width)
        last = builder.basic_block
        builder.branch(head)
        for phi, once, again in zip([place, *carried], [begin, *first], [further, *new], strict=True):
            phi.add_incoming(once, before)
            phi.add_incoming(again, last)
        builder.position_at_end(after)
        return carried

    def first_block(self, begin: Any, end: Any, test: Callable[[Any], Any]) -> Any:
        """The first `LANES`-th place for which `test(place)`, a truth value for each lane, is true in any; or `end`."""
        builder, bits = self.builder, ir.IntType(LANES)
        before = builder.basic_block
        seek, look, further, after = (builder.append_basic_block(name) for name in ("seek", "look", "further", "after"))
        builder.branch(seek)
        builder.position_at_end(seek)
        place = builder.phi(_WORD)
        builder.cbranch(builder.icmp_signed("<", place, end), look, after)
        builder.position_at_end(look)
        none = builder.icmp_unsigned("==", builder.bitcast(test(place), bits), ir.Constant(bits, 0))
        builder.cbranch(none, further, after)
        builder.position_at_end(further)
        next_place = builder.add(place, ir.Constant(_WORD, LANES))
        builder.branch(seek)
        builder.position_at_end(after)
        place.add_incoming(begin, before)
        place.add_incoming(next_place, further)
        return place

    def least(self, begin: Any, end: Any, step: Callable[[Any], Any]) -> Any:
        """The least number of the rows that `step(place)` returns, for every `LANES`-th place."""
        found = self.loop(begin, end, [self.row(inf)], lambda place, carried: [self.lesser(step(place), carried[0])])
        return self.least_of(found[0])


def _place_of(code: _Code, values: Any, begin: Any, value: Any) -> Any:
    builder, sought = code.builder, code.row(value)
    bits = ir.IntType(LANES)
    none = ir.Constant(bits, 0)
    before = builder.basic_block
    seek, after = (builder.append_basic_block(name) for name in ("seek", "after"))
    builder.branch(seek)
    builder.position_at_end(seek)
    place = builder.phi(_WORD)
    there = builder.bitcast(builder.fcmp_ordered("==", code.load(values, place), sought), bits)
    further = builder.add(place, ir.Constant(_WORD, LANES))
    builder.cbranch(builder.icmp_unsigned("==", there, none), seek, after)
    place.add_incoming(begin, before)
    place.add_incoming(further, seek)
    builder.position_at_end(after)
    lane = builder.cttz(there, ir.Constant(ir.IntType(1), 1))
    return builder.add(place, builder.zext(lane, _WORD))


def _lowest(code: _Code, bits: Any) -> Any:
    return code.builder.cttz(bits, ir.Constant(ir.IntType(1), 1))


def _restart(
    code: _Code,
    left: Any,
    weight: Any,
    share: Any,
    step: Any,
    supply: Any,
    crossing: Any,
    begin: Any,
    end: Any,
) -> Any:
    builder, none, never = code.builder, code.row(0.0), code.row(inf)

    def row(link: Any) -> Any:
        whole, flows = code.load(supply, link), code.load(crossing, link)
        each = code.choose(code.below(none, flows), builder.fdiv(whole, flows), never)
        for array, values in ((left, whole), (weight, flows), (step, never), (share, each)):
            code.store(array, link, values)
        return each

    return code.least(begin, end, row)


def _settle(code: _Code, share: Any, begin: Any, end: Any, link: Any) -> Any:
    builder = code.builder
    words = ir.VectorType(_WORD, LANES)
    nothing = ir.Constant(words, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

    def row(place: Any) -> Any:
        ahead = builder.insert_element(nothing, builder.sub(link, place), ir.Constant(_WORD, 0))
        mine = builder.icmp_signed(
            "==", builder.shuffle_vector(ahead, nothing, zeros), ir.Constant(words, list(range(LANES)))
        )
        # Write the whole row: later reads then need not wait for a single word on its way to memory.
        left = code.choose(mine, code.row(inf), code.load(share, place))
        code.store(share, place, left)
        return left

    return code.least(begin, end, row)


def _take(
    code: _Code, left: Any, weight: Any, begin: Any, end: Any, counts: Any, at: Any, until: Any, level: Any
) -> Any:
    builder, levels, none = code.builder, code.row(level), code.row(0.0)
    width = builder.sub(end, begin)

    def row(place: Any, carried: Values) -> Values:
        rest, flows = carried
        count = code.load(counts, place)
        taken = builder.fmul(levels, count)
        return [code.choose(code.below(taken, rest), builder.fsub(rest, taken), none), builder.fsub(flows, count)]

    def step(link: Any, carried: Values) -> Values:
        shift, first = builder.sub(link, begin), [code.load(left, link), code.load(weight, link)]
        rest, flows = code.loop(builder.add(at, shift), builder.add(until, shift), first, row, width)
        code.store(left, link, rest)
        code.store(weight, link, flows)
        return carried

    code.loop(begin, end, [], step)
    return None


def _divide(code: _Code, left: Any, weight: Any, share: Any, begin: Any, end: Any) -> Any:
    builder, none, never = code.builder, code.row(0.0), code.row(inf)

    def step(link: Any) -> Any:
        flows = code.load(weight, link)
        rises = builder.and_(code.below(code.load(share, link), never), code.below(none, flows))
        each = code.choose(rises, builder.fdiv(code.load(left, link), flows), never)
        code.store(share, link, each)
        return each

    return code.least(begin, end, step)


def _rate_rows(
    code: _Code,
    rates: Any,
    heads: Any,
    service: Any,
    begin: Any,
    end: Any,
    level: Any,
    step: Any,
    first: Any,
    width: Any,
    mine: Any,
    when: Any,
    limit: Any,
) -> Any:
    builder, none, never = code.builder, code.row(0.0), code.row(inf)
    mines, whens, limits = code.row(mine), code.row(when), code.row(limit)

    def receivers(receiver: Any, carried: Values) -> Values:
        risen = code.choose(code.below(whens, code.load(step, receiver)), mines, code.load(level, receiver))

        def row(bundle: Any, carried: Values) -> Values:
            head = code.load(heads, bundle)
            rate = code.choose(code.below(head, never), risen, none)
            code.store(rates, bundle, rate)
            lacks = builder.fsub(head, code.load(service, bundle))
            return [code.lesser(builder.fsub(lacks, builder.fmul(limits, rate)), carried[0])]

        shift = builder.sub(receiver, first)
        return code.loop(builder.add(begin, shift), builder.add(end, shift), carried, row, width)

    return code.least_of(code.loop(first, builder.add(first, width), [code.row(inf)], receivers)[0])


def _soonest(code: _Code, heads: Any, service: Any, rates: Any, begin: Any, end: Any) -> Any:
    builder, none, never = code.builder, code.row(0.0), code.row(inf)

    def row(bundle: Any) -> Any:
        rate = code.load(rates, bundle)
        lacks = builder.fsub(code.load(heads, bundle), code.load(service, bundle))
        return code.choose(code.below(none, rate), builder.fdiv(lacks, rate), never)

    return code.least(begin, end, row)


def _block_within(code: _Code, heads: Any, service: Any, rates: Any, begin: Any, end: Any, limit: Any) -> Any:
    builder, limits = code.builder, code.row(limit)

    def within(block: Any) -> Any:
        lacks = builder.fsub(code.load(heads, block), code.load(service, block))
        return builder.fcmp_ordered("<=", lacks, builder.fmul(limits, code.load(rates, block)))

    return code.first_block(begin, end, within)


def _serve(code: _Code, service: Any, rates: Any, heads: Any, begin: Any, end: Any, elapsed: Any) -> Any:
    builder, time = code.builder, code.row(elapsed)

    def done(block: Any) -> Any:
        rate = code.load(rates, block)
        served = builder.fadd(code.load(service, block), builder.fmul(rate, time))
        code.store(service, block, served)
        return builder.fcmp_ordered("<=", code.load(heads, block), builder.fadd(served, rate))

    return code.first_block(begin, end, done)


WRITTEN: Final[dict[Callable[..., Any], tuple[Any, Callable[..., Any]]]] = {
    simd_loops.place_of: (types.int64, _place_of),
    simd_loops.lowest: (types.int64, _lowest),
    simd_loops.restart: (types.float64, _restart),
    simd_loops.settle: (types.float64, _settle),
    simd_loops.take: (types.void, _take),
    simd_loops.divide: (types.float64, _divide),
    simd_loops.rate_rows: (types.float64, _rate_rows),
    simd_loops.soonest: (types.float64, _soonest),
    simd_loops.block_within: (types.int64, _block_within),
    simd_loops.serve: (types.int64, _serve),
}
"""The result type of each function of `simd_loops`, and the function that writes its instructions."""


_TYPE: Final = cast("Callable[..., Any]", type_callable)
_LOWER: Final = cast("Callable[..., Any]", lower_builtin)
_OF_ANY: Final = cast("Callable[..., Any]", types.VarArg)


def use_vectors() -> None:
    """Make Numba use these instructions for calls of the functions of `simd_loops`."""
    for function, (result, write) in WRITTEN.items():
        _use(function, result, write)


def _use(function: Callable[..., Any], result: Any, write: Callable[..., Any]) -> None:
    named = inspect.signature(function)

    def typed(context: Any) -> Any:
        def typer(*kinds: Any) -> Any:
            return result(*kinds)

        typer.__signature__ = named  # type: ignore[attr-defined]  # Numba asks what its arguments are called
        return typer

    def lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = write(_Code(builder), *arguments)
        return context.get_dummy_value() if found is None else found

    _TYPE(function)(typed)
    _LOWER(function, _OF_ANY(types.Any))(lowered)
