"""The answer as a notebook shows it: the short table and the verdict, without scripts or figures."""

from __future__ import annotations

from gcnsim.errors import plural
from gcnsim.report.answer import sentences
from gcnsim.report.answer.columns import TEXT, columns_of
from gcnsim.report.answer.table import fastest
from gcnsim.report.page.templates import rendered
from gcnsim.results import WhatIf


def render_notebook(answer: WhatIf, most: int = 12) -> str:
    """An HTML fragment: title, verdict, and the `most` fastest rows; styles are inline, all text is escaped."""
    rows = answer.fastest_first
    kept = fastest(rows, most)
    columns = columns_of(rows)
    cells = zip(rows, zip(*(column.cells for column in columns), strict=True), strict=True)
    shown = [(texts, row.recommended) for row, texts in cells if row in kept]
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
