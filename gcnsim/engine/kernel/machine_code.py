"""The kernel compiled by Numba into an object file: machine code that llvmlite can load without Numba.

Sums keep their order and no product is fused with a sum, so the bits are those of the kernel as it stands. Loops over
rows are written out as vector instructions (`vectors`). Compiled, an array is the address of its first word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from numba import cfunc, types
from numba.extending import intrinsic, overload, register_jitable

from gcnsim.engine.kernel import coarse, core_turns, flights, heaps, memory, run, sharing, simd_loops, views
from gcnsim.engine.kernel.memory import ARRAYS
from gcnsim.engine.kernel.store import NEEDED
from gcnsim.engine.kernel.vectors import WRITTEN, use_vectors

OPTIONS: Final[Any] = {"_nrt": False, "error_model": "numpy", "boundscheck": False}
"""No memory is allocated, dividing by zero gives infinity, and places are trusted."""

CALLED: Final[tuple[Callable[..., Any], ...]] = (
    sharing.fill,
    sharing.settle_all,
    sharing.fill_dense,
    coarse.join_coarse,
    coarse.finish_coarse,
    coarse.share_coarse,
    flights.backlog,
    core_turns.next_event,
    core_turns.schedule_cores,
    core_turns.add_thread,
)
"""Large functions that are called, not copied to where they are used."""


def object_code() -> tuple[str, bytes]:
    """The name of the compiled kernel and the object file that has it; seconds of work.

    As a C function: int64 (ints, floats, work, starts, ends, missing, graphs, most), addresses but for the last two.
    """
    overload(memory.whole, jit_options=OPTIONS)(_whole)
    overload(memory.real, jit_options=OPTIONS)(_real)
    use_vectors()
    for module in (views, heaps, simd_loops, sharing, coarse, flights, core_turns, run):
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
    """Raises RuntimeError where the code calls what is not there without Numba."""
    needed = {
        function.name for function in functions if function.is_declaration and not function.name.startswith("llvm.")
    }
    if needed - set(NEEDED):
        raise RuntimeError(f"compiled code needs {', '.join(sorted(needed - set(NEEDED)))}")


def _compilable(function: Callable[..., Any]) -> None:
    """Let compiled code call `function`; most are copied to where they are called."""
    options = dict(OPTIONS)
    if function not in CALLED:
        options["forceinline"] = True
    register_jitable(**options)(function)


@intrinsic
def _from(context, address, words):  # type: ignore[no-untyped-def]
    """The address `words` words further on."""

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
