"""Reading a Parquet file starts no thread of Arrow's, which could outlive the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.core.parquet import read_parquet_table

TABLE = pa.table({"source": [0, 1, 2], "target": [1, 2, 0], "weight": [0.5, 1.0, 2.0]})

COUNT = """
import os, sys
import pyarrow, pyarrow.parquet
import pyarrow.compute, pyarrow.csv
from gcnsim.graph.formats.parquet import read_parquet
from gcnsim.core.parquet import read_parquet_table
from pathlib import Path
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
{read}
print(threads() - before)
"""


def test_it_gives_what_was_written(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    assert read_parquet_table(tmp_path / "a.parquet").equals(TABLE)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
@pytest.mark.parametrize(
    ("read", "begun"),
    [
        ("read_parquet_table(sys.argv[1])", 0),
        ("read_parquet(Path(sys.argv[1]), 'ring')", 0),
        ("pyarrow.parquet.ParquetFile(sys.argv[1]).read()", None),
    ],
)
def test_no_thread_of_arrows_is_left(tmp_path: Path, read: str, begun: int | None) -> None:
    """The last case shows that the count sees Arrow's threads where they read."""
    pq.write_table(TABLE, tmp_path / "a.parquet")
    ran = subprocess.run(
        [sys.executable, "-c", COUNT.format(read=read), str(tmp_path / "a.parquet")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = int(ran.stdout)
    assert found == begun if begun is not None else found > 0
