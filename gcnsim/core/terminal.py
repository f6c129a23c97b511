"""Text on a terminal: tables and a live line, drawn by rich, which is imported when there is something to draw.

All text goes to the screen through here, and control sequences are made visible. Names of files, of members of archives
and of their content come from outside. One with an escape sequence could move the cursor, rename the window, or fill
the clipboard; here it is printed as `\\x1b`.

`LiveLine` is one line that the next replaces, and that is cleared at the end. `aligned` makes tables as plain lines,
without colours, that look the same on a terminal, in a pipe and in a file. A terminal too narrow for a table folds its
words; numbers are never cut. Elsewhere a table is as wide as it needs.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

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


WIDTH: Final = 32
"""Characters of a full bar."""


class LiveLine:
    """What is said on `stream`: nothing where that is not a terminal.

    A reader that goes away ends the telling, not the work. watched: whether anybody sees the line.
    """

    def __init__(self, stream: TextIO) -> None:
        self.watched = stream.isatty()
        self._stream = stream
        self._live: Live | None = None

    def show(self, text: str, share: float | None = None) -> None:
        """Replace the line by `text`, cut at the terminal's edge; share: what is done, in [0, 1], as a bar."""
        if not self.watched:
            return
        try:
            if self._live is None:
                self._live = _live(self._stream)
                self._live.start()
            self._live.update(_drawn(text, share), refresh=True)
        except (OSError, ValueError):
            self.watched, self._live = False, None

    def clear(self) -> None:
        """Wipe the line."""
        if self._live is not None:
            with suppress(OSError, ValueError):
                self._live.stop()
            self._live = None


def _live(stream: TextIO) -> Live:
    from rich.console import Console
    from rich.live import Live

    class Terminal(Console):
        """A terminal whose cursor stays: what is killed could not give it back."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

        def on_broken_pipe(self) -> None:
            self.quiet = True

    # Without a thread that draws again: it would take time from the work, and hinder forks.
    console = Terminal(file=raw_of(stream), force_jupyter=False)
    return Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)


def _drawn(text: str, share: float | None) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Text(shown(text), no_wrap=True, overflow="ellipsis")
    if share is None:
        return line
    grid = Table.grid(padding=(0, 1))
    grid.add_row(line, ProgressBar(total=1.0, completed=share, width=WIDTH), f"{100 * share:3.0f} %")
    return grid


LEAST = 16
"""Characters that a folded column of words keeps at least."""

_KEPT = "\u2800"
"""A blank that rich leaves at the end of what stands to the right."""

UNLIMITED = 1 << 16
"""Characters of a line that is never folded."""


def aligned(
    rows: Sequence[Sequence[str]],
    heads: Sequence[str] = (),
    *,
    left: int | Sequence[bool] = 1,
    indent: int = 0,
    gap: int = 2,
    width: int | None = None,
) -> list[str]:
    """The lines of `rows` beneath their `heads`, which may have several lines: words to the left, numbers to the right.

    Nothing where there are no rows.
    left: of each column, whether it holds words; or how many at the front do. width: the most characters of a line;
    None: those of the terminal.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return []
    rows = [[shown(cell) for cell in row] for row in rows]
    lines = [*([heads] if heads else []), *rows]
    words = [k < left for k in range(len(rows[0]))] if isinstance(left, int) else left
    table = Table(box=None, show_header=bool(heads), show_edge=False, pad_edge=False, padding=(0, gap, 0, 0))
    least = indent
    for k, word in enumerate(words):
        natural = max(cell_len(part) for line in lines for part in line[k].split("\n"))
        # The first column names the row.
        kept = min(natural, LEAST) if word and k else natural
        least += kept + gap
        head = Text(heads[k]) if heads else ""
        table.add_column(
            head, justify="left" if word else "right", vertical="top", min_width=kept, overflow="fold", header_style=""
        )
    for row in rows:
        cells = zip(row, words, strict=True)
        table.add_row(*(Text(cell if word else cell.replace(" ", _KEPT)) for cell, word in cells))
    room = max(least, terminal_width() if width is None else width) - indent
    console = Console(file=io.StringIO(), width=room, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        console.print(table)
    return [(" " * indent + line.replace(_KEPT, " ")).rstrip() for line in capture.get().splitlines()]


def terminal_width() -> int:
    """Characters of a line on the terminal that standard output is, or of one that is never folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED
