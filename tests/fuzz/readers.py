"""Every function that reads what comes from outside, each with valid inputs to start from: the one registry.

`tests/fuzz/test_readers.py` holds it to be whole: a function of the project that opens or parses something is run by a
reader here, or stands with its reason in `tests/fuzz/doors.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

Files = Mapping[str, bytes]
"""One input: files by their names below a folder."""

Seal = Callable[[dict[str, bytes], dict[str, bytes], random.Random], dict[str, bytes]]


def unsealed(whole: dict[str, bytes], changed: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    """The changed files as they are."""
    return changed


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader. make: writes valid inputs, a folder each, below the folder it is given. read: takes such a folder.

    whole: names of files that stay as they are. sealed: given all files of an input and those of it that were changed,
    the files to write, checksums put right where it likes. writes: the reader changes files of the input itself.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], object]
    whole: frozenset[str] = frozenset()
    sealed: Seal = unsealed
    writes: bool = False

    def fixed(self, name: str) -> bool:
        """Whether this file is never changed."""
        return name in self.whole

    def seeds(self, home: Path) -> list[Files]:
        """The valid inputs, written below `home` first."""
        home.mkdir(parents=True, exist_ok=True)
        self.make(home)
        return [_files(path) for path in sorted(home.iterdir())]


def _files(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def text(name: str, *contents: str) -> Callable[[Path], None]:
    """Writes an input of one text file for each of `contents`."""

    def make(home: Path) -> None:
        for number, content in enumerate(contents):
            put(home / str(number) / name, content)

    return make


def put(path: Path, content: str | bytes) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def shipped(name: str, *paths: Path) -> Callable[[Path], None]:
    """Writes an input of one file for each of `paths`, copied."""
    return text(name, *(path.read_text(encoding="utf-8") for path in paths))


def file_named(read: Callable[[Path], Any], name: str) -> Callable[[Path], object]:
    """A reader of the file `name` in the folder."""
    return lambda folder: read(folder / name)


ROOMS: Final = ("graphs", "documents", "tables", "recorded", "trained")
"""The files that list readers; importing the last ones takes seconds."""


def room(name: str) -> Mapping[str, Reader]:
    """The readers of one file of ROOMS, by name."""
    return {reader.name: reader for reader in import_module(f"tests.fuzz.{name}").readers()}


@cache
def rooms() -> Mapping[str, str]:
    """The room of every reader, by the reader's name."""
    found: dict[str, str] = {}
    for name in ROOMS:
        for reader in room(name):
            assert reader not in found, reader
            found[reader] = name
    return found


@cache
def registry() -> Mapping[str, Reader]:
    """All readers by name."""
    return {name: reader for item in ROOMS for name, reader in room(item).items()}


SLOW: Final = 1e-3
"""Seconds of a read from which on fewer inputs are asked for."""
