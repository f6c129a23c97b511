"""The answer in a terminal: a table with one line per row, then the summary, the next steps and the provenance.

It is legible without colour at every width. If the columns do not fit, long words are folded. The least important
columns are left out and named below the table. `wide` prints them all and `columns` the requested ones, at any width. A
notebook shows the short table and the summary, without scripts or figures.
"""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from gcnsim.errors import plural
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer import sentences
from gcnsim.report.answer.columns import MACHINE, MEANINGS, SHOWN, TEXT, checked, columns_of, uninformative_costs
from gcnsim.report.answer.layout import TableLayout, laid_out, lines_of, needed
from gcnsim.report.answer.rows import checked_order, shown_rows, varies
from gcnsim.report.figures.tornado import tornado_data, tornado_lines
from gcnsim.report.page.templates import rendered
from gcnsim.results import NO_RANGE, Row, WhatIf
from gcnsim.terminal import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

DEFAULT_WIDTH = 100
"""The width assumed for a pipe."""

_JOINED = (
    *("interval", "iteration_s", "setting", "tau", "epsilon", "rate", "cache_fraction"),
    *("cost_per_hour", "cost_per_iteration", "cost_per_epoch"),
)
WIDE = (*SHOWN, *(key for key in MEANINGS if key not in (*SHOWN, *_JOINED)))
"""All columns except those whose values are in other columns too."""

_HELD = "\u2800"
"""A non-breaking space."""


def render_table(
    answer: WhatIf,
    width: int | None = None,
    *,
    color: bool | None = None,
    wide: bool = False,
    columns: Sequence[str] | None = None,
    provenance: bool = False,
    assumptions: bool = False,
    sort: str | None = None,
    top: int | None = None,
) -> str:
    """The whole answer as text for a terminal `width` columns wide.

    width None: the terminal's width, DEFAULT_WIDTH in a pipe. color None: only if stdout is a terminal. wide: all
    columns. columns: these, by their names in `MEANINGS`. provenance: the complete provenance instead of three lines.
    assumptions: the effect of each assumption on the time. sort, top: as in `shown_rows`. Raises ScenarioError for an
    unknown column.
    """
    keys = None if columns is None else checked(columns)
    rows = shown_rows(answer.fastest_first, None if sort is None else checked_order(sort), top)
    console = _console(width, sys.stdout.isatty() if color is None else color)
    with console.capture() as capture:
        _print_results(console, answer, rows, wide_keys(answer) if wide and keys is None else keys)
        _print_answer(console, answer)
        if assumptions:
            _print_whole(
                console, "How much each assumption changes the time", tornado_lines(tornado_data(answer), console.width)
            )
        _print_provenance(console, answer, provenance)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def render_short(answer: WhatIf, width: int = DEFAULT_WIDTH, most: int = 8) -> str:
    """The answer in a few lines: its `most` fastest rows as a table, and the summary."""
    rows = answer.fastest_first
    layout, best_rows = table_layout(rows, width), fastest(rows, most)
    head, lines = lines_of(layout.columns, [row.recommended for row in rows], layout.gap)
    body = [line for line, row in zip(lines, rows, strict=True) if row in best_rows]
    left = [f"  ({plural(len(rows) - len(body), 'more row')})"] * (len(rows) > len(body))
    return "\n".join([*_title(answer, width), *head, *body, *left, sentences.verdict_of(answer)])


def fastest(rows: Sequence[Row], most: int) -> list[Row]:
    """The first `most` of `rows`, always including the recommended one."""
    best = [row for row in rows if row.recommended]
    return [*best, *[row for row in rows if not row.recommended][: most - len(best)]]


def table_layout(rows: Sequence[Row], width: int) -> TableLayout:
    """The default columns of `rows` that fit `width`."""
    return laid_out(lambda gap, brief: columns_of(rows, gap=gap, brief=brief), width)


