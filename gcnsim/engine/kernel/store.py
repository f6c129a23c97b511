"""Store the compiled kernel in the user's cache folder, and load its object files with llvmlite only.

There is one file per processor, compiler version and version of the source. A file is written under a temporary name,
tested and renamed. A file that is damaged, foreign or owned by another user is ignored and replaced.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.engine.kernel import NEEDED


class LoadedKernel:
    """The kernel as machine code, called like `gcnsim.engine.kernel.run.run`."""

    def __init__(self, name: str, code: bytes) -> None:
        """Load the function `name` from the object file `code`. Raises RuntimeError if that fails."""
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
        return self.on(ints, floats, work, starts, ends, missing, graphs, most)()

    def on(self, *arguments: IntArray | FloatArray | int) -> Callable[[], int]:
        """The kernel with these arguments, whose addresses are looked up once. The arrays must live as long."""
        return partial(self._function, *(one if isinstance(one, int) else one.ctypes.data for one in arguments))


KIND: Final = "engine-kernel"
VERSION: Final = 1

KEPT: Final = 6
"""The most kernels kept, for other versions, environments or processors with the same home."""

MAKE: Final = "gcnsim doctor --compile"
"""The command that compiles at once."""


class UnusableError(Exception):
    """No compiled kernel is usable here; the message says why, in a few words."""


def folder() -> Path:
    """The cache folder of the user for kernels."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcnsim"


@cache
def key() -> str:
    """The hexadecimal key of a kernel: this processor, these compilers, this source."""
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
    """The path of the kernel for this processor."""
    return folder() / f"kernel-{key()[:16]}.bin"


def note() -> Path:
    """The path of the note on why a kernel could not be made for this processor."""
    return folder() / f"kernel-{key()[:16]}.failed"


def read(target: Path) -> tuple[str, bytes]:
    """Read the function's name and the object file at `target`. Raises UnusableError."""
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
    """Write an object file with the function `name` to `target`. Raises FileError."""
    arrays = {"code": np.frombuffer(code, np.uint8)}
    write_sections(target, kind=KIND, version=VERSION, meta={"key": key(), "name": name}, arrays=arrays)


def make(*, wait: bool) -> str | None:
    """Compile and store the kernel; takes seconds. Returns None, or why it failed.

    wait: wait for another process that is compiling, instead of leaving it to that one. A usable kernel is kept.
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
    """Test the kernel at `target` against the reference engine. Returns None, or what is wrong with it.

    The test runs in a separate process, because wrong machine code crashes its process.
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
"""The folder that contains this package."""


def make_later() -> None:
    """Start a process of the lowest priority that compiles the kernel, and do not wait for it.

    None is started after an earlier failure, or without a writable cache folder.
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
        ).returncode = 0  # It outlives this process; suppress the warning about that.
    except OSError:
        return


@contextmanager
def _alone(wait: bool) -> Iterator[bool]:
    """Hold a lock that one process at a time can have; yields whether this one has it. wait: wait for the lock."""
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(folder() / "kernel.lock").acquire(blocking=wait)
    except Timeout:
        yield False
        return
    with lock:
        yield True


def _tidy() -> None:
    """Remove the oldest kernels beyond the limit."""
    files = sorted(folder().glob("kernel-*.bin"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT:]:
        file.unlink(missing_ok=True)
