"""Files that are written whole or not at all: beside their name, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gcnsim.errors import FileError

_BLOCK = 4096


@contextmanager
def atomic_write(path: str | Path, *, text: bool = False) -> Iterator[IO[Any]]:
    """A temporary file beside `path` that takes its place when the block ends, and vanishes if the block fails.

    A link is followed, and an existing file keeps its mode. What is no regular file (a device, a pipe) is written to as
    it is. Raises FileError when the place cannot be written.
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
        os.replace(name, target)
    except OSError as error:
        os.unlink(name)
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        os.unlink(name)
        raise


def probe(path: str | Path) -> None:
    """Find out whether `replacing` can write beside `path` now: a block goes to a temporary file, which is removed.

    It sees what permissions do not say: a file system that is full, over its quota or read-only, a name that is too
    long. Raises FileError.
    """
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(_BLOCK))
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        os.unlink(name)


def _temporary(path: str | Path) -> tuple[int, str]:
    """A new file beside `path`, open, and its name. Raises FileError."""
    target = Path(os.path.realpath(path))
    try:
        return tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None


def writable(path: str | Path) -> bool:
    """Whether a file at `path` can be replaced: False where a device or a pipe is, which takes what is written.

    Raises FileError for an empty path, a folder, or a place in no folder.
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
    """The permissions of `target`, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