def wide_keys(answer: WhatIf) -> list[str]:
    """The columns of a wide table that are not empty in all rows."""
    rows = answer.fastest_first
    empty = {key for key in WIDE if all(getattr(row, key, "said") in (None, "") for row in rows)}
    empty |= uninformative_costs(rows)
    if all(row.vs_recommended_low is None for row in rows):
        empty.add("vs_recommended")
    if all(row.iterations_per_epoch == 1 for row in rows):
        empty |= {"iterations_per_epoch", "epoch_s"}
    return [key for key in WIDE if key not in empty]


def _console(width: int | None, lit: bool) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width or shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns,
        force_terminal=lit,
        color_system="standard" if lit else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _title(answer: WhatIf, width: int) -> list[str]:
    """The title in as many lines as needed, with the certainty at the right end of the first line."""
    label, title = sentences.label_of(answer), sentences.title_of(answer)
    # Lines end at commas.
    parts = ", ".join(part.replace(" ", _HELD) for part in title.split(", "))
    left, *more = _within(parts, max(20, width - len(label) - 2), width)
    return [f"{left}{' ' * max(2, width - len(left) - len(label))}{label}".rstrip(), *more]


def _within(text: str, first: int, width: int) -> list[str]:
    """`text` in lines of at most `width` characters, the first of at most `first`."""
    start, *_ = textwrap.wrap(text, first, break_on_hyphens=False) or [""]
    rest = textwrap.wrap(text[len(start) :], width, break_on_hyphens=False)
    return [line.replace(_HELD, " ") for line in (start, *rest)]


def _print_results(console: Console, answer: WhatIf, rows: Sequence[Row], keys: Sequence[str] | None) -> None:
    layout = TableLayout(columns_of(rows, keys), 2, ()) if keys is not None else table_layout(rows, console.width)
    head, lines = lines_of(layout.columns, [row.recommended for row in rows], layout.gap)
    length = max(needed(layout.columns, layout.gap), *map(len, head))
    title = len(sentences.title_of(answer)) + 2 + len(sentences.label_of(answer))
    for line in _title(answer, min(console.width, max(length, title, 60))):
        _print_line(console, line, "bold")
    for line in head:
        _print_line(console, line, "dim")
    for line, row in zip(lines, rows, strict=True):
        _print_line(console, line, "bold green" if row.recommended else "")
    if len(rows) < len(answer.rows):
        more = plural(len(answer.rows) - len(rows), "more row")
        _print_line(console, f"  ({more}; --top N prints as many as you like, --csv writes all)", "dim")
    if any(row.iteration_s_low is None for row in rows):
        _print_line(console, f"  (no 90 % range: {NO_RANGE})", "dim")
    shown_keys = {column.key for column in layout.columns}
    for note in _notes(answer, rows, shown_keys):
        _print_note(console, note)
    if layout.left_out:
        _print_note(console, f"too wide for {', '.join(layout.left_out)}; see --wide")
    console.print()


def _notes(answer: WhatIf, rows: Sequence[Row], keys: Collection[str]) -> Iterator[str]:
    """Explanations for columns `keys` of these rows that could look contradictory."""
    if "speedup_vs_full_graph" in keys and any(varies(answer.rows, key) for key in MACHINE):
        yield "speed-up: over full-graph training on the same machine"
    if {"shares", "limited_by"} <= set(keys) and any(sentences.waits_longer(row) for row in rows):
        yield "GPU compute limits where each link alone brings less, though waiting for them all takes longer"


def _print_note(console: Console, note: str) -> None:
    """A note in brackets below the table."""
    for line in textwrap.wrap(f"({note})", console.width - 3, initial_indent="  ", subsequent_indent="   "):
        _print_line(console, line, "dim")


def _print_line(console: Console, line: str, style: str) -> None:
    """One complete line, even if it is longer than the terminal."""
    from rich.text import Text

    console.print(Text(shown(line), style=style), crop=False, no_wrap=True, overflow="ignore", soft_wrap=True)


