"""The rows of a sweep in a terminal, and as files for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.terminal import aligned
from gcnsim.report.answer.columns import TEXT, columns_of, uninformative_costs
from gcnsim.results import KEYS, Row

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN: Final = (
    "time",
    "speedup_vs_full_graph",
    "shares",
    "limited_by",
    "memory_bytes",
    "usd_per_1000_iterations",
    "cost_per_1000_iterations",
)
SUFFIXES: Final = (".csv", ".json", ".parquet")


def row_of_record(record: Mapping[str, Any]) -> Row:
    """The row of an answered point."""
    return Row(**{key: value for key, value in record.items() if key in KEYS})


def render_points(records: Sequence[Mapping[str, Any]], axes: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """One line per answered point: its index, its values of the axes, its results.

    keys: columns to show instead of the default ones, by the names of what-if's table.
    """
    if not records:
        return "no point"
    rows = [row_of_record(record) for record in records]
    if keys is None:
        other = uninformative_costs(rows)
        keys = [
            key
            for key in SHOWN
            if key in ("time", "shares") or (key not in other and any(getattr(row, key) is not None for row in rows))
        ]
    columns = columns_of(rows, keys)
    cells = [[str(record["point"]), *(_text(record[path]) for path in axes)] for record in records]
    lines = [
        [*lead, *own] for lead, own in zip(cells, zip(*(column.cells for column in columns), strict=True), strict=True)
    ]
    heads = ["point", *(path.replace(".", ".\n") for path in axes), *(column.head for column in columns)]
    left = [False, *(isinstance(records[0][path], str | None) for path in axes), *(key in TEXT for key in keys)]
    return "\n".join(aligned(lines, heads, left=left))


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def write_points(path: str | Path, table: pa.Table) -> None:
    """Write the table as CSV, JSON (a list of objects) or Parquet, by the file's suffix. Raises FileError."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: its suffix says no format; allowed: {', '.join(SUFFIXES)}")
    if suffix == ".json":
        with atomic_write(path, text=True) as file:
            json.dump(table.to_pylist(), file, indent=1, allow_nan=False)
            file.write("\n")
        return
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    with atomic_write(path) as file:
        if suffix == ".csv":
            pc.write_csv(table, file)
        else:
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
