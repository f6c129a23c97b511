"""The answer, or a sweep, as one offline page: the summary, figures, table, provenance and how to read them.

A page is as wide as its window; on a phone, a table row is a block. The data of the heat map are plain: how busy
workers and links are under the recommended setting. The page of a sweep has its best point, iteration time against each
varied numeric axis, and the first points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.errors import plural
from gcnsim.core.units import format_seconds, range_text
from gcnsim.hardware.link_specs import LinkName
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer import sentences
from gcnsim.report.answer.columns import TextColumn, columns_of, shown_keys
from gcnsim.report.answer.rows import plain, varies
from gcnsim.report.answer.table import energy_of
from gcnsim.report.figures.breakdown import MOST_BARS, breakdown_data, breakdown_figure
from gcnsim.report.figures.convergence import Convergence, convergence_figure, convergence_of
from gcnsim.report.figures.curves import AXES, Curve, curve_data, curve_figure, curve_of_rows, styled
from gcnsim.report.figures.style import line_legend
from gcnsim.report.figures.timeline import TimelineData, timeline_figure
from gcnsim.report.figures.tornado import Tornado, tornado_data, tornado_figure
from gcnsim.report.page.sections import Section, caption_of, write_report
from gcnsim.report.page.templates import Sheet, write_page
from gcnsim.results import COLUMNS, Form, LinkUse, Row, WhatIf

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_KINDS = {Form.TEXT: "k", Form.TIME: "k", Form.KNOBS: "t", Form.WORDS: "t"}
"""Kinds of cells that are no numbers (`Sheet`)."""


def write_html(path: str | Path, answer: WhatIf, curve: Curve, timeline: TimelineData) -> None:
    """Write the page of `answer`, `curve` and the `timeline` of the recommended setting to `path`.

    Raises FileError if the file cannot be written.
    """
    rows = answer.fastest_first
    columns, best = columns_of(rows), [index for index, row in enumerate(rows) if row.recommended]
    curves, bars = curve_data(curve), breakdown_data(answer, MOST_BARS)
    tornado = tornado_data(answer)
    learning = convergence_of(answer)
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
        bandwidth=curve_figure(curves),
        lines=line_legend(styled(curves.series)),
        accuracy=[] if learning is None else _accuracy(learning),
        learned=[] if learning is None else line_legend(learning.styled()),
        heats=heats_of(answer),
        timeline=timeline_figure(timeline),
        timeline_says=caption_of(timeline),
        timeline_legend=timeline.legend,
        idle=IDLE,
        moved=tornado_figure(tornado) if any(swing.reach for swing in tornado.swings) else None,
        swings=_swings(tornado),
        results=columns_sheet(columns, "Settings, the fastest first", best),
        every_column=columns_sheet(columns_of(rows, shown_keys(rows, wide=True)), "Every column", best),
        reading=[(one_line(shown.head), shown.column.says) for shown in columns],
        **_sources(answer),
    )


def _accuracy(data: Convergence) -> list[tuple[str, Figure, str]]:
    """Accuracy against time, and against cost if a price is known: name, figure and caption."""
    left = f" Left out: {', '.join(data.left_out)}." if data.left_out else ""
    caption = f"Validation accuracy of the recorded runs at the predicted {{}}; the band is the 90 % interval.{left}"
    drawn = [("accuracy-time", convergence_figure(data), caption.format("times"))]
    if data.priced:
        drawn.append(("accuracy-cost", convergence_figure(data, cost=True), caption.format("costs")))
    return drawn


def _cards(answer: WhatIf) -> list[tuple[str, list[tuple[str, str]]]]:
    """Further cards of the page: titles, and names with texts."""
    return [
        ("Other machines", sentences.alternatives_of(answer)),
        ("Measured beside predicted", sentences.measured_of(answer)),
        ("Other partitions", [("partitions", text) for text in sentences.partitions_of(answer)]),
        ("No effect", sentences.no_effect_of(answer)),
        (provenance.target_title_of(answer), provenance.target_of(answer)),
        ("Energy at the machine, without its building", energy_of(answer)),
    ]


def columns_sheet(columns: Sequence[TextColumn], caption: str, marked: Sequence[int] = ()) -> Sheet:
    """Columns of rows as a table; marked: places of rows that stand out."""
    heads = [(one_line(shown.head), _KINDS.get(shown.column.form, "n")) for shown in columns]
    cells = [tuple(map(one_cell, row)) for row in zip(*(column.cells for column in columns), strict=True)]
    return Sheet(caption, heads, cells, marked)


def _swings(tornado: Tornado) -> Sheet:
    """What each assumption does to the time, the largest effect first."""
    heads = ("assumption", "value", "range", "at low to high end", "of the variance", "decides, of the draws")
    rows = [
        (
            swing.title,
            swing.value,
            swing.range,
            f"{format_seconds(swing.low_s)} to {format_seconds(swing.high_s)}",
            *("" if share is None else f"{100 * share:.0f} %" for share in (swing.share, swing.decides)),
        )
        for swing in tornado.swings
    ]
    rows += [(name, "", "", "less than 0.1 % apart", "", "") for name in tornado.still]
    return Sheet("Every assumption, the largest effect first", [(head, "t") for head in heads], rows)


def _sources(answer: WhatIf) -> dict[str, Any]:
    """The provenance of the numbers."""
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
    """A cell without the spaces that align it in a terminal."""
    return " ".join(text.replace("| ", "|").split())


def one_line(head: str) -> str:
    """A heading without its line breaks."""
    return head.replace("-\n", "").replace("|\n", " | ").replace("\n", " ")


STAGES = {"gpu": "GPU", "sampler": "sampler", "copies": "copies", "reduce": "all-reduce", "waiting": "waits"}
"""The stages of a worker's time, with headings."""

