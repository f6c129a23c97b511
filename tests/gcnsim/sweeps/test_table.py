"""Files of a sweep's rows: what is none of ours is said in one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.errors import FileError
from gcnsim.sweeps.table import LEAD, read_table


def test_columns_of_one_name_and_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    names = [*LEAD, "zzzz"]
    table = pa.table([pa.array(["1"])] * len(names), names)
    pq.write_table(table, tmp_path / "sound")
    assert read_table(tmp_path / "sound").column_names == names
    pq.write_table(table.append_column("id", table["id"]), tmp_path / "double")
    with pytest.raises(FileError, match="double: not a file of a sweep: it has a column more than once"):
        read_table(tmp_path / "double")
    raw = (tmp_path / "sound").read_bytes()
    (tmp_path / "named").write_bytes(raw.replace(b"zzzz", b"\xff\xfe\xff\xfe"))
    with pytest.raises(FileError, match=r"named: not a Parquet file of a sweep: .*utf-8"):
        read_table(tmp_path / "named")
    with pytest.raises(FileError, match=r"none: not a Parquet file of a sweep: .*No such file"):
        read_table(tmp_path / "none")
