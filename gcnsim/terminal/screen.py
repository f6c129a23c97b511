"""The one place where text goes to the screen: what would command the terminal is shown instead.

Names of files, of members of archives and of what they hold come from elsewhere. One with an escape sequence in it
could move the cursor, rename the window, or fill the clipboard; here it is printed as `\\x1b`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

_COMMANDS: Final = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters but tab and line feed, what reverses the direction of text, and bytes that were no UTF-8."""

_UNSAFE: Final = re.compile(f"[{_COMMANDS}]")
_COLOURED: Final = re.compile(f"(\\x1b\\[[0-9;]*m)|[{_COMMANDS}]")


def shown(text: str) -> str:
    r"""`text` with every character that commands a terminal written as Python writes it; lines and tabs stay.

    >>> shown("graph\x1b[2J.npz")
    'graph\\x1b[2J.npz'
    """
    return _UNSAFE.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


class Screen:
    """A stream whose text is `shown` before it is written; all else is the stream's own.

    coloured: sequences that choose colours pass, which the answer's table has.
    """

    def __init__(self, stream: TextIO, *, coloured: bool = False) -> None:
        self.raw: Final = stream
        """For what is drawn, not told."""
        self._unsafe = _COLOURED if coloured else _UNSAFE

    def write(self, text: str) -> int:
        """Write `text`; its length."""
        self.raw.write(self._unsafe.sub(_kept_or_written, text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)


def _kept_or_written(found: re.Match[str]) -> str:
    return found[0] if found.lastindex else _written(found)


@contextmanager
def screened() -> Iterator[None]:
    """A block in which standard output and standard error are `Screen`s; nothing where they already are."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None and not isinstance(sys.stdout, Screen):
        sys.stdout = cast(TextIO, Screen(sys.stdout, coloured=sys.stdout.isatty()))
    if sys.stderr is not None and not isinstance(sys.stderr, Screen):
        sys.stderr = cast(TextIO, Screen(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_of(stream: TextIO) -> TextIO:
    """The stream beneath a `Screen`, to draw on; any other as it is."""
    return stream.raw if isinstance(stream, Screen) else stream