IDLE = STAGES["waiting"]
"""The heading of a worker's idle share, which has no colour in the heat map."""

_WAYS = {"up": "to host", "down": "to GPU", "tx": "out", "rx": "in", None: ""}
_OF_RACKS = {"up": "out", "down": "in"}


class HeatRow(NamedTuple):
    """One worker, server or link: its shares in [0, 1], None where it has none.

    marked: whether it is the bottleneck.
    """

    name: str
    shares: tuple[float | None, ...]
    marked: bool = False

    @property
    def busiest(self) -> float:
        """Its largest share."""
        return max((share for share in self.shares if share is not None), default=0.0)


class Heat(NamedTuple):
    """A table of shares: the kind of its rows, the headings of its shares, and the rows."""

    of: str
    heads: tuple[str, ...]
    rows: tuple[HeatRow, ...]

    @property
    def busiest(self) -> list[HeatRow]:
        """The rows that are shown at first, in order: bottlenecks, then the busiest."""
        shown = sorted(self.rows, key=lambda row: (not row.marked, -row.busiest))[:MOST_BARS]
        return [row for row in self.rows if row in shown]


def heats_of(answer: WhatIf) -> list[Heat]:
    """The existing tables of workers with their links, servers with theirs, and links between servers."""
    utilization = answer.utilization
    if utilization is None:
        return []
    workers, servers, others = _sorted(utilization.links)
    slow = _straggler(answer)
    held: dict[int, dict[str, float]] = {
        worker.worker: {head: getattr(worker, stage) for stage, head in STAGES.items()}
        for worker in utilization.workers
    }
    for rank, links in workers.items():
        held.setdefault(rank, {}).update(links)
    first = _heat("worker", {f"worker {rank}": shares for rank, shares in sorted(held.items())}, f"worker {slow}")
    home = next((worker.server for worker in utilization.workers if worker.worker == slow), None)
    second = _heat("server", {f"server {place}": shares for place, shares in sorted(servers.items())}, f"server {home}")
    third = _heat("link", {name: {"busy": share} for name, share in others.items()}, "")
    return [heat for heat in (first, second, third) if heat.rows]


