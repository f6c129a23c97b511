"""Read a graph file's bytes; missing, unreadable and damaged files become one-line errors.

Headers, or counting lines, give the memory that a file needs before its data is loaded.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from gcnsim.core.errors import FileError
from gcnsim.core.units import format_bytes

_GZIP = b"\x1f\x8b"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks; UTF-32's begins like UTF-16's, so it comes first."""


_LIMITS = frozenset((errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO, errno.EACCES))
"""Errors that say something of the machine, not of the file's content."""


@contextmanager
def limits_named(path: Path) -> Iterator[None]:
    """Too little memory or too many open files while reading `path` is a FileError that says so: no damage."""
    try:
        yield
    except MemoryError:
        size = sum(item.stat().st_size for item in (path.glob("*") if path.is_dir() else [path]))
        raise FileError(f"{path}: {format_bytes(size)} do not fit into memory") from None
    except OSError as error:
        if error.errno not in _LIMITS:
            raise
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def file_start(path: Path, count: int = 16) -> bytes:
    """The first `count` bytes of the file. Raises FileError if it is unreadable."""
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def plain_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file, open for reading in chunks, decompressed if it is gzip. Raises FileError as in `file_text`."""
    zipped = file_start(path, len(_GZIP)) == _GZIP
    try:
        with limits_named(path), open(path, "rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if zipped else file
    except (OSError, EOFError, zlib.error) as error:
        if zipped:
            raise FileError(f"{path}: truncated or altered gzip: {error}") from None
        raise FileError(f"{path}: cannot be read: {error}") from None


def file_text(path: Path) -> bytes:
    """The file's text in UTF-8 (or its own encoding without a byte-order mark), decompressed if it is gzip.

    UTF-16 and UTF-32 with byte-order marks are decoded; every line ends in `\\n`. Raises FileError if the file is
    unreadable, its gzip stream is truncated or altered, or it contains NUL bytes.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(_GZIP):
        try:
            with limits_named(path):
                data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileError(f"{path}: truncated or altered gzip: {error}") from None
    return _one_encoding(data, path)


def _one_encoding(data: bytes, path: Path) -> bytes:
    """The text without a byte-order mark, converted to UTF-8 if a mark declares UTF-16 or UTF-32; line ends as here."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if encoding is not None:
        try:
            data = data.decode(encoding).encode()
        except UnicodeError:
            raise FileError(f"{path}: starts like {encoding.upper()} text, but is not; save it as UTF-8") from None
    if b"\0" in data:
        raise FileError(f"{path}: holds NUL bytes: binary data, or UTF-16 without its mark; text is needed, as UTF-8")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.removeprefix(b"\xef\xbb\xbf")


_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class GraphSize:
    """The memory needed at once for reading. entries: both directions of each edge; loaded: bytes of the files."""

    nodes: int
    entries: int
    loaded: int


def text_size(path: Path) -> tuple[int, int]:
    """Lines and bytes of the decompressed text at `path`, counted in chunks. The last line may lack its line end.

    Raises FileError as in `plain_bytes`.
    """
    lines = size = 0
    last = b"\n"
    with plain_bytes(path) as file:
        for chunk in _chunks(file):
            lines += chunk.count(b"\n")
            size += len(chunk)
            last = chunk[-1:]
    return lines + (last != b"\n"), size


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
