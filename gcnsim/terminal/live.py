"""One line on a terminal that is replaced by the next and wiped at the end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from gcnsim.terminal.screen import raw_of, shown

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

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