def _straggler(answer: WhatIf) -> int | None:
    """The worker that the others wait for, or the one with the bottleneck."""
    return answer.recommendation.row.limited_by_worker if answer.straggler is None else answer.straggler.worker


def _sorted(
    links: Sequence[LinkUse],
) -> tuple[dict[int, dict[str, float]], dict[int, dict[str, float]], dict[str, float]]:
    """Links of workers, links of servers, and other links (named in words), each with its heading and share."""
    workers: dict[int, dict[str, float]] = {}
    servers: dict[int, dict[str, float]] = {}
    others: dict[str, float] = {}
    for link in links:
        link_name = LinkName.of(link.name)
        if link_name is None:
            others[plain(link.name)] = link.utilization
        elif link_name.of_worker is None and link_name.of_server is None:
            others[f"{link_name.text}, {_OF_RACKS.get(link_name.way or '', link_name.way)}"] = link.utilization
        else:
            head = f"{link_name.head} {_WAYS.get(link_name.way, link_name.way)}".strip()
            (servers if link_name.of_worker is None else workers).setdefault(link_name.number, {})[head] = (
                link.utilization
            )
    return workers, servers, others


def _heat(of: str, shares: Mapping[str, Mapping[str, float]], marked: str) -> Heat:
    heads = tuple(dict.fromkeys(head for share in shares.values() for head in share))
    rows = (HeatRow(name, tuple(map(share.get, heads)), name == marked) for name, share in shares.items())
    return Heat(of, heads, tuple(rows))


SHOWN: Final = 30
"""The most points in the table."""


@dataclass(frozen=True, slots=True)
class PointOrder:
    """The column by which a sweep's points are ordered, and the first point's value in it."""

    by: str
    value: object
    descending: bool = False

    @property
    def fastest(self) -> bool:
        """Whether the first point is the fastest."""
        return self.by == "iteration_s" and not self.descending

    @property
    def text(self) -> str:
        """The order in words."""
        value = f"{self.value:.4g}" if isinstance(self.value, float) else str(self.value)
        return f"by {self.by}{', the largest first' if self.descending else ''} ({value})"


def first_sentence(first: Row, count: int, order: PointOrder) -> str:
    """The first of `count` points in a sentence."""
    of = plural(count, "point")
    leads = f"The fastest of {of} is" if order.fastest else f"Of {of} {order.text}, the first is"
    setting = ", ".join((first.method, *first.knobs))
    return plain(
        f"{leads} {setting} on {first.gpus} x {first.device} at {first.bandwidth}: "
        f"{format_seconds(first.iteration_s)} per iteration{range_text(first.iteration_s_low, first.iteration_s_high)}."
    )


def write_sweep(path: str | Path, rows: Sequence[Row], first: Sequence[Row], order: PointOrder, name: str) -> None:
    """Write the rows of a sweep's points as a page. first: the rows of the table, in `order`, at least one.

    Raises FileError.
    """
    columns = columns_of(first[:SHOWN])
    if order.by in COLUMNS and order.by not in {column.key for column in columns}:
        columns += columns_of(first[:SHOWN], [order.by])
    count = plural(len(rows), "point")
    table = columns_sheet(columns, f"The fastest of {count}" if order.fastest else f"{count}, {order.text}", (0,))
    write_report(
        path,
        title=plain(name),
        heading=first_sentence(first[0], len(rows), order),
        parts=[*_curves(sorted(rows, key=lambda row: row.iteration_s)), Section("Points", None, "", (), table)],
    )


def _curves(rows: Sequence[Row]) -> list[Section]:
    """One figure for each varied axis."""
    curves = []
    for name, axis in AXES.items():
        if not varies(rows, axis.field):
            continue
        data = curve_data(curve_of_rows(rows, name))
        left = f" {len(data.left_out)} slower ones are left out." if data.left_out else ""
        caption = f"Iteration time of the settings that are the fastest somewhere; bands are 90 % intervals.{left}"
        title, lines = f"Iteration time against {name}", line_legend(styled(data.series))
        curves.append(Section(title, curve_figure(data), caption, lines=lines))
    return curves
