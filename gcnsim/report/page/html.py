"""The answer as one offline page: the verdict, figures, table, provenance and how to read them.

A page is as wide as its window: on a phone a row of a table is a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcnsim.report.answer import provenance, sentences
from gcnsim.report.answer.columns import MEANINGS, Column, columns_of
from gcnsim.report.answer.table import wide_keys
from gcnsim.report.figures.breakdown import MOST_BARS, breakdown_data, breakdown_figure
from gcnsim.report.figures.curves import Curve, curve_data, curve_figure, styled
from gcnsim.report.figures.tornado import tornado_data
from gcnsim.report.page.heat import IDLE, heats_of
from gcnsim.report.page.templates import Sheet, write_page
from gcnsim.results import Row, WhatIf

_KINDS = dict.fromkeys(("method", "bandwidth", "device", "time"), "k") | dict.fromkeys(("knobs", "limited_by"), "t")


def write_html(path: str | Path, answer: WhatIf, curve: Curve) -> None:
    """Write the page of `answer` and `curve` to `path`.

    Raises FileError when the file cannot be written.
    """
    rows = answer.fastest_first
    columns = columns_of(rows)
    drawn, bars = curve_data(curve), breakdown_data(answer, MOST_BARS)
    write_page(
        path,
        "answer.html.j2",
        title=sentences.title_of(answer),
        label=sentences.label_of(answer),
        heading=sentences.verdict_of(answer),
        warned=provenance.warnings_of(answer),
        reasons=sentences.reasons_of(answer),
        steps=sentences.steps_of(answer),
        cards=_cards(answer),
        breakdown=breakdown_figure(bars),
        parts=bars.legend,
        every_breakdown=breakdown_figure(breakdown_data(answer)) if len(rows) > MOST_BARS else None,
        bandwidth=curve_figure(drawn),
        lines=styled(drawn.series),
        heats=heats_of(answer),
        idle=IDLE,
        tornado=tornado_data(answer),
        most=MOST_BARS,
        results=_settings(columns, rows, "Settings, the fastest first"),
        every_column=_settings(columns_of(rows, wide_keys(answer)), rows, "Every column"),
        reading=[(one_line(column.head), MEANINGS[column.key].says) for column in columns],
        **_sources(answer),
    )


def _cards(answer: WhatIf) -> list[tuple[str, list[tuple[str, str]]]]:
    """What else is said beside what the answer rests on: titles, and names with texts; none where nothing is."""
    return [
        ("Other machines", sentences.alternatives_of(answer)),
        ("Measured beside predicted", sentences.measured_of(answer)),
        ("Other partitions", [("partitions", text) for text in sentences.partitions_of(answer)]),
        ("No effect", sentences.no_effect_of(answer)),
        (provenance.target_title_of(answer), provenance.target_of(answer)),
    ]


def _settings(columns: Sequence[Column], rows: Sequence[Row], caption: str) -> Sheet:
    heads = [(one_line(column.head), _KINDS.get(column.key, "n")) for column in columns]
    cells = [tuple(map(one_cell, row)) for row in zip(*(column.cells for column in columns), strict=True)]
    return Sheet(caption, heads, cells, [place for place, row in enumerate(rows) if row.recommended])


def _sources(answer: WhatIf) -> dict[str, Any]:
    """Where the numbers come from."""
    heads = ("assumption", "value", "range", "in the interval", "basis")
    assumed = [
        (item.name, item.value, item.range, "yes" if item.covered else "no", item.basis)
        for item in provenance.assumptions_of(answer)
    ]
    bounds = [("row", "t"), ("of the long-run mean", "t")]
    return {
        "provenance": provenance.provenance_of(answer),
        "bounds": Sheet("Analytic bounds", bounds, provenance.bounds_of(answer)),
        "assumptions": Sheet("Numbers that were assumed", [(head, "t") for head in heads], assumed),
        "measured": provenance.measured_of(answer),
    }


def one_cell(text: str) -> str:
    """A cell without the blanks that align it in a terminal."""
    return " ".join(text.replace("| ", "|").split())


def one_line(head: str) -> str:
    """A heading without its line breaks."""
    return head.replace("-\n", "").replace("|\n", " | ").replace("\n", " ")
