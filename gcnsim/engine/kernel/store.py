"""Store the compiled kernel in the user's cache folder, and load its object files without a compiler.

There is one file per processor and version of the source. A file is written under a temporary name, tested and renamed.
A file that is damaged, foreign or owned by another user is ignored and replaced.
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
from itertools import accumulate
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, mmap
from pathlib import Path
from struct import iter_unpack, pack_into, unpack_from
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.engine.kernel import NEEDED


class LoadedKernel:
    """The kernel as machine code, called like `gcnsim.engine.kernel.run.run`."""

    def __init__(self, name: str, code: bytes) -> None:
        """Load the function `name` from the object file `code`. Raises RuntimeError if that fails."""
        try:
            self._held, address = _copied(name, code)
        except (OSError, ValueError):
            self._held, address = _linked(name, code)
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


class _Section(NamedTuple):
    """A section header of a 64-bit ELF file."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    each: int

    def rows(self, code: bytes, form: str) -> list[tuple[int, ...]]:
        """Its content as rows of this `struct` format."""
        return [*iter_unpack(form, code[self.offset : self.offset + self.size])]


def _copied(name: str, code: bytes) -> tuple[object, int]:
    """The address of the function `name` of an object file in memory, 0 for none, and that memory, to be kept.

    llvmlite does the same, but takes as long to import as a short question takes. Raises ValueError for a file that is
    not of Linux on x86-64 or needs more than absolute addresses, OSError where such memory is not allowed.
    """
    if code[:6] + code[18:20] != b"\x7fELF\x02\x01\x3e\x00":
        raise ValueError("not ELF for x86-64")
    begin, count = *unpack_from("<Q", code, 40), *unpack_from("<H", code, 60)
    sections = [_Section(*row) for row in iter_unpack("<2I4Q2I2Q", code[begin : begin + 64 * count])]
    loaded = {index: one for index, one in enumerate(sections) if one.flags & _LOADED}
    *starts, size = accumulate((-(-one.size // _APART) * _APART for one in loaded.values()), initial=0)
    memory, c_library = mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE), ctypes.CDLL(None)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    places = dict(zip(loaded, starts, strict=True))
    for index, one in loaded.items():
        memory[places[index] : places[index] + one.size] = code[one.offset : one.offset + one.size]
    (table,) = (one for one in sections if one.kind == _SYMBOLS)
    addresses: list[int] = []
    found = 0
    for at, _, _, section, value, _ in table.rows(code, "<I2BH2Q"):
        word = code[sections[table.link].offset + at :].split(b"\0", 1)[0].decode()
        outside = ctypes.cast(getattr(c_library, word), ctypes.c_void_p).value if word in NEEDED else 0
        addresses.append(base + places[section] + value if section in places else outside or 0)
        found = addresses[-1] if word == name else found
    for one in sections:
        for at, what, more in one.rows(code, "<2Qq") if one.kind == _RELOCATIONS and one.info in places else ():
            if what & 0xFFFFFFFF != _ABSOLUTE or not addresses[what >> 32]:
                raise ValueError("an address that is not absolute")
            pack_into("<Q", memory, places[one.info] + at, addresses[what >> 32] + more)
    if c_library.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), PROT_READ | PROT_EXEC):
        raise OSError("memory that is executed is not allowed")
    return memory, found


_LOADED, _SYMBOLS, _RELOCATIONS, _ABSOLUTE, _APART = 2, 2, 4, 1, 64
"""SHF_ALLOC, SHT_SYMTAB, SHT_RELA and R_X86_64_64 of the ELF specification; the bytes that sections are aligned to."""


def _linked(name: str, code: bytes) -> tuple[object, int]:
    """As `_copied`, by llvmlite. Raises RuntimeError if that fails."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for symbol in NEEDED:
        llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.CDLL(None), symbol), ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address(name)


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
    """The hexadecimal key of a kernel: this processor, this source."""
    digest = hashlib.sha256("\n".join((sys.platform, os.uname().machine, *_processor())).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _processor() -> list[str]:
    """What Linux says of the first processor's model and instructions; nothing on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            first = file.read(_FIRST).split("\n\n")[0]
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(_SAYS)]


_FIRST: Final = 16_384
"""Characters of /proc/cpuinfo that describe the first processor, at most."""

_SAYS: Final = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features", "isa")
"""Beginnings of the lines that are the same whenever they are read."""


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
