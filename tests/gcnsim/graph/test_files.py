from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.container import write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import read_partition, write_partition

_META: dict[str, Any] = {"parts": 2, "method": "block", "seed": 0, "graph_name": "g", "graph_hash": "00"}


def test_a_partition_read_back_is_the_same(tmp_path: Path, skewed: Graph) -> None:
    written = partition_graph(skewed, 3, seed=5)
    write_partition(tmp_path / "p.part", written)
    partitioning = read_partition(tmp_path / "p.part", skewed)
    assert partitioning.owner.tolist() == written.owner.tolist()
    assert (partitioning.parts, partitioning.method, partitioning.seed) == (3, "metis-vol", 5)
    assert (partitioning.graph_name, partitioning.graph_hash) == ("skewed", skewed.content_hash())
    assert not partitioning.owner.flags.writeable


def test_the_same_partition_makes_the_same_bytes(tmp_path: Path, skewed: Graph) -> None:
    first = write_partition(tmp_path / "a", partition_graph(skewed, 3))
    assert first == write_partition(tmp_path / "b", partition_graph(skewed, 3))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_graph_is_refused(tmp_path: Path, skewed: Graph) -> None:
    write_partition(tmp_path / "p.part", partition_graph(skewed, 3))
    other = build_csr(np.array([0]), np.array([1]), 400, "other")
    with pytest.raises(FileError, match=r"p.part: made for 'skewed' \(hash .*\), which is not the graph 'other'"):
        read_partition(tmp_path / "p.part", other)


@pytest.mark.parametrize(
    ("meta", "owner", "message"),
    [
        ({}, np.array([0, 1, 2], dtype=np.int32), "owners run from 0 to 2; with 2 parts 0 to 1 are allowed"),
        ({}, np.array([0, -1], dtype=np.int32), "owners run from -1 to 0"),
        ({}, np.array([0, 0], dtype=np.int32), "2 parts for 2 nodes, but some parts are empty"),
        (
            {"parts": 10**12},
            np.array([0, 1], dtype=np.int32),
            "1,000,000,000,000 parts for 2 nodes, but some parts are empty",
        ),
        ({"parts": 0}, np.array([0], dtype=np.int32), "owners run from 0 to 0; with 0 parts 0 to -1 are allowed"),
        ({"parts": "two"}, np.array([0, 1], dtype=np.int32), "parts is 'two'; a int is needed"),
        ({"seed": None}, np.array([0, 1], dtype=np.int32), "seed is None"),
        ({}, np.array([0, 1], dtype=np.int64), "the section 'owner' is not a row of int32"),
        ({}, np.empty(0, dtype=np.int32), "the section 'owner' is not a row of int32"),
    ],
)
def test_contents_that_are_no_partition_are_refused(
    tmp_path: Path, meta: dict[str, Any], owner: AnyArray, message: str
) -> None:
    path = tmp_path / "p.part"
    write_sections(path, kind="partition", version=1, meta={**_META, **meta}, arrays={"owner": owner})
    with pytest.raises(FileError) as caught:
        read_partition(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_missing_truncated_altered_and_foreign_files_are_refused(tmp_path: Path, skewed: Graph) -> None:
    path = tmp_path / "p.part"
    with pytest.raises(FileError, match="cannot be read"):
        read_partition(path)
    write_partition(path, partition_graph(skewed, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    with pytest.raises(FileError, match="truncated"):
        read_partition(path)
    path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
    with pytest.raises(FileError, match="altered"):
        read_partition(path)
    write_sections(path, kind="trace", version=1, meta={}, arrays={})
    with pytest.raises(FileError, match="is a trace file, wanted a partition file"):
        read_partition(path)
    write_sections(path, kind="partition", version=1, meta=_META, arrays={})
    with pytest.raises(FileError, match="the section 'owner'"):
        read_partition(path)
