"""Stores the compiled kernel in the user's cache folder, and loads its object files with llvmlite alone.

There is one file for each processor, compiler version and version of our source. A file is written under another name,
tried out and renamed. A file that is damaged, not ours or not the user's own is ignored and made again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.errors import FileError
from gcnsim.ids import FloatArray, IntArray
from gcnsim.io.container import read_sections, write_sections

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


KIND: Final = "engine-kernel"
VERSION: Final = 1

KEPT: Final = 6
"""Kernels that are kept: of other versions, environments or processors that share a home."""

MAKE: Final = "gcnsim doctor --compile"
"""The command that compiles at once."""


class UnusableError(Exception):
    """There is no compiled kernel that can be used here; the message says why, in a few words."""


def folder() -> Path:
    """The user's cache folder of ours."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcnsim"


@cache
def key() -> str:
    """What a kernel is good for, in hexadecimal: this processor, these compilers, this source."""
    import llvmlite.binding as llvm

    digest = hashlib.sha256()
    features = llvm.get_host_cpu_features().flatten()
    for word in (llvm.get_default_triple(), llvm.get_host_cpu_name(), features, *map(_version, ("llvmlite", "numba"))):
        digest.update(word.encode() + b"\0")
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "none"


def path() -> Path:
    """Where the kernel for this processor is kept."""
    return folder() / f"kernel-{key()[:16]}.bin"


def note() -> Path:
    """Where it is said why a kernel could not be made for this processor."""
    return folder() / f"kernel-{key()[:16]}.failed"


def read(target: Path) -> tuple[str, bytes]:
    """The function's name and the object file at `target`. Raises UnusableError."""
    try:
        owner = target.stat().st_uid
    except OSError as error:
        raise UnusableError("none is compiled yet" if isinstance(error, FileNotFoundError) else str(error)) from None
    if hasattr(os, "getuid") and owner != os.getuid():
        raise UnusableError(f"{target} belongs to another user")
    try:
        sections = read_sections(target, kind=KIND, version=VERSION)
        if sections.meta["key"] != key():
            raise UnusableError(f"{target} was compiled for something else")
        return str(sections.meta["name"]), sections.arrays["code"].tobytes()
    except (FileError, KeyError) as error:
        raise UnusableError(str(error)) from None


def write(target: Path, name: str, code: bytes) -> None:
    """Keep an object file with the function `name` at `target`. Raises FileError."""
    arrays = {"code": np.frombuffer(code, np.uint8)}
    write_sections(target, kind=KIND, version=VERSION, meta={"key": key(), "name": name}, arrays=arrays)


def make(*, wait: bool) -> str | None:
    """Compile the kernel and keep it; None, or why it could not be. Seconds of work.

    wait: for a process that is at it, else it is left to that one. What is there and can be used stays.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with _alone(wait) as alone:
            return _made() if alone else None
    except (OSError, FileError) as error:
        return f"{folder()} cannot be written: {error}"


def _made() -> str | None:
    target, new = path(), path().with_suffix(f".{os.getpid()}.new")
    if usable(target) is None:
        return None
    try:
        from gcnsim.engine.kernel.machine_code import object_code

        write(new, *object_code())
        problem = usable(new)
        if problem is None:
            os.replace(new, target)
            note().unlink(missing_ok=True)
            _tidy()
    except (FileError, OSError):
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    finally:
        new.unlink(missing_ok=True)
    if problem is not None:
        note().write_text(problem, encoding="utf-8")
    return problem


def usable(target: Path) -> str | None:
    """None where the kernel at `target` gives what the reference engine does, else what is wrong with it.

    It is tried in a process of its own: machine code that does not fit ends whoever loads it.
    """
    try:
        read(target)
    except UnusableError as error:
        return str(error)
    command = [sys.executable, "-m", "gcnsim.engine.kernel.trial", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return None if done.returncode == 0 else f"the compiled kernel does not work here: {last}"


_ROOT: Final = Path(__file__).resolve().parents[3]
"""Where the package lies that this file is of."""


def make_later() -> None:
    """Start a process that compiles the kernel, at the lowest priority, and do not wait for it.

    None is started where one failed before, or where there is nowhere to keep what it makes.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        if note().exists() or not os.access(folder(), os.W_OK):
            return
        subprocess.Popen(
            [sys.executable, "-m", "gcnsim.engine.kernel.background"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=_ROOT,
        ).returncode = 0  # it outlives this process, which need not say so
    except OSError:
        return


@contextmanager
def _alone(wait: bool) -> Iterator[bool]:
    """A block that one process at a time is in: whether this one is. wait: until it is."""
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(folder() / "kernel.lock").acquire(blocking=wait)
    except Timeout:
        yield False
        return
    with lock:
        yield True


def _tidy() -> None:
    """Remove the oldest kernels beyond those that are kept."""
    files = sorted(folder().glob("kernel-*.bin"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT:]:
        file.unlink(missing_ok=True)
