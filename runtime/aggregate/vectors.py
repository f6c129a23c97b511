"""What compiled sums are made of: machine code that works on vectors of one length on every processor.

Nothing here allows LLVM to fuse a product with a sum, and vectors are always added in the same order. So the same
entries give the same bytes, whatever the number of threads and the processor.

Each function is compiled when it is first called with a type, and kept beside its file or in the user's cache folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from llvmlite import ir
from numba import njit
from numba.core import cgutils

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

LINE: Final = 64
"""Bytes of a vector, and of a line of the caches."""

AHEAD: Final = 8
"""Entries between the one that is summed and the one whose row is asked for."""

_declared: Final[Any] = cgutils.get_or_insert_function

_BYTE: Final = ir.IntType(8)
_INDEX: Final = ir.IntType(32)
PLACE: Final = ir.IntType(64)


def compiled(function: Compiled) -> Compiled:
    """`function` as machine code, without the interpreter's lock, kept for the processes to come."""
    try:
        made: Any = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # Neither folder can be written: compile anew in each process.
        made = njit(nogil=True, error_model="numpy")(function)
    return cast(Compiled, made)


class Code:
    """Instructions on vectors of LINE bytes. rest: how many values of a vector count (None: all of them)."""

    def __init__(self, builder: Any, real: Any, rest: Any) -> None:
        self.builder = builder
        self.size = 4 if isinstance(real, ir.FloatType) else 8
        self.lanes = LINE // self.size
        self.kind = ir.VectorType(real, self.lanes)
        self.zero = ir.Constant(self.kind, [0.0] * self.lanes)
        self._mask: Any = None
        if rest is not None:
            wide = self.spread(builder.trunc(rest, _INDEX), ir.VectorType(_INDEX, self.lanes))
            numbers = ir.Constant(wide.type, list(range(self.lanes)))
            self._mask = builder.icmp_signed("<", numbers, wide)

    def spread(self, value: Any, kind: Any) -> Any:
        """`value` in every lane of a vector of `kind`."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.Constant(_INDEX, 0))
        lanes = ir.Constant(ir.VectorType(_INDEX, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, lanes)

    def load(self, array: Any, place: Any) -> Any:
        """The vector at `place`; zero where values do not count."""
        address = self._address(array, place)
        if self._mask is None:
            return self.builder.load(address, align=self.size)
        kinds = [address.type, _INDEX, self._mask.type, self.kind]
        load = self._intrinsic("masked.load", ir.FunctionType(self.kind, kinds))
        return self.builder.call(load, [address, ir.Constant(_INDEX, self.size), self._mask, self.zero])

    def store(self, array: Any, place: Any, vector: Any) -> None:
        """Write the values that count."""
        address = self._address(array, place)
        if self._mask is None:
            self.builder.store(vector, address, align=self.size)
            return
        kinds = [self.kind, address.type, _INDEX, self._mask.type]
        store = self._intrinsic("masked.store", ir.FunctionType(ir.VoidType(), kinds))
        self.builder.call(store, [vector, address, ir.Constant(_INDEX, self.size), self._mask])

    def prefetch(self, array: Any, place: Any) -> None:
        """Ask for the line at `place`; it need not be there."""
        address = self.builder.bitcast(self.builder.gep(array, [place]), _BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, _INDEX, _INDEX, _INDEX])
        ask = _declared(self.builder.module, kind, "llvm.prefetch.p0")
        self.builder.call(ask, [address, *(ir.Constant(_INDEX, word) for word in (0, 3, 1))])

    def total(self, vector: Any) -> Any:
        """The sum of a vector's values, halves added to halves; those that do not count are zero."""
        count = self.lanes
        while count > 1:
            count //= 2
            half = ir.VectorType(_INDEX, count)
            parts = [ir.Constant(half, list(range(low, low + count))) for low in (0, count)]
            nothing = ir.Constant(vector.type, ir.Undefined)
            one, other = (self.builder.shuffle_vector(vector, nothing, part) for part in parts)
            vector = self.builder.fadd(one, other)
        return self.builder.extract_element(vector, ir.Constant(_INDEX, 0))

    def plus(self, place: Any, count: int) -> Any:
        """`place` and `count` on."""
        return self.builder.add(place, ir.Constant(PLACE, count))

    def _address(self, array: Any, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [place]), self.kind.as_pointer())

    def _intrinsic(self, name: str, kind: Any) -> Any:
        word = f"llvm.{name}.v{self.lanes}f{8 * self.size}.p0"
        return _declared(self.builder.module, kind, word)
