"""The rows as a CSV file: GPUs and bandwidth first, then the payload's keys; seconds, bytes and fractions unrounded."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from gcnsim.report.rows import ROW_KEYS, rows_of
from gcnsim.sections import replacing


def write_csv(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the results of `payload` to `path`, one line per row beneath a heading.

    Raises FileError when the file cannot be written.
    """
    rows = rows_of(payload)
    with replacing(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ROW_KEYS)
        writer.writerows(astuple(row) for row in rows)
