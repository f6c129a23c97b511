"""The answer as a notebook shows it: the short table and the verdict, without scripts or figures."""

from __future__ import annotations

from html import escape

from gcnsim.errors import plural
from gcnsim.report.answer import sentences
from gcnsim.report.answer.columns import TEXT, columns_of
from gcnsim.report.answer.table import fastest
from gcnsim.report.palette import INK, MUTED, RECOMMENDED
from gcnsim.results import WhatIf

_CELL = "padding: 2px 10px 2px 0; white-space: nowrap; text-align: "


def render_notebook(answer: WhatIf, most: int = 12) -> str:
    """An HTML fragment: title, verdict, and the `most` fastest rows; styles are inline, all text is escaped."""
    rows = answer.fastest_first
    kept = fastest(rows, most)
    columns = columns_of(rows)
    sides = ["left" if column.key in TEXT else "right" for column in columns]
    heads = "".join(
        f'<th style="{_CELL}{side}">{escape(column.head.replace("-" + chr(10), "")).replace(chr(10), "<br>")}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    lines = []
    for place, row in enumerate(rows):
        if row not in kept:
            continue
        style = f' style="font-weight: 600; color: {RECOMMENDED}"' if row.recommended else ""
        cells = "".join(
            f'<td style="{_CELL}{side}">{escape(column.cells[place])}</td>'
            for column, side in zip(columns, sides, strict=True)
        )
        lines.append(f"<tr{style}>{cells}</tr>")
    more = len(rows) - len(lines)
    left = f'<p style="color: {MUTED}">{plural(more, "more row")}: str(answer)</p>' if more else ""
    label = sentences.label_of(answer)
    badge = (
        f' <strong style="background: {INK}; color: #fff; padding: 1px 8px">{escape(label)}</strong>' if label else ""
    )
    return (
        f'<div><p style="color: {MUTED}">{escape(sentences.title_of(answer))}{badge}</p>'
        f"<p><strong>{escape(sentences.verdict_of(answer))}</strong></p>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>{left}</div>"
    )
