"""The rows as a CSV file, one line each: the machine first, then the keys of JSON; seconds, bytes, shares unrounded.

What a row nests is flat: `limited_by`, `limited_by_kind`, ..., `vs_recommended_low`. A recommended setting that was not
asked for is the last line. What is not known is empty.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from gcnsim.io.atomic import atomic_write
from gcnsim.report.answer.rows import value_of
from gcnsim.results import KEYS, WhatIf

COLUMNS: Final = (
    *("bandwidth" if key == "bandwidth_bytes_per_s" else key for key in KEYS),
    "bandwidth_bytes_per_s",
    "nic_bytes_per_s",
)
"""The fields of a row; its bandwidth in words and as a number, and what a server sends per second."""


def write_csv(path: str | Path, answer: WhatIf) -> None:
    """Write the rows of `answer` to `path`, one line per row beneath a heading.

    Raises FileError when the file cannot be written.
    """
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([value_of(row, key) for key in COLUMNS] for row in answer.rows)


def columns_of_rows(answer: WhatIf) -> dict[str, list[Any]]:
    """The same rows column by column, for data frames."""
    return {key: [value_of(row, key) for row in answer.rows] for key in COLUMNS}
