from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import FileError
from gcnsim.timeline import KINDS, Timeline
from gcnsim.timeline.span import read_spans, write_spans

STREAMS = ("compute", "b.tx1", "f.pack")
COLUMNS = ("kind", "worker", "stream", "iteration", "layer", "direction", "peer", "start_ps", "end_ps", "nbytes")


def timeline(size: int, seed: int = 0) -> Timeline:
    """Spans of all kinds with arbitrary facts, in order."""
    generator = np.random.Generator(np.random.PCG64(seed))
    starts = np.sort(generator.integers(0, 10**15, size))
    return Timeline(
        kind=generator.integers(0, len(KINDS), size).astype(np.uint8),
        worker=generator.integers(0, 4, size).astype(np.int32),
        stream=generator.integers(0, len(STREAMS), size).astype(np.int32),
        iteration=np.arange(size, dtype=np.int32),
        layer=generator.integers(-1, 3, size).astype(np.int32),
        direction=generator.integers(0, 3, size).astype(np.uint8),
        peer=generator.integers(-1, 4, size).astype(np.int32),
        start_ps=starts,
        end_ps=starts + generator.integers(0, 10**9, size),
        nbytes=generator.random(size) * 1e6,
        streams=STREAMS,
    )


def altered(path: Path, **columns: Any) -> None:
    """Rewrite the file with some columns replaced (None: left out)."""
    table = pq.read_table(path)
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.remove_column(at) if values is None else table.set_column(at, name, pa.chunked_array([values]))
    pq.write_table(table, path)


def test_a_timeline_comes_back_as_it_was(tmp_path: Path) -> None:
    before = timeline(3000)
    write_spans(tmp_path / "t", before, {"seed": "3"})
    after = read_spans(tmp_path / "t")
    assert after.streams == STREAMS
    for name in COLUMNS:
        old, new = getattr(before, name), getattr(after, name)
        assert np.array_equal(old, new), name
        assert (new.dtype, new.flags.writeable) == (old.dtype, False), name
    assert pq.read_schema(tmp_path / "t").metadata[b"seed"] == b"3"


def test_several_row_groups_and_plain_words_are_read_too(tmp_path: Path) -> None:
    before = timeline(100)
    write_spans(tmp_path / "t", before, {})
    table = pq.read_table(tmp_path / "t")
    for name in ("kind", "stream", "direction"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    pq.write_table(table, tmp_path / "t", row_group_size=7)
    assert list(read_spans(tmp_path / "t")) == list(before)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_column_is_named(tmp_path: Path, name: str) -> None:
    write_spans(tmp_path / "t", timeline(5), {})
    altered(tmp_path / "t", **{name: None})
    with pytest.raises(FileError, match=rf"t: has no column '{name}'"):
        read_spans(tmp_path / "t")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("kind", pa.array(["step", "stepp", "step"]), "unknown kind 'stepp'; did you mean 'step'"),
        ("stream", pa.array(["a", None, "a"]), "column 'stream' has empty values"),
        ("stream", pa.array([[1], [2], [3]]), "column 'stream' is list<.*, wanted words"),
        ("worker", pa.array([0, -1, 0]), "row 1: worker is -1; allowed: 0 or more"),
        ("worker", pa.array([0, 2**40, 0]), "column 'worker' is int64, wanted int32"),
        ("nbytes", pa.array([0.0, float("nan"), 1.0]), "row 1: nbytes is nan; allowed: 0 or more"),
        ("start_ps", pa.array([5, 4, 6]), "row 1 starts before the row above it"),
        ("end_ps", pa.array([10**17, 0, 10**17]), "row 1: ends at 0 ps, before its start at"),
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, name: str, values: Any, message: str) -> None:
    write_spans(tmp_path / "t", timeline(3), {})
    altered(tmp_path / "t", **{name: values})
    with pytest.raises(FileError, match=message) as caught:
        read_spans(tmp_path / "t")
    assert "\n" not in str(caught.value)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="none: cannot be read: No such file"):
        read_spans(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_spans(tmp_path)
    (tmp_path / "text").write_text("kind,worker\n", encoding="utf-8")
    with pytest.raises(FileError, match="text: not a Parquet file, or a damaged one"):
        read_spans(tmp_path / "text")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
def test_a_damaged_page_is_refused_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, at: int, flip: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damage") / "t"
    before = timeline(400)
    write_spans(path, before, {})
    whole = bytearray(path.read_bytes())
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    place = 4 + at % (pages - 4)
    whole[place] ^= flip
    path.write_bytes(whole[:place] if cut else whole)
    try:
        after, refused = list(read_spans(path)), ""
    except FileError as error:
        after, refused = [], str(error)
    assert refused.startswith(f"{path}: ") or after == list(before)


def test_columns_of_one_name_and_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    write_spans(tmp_path / "t", timeline(3), {})
    table = pq.read_table(tmp_path / "t")
    pq.write_table(table.append_column("worker", table["worker"]), tmp_path / "double")
    with pytest.raises(FileError, match="double: has column 'worker' more than once; not a file of spans"):
        read_spans(tmp_path / "double")
    pq.write_table(table.append_column("zzzz", table["worker"]), tmp_path / "named")
    raw = (tmp_path / "named").read_bytes()
    (tmp_path / "named").write_bytes(raw.replace(b"zzzz", b"\xff\xfe\xff\xfe"))
    with pytest.raises(FileError, match=r"named: not a Parquet file, or a damaged one: .*utf-8"):
        read_spans(tmp_path / "named")
