"""The lines of an answer on a terminal: wrapped between words, words that are too long folded, styled where it is lit.

As rich prints them, whose console takes a twentieth of a short command to import.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import chain, pairwise, zip_longest
from typing import Final

from gcnsim.core.terminal import shown

CODES: Final = {"": "", "bold": "1", "dim": "2", "bold green": "1;32"}
"""What a terminal is told of a style."""

INDENT: Final = 2
"""Characters before the lines of a block, and between its two columns."""

_WORD: Final = re.compile(r"\s*\S+\s*")


class Page:
    """Lines for a terminal of `width` characters; lit: whether styles are shown."""

    def __init__(self, width: int, *, lit: bool) -> None:
        self.width = width
        self._lit = lit
        self._colours = not os.environ.get("NO_COLOR")
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(f"{line.rstrip()}\n" for line in self._lines)

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line, whole."""
        text, code = shown(text).expandtabs(), CODES[style if self._colours else style.removesuffix(" green")]
        self._lines.append(f"\x1b[{code}m{text}\x1b[0m" if self._lit and code and text else text)

    def block(self, title: str, lines: Sequence[str], *, end: bool = True) -> None:
        """Add a titled list of wrapped lines; nothing when there are none."""
        if lines:
            room = self.width - INDENT
            self._titled(title, [part for line in _lines("\n".join(lines)) for part in wrapped(line, room)], end)

    def pairs(self, title: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Add a titled list of (name, text), the text wrapped beside its name; nothing when there are none."""
        if not pairs:
            return
        names, texts = ([_lines(item) for item in items] for items in zip(*pairs, strict=True))
        longest_name, longest_text = (max(cells(line) for line in chain(*column)) for column in (names, texts))
        name_width, text_width = _fitting(longest_name, longest_text, self.width)
        rows = []
        for name, text in zip(names, texts, strict=True):
            left = [part for line in name for part in wrapped(line, name_width)]
            right = [part for line in text for part in wrapped(line, text_width)]
            rows += [
                f"{one}{' ' * (name_width + INDENT - cells(one))}{other}"
                for one, other in zip_longest(left, right, fillvalue="")
            ]
        self._titled(title, rows, end=True)

    def _titled(self, title: str, lines: Sequence[str], end: bool) -> None:
        for part in wrapped(title, self.width) if title else ():
            self.line(part, "bold")
        self._lines += [f"{' ' * INDENT}{line}" for line in lines]
        if end:
            self.line()


def _lines(text: str) -> list[str]:
    return [line.expandtabs() for line in shown(text).split("\n")]


def _fitting(name: int, text: int, width: int) -> tuple[int, int]:
    """Characters of a column of names and one of texts, of which the longest have so many, in lines of `width`.

    Names have at most two fifths of it; where both do not fit, the wider one gives way until it is as wide.
    """
    room = width - INDENT
    wide = [min(name + INDENT, room, width * 2 // 5 + INDENT), min(text, room)]
    excess = sum(wide) - room
    if excess > 0:
        wider = int(wide[1] > wide[0])
        less = min(excess, abs(wide[0] - wide[1]))
        wide[wider] -= less
        excess -= less
        wide[0] -= (half := round(excess / 2))
        wide[1] -= excess - half
    return wide[0] - INDENT, wide[1]


def cells(text: str) -> int:
    """Characters that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int) -> list[str]:
    """A line in parts of at most `width` characters, and blanks at their ends where there is room for them."""
    breaks, used = [], 0
    for found in _WORD.finditer(text):
        start, word = found.start(), found[0]
        size = cells(word.rstrip())
        if size <= width - used:
            used += cells(word)
        elif size > width:
            *whole, last = _folded(word, width)
            for part in whole:
                breaks += [start] if start else []
                start += len(part)
            breaks += [start] if start else []
            used = cells(last)
        elif used and start:
            breaks.append(start)
            used = cells(word)
    parts = [text[begin:end] for begin, end in pairwise([0, *breaks, len(text)])]
    return [part if len(part) <= width else part[:width] + part[width:].rstrip() for part in parts]


def _folded(word: str, width: int) -> list[str]:
    if word.isascii():
        return [word[begin : begin + width] for begin in range(0, len(word), width)]
    from rich.cells import chop_cells

    return list(chop_cells(word, width))
