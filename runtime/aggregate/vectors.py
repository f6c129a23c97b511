"""Vectors of LINE bytes as LLVM instructions, for the compiled kernels.

LLVM may not fuse a product with a sum, and every order is explicit: the same bytes on any processor. Cached kernels are
invalidated when the file of their function changes, not this one. So each of those files stores the digest of this one,
and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import factorial, log
from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba.core import cgutils

LINE: Final = 64
"""Bytes of a vector, and of a line of the caches."""

AHEAD: Final = 8
"""Entries between the one being summed and the one whose row is prefetched."""

Weigh: TypeAlias = Callable[[Any, Any, Any], list[Any]]
Also: TypeAlias = Callable[[Any, list[Any]], None]

_declared: Final[Any] = cgutils.get_or_insert_function

BYTE: Final = ir.IntType(8)
INDEX: Final = ir.IntType(32)
PLACE: Final = ir.IntType(64)
_LN2: Final = Decimal("0.693147180559945309417232121458")


class VectorCode:
    """Instructions on vectors of LINE bytes. rest: how many values of a vector count (None: all of them)."""

    def __init__(self, builder: Any, real: Any, rest: Any) -> None:
        self.builder = builder
        self.size = 4 if isinstance(real, ir.FloatType) else 8
        self.lanes = LINE // self.size
        self.kind = ir.VectorType(real, self.lanes)
        self.zero = ir.Constant(self.kind, [0.0] * self.lanes)
        self._mask: Any = None
        if rest is not None:
            wide = self.spread(builder.trunc(rest, INDEX), ir.VectorType(INDEX, self.lanes))
            numbers = ir.Constant(wide.type, list(range(self.lanes)))
            self._mask = builder.icmp_signed("<", numbers, wide)

    def spread(self, value: Any, kind: Any) -> Any:
        """`value` in every lane of a vector of `kind`."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.Constant(INDEX, 0))
        lanes = ir.Constant(ir.VectorType(INDEX, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, lanes)

    def number(self, array: Any, place: Any) -> Any:
        """The integer at `place`, as an index."""
        return self.builder.sext(self.builder.load(self.builder.gep(array, [place])), PLACE)

    def load(self, array: Any, place: Any) -> Any:
        """The vector at `place`; zero for values beyond `rest`."""
        address = self._address(array, place)
        if self._mask is None:
            return self.builder.load(address, align=self.size)
        kinds = [address.type, INDEX, self._mask.type, self.kind]
        load = self._intrinsic("masked.load", ir.FunctionType(self.kind, kinds))
        return self.builder.call(load, [address, ir.Constant(INDEX, self.size), self._mask, self.zero])

    def store(self, array: Any, place: Any, vector: Any) -> None:
        """Write the values within `rest`."""
        address = self._address(array, place)
        if self._mask is None:
            self.builder.store(vector, address, align=self.size)
            return
        kinds = [self.kind, address.type, INDEX, self._mask.type]
        store = self._intrinsic("masked.store", ir.FunctionType(ir.VoidType(), kinds))
        self.builder.call(store, [vector, address, ir.Constant(INDEX, self.size), self._mask])

    def prefetch(self, array: Any, place: Any) -> None:
        """Prefetch the cache line at `place`, which need not exist."""
        address = self.builder.bitcast(self.builder.gep(array, [place]), BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, INDEX, INDEX, INDEX])
        ask = _declared(self.builder.module, kind, "llvm.prefetch.p0")
        self.builder.call(ask, [address, *(ir.Constant(INDEX, word) for word in (0, 3, 1))])

    def across(self, vector: Any) -> Any:
        """The sum of the lanes, halves added to each other."""
        size = self.lanes
        while size > 1:
            size //= 2
            halves = (range(size), range(size, 2 * size))
            low, high = (ir.Constant(ir.VectorType(INDEX, size), list(half)) for half in halves)
            parts = (
                self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), k) for k in (low, high)
            )
            vector = self.builder.fadd(*parts)
        return self.builder.extract_element(vector, ir.Constant(INDEX, 0))

    def exp(self, vector: Any) -> Any:
        """exp of each lane, all at most 0; 0 if the result is too small for a normal number.

        2^n times the series of e^r, r = x - n ln 2. Only products and sums are used, so the result is the same on any
        processor.
        """
        builder, single = self.builder, self.size == 4
        fraction, bias, terms, bits = (23, 127, 7, 12) if single else (52, 1023, 13, 32)
        coarse = round(log(2) * 2**bits) / 2**bits  # Short enough that n times it is exact.
        fine = float(_LN2 - Decimal(coarse))
        whole = ir.VectorType(INDEX if single else PLACE, self.lanes)

        def every(value: float) -> Any:
            return ir.Constant(self.kind, [value] * self.lanes)

        shift = every(1.5 * 2**fraction)  # The last bits of the sum are those of the nearest integer.
        moved = builder.fadd(builder.fmul(vector, every(1 / log(2))), shift)
        n = builder.fsub(moved, shift)
        rest = builder.fsub(vector, builder.fmul(n, every(coarse)))
        rest = builder.fsub(rest, builder.fmul(n, every(fine)))
        found = every(1 / factorial(terms))
        for k in reversed(range(terms)):
            found = builder.fadd(builder.fmul(found, rest), every(1 / factorial(k)))
        power = builder.add(builder.bitcast(moved, whole), ir.Constant(whole, [bias] * self.lanes))
        power = builder.shl(power, ir.Constant(whole, [fraction] * self.lanes))
        found = builder.fmul(found, builder.bitcast(power, self.kind))
        small = builder.fcmp_ordered("<", vector, every((1 - bias) * log(2)))
        return builder.select(small, self.zero, found)

    def plus(self, place: Any, count: int) -> Any:
        """The index `place` plus `count`."""
        return self.builder.add(place, ir.Constant(PLACE, count))

    def _address(self, array: Any, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [place]), self.kind.as_pointer())

    def _intrinsic(self, name: str, kind: Any) -> Any:
        word = f"llvm.{name}.v{self.lanes}f{8 * self.size}.p0"
        return _declared(self.builder.module, kind, word)


