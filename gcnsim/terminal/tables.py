"""Tables as plain lines, without colours, that look the same on a terminal, in a pipe and in a file.

A terminal too narrow for a table folds its words; numbers are never cut. Elsewhere a table is as wide as it needs.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Sequence

from gcnsim.terminal.screen import shown

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
