"""Reading a graph file's bytes: missing, unreadable and damaged files become one line each.

From headers, or by counting lines, it is known how much a file will ask for before any of it is held.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from gcnsim.errors import FileError

_GZIP = b"\x1f\x8b"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks; that of UTF-32 begins like that of UTF-16, so it comes first."""


def file_start(path: Path, count: int = 16) -> bytes:
    """The first `count` bytes of the file. Raises FileError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def plain_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file open to be read by chunks, decompressed when it is gzip. Raises FileError as `file_text`."""
    zipped = file_start(path, len(_GZIP)) == _GZIP
    try:
        with open(path, "rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if zipped else file
    except (OSError, EOFError, zlib.error) as error:
        if zipped:
            raise FileError(f"{path}: truncated or altered gzip: {error}") from None
        raise FileError(f"{path}: cannot be read: {error}") from None


def file_text(path: Path) -> bytes:
    """The file's text in UTF-8 (or what it is without a byte-order mark), decompressed when it is gzip.

    UTF-16 and UTF-32 with their marks are decoded; every line ends in `\\n`. Raises FileError when the file cannot be
    read, its gzip stream is truncated or altered, or it holds NUL bytes.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileError(f"{path}: truncated or altered gzip: {error}") from None
    return _one_encoding(data, path)


def _one_encoding(data: bytes, path: Path) -> bytes:
    """The text without a byte-order mark, in UTF-8 where a mark says that it is UTF-16 or UTF-32; lines end as here."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if encoding is not None:
        try:
            data = data.decode(encoding).encode()
        except UnicodeError:
            raise FileError(f"{path}: starts as {encoding.upper()} text does, but is none; save it as UTF-8") from None
    if b"\0" in data:
        raise FileError(f"{path}: holds NUL bytes: binary data, or UTF-16 without its mark; text is needed, as UTF-8")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.removeprefix(b"\xef\xbb\xbf")


_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class GraphSize:
    """What reading will hold at once. entries: both directions of each edge; loaded: bytes of the files beside them."""

    nodes: int
    entries: int
    loaded: int


def text_size(path: Path) -> tuple[int, int]:
    """Lines and bytes of the text at `path`, decompressed; counted by chunks. The last line may lack its end.

    Raises FileError as `plain_bytes`.
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