def _print_answer(console: Console, answer: WhatIf) -> None:
    _print_lines(console, "Recommendation", [sentences.verdict_of(answer)], end=False)
    _print_pairs(console, "", sentences.reasons_of(answer))
    _print_pairs(console, "Other machines", sentences.alternatives_of(answer))
    steps = sentences.steps_of(answer)
    lines = [(step.move, f"{step.iteration}, {step.change}") for step in steps]
    _print_pairs(console, "Measured beside predicted", sentences.measured_of(answer))
    _print_pairs(console, "Next steps", lines)
    _print_pairs(console, "No effect", sentences.no_effect_of(answer))
    _print_lines(console, "Other partitions", sentences.partitions_of(answer))
    _print_pairs(console, provenance.target_title_of(answer), provenance.target_of(answer))


def _print_provenance(console: Console, answer: WhatIf, whole: bool) -> None:
    _print_lines(console, "Warnings", provenance.warnings_of(answer))
    if not whole:
        sources = sentences.sources_of(answer)
        room = console.width - max(len(source.name) for source in sources) - 4
        items = [(source.name, sentences.clauses_within(source.clauses, room)) for source in sources]
        _print_pairs(console, "Provenance (more: --provenance, --assumptions)", items)
        return
    _print_pairs(console, "Analytic bounds of the long-run mean", provenance.bounds_of(answer))
    _print_pairs(console, "Provenance", provenance.provenance_of(answer))
    assumed = provenance.assumptions_of(answer)
    items = [(item.name, f"{item.value} ({item.range}): {item.basis}") for item in assumed if item.covered]
    _print_pairs(console, "Assumptions in the interval", items)
    others = [(item.name, f"{item.value} ({item.range}): {item.basis}") for item in assumed if not item.covered]
    _print_pairs(console, "Also assumed, not in the interval", others)
    _print_lines(console, "Measured figures", provenance.measured_of(answer))


def _print_pairs(console: Console, title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """A titled list of (name, text), with wrapped texts; nothing for an empty list."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=console.width * 2 // 5, overflow="fold")
    grid.add_column(overflow="fold")
    for name, text in pairs:
        grid.add_row(Text(shown(name)), Text(shown(text)))
    _print_block(console, title, grid, pairs)


def _print_lines(console: Console, title: str, lines: Sequence[str], end: bool = True) -> None:
    """A titled list of wrapped lines; nothing for an empty list."""
    from rich.text import Text

    _print_block(console, title, Text(shown("\n".join(lines)), overflow="fold"), lines, end)


def _print_whole(console: Console, title: str, lines: Sequence[str]) -> None:
    """A titled list of lines that are never wrapped; nothing for an empty list."""
    if lines:
        _print_line(console, title, "bold")
        for line in lines:
            _print_line(console, f"  {line}", "")
        console.print()


def _print_block(console: Console, title: str, body: Table | Text, holds: Sequence[object], end: bool = True) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if holds:
        if title:
            console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 0, 2)))
        if end:
            console.print()


def render_notebook(answer: WhatIf, most: int = 12) -> str:
    """An HTML fragment: title, summary, and the `most` fastest rows; styles are inline, all text is escaped."""
    rows = answer.fastest_first
    best_rows = fastest(rows, most)
    columns = columns_of(rows)
    cells = zip(rows, zip(*(column.cells for column in columns), strict=True), strict=True)
    shown = [(texts, row.recommended) for row, texts in cells if row in best_rows]
    more = len(rows) - len(shown)
    return rendered(
        "notebook.html.j2",
        title=sentences.title_of(answer),
        label=sentences.label_of(answer),
        verdict=sentences.verdict_of(answer),
        heads=[
            (column.head.replace("-\n", "").split("\n"), "left" if column.key in TEXT else "right")
            for column in columns
        ],
        rows=shown,
        more=plural(more, "more row") if more else "",
    )
