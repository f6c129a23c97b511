"""Object files of the kernel, loaded by llvmlite alone."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from gcnsim.ids import FloatArray, IntArray

NEEDED: Final = ("memcpy", "memmove", "memset")
"""Functions of C that compilers call of their own accord: all that an object file of ours may need."""


class LoadedKernel:
    """The kernel as machine code: called as `gcnsim.engine.kernel.run.run` is."""

    def __init__(self, name: str, code: bytes) -> None:
        """name: of the function in the object file `code`. Raises RuntimeError where it is none, or has it not."""
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for symbol in NEEDED:
            llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.CDLL(None), symbol), ctypes.c_void_p).value)
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(name)
        if not address:
            raise RuntimeError(f"no function {name}")
        kinds = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 2
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)

    def __call__(
        self,
        ints: IntArray,
        floats: FloatArray,
        work: FloatArray,
        starts: IntArray,
        ends: IntArray,
        missing: IntArray,
        graphs: int,
        most: int,
    ) -> int:
        arrays = (ints, floats, work, starts, ends, missing)
        found: int = self._function(*(array.ctypes.data for array in arrays), graphs, most)
        return found
