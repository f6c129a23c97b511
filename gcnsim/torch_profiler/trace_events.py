"""Files in the Trace Event Format (`chrome://tracing`), read event by event: a file may be larger than memory.

The format is JSON: an object whose `traceEvents` is a list of events, or that list alone; gzip is undone. What stands
beside the events (`distributedInfo`, `deviceProperties`, ...) is kept as the file's header.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from gcnsim.errors import FileError

EVENTS: Final = "traceEvents"

CHUNK: Final = 1 << 22
"""Characters read at once."""

LARGEST_VALUE: Final = 1 << 26
"""Characters of one event, or of one entry of the header."""

LARGEST_TEXT: Final = 8 << 30
"""Bytes of a file's text, unpacked: some 30 million events."""

GZIP: Final = b"\x1f\x8b"
_SPACE: Final = " \t\r\n\ufeff"

Progress = Callable[[str], None]


class TraceEvents:
    """The events of one file, in the file's order. header: what stood beside them, whole once they are read."""

    def __init__(self, path: str | Path, progress: Progress = lambda _: None) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self._progress = progress

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each event. Raises FileError, naming the file, for what cannot be read or is not such a file."""
        try:
            with open(self.path, "rb") as raw:
                size = os.fstat(raw.fileno()).st_size
                packed = raw.read(2) == GZIP
                raw.seek(0)
                opened: Any = gzip.GzipFile(fileobj=raw) if packed else raw
                yield from self._events(_Text(self.path, opened, lambda: self._said(raw.tell(), size)))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise FileError(f"{self.path}: a damaged gzip file, or one that is cut off") from None
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _said(self, done: int, size: int) -> None:
        self._progress(f"reading {self.path.name}, {100 * done // max(size, 1)} % of {size / 1e6:,.0f} MB")

    def _events(self, text: _Text) -> Iterator[dict[str, Any]]:
        if text.peek() == "[":
            yield from _items(text)
        else:
            yield from self._object(text)
        if text.peek():
            raise text.wrong("text after its end")

    def _object(self, text: _Text) -> Iterator[dict[str, Any]]:
        text.take("{")
        found = False
        while text.peek() != "}":
            if found or self.header:
                text.take(",")
            key = text.value()
            text.take(":")
            if key == EVENTS and not found:
                found = True
                yield from _items(text)
            elif isinstance(key, str):
                self.header[key] = text.value()
            else:
                raise text.wrong("a key that is no text")
        text.take("}")
        if not found:
            raise FileError(f"{self.path}: has no {EVENTS}: not a trace of the PyTorch profiler")


def _items(text: _Text) -> Iterator[dict[str, Any]]:
    text.take("[")
    first = True
    while text.peek() != "]":
        if not first:
            text.take(",")
        first = False
        item = text.value()
        if not isinstance(item, dict):
            raise text.wrong("an event that is no object")
        yield item
    text.take("]")


class _Text:
    """JSON text of which a part is in memory; the place in it moves forward only."""

    def __init__(self, path: Path, file: IO[bytes], step: Callable[[], None]) -> None:
        self._path, self._file, self._step = path, file, step
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._buffer, self._at, self._before, self._bytes = "", 0, 0, 0
        self._ended = False

    def wrong(self, what: str) -> FileError:
        """The error that says what is here instead of JSON."""
        return FileError(f"{self._path}: not a JSON document: {what} (character {self._before + self._at})")

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._ended:
                return ""
            self._fill()

    def take(self, character: str) -> None:
        """Move behind `character`, which must be next."""
        found = self.peek()
        if found != character:
            raise self.wrong("it is cut off" if not found else f"{found!r} where {character!r} is needed")
        self._at += 1

    def value(self) -> Any:
        """The value here; the place moves behind it."""
        if not self.peek():
            raise self.wrong("it is cut off")
        while True:
            try:
                found, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError:
                raise self.wrong("values nested too deep") from None
            except ValueError:
                end = len(self._buffer)
            else:
                # A number that ends where the buffer does may go on behind it.
                if end < len(self._buffer) or self._ended:
                    self._at = end
                    return found
            if self._ended:
                raise self.wrong("it is cut off, or damaged here")
            if end - self._at > LARGEST_VALUE:
                raise self.wrong(f"a value of more than {LARGEST_VALUE >> 20} MiB, or a damaged one")
            self._fill()

    def _fill(self) -> None:
        """Read more."""
        data = self._file.read(CHUNK)
        self._step()
        try:
            more = self._utf8.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise FileError(f"{self._path}: not UTF-8 text (near byte {self._bytes + error.start})") from None
        self._bytes += len(data)
        if self._bytes > LARGEST_TEXT:
            raise FileError(
                f"{self._path}: more than {LARGEST_TEXT >> 30} GiB of text; allowed: less (profile fewer iterations, "
                "without with_stack and record_shapes)"
            )
        self._before += self._at
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        self._ended = not data