def summed(code: VectorCode, vectors: int, named: dict[str, Any], weigh: Weigh, also: Also | None = None) -> list[Any]:
    """The sum over the entries from `first` to `last`: a loop that keeps its vectors in registers.

    weigh: the weight of each vector, from the entry, its column and a later entry. also: called with the entry and its
    vectors.
    """
    builder, lanes = code.builder, code.lanes
    before = builder.basic_block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    entry = builder.phi(PLACE)
    entry.add_incoming(named["first"], before)
    sums = [builder.phi(code.kind) for _ in range(vectors)]
    for item in sums:
        item.add_incoming(code.zero, before)
    builder.cbranch(builder.icmp_signed("<", entry, named["last"]), inside, after)
    builder.position_at_end(inside)

    def row(of: Any) -> Any:
        return builder.add(builder.mul(of, named["width"]), named["at"])

    coming = code.plus(entry, AHEAD)
    coming = builder.select(builder.icmp_signed("<", coming, named["total"]), coming, entry)
    ahead = row(code.number(named["columns"], coming))
    for k in range(vectors):
        code.prefetch(named["x"], code.plus(ahead, k * lanes))
    source = code.number(named["columns"], entry)
    start = row(source)
    weights = weigh(entry, source, coming)
    values = [code.load(named["x"], code.plus(start, k * lanes)) for k in range(vectors)]
    for item, value, weight in zip(sums, values, weights, strict=True):
        item.add_incoming(builder.fadd(item, value if weight is None else builder.fmul(value, weight)), inside)
    if also is not None:
        also(entry, values)
    entry.add_incoming(code.plus(entry, 1), inside)
    builder.branch(head)
    builder.position_at_end(after)
    return sums
