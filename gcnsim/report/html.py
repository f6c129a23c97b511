"""The answer as one offline page: figures, table, recommendation, provenance and how to read them.

Nothing is loaded from anywhere: plotly.js is in the page, and its Content-Security-Policy forbids every request. All
text that came with the payload is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from gcnsim.report import words
from gcnsim.report.columns import MEANINGS, Column, columns_of
from gcnsim.report.drawing import bandwidth_figure, breakdown_figure
from gcnsim.report.figures import BandwidthCurve, bandwidth_info, breakdown_info
from gcnsim.report.page_style import CSS
from gcnsim.report.rows import rows_of
from gcnsim.sections import replacing

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_CONFIG = {"responsive": True, "displayModeBar": False}


def write_html(path: str | Path, payload: Mapping[str, Any], curve: BandwidthCurve) -> None:
    """Write the page of `payload` and `curve` to `path`.

    Raises FileError when the file cannot be written.
    """
    from plotly.offline import get_plotlyjs

    with replacing(path, text=True) as file:
        file.write(_head(payload))
        file.write(f"<script>{get_plotlyjs()}</script>\n")
        for part in _body(payload, curve):
            file.write(part)
        file.write("</main>\n</body>\n</html>\n")


def title_of(payload: Mapping[str, Any]) -> str:
    """The page's title: what was asked, in a line."""
    scenario = payload["scenario"]
    grid = scenario["grid"]
    workload = scenario.get("workload", {})
    what = workload.get("graph") or workload.get("dataset")
    what = PurePath(what).name if isinstance(what, str) else what
    gpus = sorted({place["gpus"] for place in grid})
    widths = list(dict.fromkeys(place["bandwidth"] for place in grid))
    cluster = f"{', '.join(map(str, gpus))} GPUs at {', '.join(widths)}"
    return words.plain(f"{what if isinstance(what, str) else 'what-if'} on {cluster}")


def _head(payload: Mapping[str, Any]) -> str:
    title = escape(title_of(payload))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>gcnsim: {title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<header>\n<p class="kicker">gcnsim what-if</p>\n<h1>{title}</h1>\n</header>\n'
    )


def _body(payload: Mapping[str, Any], curve: BandwidthCurve) -> Iterable[str]:
    columns = columns_of(rows_of(payload))
    yield _warnings(payload)
    yield _answer(payload)
    yield _section("Where the time goes", _figure("breakdown", breakdown_figure(breakdown_info(payload)), _BREAKDOWN))
    yield _section(
        "Iteration time against bandwidth",
        _figure("bandwidth", bandwidth_figure(bandwidth_info(curve, payload)), _BANDWIDTH),
    )
    yield _section("Results", _results(columns))
    yield _section("Where the numbers come from", _provenance(payload))
    yield _section("How to read this page", _reading(columns))


_BREAKDOWN = (
    "Per row the time of one iteration: compute, communication that nothing hides, and the rest add up to it. The "
    "hatched bar beneath is communication that runs at the same time and adds nothing. The whisker is the "
    "90 % interval."
)
_BANDWIDTH = (
    "The iteration time of each method if only the bandwidth of the network cards changed; the band is its 90 % "
    "interval. The dotted line marks the bandwidth asked for. Where a line is flat, more bandwidth buys nothing."
)


def _section(title: str, inside: str) -> str:
    name = _anchor(title)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n{inside}</section>\n'


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _warnings(payload: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in words.warnings_of(payload))
    return f'<section class="warning" aria-label="Warnings"><ul>{items}</ul></section>\n' if items else ""


def _answer(payload: Mapping[str, Any]) -> str:
    setting, why = words.recommendation_of(payload)
    limits = "".join(
        f"<li><strong>{escape(limit.name)}</strong>"
        + (f" <span>{escape(', '.join(limit.rows))}</span>" if limit.rows else "")
        + "</li>"
        for limit in words.bottlenecks_of(payload)
    )
    cards = (
        _card("Recommendation", f'<p class="big">{escape(setting)}</p><p>{escape(why)}</p>', "card best"),
        _card("Bottleneck", f"<ul>{limits}</ul>"),
        _card("One step more", _steps(payload)),
    )
    return f'<div class="cards">\n{"".join(cards)}</div>\n'


def _card(title: str, inside: str, css: str = "card") -> str:
    name = _anchor(title)
    return f'<section class="{css}" aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{inside}</section>\n'


def _steps(payload: Mapping[str, Any]) -> str:
    items = "".join(
        f"<li><strong>{escape(f'{step.knob} {step.before} → {step.after}')}</strong>"
        f" <span>{escape(f'{step.iteration} per iteration, {step.change}')}</span></li>"
        for step in words.steps_of(payload)
    )
    return f"<ul>{items}</ul>" if items else "<p>No knob was turned further.</p>"


def _figure(name: str, figure: Figure, caption: str) -> str:
    from plotly.io import to_json

    spec = _script_safe(to_json(figure, validate=False))
    return (
        f'<figure>\n<div id="{name}" class="plot" role="img" aria-label="{escape(caption)} The table has the numbers.">'
        f"</div>\n<figcaption>{escape(caption)}</figcaption>\n</figure>\n"
        f"<script>(function () {{ var f = {spec}; "
        f'Plotly.newPlot("{name}", f.data, f.layout, {json.dumps(_CONFIG)}); }})();</script>\n'
    )


def _script_safe(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _results(columns: Sequence[Column]) -> str:
    heads = [column.head.replace("-\n", "") for column in columns]
    rows = list(zip(*(column.cells for column in columns), strict=True))
    kinds = ["k" if column.key in ("method", "bandwidth") else "n" for column in columns]
    return _table("Every method and setting that was simulated", heads, rows, kinds)


def _provenance(payload: Mapping[str, Any]) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(said)}</dd>" for name, said in words.provenance_of(payload))
    assumed = [
        (item.name, item.value, item.range, "yes" if item.covered else "no", item.basis)
        for item in words.assumptions_of(payload)
    ]
    heads = ("assumption", "value", "range", "in the interval", "basis")
    table = _table("Numbers that were assumed", heads, assumed, "ttttt") if assumed else ""
    limits = words.bounds_of(payload)
    bounds = _table("Analytic bounds", ("row", "of the long-run mean"), limits, "kt") if limits else ""
    measured = "".join(f"<li>{escape(text)}</li>" for text in words.measured_of(payload))
    heard = f"<h3>Measured figures</h3><ul>{measured}</ul>" if measured else ""
    return f"<dl>{facts}</dl>\n{bounds}{table}{heard}"


def _reading(columns: Sequence[Column]) -> str:
    terms = "".join(
        f"<dt>{escape(_one_line(column.head))}</dt><dd>{escape(MEANINGS[column.key].says)}</dd>" for column in columns
    )
    return f"<dl>{terms}</dl>\n"


def _one_line(head: str) -> str:
    return head.replace("-\n", "").replace("\n", " ")


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> str:
    """A table; the kind of a column is t (text), k (a key, never wrapped) or n (a number, to the right)."""
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(text).replace(chr(10), "<br>")}</th>'
        for kind, text in zip(kinds, heads, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, kinds)}</tr>\n" for row in rows)
    name = escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _cells(row: Sequence[str], kinds: Sequence[str]) -> str:
    return "".join(
        f'<td class="{kind}">{escape(text).replace("_", "_<wbr>")}</td>' for kind, text in zip(kinds, row, strict=True)
    )
