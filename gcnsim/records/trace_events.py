"""Files in the Trace Event Format (`chrome://tracing`), read event by event: a file may be larger than memory.

The format is JSON: an object whose `traceEvents` is a list of events, or that list alone; gzip is decompressed. The
other keys of the object (`distributedInfo`, `deviceProperties`, ...) are kept as the file's header. A damaged file is
refused with the place. A folder of traces may also hold other files, such as a run's configuration, which are
distinguished from them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import FileError
from gcnsim.records.trace_text import CutOffError, Text, TraceTextError, unpacked

EVENTS: Final = "traceEvents"

Progress = Callable[[str], None]


class NoTraceError(FileError):
    """A file without a run: another JSON document, an empty file, or events of which nothing marks iterations."""

    def __init__(self, message: str, *, meant: bool = True) -> None:
        """meant: whether the file may have been meant as a trace."""
        super().__init__(message)
        self.meant = meant


class TraceEvents:
    """The events of one file, in the file's order. header: what stood beside them, whole once they are read."""

    def __init__(self, path: str | Path, progress: Progress = lambda _: None) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self._progress = progress
        self._count, self._last = 0, ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each event. Raises FileError, naming the file, for what cannot be read or is not such a file."""
        try:
            with open(self.path, "rb") as raw:
                size = os.fstat(raw.fileno()).st_size
                yield from self._events(Text(unpacked(raw), lambda: self._report_progress(raw.tell(), size)))
        except CutOffError as error:
            raise FileError(f"{self.path}: {error}{self._so_far()}; copy it again, or record it again") from None
        except TraceTextError as error:
            raise FileError(f"{self.path}: {error}{self._so_far()}") from None
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _report_progress(self, done: int, size: int) -> None:
        self._progress(f"reading {self.path.name}, {100 * done // max(size, 1)} % of {size / 1e6:,.0f} MB")

    def _so_far(self) -> str:
        return f"; its last whole event is event {self._count - 1} ({self._last})" if self._count else ""

    def _events(self, text: Text) -> Iterator[dict[str, Any]]:
        if text.empty():
            self._begins(text, "{")
        if text.peek() == "[":
            yield from self._items(text)
        else:
            yield from self._object(text)
        text.end()

    def _begins(self, text: Text, character: str) -> None:
        """Move behind `character`. Raises NoTraceError where it is not there."""
        try:
            text.take(character)
        except CutOffError as error:
            raise NoTraceError(f"{self.path}: {error}; copy it again, or record it again") from None
        except TraceTextError as error:
            raise NoTraceError(f"{self.path}: {error}") from None

    def _object(self, text: Text) -> Iterator[dict[str, Any]]:
        text.take("{")
        found, first = False, True
        while text.more("}", first):
            first = False
            key = text.value()
            text.take(":")
            if key == EVENTS and not found:
                found = True
                if text.peek() not in ("", "["):
                    self._begins(text, "[")
                yield from self._items(text)
            elif isinstance(key, str):
                self.header[key] = text.value()
            else:
                raise text.wrong("a key that is not text")
        if not found:
            raise NoTraceError(f"{self.path}: has no {EVENTS}: not a trace of the PyTorch profiler", meant=False)

    def _items(self, text: Text) -> Iterator[dict[str, Any]]:
        text.take("[")
        first = True
        while text.more("]", first):
            first = False
            item = text.value()
            if not isinstance(item, dict):
                raise text.wrong("an event that is not an object")
            yield item
            self._count, self._last = self._count + 1, shown(item.get("name"))


def shown(value: Any) -> str:
    """A value in a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


SUFFIXES: Final = (".json", ".json.gz")
EXPORTED: Final = (".pt.trace.json", ".pt.trace.json.gz")
"""As `torch.profiler.tensorboard_trace_handler` names files."""

OURS: Final = ("run.json", "result.json")
"""Names by which folders of ours are known, where the file says that it is ours."""

_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*"gcnsim\.')

PIECE: Final = 1 << 20
"""Bytes looked through at a time."""


def is_profiler_trace(path: str | Path) -> bool:
    """Whether the file at `path`, or a file in the folder there, looks like what `torch.profiler` exports."""
    place = Path(path)
    if place.is_dir():
        return _is_folder_of_traces(place)
    if not place.name.lower().endswith(SUFFIXES) or not place.is_file():
        return False
    try:
        return _has_events(place)
    except OSError:
        return False


def _is_folder_of_traces(folder: Path) -> bool:
    """Whether JSON files are there, and no run or result of ours; another program's `run.json` is one beside traces."""
    files = _candidates(folder)
    named = [path for path in files if path.name in OURS]
    try:
        ours = any(_SCHEMA.search(path.read_bytes()) for path in named)
        return bool(files) and not ours and (not named or any(_has_events(path) for path in files if path not in named))
    except OSError:
        return not named


def trace_files(folder: Path) -> tuple[list[Path], list[str]]:
    """Files of a folder that are traces, in the order of their names, and the names of other JSON files.

    Where files have the profiler's own kind of name, those are the traces; else what has events is one, and what is
    empty, as a recording that was cut off is.
    Raises FileError where the folder or a file cannot be read.
    """
    files = _candidates(folder)
    traces = [path for path in files if path.name.endswith(EXPORTED)]
    try:
        traces = traces or [path for path in files if _is_blank(path) or _has_events(path)]
    except OSError as error:
        raise FileError(f"{error.filename or folder}: cannot be read: {error.strerror}") from None
    return traces, [path.name for path in files if path not in traces]


def _candidates(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().endswith(SUFFIXES))
    except OSError as error:
        raise FileError(f"{folder}: cannot be read: {error.strerror}") from None


def _is_blank(path: Path) -> bool:
    return path.stat().st_size < PIECE and not path.read_bytes().strip()


def _has_events(path: Path) -> bool:
    """Whether a file has the key of a trace's events, or begins as a list of events; a damaged gzip file counts."""
    # In UTF-16 too, so that reading it says what is wrong.
    wanted = tuple(f'"{EVENTS}"'.encode(coding) for coding in ("utf-8", "utf-16-le", "utf-16-be"))
    before, first = b"", True
    with open(path, "rb") as file:
        read = unpacked(file)
        while True:
            piece, fault = read(PIECE)
            if not piece:
                return bool(fault)
            if any(key in before + piece for key in wanted):
                return True
            if first and piece.lstrip()[:1] == b"[" and b'"ph"' in piece:
                return True
            before, first = piece[-len(wanted[-1]) :], False
