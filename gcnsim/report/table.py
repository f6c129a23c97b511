"""The result in a terminal: one table, then the bottleneck, the recommendation, the next steps and the provenance.

Legible at 100 columns without colour: numbers are never cut. Where the columns do not fit, the interval moves beneath
its iteration time; where they still do not, the table continues below with the columns that name the row repeated.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gcnsim.report import words
from gcnsim.report.columns import LEAD, Column, columns_of
from gcnsim.report.rows import rows_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

DEFAULT_WIDTH = 100
"""Columns of a pipe that does not say how wide it is."""

_TEXT = ("method", "bandwidth", "setting")
_STYLE = {
    "iteration_s": "bold",
    "interval": "dim",
    "compute_s": "blue",
    "exposed_comm_s": "red",
    "hidden_comm_s": "green",
    "speedup_vs_full_graph": "bold",
}
_RULE = "    \n    \n -- \n    \n    \n    \n    \n    \n"


def render_table(payload: Mapping[str, Any], width: int | None = None, *, color: bool | None = None) -> str:
    """The whole answer as text for a terminal `width` columns wide.

    width None: that of the terminal, DEFAULT_WIDTH in a pipe. color None: only when stdout is a terminal.
    """
    from rich.console import Console

    wide = width or shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    lit = sys.stdout.isatty() if color is None else color
    console = Console(
        file=io.StringIO(),
        width=wide,
        force_terminal=lit,
        color_system="standard" if lit else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        _print_results(console, payload, lit)
        _print_answer(console, payload)
        _print_provenance(console, payload)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def pages(columns: Sequence[Column], width: int, gap: int = 1) -> list[list[Column]]:
    """`columns` split into tables that fit `width`, each starting with the columns that name the row.

    A single column that is too wide even alone gets a page of its own.
    """
    lead = [column for column in columns if column.key in LEAD]
    start = sum(column.width + gap for column in lead)
    split: list[list[Column]] = []
    free = -1
    for column in columns:
        if column.key in LEAD:
            continue
        if column.width > free:
            split.append([*lead])
            free = width - start
        split[-1].append(column)
        free -= column.width + gap
    return split


def folded(columns: Sequence[Column]) -> list[Column]:
    """`columns` with the interval written beneath the iteration time, and shorter, instead of beside it."""
    by_key = {column.key: column for column in columns}
    time, interval = by_key["iteration_s"], by_key["interval"]
    spans = [span.strip("[]").replace(", ", "-") for span in interval.cells]
    cells = tuple(f"{mean}\n{span}" for mean, span in zip(time.cells, spans, strict=True))
    merged = Column("iteration_s", f"{time.head}\nlow-high", cells)
    return [merged if column is time else column for column in columns if column is not interval]


def _print_results(console: Console, payload: Mapping[str, Any], lit: bool) -> None:
    columns = columns_of(rows_of(payload))
    for gap, candidates in ((2, columns), (1, columns), (2, folded(columns)), (1, folded(columns))):
        split = pages(candidates, console.width, gap)
        if len(split) == 1:
            break
    for page in split:
        console.print(_table(page, gap, lit), crop=False)
        console.print()


def _table(columns: Sequence[Column], gap: int, lit: bool) -> Table:
    from rich.box import SIMPLE_HEAD, Box
    from rich.table import Table
    from rich.text import Text

    box = SIMPLE_HEAD if lit else Box(_RULE, ascii=True)
    table = Table(box=box, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0), header_style="bold")
    for column in columns:
        side: Literal["left", "right"] = "left" if column.key in _TEXT else "right"
        table.add_column(Text(column.head), justify=side, no_wrap=True, min_width=column.width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(
            *(Text(cell, style=_STYLE.get(column.key, "")) for column, cell in zip(columns, cells, strict=True))
        )
    return table


def _print_answer(console: Console, payload: Mapping[str, Any]) -> None:
    limits = words.bottlenecks_of(payload)
    _print_pairs(console, "Bottleneck", [(limit.name, ", ".join(limit.rows)) for limit in limits])
    _print_lines(console, "Recommendation", words.recommendation_of(payload))
    steps = words.steps_of(payload)
    said = [(step.knob, f"{step.before} -> {step.after}: {step.iteration} ({step.change})") for step in steps]
    _print_pairs(console, "Next steps", said)
    _print_pairs(console, words.target_title_of(payload), words.target_of(payload))
    _print_pairs(console, "Analytic bounds of the long-run mean", words.bounds_of(payload))


def _print_provenance(console: Console, payload: Mapping[str, Any]) -> None:
    _print_pairs(console, "Provenance", words.provenance_of(payload))
    assumed = words.assumptions_of(payload)
    said = [(item.name, f"{item.value} ({item.range}): {item.basis}") for item in assumed if item.covered]
    _print_pairs(console, "Assumptions in the interval", said)
    others = [item.name for item in assumed if not item.covered]
    _print_lines(
        console,
        "Assumed besides, not in the interval (--json and --html give values)",
        [", ".join(others)] * bool(others),
    )
    _print_lines(console, "Warnings", words.warnings_of(payload))


def _print_pairs(console: Console, title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """A titled list of (name, text), the text wrapped beside its name; nothing when there are none."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=console.width * 2 // 5, overflow="fold")
    grid.add_column(overflow="fold")
    for name, text in pairs:
        grid.add_row(Text(name), Text(text))
    _print_block(console, title, grid, pairs)


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """A titled list of wrapped lines; nothing when there are none."""
    from rich.text import Text

    _print_block(console, title, Text("\n".join(lines), overflow="fold"), lines)


def _print_block(console: Console, title: str, body: Table | Text, holds: Sequence[object]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if holds:
        console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 0, 2)))
        console.print()
