"""Parts of the page: figures with their legends, tables, the heat map, the tornado, and what stands behind a switch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from gcnsim.report.page.figures import MOST_BARS, BandwidthCurve
from gcnsim.report.page.heat import IDLE, Heat, HeatRow
from gcnsim.report.page.plots import styled
from gcnsim.report.page.tornado import Swing, Tornado
from gcnsim.report.palette import COMPUTE, EXPOSED, OTHER, shade
from gcnsim.units import format_seconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_CONFIG = {"responsive": True, "displayModeBar": False}
_DARK = 0.45
"""Shares from here on have white figures on their colour."""

FULL: Final = 0.95
"""A link or stage this busy sets the pace."""


def figure(name: str, drawn: Figure, legend: str, caption: str, *, waits: bool = False) -> str:
    """A figure with its legend and caption; waits: drawn when the switch that it stands behind is opened."""
    from plotly.io import to_json

    spec = _script_safe(to_json(drawn, validate=False))
    plot = f'Plotly.newPlot("{name}", f.data, f.layout, {json.dumps(_CONFIG)});'
    if waits:
        plot = (
            f'var d = document.getElementById("{name}").closest("details"); var done = false; '
            f'd.addEventListener("toggle", function () {{ if (!done) {{ done = true; {plot} }} }});'
        )
    return (
        f'<figure>\n{legend}<div id="{name}" class="plot" role="img" '
        f'aria-label="{escape(caption)} The table has the numbers."></div>\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>\n"
        f"<script>(function () {{ var f = {spec}; {plot} }})();</script>\n"
    )


def switch(title: str, inside: str) -> str:
    """What is shown when asked for."""
    return f"<details>\n<summary>{escape(title)}</summary>\n{inside}</details>\n"


def _script_safe(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def breakdown_legend() -> str:
    """The parts of a bar."""
    hatched = f"background: repeating-linear-gradient(135deg, {EXPOSED} 0 2px, #FBE3D3 2px 6px)"
    return _legend(
        [
            (_swatch(f"background: {COMPUTE}"), "compute"),
            (_swatch(f"background: {EXPOSED}"), "exposed communication"),
            (_swatch(f"background: {OTHER}"), "other"),
            (_swatch(hatched), "hidden communication (in parallel)"),
        ]
    )


def bandwidth_legend(curve: BandwidthCurve) -> str:
    """The lines, in their colours and dashes."""
    items = []
    for series, (color, dash, _) in styled(curve.series):
        dashes = "" if dash == "solid" else f' stroke-dasharray="{dash.replace("px", "")}"'
        line = f'<line x1="0" y1="6" x2="34" y2="6" stroke="{color}" stroke-width="3"{dashes}/>'
        name = f"{series.name} (recommended)" if series.recommended else series.name
        items.append((f'<svg class="line" width="34" height="12" aria-hidden="true">{line}</svg>', name))
    return _legend(items)


def _swatch(style: str) -> str:
    return f'<span class="swatch" style="{style}"></span>'


def _legend(items: Sequence[tuple[str, str]]) -> str:
    return '<ul class="legend">' + "".join(f"<li>{mark} {escape(name)}</li>" for mark, name in items) + "</ul>\n"


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    kinds: Sequence[str],
    marked: Sequence[bool] = (),
) -> str:
    """A table; the kind of a column is t (text), k (a key, never wrapped) or n (a number, to the right).

    marked: of each row, whether it is the recommended one.
    """
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(text)}</th>' for kind, text in zip(kinds, heads, strict=True)
    )
    marks = marked or [False] * len(rows)
    body = "".join(
        f"<tr{_MARK if mark else ''}>{_cells(row, kinds, heads)}</tr>\n" for row, mark in zip(rows, marks, strict=True)
    )
    name = escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table class="rows">'
        f"<caption>{name}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


_MARK = ' class="chosen"'


def _cells(row: Sequence[str], kinds: Sequence[str], heads: Sequence[str]) -> str:
    return "".join(
        f'<td class="{kind}" data-head="{escape(head)}">{escape(text).replace("_", "_<wbr>")}</td>'
        for kind, head, text in zip(kinds, heads, row, strict=True)
    )


def heat_map(heat: Heat) -> str:
    """Shares as a table of coloured cells; where there are many rows, the busiest first and the others by a switch."""
    if len(heat.rows) <= MOST_BARS:
        return _heat_table(heat, heat.rows)
    busiest = sorted(heat.rows, key=lambda row: (not row.marked, -row.busiest))[:MOST_BARS]
    shown = [row for row in heat.rows if row in busiest]
    return _heat_table(heat, shown) + switch(f"Show all {len(heat.rows)} {heat.of}s", _heat_table(heat, heat.rows))


def _heat_table(heat: Heat, rows: Sequence[HeatRow]) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in heat.heads)
    body = "".join(f"<tr{_MARKED if row.marked else ''}>{_heat_row(heat, row)}</tr>\n" for row in rows)
    return (
        f'<table class="heat"><caption>Share of an iteration in which each {escape(heat.of)} is busy</caption>\n'
        f'<thead><tr><th scope="col">{escape(heat.of)}</th>{heads}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table>\n"
    )


_MARKED = ' class="slow"'


def _heat_row(heat: Heat, row: HeatRow) -> str:
    name = f"{escape(row.name)} <em>sets the pace</em>" if row.marked and heat.of == "worker" else escape(row.name)
    return f'<th scope="row">{name}</th>' + "".join(map(_heat_cell, heat.heads, row.shares))


def _heat_cell(head: str, share: float | None) -> str:
    if share is None or head == IDLE:
        return f"<td>{'' if share is None else f'{100 * share:.0f}%'}</td>"
    ink = "; color: #fff" if share > _DARK else ""
    full = ' class="full"' if share >= FULL else ""
    return f'<td{full} style="background: {shade(share)}{ink}">{100 * share:.0f}%</td>'


def tornado_bars(tornado: Tornado) -> str:
    """A bar per assumption on one scale, the longest first; those beyond the first ones by a switch."""
    times = [time for each in tornado.swings for time in (each.low_s, each.high_s)]
    low, high = min(*times, tornado.center_s), max(*times, tornado.center_s)
    scale = (low, (high - low) or 1.0)
    bars = [_tornado_bar(each, tornado.center_s, scale) for each in tornado.swings]
    first = f'<div class="tornado">\n{"".join(bars[:MOST_BARS])}</div>\n'
    still = "".join(f"<li>{escape(name)}</li>" for name in tornado.still)
    rest = "".join(bars[MOST_BARS:])
    if not rest and not still:
        return first
    inside = (f'<div class="tornado">\n{rest}</div>\n' if rest else "") + (
        f"<p>Less than 0.1 % each:</p><ul>{still}</ul>\n" if still else ""
    )
    return first + switch(f"Show all {len(tornado.swings) + len(tornado.still)} assumptions", inside)


def _tornado_bar(swing: Swing, center: float, scale: tuple[float, float]) -> str:
    def place(time: float) -> float:
        return 100 * (time - scale[0]) / scale[1]

    first, last = sorted((place(swing.low_s), place(swing.high_s)))
    ends = f"{format_seconds(swing.low_s)} to {format_seconds(swing.high_s)}"
    share = "" if swing.share is None else f", {100 * swing.share:.0f} % of the variance"
    return (
        f'<div class="swing"><p><strong>{escape(swing.name).replace("_", "_<wbr>")}</strong> {escape(swing.value)}'
        f' <span>({escape(swing.range)}): {escape(ends)}{share}</span></p><div class="track">'
        f'<span class="reach" style="left: {first:.2f}%; width: {last - first:.2f}%"></span>'
        f'<span class="center" style="left: {place(center):.2f}%"></span></div></div>\n'
    )
