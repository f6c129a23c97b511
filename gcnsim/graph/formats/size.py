"""How much a file will ask for, from headers or by counting lines, before any of it is held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gcnsim.graph.formats.source import plain_bytes

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Size:
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
