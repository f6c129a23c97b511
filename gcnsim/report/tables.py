"""Answers of pages as CSV: the options of a recommendation, the parts of a comparison."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gcnsim.io.atomic import atomic_write
from gcnsim.results import Advice, PointReport

OF_POINT: Final = ("machine", "host", "servers")
OF_ROW: Final = (
    *("gpus", "device", "bandwidth_bytes_per_s", "method", "tau", "epsilon", "rate", "cache_fraction", "setting"),
    *("iteration_s", "iteration_s_low", "iteration_s_high", "iterations_per_epoch", "epoch_s"),
)
OF_COMPARED: Final = ("iterations", "seconds", "seconds_low", "seconds_high", "cost", "cost_low", "cost_high")
OF_CHOICE: Final = ("currency", "cost_per_hour", "chance", "meets", "recommended", "runner_up", "on_front")
OF_RUN: Final = ("beaten_share", "limited_by", "memory_bytes", "fits")
OPTION: Final = (*OF_POINT, *OF_ROW, *OF_COMPARED, *OF_CHOICE, *OF_RUN)
"""The columns of a recommendation: what is compared (seconds, cost) is of so many iterations, as the answer says."""

PART: Final = ("part", "within", "a", "b", "difference", "share")


def write_options_csv(path: str | Path, advice: Advice) -> None:
    """Write the choice, the runner-up and the front of a recommendation, a line each. Raises FileError."""
    _write(path, OPTION, [[_of_option(each, advice, key) for key in OPTION] for each in advice.rows])


def columns_of_options(advice: Advice) -> dict[str, list[Any]]:
    """The same column by column, for data frames."""
    return {key: [_of_option(each, advice, key) for each in advice.rows] for key in OPTION}


def _of_option(point: PointReport, advice: Advice, key: str) -> Any:
    if key == "recommended":
        return point.name == advice.choice.name
    if key == "runner_up":
        return advice.runner_up is not None and point.name == advice.runner_up.point.name
    if key == "currency":
        return advice.goal.currency
    return getattr(point if hasattr(point, key) else point.row, key)


def write_parts_csv(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the parts of a comparison (`gcnsim.compare/1`), a line each, seconds. Raises FileError."""
    _write(path, PART, [[part[key] for key in PART] for part in payload["parts"]])


def _write(path: str | Path, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with atomic_write(path, text=True) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heads)
        table.writerows(rows)
