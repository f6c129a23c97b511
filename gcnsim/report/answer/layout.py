"""An answer laid out for a terminal: wrapped lines, and the columns that fit.

Long words are folded, then the least important columns are dropped.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gcnsim.core.terminal import UNLIMITED, aligned, shown
from gcnsim.report.answer.columns import TextColumn

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

MARKS = ("* ", "  ")
"""The prefix of the recommended row, and of the others."""

FOLDED = 8
"""The least characters of a folded text column."""


class TableLayout(NamedTuple):
    """The columns that fit, the spaces between them, and the keys of those that do not."""

    columns: list[TextColumn]
    gap: int
    left_out: tuple[str, ...]


def laid_out(make: Callable[[str, bool], list[TextColumn]], width: int) -> TableLayout:
    """The most important of the columns that `make(gap between knobs, brief headings)` returns, in order, in `width`.

    Rare long texts are folded first. If not even a row's name and time fit, the range is dropped, then all words are
    folded.
    """
    for gap, between, brief in ((2, "  ", False), (1, "  ", True), (1, " ", True)):
        columns = make(between, brief)
        if needed(columns, gap) <= width:
            return TableLayout(columns, gap, ())
    for long in sorted((one for one in columns if one.column.usual), key=lambda one: -one.column.usual):
        columns = [_narrowed(one, long.column.usual) if one.key == long.key else one for one in columns]
        if needed(columns, 1) <= width:
            return TableLayout(columns, 1, ())
    shown = _kept(columns, width)
    if needed(shown, 1) > width:
        columns = [_without_range(column) if column.key == "time" else column for column in columns]
        shown = _kept(columns, width)
    left_out = tuple(column.key for column in columns if column not in shown)
    return TableLayout(_folded(shown, width), 1, left_out)


def _kept(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """The fixed columns, and the most important others that fit."""
    shown = [one for one in columns if not one.column.keep]
    for kept in sorted((one for one in columns if one.column.keep), key=lambda one: one.column.keep):
        more = [one for one in columns if one in shown or one is kept]
        if needed(more, 1) <= width:
            shown = more
    return shown


def needed(columns: Sequence[TextColumn], gap: int) -> int:
    """Characters of a line."""
    return len(MARKS[0]) + sum(column.width for column in columns) + gap * (len(columns) - 1)


def _without_range(column: TextColumn) -> TextColumn:
    """Times alone."""
    head = column.head.split("\n")[0].replace(" per iter.", "")
    return replace(column, head=head, cells=tuple(cell.split("(")[0].rstrip() for cell in column.cells))


def _folded(columns: list[TextColumn], width: int) -> list[TextColumn]:
    """Fold the widest text columns until a line fits, or until nothing more can be folded."""
    while needed(columns, 1) > width:
        long = max((one for one in columns if one.column.form.left), key=lambda one: one.width, default=None)
        if long is None or long.width <= FOLDED:
            return columns
        short = _narrowed(long, max(FOLDED, long.width - (needed(columns, 1) - width)))
        columns = [short if column is long else column for column in columns]
    return columns


def _narrowed(column: TextColumn, most: int) -> TextColumn:
    """`column` with at most `most` characters per line."""
    head = "\n".join(fold(line, most) for line in column.head.split("\n"))
    return replace(column, head=head, cells=tuple(fold(cell, most) for cell in column.cells))


def fold(text: str, most: int) -> str:
    """`text` in lines of at most `most` characters, broken between words where possible.

    >>> fold("NIC of server 2", 10)
    'NIC of\\nserver 2'
    """
    return "\n".join(textwrap.wrap(text, most, break_on_hyphens=False)) if len(text) > most else text


def lines_of(columns: Sequence[TextColumn], marked: Sequence[bool], gap: int) -> tuple[list[str], list[str]]:
    """The lines of the heading and of each row; text is aligned left, numbers right.

    A row has several lines if a cell is folded; only the first has the mark.
    """
    cells = list(zip(*(column.cells for column in columns), strict=True))
    words = [one.column.form.left for one in columns]
    lines = aligned(cells, [column.head for column in columns], left=words, gap=gap, width=UNLIMITED)
    heights = [max(cell.count("\n") + 1 for cell in row) for row in cells]
    at = len(lines) - sum(heights)
    head, rows = [MARKS[1] + line for line in lines[:at]], []
    for mark, height in zip(marked, heights, strict=True):
        first, *more = lines[at : at + height]
        rows.append("\n".join([MARKS[0 if mark else 1] + first, *(MARKS[1] + line for line in more)]))
        at += height
    return head, rows


class Page:
    """Lines for a terminal of `width` characters; lit: whether styles are shown."""

    def __init__(self, width: int, *, lit: bool) -> None:
        from rich.console import Console

        self.width = width
        self._console = Console(
            file=io.StringIO(),
            width=width,
            force_terminal=lit,
            color_system="standard" if lit else None,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            force_jupyter=False,
        )

    @property
    def text(self) -> str:
        """All of it."""
        assert isinstance(self._console.file, io.StringIO)
        return "".join(f"{line.rstrip()}\n" for line in self._console.file.getvalue().splitlines())

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line, whole."""
        from rich.text import Text

        styled = Text(shown(text), style=style)
        self._console.print(styled, crop=False, no_wrap=True, overflow="ignore", soft_wrap=True)

    def block(self, title: str, lines: Sequence[str], *, end: bool = True) -> None:
        """Add a titled list of wrapped lines; nothing when there are none."""
        from rich.text import Text

        if lines:
            self._titled(title, Text(shown("\n".join(lines)), overflow="fold"), end)

    def pairs(self, title: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Add a titled list of (name, text), the text wrapped beside its name; nothing when there are none."""
        from rich.table import Table
        from rich.text import Text

        if not pairs:
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(max_width=self.width * 2 // 5, overflow="fold")
        grid.add_column(overflow="fold")
        for name, text in pairs:
            grid.add_row(Text(shown(name)), Text(shown(text)))
        self._titled(title, grid, end=True)

    def _titled(self, title: str, body: Table | Text, end: bool) -> None:
        from rich.padding import Padding
        from rich.text import Text

        if title:
            self._console.print(Text(shown(title), style="bold"))
        self._console.print(Padding(body, (0, 0, 0, 2)))
        if end:
            self._console.print()
