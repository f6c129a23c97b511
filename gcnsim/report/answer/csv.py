"""The rows as a CSV file, one line each: the machine first, then the payload's keys; seconds, bytes, shares unrounded.

What a row nests is flat: `limited_by`, `limited_by_kind`, ..., `vs_recommended_low`. A recommended setting that was not
asked for is the last line. What is not known is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from gcnsim.io.atomic import atomic_write
from gcnsim.report.answer.rows import all_rows
from gcnsim.results import KEYS


def write_csv(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the rows of `payload` to `path`, one line per row beneath a heading.

    Raises FileError when the file cannot be written.
    """
    rows = all_rows(payload)
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KEYS)
        writer.writerows(astuple(row) for row in rows)


def columns_of_rows(payload: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The same rows column by column, for data frames."""
    rows = all_rows(payload)
    return {key: [getattr(row, key) for row in rows] for key in KEYS}
