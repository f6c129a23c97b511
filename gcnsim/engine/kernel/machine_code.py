"""Compile the kernel with Numba to an object file: machine code that llvmlite can load without Numba.

Sums keep their order and no product is fused with a sum, so results are identical to those of the interpreted kernel.
Loops over rows become vector instructions (`vectors`). In compiled code, an array is the address of its first word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from numba import cfunc, types
from numba.extending import intrinsic, overload, register_jitable

from gcnsim.engine.kernel import (
    NEEDED,
    coarse,
    core_turns,
    filling,
    flights,
    heaps,
    matrix,
    memory,
    run,
    sharing,
    simd_loops,
    views,
)
from gcnsim.engine.kernel.memory import ARRAYS
from gcnsim.engine.kernel.vectors import WRITTEN, use_vectors

OPTIONS: Final[Any] = {"_nrt": False, "error_model": "numpy", "boundscheck": False}
"""No memory allocation; division by zero gives infinity; indices are not checked."""

CALLED: Final[tuple[Callable[..., Any], ...]] = (
    filling.fill,
    matrix.settle_all,
    matrix.fill_dense,
    coarse.join_coarse,
    coarse.finish_coarse,
    coarse.share_coarse,
    flights.backlog,
    core_turns.next_event,
    core_turns.schedule_cores,
    core_turns.add_thread,
)
"""Large functions that are called instead of inlined."""


def object_code() -> tuple[str, bytes]:
    """Return the name of the compiled kernel and its object file; takes seconds.

    As a C function: int64 (ints, floats, work, starts, ends, missing, graphs, most), addresses except for the last two.
    """
    overload(memory.whole, jit_options=OPTIONS)(_whole)
    overload(memory.real, jit_options=OPTIONS)(_real)
    use_vectors()
    for module in (views, heaps, simd_loops, filling, matrix, sharing, coarse, flights, core_turns, run):
        for function in vars(module).values():
            if getattr(function, "__module__", None) == module.__name__ and function not in (run.run, *WRITTEN):
                _compilable(function)
    ints, floats = (_address(kind) for kind in (types.int64, types.float64))
    signature = types.int64(ints, floats, floats, ints, ints, ints, types.int64, types.int64)
    made: Any = cfunc(signature, **OPTIONS)(run.run)
    _refuse_needs(made._library._final_module.functions)
    return str(made._wrapper_name), bytes(made._library._get_compiled_object())


def _address(kind: Any) -> Any:
    """The type of the address of values of this type."""
    make: Any = types.CPointer
    return make(kind)


def _refuse_needs(functions: Iterable[Any]) -> None:
    """Raise RuntimeError if the code calls functions that are missing without Numba."""
    needed = {
        function.name for function in functions if function.is_declaration and not function.name.startswith("llvm.")
    }
    if needed - set(NEEDED):
        raise RuntimeError(f"compiled code needs {', '.join(sorted(needed - set(NEEDED)))}")


def _compilable(function: Callable[..., Any]) -> None:
    """Make `function` callable from compiled code; most functions are inlined."""
    options = dict(OPTIONS)
    if function not in CALLED:
        options["forceinline"] = True
    register_jitable(**options)(function)


@intrinsic
def _from(context, address, words):  # type: ignore[no-untyped-def]
    """The address `words` words further."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.gep(arguments[0], [arguments[1]])

    return address(address, types.int64), generate


def _whole(ints, place):  # type: ignore[no-untyped-def]
    def address(ints, place):  # type: ignore[no-untyped-def]
        return _from(ints, ints[2 * place])  # type: ignore[call-arg]

    return address


def _real(ints, floats, place):  # type: ignore[no-untyped-def]
    def address(ints, floats, place):  # type: ignore[no-untyped-def]
        return _from(floats, ints[2 * (ARRAYS + place)])  # type: ignore[call-arg]

    return address
