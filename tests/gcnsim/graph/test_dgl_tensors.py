"""Files of `dgl.data.utils.save_tensors`: plain arrays, read without DGL and without trust in their bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph.formats.dgl_tensors import read_dgl_tensors
from tests.gcnsim.graph.dgl_files import tensors

ARRAYS = {"_N": np.array([3, 1, 2]), "_N/feat": np.ones((2, 2), np.float32), "flags": np.array([1, 0], np.uint8)}


def test_arrays_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.dgl").write_bytes(tensors(ARRAYS))
    found = read_dgl_tensors(tmp_path / "a.dgl")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].tolist()) == (array.dtype, array.tolist())


def test_whatever_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = tensors(ARRAYS)
    for length in range(len(whole)):
        (tmp_path / "a.dgl").write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"a.dgl: "):
            read_dgl_tensors(tmp_path / "a.dgl")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, struct.pack("<Q", 1), "not a file of dgl.data.utils.save_tensors"),
        (8, struct.pack("<Q", 2), "2 and 3 arrays"),
        (34, struct.pack("<Q", 1), "no array begins at byte 34"),
        (58, struct.pack("<i", 99), "no array begins at byte 34"),
        (62, b"\x04", "has type 4, 64 bits"),
        (66, struct.pack("<q", 2**60), "24 bytes are not int64"),
        (66, struct.pack("<q", -3), "24 bytes are not int64"),
    ],
)
def test_a_header_that_cannot_be_is_refused(tmp_path: Path, place: int, value: bytes, message: str) -> None:
    data = bytearray(tensors(ARRAYS))
    data[place : place + len(value)] = value
    (tmp_path / "a.dgl").write_bytes(data)
    with pytest.raises(FileError) as caught:
        read_dgl_tensors(tmp_path / "a.dgl")
    assert message in str(caught.value)


def test_bytes_after_the_last_array_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.dgl").write_bytes(tensors(ARRAYS) + b"more")
    with pytest.raises(FileError, match="4 bytes follow the last array"):
        read_dgl_tensors(tmp_path / "a.dgl")
