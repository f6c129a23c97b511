"""The lines of an answer on a terminal: wrapped between words, long words folded, styled where styles are shown."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcnsim.core.terminal import shown

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


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
