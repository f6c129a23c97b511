"""The JSON text of a file, of which a part is in memory; the place in it moves forward only."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

from gcnsim.records.trace_repair import FOREIGN, DamageError, IncompleteError, Mend, mended_value

CHUNK: Final = 1 << 22
"""Bytes read at once."""

WINDOW: Final = 1 << 13
"""Characters that the strict reader is given first in a file with faults: to fail, it counts the lines before."""

LARGEST_VALUE: Final = 1 << 26
"""Characters of one event, or of one entry of the header."""

LARGEST_TEXT: Final = 8 << 30
"""Bytes of a file's text, unpacked: some 30 million events."""

GZIP: Final = b"\x1f\x8b"
UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NOT_UTF8: Final = "\ufffd"
"""What stands for bytes that are no UTF-8."""

_FOREIGN: Final = re.compile("[\udc80-\udcff]+")
"""Bytes that are no UTF-8, as "surrogateescape" writes them."""

_SPACE: Final = " \t\r\n\ufeff"
_LONGEST_LITERAL: Final = 16
"""Characters within which a literal or an escape ends."""

Read = Callable[[int], tuple[bytes, str]]
"""Reads up to so many bytes; with what is wrong with the file, once there are no more."""


class TraceTextError(Exception):
    """The text is no JSON document, is cut off or too large."""


class CutOffError(TraceTextError):
    """The text ends before its document does."""


def unpacked(file: IO[bytes]) -> Read:
    """How to read `file`, gzip undone. What is wrong with the file is said once no more bytes come."""
    packed = file.read(2) == GZIP
    file.seek(0)
    if not packed:
        return lambda count: (file.read(count), "")
    opened, fault = gzip.GzipFile(fileobj=file), ""

    def read(count: int) -> tuple[bytes, str]:
        nonlocal fault
        pieces = bytearray()
        # One piece at a time: of what a larger read had found before the damage, nothing would be left.
        while len(pieces) < count and not fault:
            try:
                piece = opened.read1(count - len(pieces))
            except EOFError:
                fault = "it is cut off: the gzip file ends early"
            except (zlib.error, gzip.BadGzipFile):
                fault = "a damaged gzip file"
            else:
                pieces += piece
                if not piece:
                    break
        return bytes(pieces), "" if pieces else fault

    return read


