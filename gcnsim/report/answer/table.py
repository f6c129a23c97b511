"""The answer in a terminal, short first: a table with one line per row, the recommendation, three next steps.

`explain` adds the reasons, all steps, and everything that the numbers are based on. What an option asked for (a
measured time, energy, a target) is always printed.

The text is legible without colour at every width. If the columns do not fit, long words are folded. The least important
columns are left out and named below the table. `wide` prints them all and `columns` the requested ones, at any width. A
notebook shows the short table and the summary, without scripts or figures. Texts on energy are also those of pages.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence

from gcnsim.core.errors import plural
from gcnsim.core.units import ELECTRICITY, ENERGY, POWER, range_text
from gcnsim.planning.capacity_goal import money
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer import sentences
from gcnsim.report.answer.columns import TextColumn, checked, columns_of, shown_keys
from gcnsim.report.answer.layout import Page, TableLayout, laid_out, lines_of, needed
from gcnsim.report.answer.rows import checked_order, range_of, row_labels, shown_rows, varies
from gcnsim.report.figures.tornado import tornado_data, tornado_lines
from gcnsim.report.page.templates import rendered
from gcnsim.results import COLUMNS, EnergyReport, EnergyRow, Form, Row, WhatIf

DEFAULT_WIDTH = 100
"""The width assumed for a pipe."""

_HELD = "\u2800"
"""A non-breaking space."""


def render_table(
    answer: WhatIf,
    width: int | None = None,
    *,
    color: bool | None = None,
    wide: bool = False,
    columns: Sequence[str] | None = None,
    explain: bool = False,
    sort: str | None = None,
    top: int | None = None,
) -> str:
    """The answer as text for a terminal `width` columns wide.

    width None: the terminal's width, DEFAULT_WIDTH in a pipe. color None: only if stdout is a terminal. wide: all
    columns. columns: these, by their names in `COLUMNS`. explain: everything, not only what decides. sort, top: as in
    `shown_rows`. Raises ScenarioError for an unknown column.
    """
    keys = None if columns is None else checked(columns)
    rows = shown_rows(answer.fastest_first, None if sort is None else checked_order(sort), top)
    page = Page(
        width or shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns,
        lit=sys.stdout.isatty() if color is None else color,
    )
    _print_results(page, answer, rows, shown_keys(answer.fastest_first, wide=True) if wide and keys is None else keys)
    _print_recommendation(page, answer, explain)
    _print_asked(page, answer)
    page.block("Warnings", provenance.warnings_of(answer))
    if explain:
        page.pairs("No effect", sentences.no_effect_of(answer))
        lines = tornado_lines(tornado_data(answer), page.width)
        _print_whole(page, "How much each assumption changes the time", lines)
        _print_provenance(page, answer)
    else:
        _print_note(page, sentences.more_of(answer))
    return page.text


def fastest(rows: Sequence[Row], most: int) -> list[Row]:
    """The first `most` of `rows`, always including the recommended one."""
    best = [row for row in rows if row.recommended]
    return [*best, *[row for row in rows if not row.recommended][: most - len(best)]]


def table_layout(rows: Sequence[Row], width: int) -> TableLayout:
    """The default columns of `rows` that fit `width`."""
    return laid_out(lambda gap, brief: columns_of(rows, gap=gap, brief=brief), width)


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


def _print_results(page: Page, answer: WhatIf, rows: Sequence[Row], keys: Sequence[str] | None) -> None:
    layout = TableLayout(columns_of(rows, keys), 2, ()) if keys is not None else table_layout(rows, page.width)
    head, lines = lines_of(layout.columns, [row.recommended for row in rows], layout.gap)
    length = max(needed(layout.columns, layout.gap), *map(len, head))
    title = len(sentences.title_of(answer)) + 2 + len(sentences.label_of(answer))
    for line in _title(answer, min(page.width, max(length, title, 60))):
        page.line(line, "bold")
    for line in head:
        page.line(line, "dim")
    for line, row in zip(lines, rows, strict=True):
        page.line(line, "bold green" if row.recommended else "")
    if len(rows) < len(answer.rows):
        more = plural(len(answer.rows) - len(rows), "more row")
        page.line(f"  ({more}; --top N prints as many as you like, --csv writes all)", "dim")
    shown_keys = {column.key for column in layout.columns}
    for note in _notes(answer, rows, shown_keys):
        _print_note(page, note)
    if layout.left_out:
        _print_note(page, f"too wide for {', '.join(layout.left_out)}; see --wide")
    if legend := legend_of(rows, layout.columns):
        page.pairs("", legend)
    else:
        page.line()


def legend_of(rows: Sequence[Row], columns: Sequence[TextColumn]) -> list[tuple[str, str]]:
    """What the explained `columns` of a table of `rows` mean, and the knobs in it: a line each, as they are headed."""
    heads = {shown.key: shown.head.replace("\n", " ") for shown in columns}
    if "knobs" in heads:
        named = {key for row in rows for key in row.knob_words()}
        heads |= {key: COLUMNS[key].head for key in named & COLUMNS.keys()}
        heads |= {"cache_fraction": COLUMNS["cache_fraction"].head} if "cache" in named else {}
    explained = [column for key, column in COLUMNS.items() if column.explained and key in heads]
    return [(heads[column.key], column.says.partition(";")[0].removesuffix(".")) for column in explained]


def _notes(answer: WhatIf, rows: Sequence[Row], keys: Collection[str]) -> Iterator[str]:
    """Explanations for columns `keys` of these rows that could look contradictory."""
    priced = varies(answer.rows, "cost_per_hour") and any(COLUMNS[key].form is Form.MONEY for key in keys)
    borrowed = sorted({row.price_of for row in rows if row.price_of}) if priced else []
    if borrowed:
        yield f"prices: per GPU of {', '.join(borrowed)}; no price of this very machine is known"
    if {"shares", "limited_by"} <= set(keys) and any(sentences.waits_longer(row) for row in rows):
        yield "GPU compute is named if each link alone saves less, even if waiting for all of them takes longer"


def _print_note(page: Page, note: str) -> None:
    """A note in brackets below the table."""
    for line in textwrap.wrap(f"({note})", page.width - 3, initial_indent="  ", subsequent_indent="   "):
        page.line(line, "dim")


FIRST_STEPS = 3
"""The next steps that a short answer has."""


def _print_recommendation(page: Page, answer: WhatIf, explain: bool) -> None:
    page.block("Recommendation", [sentences.verdict_of(answer)], end=False)
    steps = sentences.steps_of(answer)
    if explain:
        page.pairs("", sentences.reasons_of(answer))
    else:
        # The other transport may change the time manyfold.
        lines = [answer.provenance.between_gpus_basis or "", sentences.accuracy_of(answer)]
        lines += [f"{name}: {text}" for name, text in sentences.asked_of(answer) if text]
        page.block("", [provenance.plain(line) for line in lines if line], end=False)
        steps = [step for step in steps if step.allowed][:FIRST_STEPS]
    page.pairs("Next steps", [(step.move, f"{step.iteration}, {step.change}") for step in steps])


def _print_asked(page: Page, answer: WhatIf) -> None:
    """What only some questions ask for."""
    page.pairs("Other machines", sentences.alternatives_of(answer))
    page.pairs("Measured beside predicted", sentences.measured_of(answer))
    page.block("Other partitions", sentences.partitions_of(answer))
    page.pairs(provenance.target_title_of(answer), provenance.target_of(answer))
    page.pairs("Energy at the machine, without its building", energy_of(answer))


def _print_provenance(page: Page, answer: WhatIf) -> None:
    page.pairs("Analytic bounds of the long-run mean", provenance.bounds_of(answer))
    page.pairs("Provenance", provenance.provenance_of(answer))
    assumed = provenance.assumptions_of(answer)
    items = [(item.name, f"{item.value} ({item.range}): {item.basis}") for item in assumed if item.covered]
    page.pairs("Assumptions in the interval", items)
    others = [(item.name, f"{item.value} ({item.range}): {item.basis}") for item in assumed if not item.covered]
    page.pairs("Also assumed, not in the interval", others)
    page.block("Measured figures", provenance.measured_of(answer))


def _print_whole(page: Page, title: str, lines: Sequence[str]) -> None:
    """A titled list of lines that are never wrapped; nothing for an empty list."""
    if lines:
        page.line(title, "bold")
        for line in lines:
            page.line(f"  {line}", "")
        page.line()


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
            (column.head.replace("-\n", "").split("\n"), "left" if column.column.form.left else "right")
            for column in columns
        ],
        rows=shown,
        more=plural(more, "more row") if more else "",
    )


def energy_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Energy of each row, beside its label, and what was assumed; empty if not asked."""
    report = answer.energy
    if report is None:
        return []
    labels = row_labels(answer, apart=report.recommended is not None)
    rows = [*report.rows, *([] if report.recommended is None else [report.recommended])]
    pairs = [(label, energy_text(row, report)) for label, row in zip(labels, rows, strict=True)]
    return [*pairs, *assumed_power(report)]


