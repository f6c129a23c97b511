"""A cache curve as plain data, text, CSV, a figure and an offline page.

The figure shows the hit rate against the cache size, one line per rule; more than six rules are split into panels by
kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.atomic import write_csv
from gcnsim.core.terminal import aligned
from gcnsim.report.figures.style import MOST_LINES, layout
from gcnsim.report.page.sections import Section, write_report
from gcnsim.report.page.templates import Sheet
from gcnsim.report.palette import LIGHT
from gcnsim.trace import CacheCurve, CachePoint, CacheTally
from gcnsim.workload.caching import KINDS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_DASHES: Final = {"static": "solid", "refreshed": "6px,3px", "demand": "2px,2px"}


class PolicyLine(NamedTuple):
    """One rule: the hit rate at each size, over all workers and for the worst and best of them."""

    name: str
    kind: str
    hit_rates: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]


class CacheHits(NamedTuple):
    """The figure's data: a line per rule over the cache sizes (shares of the boundary nodes, ascending)."""

    title: str
    sizes: tuple[float, ...]
    lines: tuple[PolicyLine, ...]

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """The name of each line, its colour in the light theme, and its dashes."""
        return [
            (f"{line.name} ({line.kind})", LIGHT.line(place)[0], _DASHES[line.kind])
            for panel in self.panels
            for place, line in enumerate(panel)
        ]

    @property
    def panels(self) -> list[list[PolicyLine]]:
        """The lines of each panel, at most `MOST_LINES`: all in one, or static or refreshed caches and then demand
        caches.
        """
        if len(self.lines) <= MOST_LINES:
            return [list(self.lines)]
        groups = [[line for line in self.lines if (line.kind == "demand") is demand] for demand in (False, True)]
        return [group[at : at + MOST_LINES] for group in groups for at in range(0, len(group), MOST_LINES)]


def cache_hits_data(curve: CacheCurve) -> CacheHits:
    """The figure's data."""
    by_policy = {name: [point for point in curve.points if point.policy == name] for name in curve.policies}
    lines = tuple(_line(name, points) for name, points in by_policy.items())
    knob = f"{curve.origin.sampler} at {curve.origin.epsilon:g}"
    counted = f"{curve.graphs - curve.how.warm_up} graphs"
    return CacheHits(f"{curve.origin.graph_name}, {knob}, {counted}", curve.sizes, lines)


def _line(name: str, points: Sequence[CachePoint]) -> PolicyLine:
    rates = [[worker.hit_rate for worker in point.workers if worker.requests] or [0.0] for point in points]
    return PolicyLine(
        name,
        KINDS[name],
        tuple(point.total.hit_rate for point in points),
        tuple(min(rate) for rate in rates),
        tuple(max(rate) for rate in rates),
    )


def cache_hits_figure(data: CacheHits) -> Figure:
    """Lines of `data`: solid for static rules, dashed for refreshed ones, dotted for demand caches."""
    from plotly.subplots import make_subplots

    panels = data.panels
    height = 460 * len(panels)
    figure = make_subplots(rows=len(panels), shared_xaxes=True, vertical_spacing=30 / height)
    for row, panel in enumerate(panels, 1):
        for index, line in enumerate(panel):
            figure.add_trace(_drawn(data, line, index), row=row, col=1)
    shape = layout("", "requests answered (%)", height=height)
    axes = {name: shape.pop(name) for name in ("xaxis", "yaxis")}
    figure.update_layout(**shape)
    figure.update_xaxes(**axes["xaxis"], rangemode="tozero")
    figure.update_xaxes(title_text="boundary nodes cached (%)", row=len(panels), col=1)
    figure.update_yaxes(**axes["yaxis"], range=[0, 102])
    return figure


def _drawn(data: CacheHits, line: PolicyLine, place: int) -> dict[str, Any]:
    color, _, symbol = LIGHT.line(place)
    return {
        "type": "scatter",
        "x": [100 * size for size in data.sizes],
        "y": [100 * rate for rate in line.hit_rates],
        "name": f"{line.name} ({line.kind})",
        "mode": "lines+markers",
        "line": {"color": color, "dash": _DASHES[line.kind], "width": 2},
        "marker": {"symbol": symbol, "size": 8},
        "customdata": [f"{100 * a:.1f} to {100 * b:.1f} %" for a, b in zip(line.lowest, line.highest, strict=True)],
        "hovertemplate": f"{line.name}, %{{x:.3g}} % cached<br>%{{y:.1f}} % hit, %{{customdata}} by worker"
        "<extra></extra>",
    }


