"""Write files atomically: under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gcnsim.core.errors import FileError

_BLOCK = 4096
_SUFFIX = ".part"


@contextmanager
def atomic_write(path: str | Path, *, text: bool = False) -> Iterator[IO[Any]]:
    """A temporary file next to `path` that replaces it when the block ends, and is removed if the block fails.

    A link is followed, and an existing file keeps its mode. A device or a pipe is written to directly. Raises FileError
    if the place is not writable.
    """
    target = Path(os.path.realpath(path))
    mode, encoding = ("w", "utf-8") if text else ("wb", None)
    if not writable(path):
        try:
            with open(target, mode, encoding=encoding) as stream:
                yield stream
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror}") from None
        return
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            # Still open, so that no other process takes it for one that a killed writer left.
            os.replace(name, target)
    except OSError as error:
        _remove(name)
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        _remove(name)
        raise


def write_csv(path: str | Path, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table below its heads; None is an empty cell. Raises FileError."""
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows)


def probe(path: str | Path) -> None:
    """Check whether `atomic_write` can write to `path` now: a block is written to a temporary file, which is removed.

    It detects problems beyond permissions: a file system that is full, over its quota or read-only, a name that is too
    long. Raises FileError.
    """
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(_BLOCK))
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        _remove(name)


def _temporary(path: str | Path) -> tuple[int, str]:
    """A new file next to `path`, open and locked, and its name; files of killed writers are removed.

    Raises FileError.
    """
    target = Path(os.path.realpath(path))
    prefix = f".{target.name}."
    try:
        _remove_left(target.parent, prefix)
        while True:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_SUFFIX)
            if _locked(handle) is not False and os.path.exists(name):
                return handle, name
            # Another writer removed it as a leftover before it was locked.
            os.close(handle)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None


def _remove_left(folder: Path, prefix: str) -> None:
    """Remove unused temporary files with this prefix: the lock of a process ends with it."""
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX)]
    for name in found:
        with suppress(OSError):
            handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _locked(handle):
                    os.unlink(name)
            finally:
                os.close(handle)


def _locked(handle: int) -> bool | None:
    """Whether this file could be locked: False where another has it open, None where files cannot be locked."""
    from filelock import lock_descriptor

    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        return None


def _remove(name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name)


def writable(path: str | Path) -> bool:
    """Whether a file at `path` can be replaced: False for a device or a pipe, which is written to.

    Raises FileError for an empty path, a folder, or a path in a missing folder.
    """
    target = Path(os.path.realpath(path))
    if not str(path):
        raise FileError("an empty path: cannot be written: No such file or directory")
    if target.is_dir():
        raise FileError(f"{path}: is a directory")
    if not target.parent.is_dir():
        raise FileError(f"{path}: cannot be written: No such file or directory")
    whole = not target.exists() or target.is_file()
    if not os.access(target.parent if whole else target, os.W_OK):
        raise FileError(f"{path}: cannot be written: Permission denied")
    return whole


def _mode(target: Path) -> int:
    """The permissions of `target`, or those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
