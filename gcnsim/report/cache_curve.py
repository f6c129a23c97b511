"""A cache curve as plain data, text, CSV, a figure and an offline page."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gcnsim.core.atomic import atomic_write
from gcnsim.core.terminal import aligned
from gcnsim.report.figures.cache_hits import cache_hits_data, cache_hits_figure
from gcnsim.report.page.sections import Section, write_report
from gcnsim.report.page.templates import Sheet
from gcnsim.trace import CacheCurve, CacheTally
from gcnsim.workload.caching import KINDS

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
