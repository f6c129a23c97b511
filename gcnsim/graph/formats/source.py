"""Reading a graph file's bytes: missing, unreadable and damaged files become one line each."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from gcnsim.errors import FileError

_GZIP = b"\x1f\x8b"


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
    """The file's bytes, decompressed when they are gzip, without a byte-order mark.

    Raises FileError when the file cannot be read, or its gzip stream is truncated or altered.
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
    return data.removeprefix(b"\xef\xbb\xbf")
