"""Files of a sweep's rows: what is none of ours is said in one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.core.errors import FileError
from gcnsim.planning.sweep_table import LEAD, read_table, wrong_rows


def test_rows_of_another_sweep_are_told_from_ones_own() -> None:
    schema = pa.schema([("point", pa.int64()), ("id", pa.string()), ("state", pa.string()), ("reason", pa.string())])
    rows = {"point": [0, 1], "id": ["a", "b"], "state": ["done", "lost"], "reason": [None, "x"]}
    own = pa.table(rows, schema=schema)
    assert wrong_rows(own, schema, 2) is None
    assert wrong_rows(own.slice(0, 0), schema, 0) is None
    assert wrong_rows(own, schema, 1) == "points run from 0 to 1; 0 to 0 are allowed"
    assert wrong_rows(own.append_column("tau", own["point"]), schema, 2) == "column 'tau' is missing or unexpected"
    other = own.set_column(0, "point", own["point"].cast(pa.float64()))
    assert wrong_rows(other, schema, 2) == "its columns are of other types or order"
    assert wrong_rows(pa.table(rows | {"state": ["done", None]}, schema=schema), schema, 2) == (
        "a row has no point, id or state"
    )


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
