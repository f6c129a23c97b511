"""Parquet files read whole, with their checksums checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet_table(path: str | Path) -> pa.Table:
    """Read all rows of the file. Raises OSError, pyarrow.ArrowException, MemoryError or OverflowError for damage.

    Arrow's threads are not used: a thread that holds a Python file while the interpreter ends aborts the process
    ("terminate called without an active exception", Arrow issues 34314 and 45017).
    """
    import pyarrow.parquet as pq

    with open(path, "rb") as file:
        table = pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False).read(use_threads=False)
    table.validate(full=True)
    return table