SCHEMA = "gcnsim.cache-curve/1"
COLUMNS = (
    "policy",
    "kind",
    "size",
    "worker",
    "boundary_nodes",
    "cached_rows",
    "requests",
    "hits",
    "hit_rate",
    "fill_rows",
    "refresh_rows",
)
"""The columns of the CSV file; worker: a rank, or `all`."""


def cache_curve_payload(curve: CacheCurve) -> dict[str, Any]:
    """The curve as JSON data, schema gcnsim.cache-curve/1; shares in [0, 1], counts of rows."""
    return {
        "schema": SCHEMA,
        "origin": asdict(curve.origin),
        "graphs": curve.graphs,
        **asdict(curve.how),
        "notes": list(curve.notes),
        "points": [
            {
                "policy": point.policy,
                "kind": KINDS[point.policy],
                "size": point.size,
                **_tally(point.total),
                "workers": [{"worker": rank, **_tally(worker)} for rank, worker in enumerate(point.workers)],
            }
            for point in curve.points
        ],
    }


def _tally(tally: CacheTally) -> dict[str, Any]:
    """A tally's counts and hit rate, in the order of COLUMNS."""
    values = {**asdict(tally), "hit_rate": tally.hit_rate}
    return {name: values[name] for name in COLUMNS if name in values}


def render_cache_curve(curve: CacheCurve, *, workers: bool = False) -> str:
    """The text of the command line, optionally with a line for each worker; ends with a newline."""
    origin, how = curve.origin, curve.how
    heading = (
        f"{origin.graph_name}, {origin.sampler} sampling at {origin.epsilon:g}: {curve.graphs - how.warm_up} graphs, "
        f"after {how.warm_up} of warm-up; rows of a graph in {how.order} order; refresh every {how.refresh} graphs"
    )
    rows = [
        (
            point.policy,
            KINDS[point.policy],
            f"{100 * point.size:g}%",
            who,
            *(f"{count:,}" for count in (tally.cached_rows, tally.requests, tally.hits)),
            f"{100 * tally.hit_rate:.1f}%",
            *(f"{count:,}" for count in (tally.fill_rows, tally.refresh_rows)),
        )
        for point in curve.points
        for who, tally in [("all", point.total), *((str(rank), worker) for rank, worker in enumerate(point.workers))]
        if workers or who == "all"
    ]
    heads = ("policy", "kind", "size", "worker", "cached", "requests", "hits", "hit rate", "fill", "refresh")
    lines = [heading, *aligned(rows, heads, left=2)]
    return "\n".join([*lines, *(f"note: {note}" for note in curve.notes), ""])


def write_cache_curve_csv(path: str | Path, curve: CacheCurve) -> None:
    """Write one line per point and worker, all workers together first, below COLUMNS. Raises FileError."""
    rows = [
        {**point, **tally}
        for point in cache_curve_payload(curve)["points"]
        for tally in ({"worker": "all"}, *point["workers"])
    ]
    write_csv(path, COLUMNS, [[row[name] for name in COLUMNS] for row in rows])


def write_cache_curve_html(path: str | Path, curve: CacheCurve) -> None:
    """Write the figure and its numbers as one offline page. Raises FileError."""
    info = cache_hits_data(curve)
    heads = [("rule", "k"), ("kind", "k"), *((f"{100 * size:g} % cached", "n") for size in info.sizes)]
    rates = [(line.name, line.kind, *(f"{100 * rate:.1f} %" for rate in line.hit_rates)) for line in info.lines]
    caption = (
        "Hit rate of each cache policy against the share of boundary nodes that it keeps."
        " Solid: filled once; dashed: refreshed; dotted: filled on demand."
    )
    sheet = Sheet("Requests answered, all workers", heads, rates)
    parts = [Section("Cache curve", cache_hits_figure(info), caption, (), sheet, info.legend)]
    write_report(path, title=info.title, heading="Hit rate by cache size", warned=curve.notes, parts=parts)
