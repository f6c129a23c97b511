"""A cache curve as plain data, text, CSV, a figure and an offline page."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gcnsim.caching import KINDS
from gcnsim.io.atomic import atomic_write
from gcnsim.report.figures.style import FONT
from gcnsim.report.page.templates import Sheet, write_figure
from gcnsim.report.palette import GRID, INK
from gcnsim.terminal.tables import aligned
from gcnsim.trace import CacheCurve, CachePoint, CacheTally

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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

_DASHES = {"static": "solid", "refreshed": "dash", "demand": "dot"}
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross")


class PolicyLine(NamedTuple):
    """One rule: the hit rate at each size, of all workers and of the worst and best of them."""

    name: str
    kind: str
    hit_rates: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]


class CacheCurveInfo(NamedTuple):
    """What the figure shows: a line for each rule over the sizes, shares of the boundary nodes, ascending."""

    title: str
    sizes: tuple[float, ...]
    lines: tuple[PolicyLine, ...]


def cache_curve_info(curve: CacheCurve) -> CacheCurveInfo:
    """The figure's data."""
    by_policy = {name: [point for point in curve.points if point.policy == name] for name in curve.policies}
    lines = tuple(_line(name, points) for name, points in by_policy.items())
    knob = f"{curve.origin.sampler} at {curve.origin.epsilon:g}"
    counted = f"{curve.graphs - curve.how.warm_up} graphs"
    return CacheCurveInfo(f"{curve.origin.graph_name}, {knob}, {counted}", curve.sizes, lines)


def _line(name: str, points: list[CachePoint]) -> PolicyLine:
    rates = [[worker.hit_rate for worker in point.workers if worker.requests] or [0.0] for point in points]
    return PolicyLine(
        name,
        KINDS[name],
        tuple(point.total.hit_rate for point in points),
        tuple(min(each) for each in rates),
        tuple(max(each) for each in rates),
    )


def cache_curve_figure(info: CacheCurveInfo) -> Figure:
    """Lines of `info`: drawn through for rules filled once, dashed for refreshed ones, dotted for demand caches."""
    import plotly.graph_objects as go

    figure = go.Figure()
    seen = {True: -1, False: -1}
    for line in info.lines:
        # Dashes alone do not tell a refreshed rule from one filled once: they share one row of colours.
        on_demand = line.kind == "demand"
        at = seen[on_demand] = seen[on_demand] + 1
        ends = [f"{100 * a:.1f} to {100 * b:.1f} %" for a, b in zip(line.lowest, line.highest, strict=True)]
        figure.add_scatter(
            x=[100 * size for size in info.sizes],
            y=[100 * rate for rate in line.hit_rates],
            name=f"{line.name} ({line.kind})",
            mode="lines+markers",
            line={"color": _COLOURS[at % len(_COLOURS)], "dash": _DASHES[line.kind], "width": 2},
            marker={"symbol": _SYMBOLS[at % len(_SYMBOLS)], "size": 8},
            customdata=ends,
            hovertemplate=f"{line.name}, %{{x:.3g}} % cached<br>%{{y:.1f}} % hit, %{{customdata}} by worker"
            "<extra></extra>",
        )
    figure.update_layout(
        template="plotly_white",
        title=f"Hit rate by cache size: {info.title}",
        font={"family": FONT, "size": 14, "color": INK},
        height=600,
    )
    figure.update_xaxes(title="boundary nodes cached (%)", rangemode="tozero", gridcolor=GRID)
    figure.update_yaxes(title="requests answered (%)", range=[0, 102], gridcolor=GRID)
    return figure


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
    """The text of the command line, with a line for each worker too where asked; ends with a newline."""
    origin, how = curve.origin, curve.how
    said = (
        f"{origin.graph_name}, {origin.sampler} at {origin.epsilon:g}: {curve.graphs - how.warm_up} graphs counted"
        f" after {how.warm_up} of warm-up, rows of a graph in {how.order} order, refresh every {how.refresh}"
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
        for who, tally in [("all", point.total), *((str(rank), each) for rank, each in enumerate(point.workers))]
        if workers or who == "all"
    ]
    heads = ("policy", "kind", "size", "worker", "cached", "requests", "hits", "hit rate", "fill", "refresh")
    lines = [said, *aligned(rows, heads, left=2)]
    return "\n".join([*lines, *(f"note: {note}" for note in curve.notes), ""])


def write_cache_curve_csv(path: str | Path, curve: CacheCurve) -> None:
    """Write a line for each point and worker, all workers together first, beneath COLUMNS. Raises FileError."""
    with atomic_write(path, text=True) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for point in cache_curve_payload(curve)["points"]:
            place = {name: point[name] for name in ("policy", "kind", "size")}
            together = {name: point[name] for name in COLUMNS if name in point and name not in place}
            for worker in ({"worker": "all", **together}, *point["workers"]):
                writer.writerow({**place, **worker})


def write_cache_curve_html(path: str | Path, curve: CacheCurve) -> None:
    """Write the figure and its numbers as one offline page. Raises FileError."""
    info = cache_curve_info(curve)
    heads = [("rule", "k"), ("kind", "k"), *((f"{100 * size:g} % cached", "n") for size in info.sizes)]
    rates = [(line.name, line.kind, *(f"{100 * rate:.1f} %" for rate in line.hit_rates)) for line in info.lines]
    write_figure(
        path,
        "cache-curve",
        cache_curve_figure(info),
        Sheet("Requests answered, all workers", heads, rates),
        title=info.title,
        heading="Hit rate by cache size",
        caption="The share of requested boundary rows that each rule answers, by the share of boundary nodes that it"
        " keeps. Drawn through: filled once; dashed: refreshed; dotted: filled on demand.",
        warned=curve.notes,
    )