class Text:
    """The text. mended: faults that were read around, since this was emptied last; first: what the first
    of all was, and where."""

    def __init__(self, read: Read, step: Callable[[], None]) -> None:
        self.mended: list[Mend] = []
        self.first: tuple[str, str] | None = None
        self._read, self._step = read, step
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._foreign: list[int] = []
        """Positions in the file of bytes that are no UTF-8, not yet passed."""
        self._buffer, self._at, self._before, self._bytes = "", 0, 0, 0
        self._lines, self._column = 0, 0
        """Before the buffer: line breaks, and characters since the last of them."""
        self._ended, self._fault = False, ""

    def wrong(self, what: str) -> TraceTextError:
        """The error that says what is here instead of JSON."""
        return TraceTextError(f"not a JSON document: {what} ({self._where(self._at)})")

    def empty(self) -> bool:
        """Whether the file is whole and holds nothing."""
        return not self.peek() and not self._fault

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
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
        if not found:
            raise self._cut_off()
        if found != character:
            raise self.wrong(f"{_named(found)} where {character!r} is needed")
        self._at += 1

    def end(self) -> None:
        """Make sure that nothing but space follows, and that the file is whole."""
        if self.peek():
            raise self.wrong("text after its end")
        if self._fault:
            raise self._cut_off()

    def more(self, end: str, first: bool) -> bool:
        """Whether another item of a list or object follows, to which the place moves; else it moves behind `end`."""
        commas = 0
        while (found := self.peek()) == ",":
            commas += 1
            self._at += 1
        if commas > (0 if first or found == end else 1):
            self._passed(self._at, [Mend("a comma too many", self._at)])
        if found == end:
            self._at += 1
            return False
        if not found:
            raise self._cut_off()
        if not commas and not first:
            raise self.wrong(f"{_named(found)} where ',' or {end!r} is needed")
        return True

    def value(self, key: str = "") -> Any:
        """The value here, which `key` has; the place moves behind it."""
        if not self.peek():
            raise self._cut_off()
        while True:
            found = self._found(key)
            # A number that ends where the buffer does may go on behind it.
            if found and (found[1] < len(self._buffer) or self._ended):
                value, end, mends = found
                self._passed(end, mends)
                return value
            if self._ended:
                raise self._cut_off()
            if len(self._buffer) - self._at > LARGEST_VALUE:
                raise self.wrong(f"a value of more than {LARGEST_VALUE >> 20} MiB, or a damaged one")
            self._fill()

    def _found(self, key: str) -> tuple[Any, int, list[Mend]] | None:
        """The value here, where it ends and what was mended in it; None where it does not end in the buffer."""
        try:
            try:
                return *self._sound(), []
            except ValueError as error:
                if not self._ended and _may_go_on(error, len(self._buffer)):
                    return None
            return mended_value(self._buffer, self._at, key)
        except RecursionError:
            raise self.wrong("values nested too deep") from None
        except IncompleteError:
            return None
        except DamageError as error:
            self._at = error.at
            raise self.wrong(f"{_named(error.found)} where {error.needed} is needed") from None

    def _sound(self) -> tuple[Any, int]:
        """The value here by the strict reader, and where it ends. Raises ValueError."""
        window = self._buffer[self._at : self._at + WINDOW] if self.first else ""
        if len(window) == WINDOW:
            try:
                value, end = self._decoder.raw_decode(window)
            except ValueError as error:
                if not _may_go_on(error, WINDOW):
                    raise
            else:
                if end < WINDOW:
                    return value, self._at + end
        return self._decoder.raw_decode(self._buffer, self._at)

    def _passed(self, end: int, mends: list[Mend]) -> None:
        """Move to `end`; what was mended on the way is kept."""
        while self._foreign and self._foreign[0] < self._before + end:
            mends.append(Mend(FOREIGN, self._foreign.pop(0) - self._before))
        if mends and not self.first:
            least = min(mends, key=lambda mend: mend.at)
            self.first = least.what, self._where(least.at)
        self.mended += mends
        self._at = end

    def _where(self, at: int) -> str:
        """Line and character of a position in the buffer, from 1."""
        since = self._buffer.rfind("\n", 0, at) + 1
        column = at - since + (0 if since else self._column)
        return f"line {self._lines + self._buffer.count(chr(10), 0, at) + 1}, character {column + 1}"

    def _cut_off(self) -> TraceTextError:
        fault = self._fault or "it is cut off: the file ends before its document does"
        return CutOffError(f"{fault} ({self._where(len(self._buffer))})")

    def _fill(self) -> None:
        """Read more."""
        data, self._fault = self._read(CHUNK)
        self._step()
        if not self._bytes and data[:2] in UTF16:
            raise TraceTextError("is UTF-16 text; allowed: UTF-8 (convert it, or export it again)")
        self._bytes += len(data)
        if self._bytes > LARGEST_TEXT:
            raise TraceTextError(
                f"more than {LARGEST_TEXT >> 30} GiB of text; allowed: less (profile fewer iterations, "
                "without with_stack and record_shapes)"
            )
        more = self._decoded(data)
        since = self._buffer.rfind("\n", 0, self._at) + 1
        self._column = self._at - since + (0 if since else self._column)
        self._lines += self._buffer.count("\n", 0, self._at)
        self._before += self._at
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        self._ended = not data

    def _decoded(self, data: bytes) -> str:
        """Text of the next bytes; a mark stands for each that is no UTF-8."""
        try:
            found = self._utf8.decode(data, final=not data)
        except UnicodeDecodeError:
            self._utf8.errors = "surrogateescape"
            found = self._utf8.decode(data, final=not data)
        if self._utf8.errors == "strict":
            return found
        start = self._before + len(self._buffer)
        self._foreign += [start + match.start() for match in _FOREIGN.finditer(found)]
        return _FOREIGN.sub(lambda match: NOT_UTF8 * len(match[0]), found)


def _named(found: str) -> str:
    return "what is not UTF-8 text" if found == NOT_UTF8 else repr(found)


def _may_go_on(error: ValueError, length: int) -> bool:
    """Whether the strict reader failed because the text in memory ends, so far as its error says."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos > length - _LONGEST_LITERAL


def _no_constant(name: str) -> None:
    raise ValueError(name)
