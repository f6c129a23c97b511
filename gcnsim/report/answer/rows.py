"""What rows of an answer have in common, and what distinguishes them: shared by table, CSV, figures and page.

A CSV file has one line for each row: the machine first, then the keys of JSON; seconds, bytes, shares unrounded. What a
row nests is flat: `limited_by`, `limited_by_kind`, ..., `vs_recommended_low`. A recommended setting that was not asked
for is the last line. What is not known is empty.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import ScenarioError, nearest, plural
from gcnsim.io.atomic import atomic_write
from gcnsim.results import KEYS, Row, WhatIf
from gcnsim.units import format_gbps


def varies(rows: Sequence[Row], key: str) -> bool:
    """Whether `rows` hold more than one value of the column `key`."""
    return len({value_of(row, key) for row in rows}) > 1


def value_of(row: Row, key: str) -> Any:
    """What the row has in the column `key`; None of a column that joins several."""
    return bandwidth_text(row) if key == "bandwidth" else getattr(row, key, None)


def bandwidth_text(row: Row) -> str:
    """The bandwidth of its servers' network cards as networks are sold: `15Gbps`."""
    return format_gbps(row.bandwidth_bytes_per_s)


MANY: Final = 12
"""A table with more rows shows the first `FIRST` by default."""

FIRST: Final = 10

_SORTED_BY: Final = {"time": "iteration_s", "interval": "iteration_s_high", "bandwidth": "bandwidth_bytes_per_s"}
"""Columns that are sorted by a field of another name."""


def checked_order(column: str) -> str:
    """A column to sort by, `-` in front for the largest first. Raises ScenarioError for one that has no order."""
    known = [*KEYS, *_SORTED_BY, "nic_bytes_per_s"]
    if column.removeprefix("-") not in known:
        raise ScenarioError(f"--sort: unknown column {column!r}; {nearest(column.removeprefix('-'), known)}")
    return column


def shown_rows(rows: Sequence[Row], sort: str | None, top: int | None) -> list[Row]:
    """The rows of a table, of `rows`, fastest first: by the column `sort`, the first `top` of them.

    Rows that say nothing there come last. The recommended row is always among them. top: None is all up to `MANY`.
    """
    most = (len(rows) if len(rows) <= MANY else FIRST) if top is None else top
    ordered = list(rows)
    if sort is not None:
        name = sort.removeprefix("-")
        key = _SORTED_BY.get(name, name)
        says = [row for row in rows if getattr(row, key) is not None]
        ordered = sorted(says, key=lambda row: getattr(row, key), reverse=sort.startswith("-"))
        ordered += [row for row in rows if getattr(row, key) is None]
    best = [row for row in ordered[most:] if row.recommended]
    return [*ordered[: max(0, most - len(best))], *best]


def shared_knobs(rows: Sequence[Row]) -> dict[str, str]:
    """The knobs that two or more rows all have at one value, in words: what a title can say once."""
    if len(rows) < 2:
        return {}
    words = [row.knob_words() for row in rows]
    return {name: text for name, text in words[0].items() if all(each.get(name) == text for each in words)}


def labels_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The method of each row and, if the method has several rows, the settings that distinguish them.

    >>> labels_of([])
    []
    """
    counts = Counter(row.method for row in rows)
    return [(row.method, _setting(row, rows) if counts[row.method] > 1 else "") for row in rows]


def _setting(row: Row, rows: Sequence[Row]) -> str:
    twins = [other for other in rows if other.method == row.method]
    parts = {
        "gpus": plural(row.gpus, "GPU"),
        "device": row.device,
        "host": row.host or "",
        "gpus_per_server": f"{row.gpus_per_server} per server",
        "bandwidth": bandwidth_text(row),
        "tau": f"tau {row.tau}",
        "epsilon": f"eps {row.epsilon:g}",
        "rate": f"rate {row.rate:g}",
        "cache_fraction": f"cache {100 * row.cache_fraction:.4g}%",
        "setting": row.setting or "default knobs",
    }
    return ", ".join(text for key, text in parts.items() if varies(twins, key))


COLUMNS: Final = (
    *("bandwidth" if key == "bandwidth_bytes_per_s" else key for key in KEYS),
    "bandwidth_bytes_per_s",
    "nic_bytes_per_s",
)
"""The fields of a row; its bandwidth in words and as a number, and what a server sends per second."""


def write_csv(path: str | Path, answer: WhatIf) -> None:
    """Write the rows of `answer` to `path`, one line per row below a heading.

    Raises FileError when the file cannot be written.
    """
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([value_of(row, key) for key in COLUMNS] for row in answer.rows)


def columns_of_rows(answer: WhatIf) -> dict[str, list[Any]]:
    """The same rows column by column, for data frames."""
    return {key: [value_of(row, key) for row in answer.rows] for key in COLUMNS}
