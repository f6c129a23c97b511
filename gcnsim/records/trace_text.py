"""The JSON text of a file, of which a part is in memory; the place in it moves forward only.

NaN and Infinity are read, control characters within texts too. A mark (U+FFFD) stands for bytes that are not UTF-8.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

CHUNK: Final = 1 << 22
"""Bytes read at once."""

LARGEST_VALUE: Final = 1 << 26
"""Characters of one event, or of one entry of the header."""

LARGEST_TEXT: Final = 8 << 30
"""Bytes of a file's text, unpacked: some 30 million events."""

GZIP: Final = b"\x1f\x8b"
UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

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
    """The text. step: called after each piece that is read."""

    def __init__(self, read: Read, step: Callable[[], None]) -> None:
        self._read, self._step = read, step
        self._decoder = json.JSONDecoder(strict=False)
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer, self._at, self._bytes = "", 0, 0
        self._ended, self._fault = False, ""

    def wrong(self, what: str) -> TraceTextError:
        """The error that says what is here instead of JSON."""
        at = self._bytes - len(self._buffer[self._at :].encode())
        return TraceTextError(
            f"damaged at byte {at:,}: {what}; export it again" if at > 0 else f"not a JSON document: {what}"
        )

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
            raise self.wrong(f"{found!r} where {character!r} is needed")
        self._at += 1

    def end(self) -> None:
        """Make sure that nothing but space follows, and that the file is whole."""
        if self.peek():
            raise self.wrong("text after its end")
        if self._fault:
            raise self._cut_off()

    def more(self, end: str, first: bool) -> bool:
        """Whether another item of a list or object follows, to which the place moves; else it moves behind `end`."""
        found = self.peek()
        if found == end:
            self._at += 1
            return False
        if not first and found:
            if found != ",":
                raise self.wrong(f"{found!r} where ',' or {end!r} is needed")
            self._at += 1
            found = self.peek()
        if not found:
            raise self._cut_off()
        return True

    def value(self) -> Any:
        """The value here; the place moves behind it."""
        if not self.peek():
            raise self._cut_off()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError:
                raise self.wrong("values nested too deep") from None
            except ValueError as error:
                if not _may_go_on(error, len(self._buffer)):
                    self._at = getattr(error, "pos", self._at)
                    raise self.wrong(str(getattr(error, "msg", error)).lower()) from None
            else:
                # A number that ends where the buffer does may go on behind it.
                if end < len(self._buffer) or self._ended:
                    self._at = end
                    return value
            if self._ended:
                raise self._cut_off()
            if len(self._buffer) - self._at > LARGEST_VALUE:
                raise self.wrong(f"a value of more than {LARGEST_VALUE >> 20} MiB")
            self._fill()

    def _cut_off(self) -> TraceTextError:
        fault = self._fault or "it is cut off: the file ends before its document does"
        return CutOffError(f"{fault} (byte {self._bytes:,})")

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
        self._buffer = self._buffer[self._at :] + self._utf8.decode(data, final=not data)
        self._at, self._ended = 0, not data


def _may_go_on(error: ValueError, length: int) -> bool:
    """Whether the reader failed because the text in memory ends, so far as its error says."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos > length - _LONGEST_LITERAL
