"""JSON text with the faults that profilers are known to write, read a value at a time.

It is tried where the strict reader failed, and reads sound JSON as that one does. Mended are: an empty value after a
key, commas too many, text without quotes, NaN and infinity, quotes and backslashes that are not escaped, and control
characters. What else is wrong stays an error.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

SPACE: Final = re.compile(r"[ \t\r\n]*")
PLAIN: Final = re.compile(r'[^"\\]*')
WORD: Final = re.compile(r'[^,\[\]{}"\r\n]*')
CONTROL: Final = re.compile(r"[\x00-\x1f]")
ESCAPED_END: Final = re.compile(r'\\"(?=[ \t\r\n]*(?:,[ \t\r\n]*"|[}\]]))')
"""A backslash before a quote that ends a text: `"C:\\folder\\", "pid": 1`."""

KEPT: Final = re.compile(r'\\(["\\])|\\')
"""A backslash; the group is there where it escapes what follows in a text whose other backslashes do not."""

EMPTY: Final = "an empty value"
BACKSLASH: Final = "a backslash that is not escaped"
CONTROLS: Final = "a control character"
FOREIGN: Final = "bytes that are not UTF-8"
KNOWN: Final = frozenset((EMPTY, BACKSLASH, CONTROLS, FOREIGN))
"""Faults that the profiler is known to write, in texts and descriptions alone; others have other causes."""

ENDS: Final = ",:}]"
"""What follows a text in JSON; a quote before anything else does not end one."""


class IncompleteError(Exception):
    """The text ends within the value."""


class DamageError(Exception):
    """What was found at a position, and what is needed there: none of the known faults."""

    def __init__(self, at: int, found: str, needed: str) -> None:
        super().__init__(found)
        self.at, self.found, self.needed = at, found, needed


@dataclass(frozen=True, slots=True)
class Mend:
    """A fault that was read around. kind: of faults; at: its position in the text; key: whose value was replaced, empty
    for none."""

    kind: str
    at: int
    key: str = ""

    @property
    def what(self) -> str:
        """The fault in words."""
        return f"{self.kind} after {self.key!r}" if self.key else self.kind


def mended_value(text: str, at: int, key: str = "") -> tuple[Any, int, list[Mend]]:
    """The value at position `at` of `text`, which `key` has, the position behind it, and what was mended.

    Raises IncompleteError where the text ends within the value, DamageError for faults that are not known ones, and
    RecursionError for values nested too deep.
    """
    reading = _Repair(text, at)
    value = reading.value(key)
    return value, reading.at, reading.mends


class _Repair:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.mends = text, at, list[Mend]()

    def value(self, key: str) -> Any:
        """The value here, which `key` has."""
        found = self._next()
        if found == "{":
            return self._object()
        if found == "[":
            return self._array()
        if found == '"':
            return self._string()
        if found in ENDS:
            self._mend(EMPTY if key else "an empty value in a list", self.at, key)
            return None
        return self._word(key)

    def _next(self) -> str:
        """The next character that is not a space; the position moves to it."""
        match = SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        if self.at >= len(self.text):
            raise IncompleteError
        return self.text[self.at]

    def _mend(self, what: str, at: int, key: str = "") -> None:
        self.mends.append(Mend(what, at, key))

    def _object(self) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while self._more("}", not found):
            if self._next() != '"':
                raise DamageError(self.at, self.text[self.at], "a key in quotes")
            key = self._string()
            if self._next() != ":":
                raise DamageError(self.at, self.text[self.at], "':'")
            self.at += 1
            found[key] = self.value(key)
        return found

    def _array(self) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while self._more("]", not found):
            found.append(self.value(""))
        return found

    def _more(self, end: str, first: bool) -> bool:
        """Whether another item follows, to which the position moves; else it moves behind `end`."""
        commas = 0
        while (found := self._next()) == ",":
            commas += 1
            self.at += 1
        if commas > (0 if first or found == end else 1):
            self._mend("a comma too many", self.at - 1)
        if found == end:
            self.at += 1
            return False
        if not commas and not first:
            raise DamageError(self.at, found, f"',' or {end!r}")
        return True

    def _string(self) -> str:
        start, inner = self.at + 1, list[int]()
        self.at = start
        while True:
            match = PLAIN.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at + 1 >= len(self.text):
                raise IncompleteError
            if self.text[self.at] == "\\":
                self.at += 2
                continue
            end = self.at
            self.at += 1
            if self._next() in ENDS:
                break
            early = None if inner else ESCAPED_END.search(self.text, start, end + 1)
            if early:
                end = early.end() - 1
                break
            inner.append(end)
            self.at = end + 1
        self.at = end + 1
        return self._unescaped(start, end, inner)

    def _unescaped(self, start: int, end: int, inner: list[int]) -> str:
        """The text between two positions; inner: where quotes are that should have been escaped."""
        raw = self.text[start:end]
        control = CONTROL.search(raw)
        if control:
            self._mend(CONTROLS, start + control.start())
        if inner:
            self._mend("a quote that is not escaped", inner[0])
            for place in reversed(inner):
                raw = f"{raw[: place - start]}\\{raw[place - start :]}"
        try:
            return str(json.loads(f'"{raw}"', strict=False))
        except ValueError as error:
            self._mend(BACKSLASH, start + getattr(error, "pos", 1) - 1)
        literal = KEPT.sub(lambda match: match[0] if match[1] else r"\\", raw)
        return str(json.loads(f'"{literal}"', strict=False))

    def _word(self, key: str) -> Any:
        match = WORD.match(self.text, self.at)
        word, start = match[0] if match else "", self.at
        self.at += len(word)
        if self.at >= len(self.text):
            raise IncompleteError
        word = word.strip()
        try:
            return json.loads(word, parse_constant=_no_constant)
        except ValueError:
            pass
        try:
            found: Any = float(word if "_" not in word else "")
            self._mend(f"the number {word[:20]!r}, which JSON does not have,", start)
        except ValueError:
            found = word
            self._mend("text without quotes", start, key)
        return found


def _no_constant(name: str) -> None:
    raise ValueError(name)