def assumed_power(report: EnergyReport) -> list[tuple[str, str]]:
    """What is assumed of the power, with its ranges."""
    words = [f"{item.name} {item.value} ({range_of(item)})" for item in report.assumptions]
    return [("assumed", ", ".join(words))] if words else []


def energy_text(row: EnergyRow, report: EnergyReport) -> str:
    """Energy of an iteration and of the training, and its cost; or why they are unknown."""
    if row.joules is None or row.watts is None:
        return row.unknown or "not known"
    ends = range_text(row.joules_low, row.joules_high, ENERGY.shown_as)
    text = f"{ENERGY.shown_as(row.joules)}{ends} an iteration, {POWER.shown_as(row.watts)} on average"
    if row.kwh is None:
        cost = row.cost_per_1000_iterations
        return text if cost is None else f"{text}, {money(cost)} {report.currency} per 1,000 iterations"
    ends = range_text(row.kwh_low, row.kwh_high, ELECTRICITY.shown_as)
    if row.kwh_low is not None and row.kwh_high is None:
        ends = f" ({ELECTRICITY.shown_as(row.kwh_low)} to practically never)"
    paid = "" if row.cost is None else f", {money(row.cost)} {report.currency}"
    return f"{text}; until done {ELECTRICITY.shown_as(row.kwh)}{ends}{paid}"
