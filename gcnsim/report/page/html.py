"""The answer as one offline page: the verdict, figures, table, provenance and how to read them.

Nothing is loaded from anywhere: plotly.js is in the page, and its Content-Security-Policy forbids every request. All
text that came with the answer is escaped. A page is as wide as its window: on a phone a row of a table is a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from gcnsim.io.atomic import atomic_write
from gcnsim.report.answer import provenance, sentences
from gcnsim.report.answer.columns import MEANINGS, Column, columns_of
from gcnsim.report.answer.table import wide_keys
from gcnsim.report.page.figures import MOST_BARS, BandwidthCurve, bandwidth_info, breakdown_info
from gcnsim.report.page.heat import heats_of
from gcnsim.report.page.parts import bandwidth_legend, breakdown_legend, figure, heat_map, switch, table, tornado_bars
from gcnsim.report.page.plots import bandwidth_figure, breakdown_figure
from gcnsim.report.page.style import CSS
from gcnsim.report.page.tornado import tornado_of
from gcnsim.results import Row, WhatIf

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_html(path: str | Path, answer: WhatIf, curve: BandwidthCurve) -> None:
    """Write the page of `answer` and `curve` to `path`.

    Raises FileError when the file cannot be written.
    """
    from plotly.offline import get_plotlyjs

    with atomic_write(path, text=True) as file:
        file.write(_head(answer))
        file.write(f"<script>{get_plotlyjs()}</script>\n")
        for part in _body(answer, curve):
            file.write(part)
        file.write("</main>\n</body>\n</html>\n")


def _head(answer: WhatIf) -> str:
    title, label = escape(sentences.title_of(answer)), escape(sentences.label_of(answer))
    badge = f' <strong class="badge">{label}</strong>' if label else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>gcnsim: {title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<header>\n<p class="kicker">{title}{badge}</p>\n<h1>{escape(sentences.verdict_of(answer))}</h1>\n</header>\n'
    )


def _body(answer: WhatIf, curve: BandwidthCurve) -> Iterable[str]:
    rows = answer.fastest_first
    columns = columns_of(rows)
    yield _warnings(answer)
    yield _answer(answer)
    yield _section("Where the time goes", _breakdown(answer, len(rows)))
    yield _section(
        "Iteration time against bandwidth",
        figure("bandwidth", bandwidth_figure(bandwidth_info(curve, answer)), bandwidth_legend(curve), _BANDWIDTH),
    )
    heats = heats_of(answer)
    if heats:
        yield _section("Workers and links", "".join(map(heat_map, heats)) + f'<p class="note">{escape(_HEAT)}</p>\n')
    tornado = tornado_of(answer)
    if tornado.swings:
        yield _section("What the assumptions do", tornado_bars(tornado) + f'<p class="note">{escape(_TORNADO)}</p>\n')
    yield _section("Results", _results(columns, rows) + _all_columns(answer, rows))
    yield _section("Where the numbers come from", _provenance(answer))
    yield _section("How to read this page", _reading(columns))


_BREAKDOWN = (
    "Per setting the time of one iteration, the fastest first: compute, communication that nothing hides, and the rest "
    "add up to it. The hatched bar beneath is communication that runs at the same time and adds nothing. The whisker "
    "is the 90 % interval."
)
_BANDWIDTH = (
    "The iteration time of each setting if only the bandwidth of the network cards changed; the band is its 90 % "
    "interval. The dotted line marks the bandwidth asked for. Where a line is flat, more bandwidth buys nothing."
)
_HEAT = (
    "Of the recommended setting: the share of an iteration in which each part is busy, and in which a GPU waits for "
    "communication (waits). The darkest links and stages set the pace."
)
_TORNADO = (
    "The recommended setting's time if one assumption alone were at the low or the high end of its range. The line is "
    "the time of the answer. The longest bar is the figure to measure first."
)


def _breakdown(answer: WhatIf, rows: int) -> str:
    drawn = breakdown_figure(breakdown_info(answer, MOST_BARS))
    first = figure("breakdown", drawn, breakdown_legend(), _BREAKDOWN)
    if rows <= MOST_BARS:
        return first
    whole = figure("breakdown-all", breakdown_figure(breakdown_info(answer)), "", "Every setting.", waits=True)
    return first + switch(f"Show all {rows} settings", whole)


def _section(title: str, inside: str) -> str:
    name = _anchor(title)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n{inside}</section>\n'


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _warnings(answer: WhatIf) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in provenance.warnings_of(answer))
    return f'<section class="warning" aria-label="Warnings"><ul>{items}</ul></section>\n' if items else ""


def _answer(answer: WhatIf) -> str:
    cards = [
        _card("What this rests on", _pairs(sentences.reasons_of(answer)), "card best"),
        _card("One step more", _steps(answer)),
    ]
    for title, pairs in (
        ("Other machines", sentences.alternatives_of(answer)),
        ("Measured beside predicted", sentences.measured_of(answer)),
        ("Other partitions", [("partitions", text) for text in sentences.partitions_of(answer)]),
        ("No effect", sentences.no_effect_of(answer)),
        (provenance.target_title_of(answer), provenance.target_of(answer)),
    ):
        if pairs:
            cards.append(_card(title, _pairs(pairs)))
    return f'<div class="cards">\n{"".join(cards)}</div>\n'


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs) + "</dl>"


def _card(title: str, inside: str, css: str = "card") -> str:
    name = _anchor(title)
    return f'<section class="{css}" aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{inside}</section>\n'


def _steps(answer: WhatIf) -> str:
    items = "".join(
        f"<li><strong>{escape(f'{step.knob} {step.before} → {step.after}')}</strong>"
        f" <span>{escape(f'{step.iteration} per iteration, {step.change}')}</span></li>"
        for step in sentences.steps_of(answer)
    )
    return f"<ul>{items}</ul>" if items else "<p>No knob was turned further.</p>"


def _results(columns: Sequence[Column], rows: Sequence[Row], caption: str = "Settings, the fastest first") -> str:
    heads = [one_line(column.head) for column in columns]
    cells = [tuple(map(one_cell, row)) for row in zip(*(column.cells for column in columns), strict=True)]
    kinds = ["k" if column.key in ("method", "bandwidth", "device", "time") else "n" for column in columns]
    kinds = [
        "t" if column.key in ("knobs", "limited_by") else kind for column, kind in zip(columns, kinds, strict=True)
    ]
    return table(caption, heads, cells, kinds, [row.recommended for row in rows])


def _all_columns(answer: WhatIf, rows: Sequence[Row]) -> str:
    columns = columns_of(rows, wide_keys(answer))
    return switch("Show every column", _results(columns, rows, "Every column"))


def _provenance(answer: WhatIf) -> str:
    assumed = [
        (item.name, item.value, item.range, "yes" if item.covered else "no", item.basis)
        for item in provenance.assumptions_of(answer)
    ]
    heads = ("assumption", "value", "range", "in the interval", "basis")
    assumptions = table("Numbers that were assumed", heads, assumed, "ttttt") if assumed else ""
    limits = provenance.bounds_of(answer)
    bounds = table("Analytic bounds", ("row", "of the long-run mean"), limits, "tt") if limits else ""
    measured = "".join(f"<li>{escape(text)}</li>" for text in provenance.measured_of(answer))
    heard = f"<h3>Measured figures</h3><ul>{measured}</ul>" if measured else ""
    return f"{_pairs(provenance.provenance_of(answer))}\n{bounds}{assumptions}{heard}"


def _reading(columns: Sequence[Column]) -> str:
    return _pairs([(one_line(column.head), MEANINGS[column.key].says) for column in columns])


def one_cell(text: str) -> str:
    """A cell without the blanks that align it in a terminal."""
    return " ".join(text.replace("| ", "|").split())


def one_line(head: str) -> str:
    """A heading without its line breaks."""
    return head.replace("-\n", "").replace("|\n", " | ").replace("\n", " ")
