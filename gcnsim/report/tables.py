"""Answers of pages as CSV: the options of a recommendation, the parts of a comparison."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gcnsim.io.atomic import atomic_write
from gcnsim.results import Advice, PointReport

OPTION: Final = (
    *("machine", "method", "knobs", "recommended", "on_front"),
    *("seconds", "seconds_low", "seconds_high", "cost", "cost_low", "cost_high", "currency"),
)
PART: Final = ("part", "within", "a", "b", "difference", "share")


def write_options_csv(path: str | Path, advice: Advice) -> None:
    """Write the choice and the front of a recommendation, a line each; seconds and costs of what it compares.

    Raises FileError.
    """
    points = [advice.choice, *(each for each in advice.front if each.name != advice.choice.name)]
    rows = [_option(each, advice) for each in sorted(points, key=lambda each: each.seconds)]
    _write(path, OPTION, rows)


def _option(point: PointReport, advice: Advice) -> tuple[object, ...]:
    named = (point.machine, point.row.method, " ".join(point.row.knobs), point.name == advice.choice.name)
    times = (point.on_front, point.seconds, point.seconds_low, point.seconds_high)
    return (*named, *times, point.cost, point.cost_low, point.cost_high, advice.goal.currency)


def write_parts_csv(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the parts of a comparison (`gcnsim.compare/1`), a line each, seconds. Raises FileError."""
    _write(path, PART, [[part[key] for key in PART] for part in payload["parts"]])


def _write(path: str | Path, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with atomic_write(path, text=True) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heads)
        table.writerows(rows)
