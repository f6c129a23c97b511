"""A reproduction as text and CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gcnsim.io.atomic import atomic_write
from gcnsim.terminal.tables import aligned
from gcnsim.units import format_bandwidth

COLUMNS: Final = ("paper", "table", "row", "metric", "predicted", "low", "high", "published")
HEADINGS: Final = ("table", "row", "metric", "predicted", "low", "high", "published", "error")

Payload = Mapping[str, Any]


def write_reproduction(path: str | Path, payload: Payload) -> None:
    """Write the cells of `payload` to `path`, one line each below a heading. Raises FileError."""
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(["" if cell[name] is None else cell[name] for name in COLUMNS] for cell in payload["cells"])


def render_reproduction(payload: Payload) -> str:
    """Every cell, then the figures per paper, the null models, and what was fitted."""
    lines = []
    for paper in payload["papers"]:
        cells = [cell for cell in payload["cells"] if cell["paper"] == paper and cell["predicted"] is not None]
        if cells:
            lines += [paper, *aligned([_cells(cell) for cell in cells], HEADINGS, left=3), ""]
    lines += [*error_lines(payload), "", *null_lines(payload), "", *platform_lines(payload)]
    return "\n".join([*lines, ""])


def left_out_lines(payload: Payload) -> list[str]:
    """Why cells have no prediction, or one that is not judged: one line per paper, table and reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for cell in payload["cells"]:
        if cell["reason"]:
            place = (cell["paper"], cell["table"], cell["reason"])
            counts[place] = counts.get(place, 0) + 1
    return [f"{paper} {table}: {count} cells: {reason}" for (paper, table, reason), count in counts.items()]


def error_lines(payload: Payload) -> list[str]:
    """The errors of rows whose values are given, per paper."""
    headings = ("paper", "cells", "predicted", "judged", "median error", "largest", "within 25 %", "in interval")
    found = {**payload["papers"], "all": payload["all"]}
    found["all, not fitted"] = {**payload["all"], **payload["all"]["held"], "cells": "", "predicted": ""}
    names = ("median", "largest", "within", "covered")
    rows = [
        (
            paper,
            *(str(each[name]) for name in ("cells", "predicted", "judged")),
            *(_percent(each[name]) for name in names),
        )
        for paper, each in found.items()
    ]
    return aligned(rows, headings)


def null_lines(payload: Payload) -> list[str]:
    """Median errors of the null models beside ours, on the cells that both answer."""
    rows = [
        (paper, name, str(pair["cells"]), _percent(pair["null"]), _percent(pair["ours"]))
        for paper, found in {**payload["papers"], "all": payload["all"]}.items()
        for name, pair in found["nulls"].items()
        if pair is not None
    ]
    return aligned(rows, ("paper", "null model", "cells", "its median error", "ours"), left=2)


def platform_lines(payload: Payload) -> list[str]:
    """The fitted figures."""
    rows = [
        (
            name,
            _percent(found["spmm_efficiency"]),
            _percent(found["stream_efficiency"]),
            "-" if found["staging_bandwidth"] is None else format_bandwidth(found["staging_bandwidth"]),
            _percent(found["rate_beside_copies"]),
        )
        for name, found in payload["platforms"].items()
    ]
    return aligned(
        rows, ("platform", "SpMM efficiency", "column by column", "host side of a worker", "rate beside transfers")
    )


def _cells(cell: Mapping[str, Any]) -> tuple[str, ...]:
    error = "" if cell["error"] is None else f"{100 * cell['error']:+.1f} %"
    numbers = (cell[name] for name in ("predicted", "low", "high", "published"))
    return (
        cell["table"],
        cell["row"],
        cell["metric"],
        *("" if each is None else f"{each:.4g}" for each in numbers),
        error,
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
