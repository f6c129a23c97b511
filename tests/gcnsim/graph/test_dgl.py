"""DGL's tensors and folders."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.formats.layouts.dgl import read_dgl_tensors
from gcnsim.graph.owners import open_partition
from tests.gcnsim.graph.dgl_files import folder, tensors

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


NEWER = {"_N": [[0, 3], [3, 7]]}
ORIGINAL = [np.array([6, 0, 1]), np.array([2, 3, 4, 5])]
"""Node 0 of DGL is node 6 of the graph."""


@pytest.fixture
def path_graph() -> Graph:
    """Seven nodes in a row: 12 stored entries."""
    return build_csr(np.arange(6), np.arange(1, 7), 7, "row")


@pytest.mark.parametrize("name", ["node_map.npy", "out/node_map.npy", "/elsewhere/out/node_map.npy", "../node_map.npy"])
def test_an_older_folder_names_its_array_of_owners(path_graph: Graph, tmp_path: Path, name: str) -> None:
    home = folder(tmp_path / "dgl", name)
    np.save(home / "node_map.npy", np.array([0, 0, 1, 1, 1, 0, 1]))
    partitioning = open_partition(home, path_graph)
    assert (partitioning.owner.tolist(), partitioning.parts, partitioning.note) == ([0, 0, 1, 1, 1, 0, 1], 2, "")


@pytest.mark.parametrize("node_map", [NEWER, NEWER["_N"]])
def test_a_newer_folder_has_the_numbers_from_before(path_graph: Graph, tmp_path: Path, node_map: Any) -> None:
    home = folder(tmp_path / "dgl", node_map, ORIGINAL)
    for path in (home, home / "ring.json"):
        partitioning = open_partition(path, path_graph)
        assert (partitioning.owner.tolist(), partitioning.note) == ([0, 0, 1, 1, 1, 1, 0], "")


@pytest.mark.parametrize(("loops", "edges"), [(0, [5, 7]), (1, [8, 11])])
def test_a_graph_with_dgls_own_numbers_is_known_by_its_edges(
    path_graph: Graph, tmp_path: Path, loops: int, edges: list[int]
) -> None:
    ends = np.cumsum(edges).tolist()
    home = folder(
        tmp_path / "dgl", NEWER, num_nodes=7, num_edges=ends[1], edge_map={"_E": [[0, ends[0]], [ends[0], ends[1]]]}
    )
    assert sum(edges) == path_graph.entries + 7 * loops
    partitioning = open_partition(home, path_graph)
    assert (partitioning.owner.tolist(), partitioning.note) == ([0, 0, 0, 1, 1, 1, 1], "")


def test_a_graph_with_other_numbers_is_refused_with_what_writes_owners(path_graph: Graph, tmp_path: Path) -> None:
    home = folder(tmp_path / "dgl", NEWER, num_edges=12, edge_map={"_E": [[0, 6], [6, 12]]})
    with pytest.raises(FileError) as caught:
        open_partition(home, path_graph)
    message = str(caught.value)
    assert "row has other ids (part 0 owns 6 edges, here 5)" in message
    assert "np.repeat(range(2), [3, 4]); np.save('owner.npy', owner)" in message


@pytest.mark.parametrize("more", [{}, {"num_edges": 6, "edge_map": {"_E": [[0, 3], [3, 6]]}}, {"num_edges": 12}])
def test_numbers_that_cannot_be_checked_are_taken_with_a_note(
    path_graph: Graph, tmp_path: Path, more: dict[str, Any]
) -> None:
    partitioning = open_partition(folder(tmp_path / "dgl", NEWER, **more), path_graph)
    assert partitioning.owner.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert "which cannot be checked against row" in partitioning.note


@pytest.mark.parametrize(
    ("node_map", "more", "message"),
    [
        ({"author": [[0, 3], [3, 5]], "paper": [[5, 6], [6, 7]]}, {}, "node types author, paper"),
        ({"_N": [[0, 3], [4, 7]]}, {}, "part 1 begins at 4; 3 is needed"),
        ({"_N": [[0, 3]]}, {}, "does not give 2 parts a range of nodes each"),
        ({"_N": [[0, 3], [3, 2]]}, {}, "part 1 is [3, 2]; a range [first, end] is needed"),
        ({"_N": [[0, 3], [3, 6]]}, {}, "node_map has 6 nodes; row has 7"),
        ({}, {}, "node_map has node types "),
        ("owners.npy", {}, "node_map is 'owners.npy', which is not there"),
        (NEWER, {"num_parts": 0}, "num_parts is 0; a whole number of at least 1 is needed"),
    ],
)
def test_a_json_that_says_no_owners_is_refused(
    path_graph: Graph, tmp_path: Path, node_map: Any, more: dict[str, Any], message: str
) -> None:
    home = folder(tmp_path / "dgl", node_map, **more)
    with pytest.raises(FileError) as caught:
        open_partition(home, path_graph)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{home / 'ring.json'}: ")


@pytest.mark.parametrize(
    ("original", "message"),
    [
        ([[6, 0, 1], [2, 3, 4, 4]], "do not have each node of 0 to 6 once"),
        ([[6, 0, 1], [2, 3, 4, 7]], "do not have each node of 0 to 6 once"),
        ([[6, 0], [1, 2, 3, 4, 5]], "'_N' is int64[2]; 3 node ids needed"),
        ([[0.0, 1.0, 2.0], [3, 4, 5, 6]], "'_N' is float64[3]; 3 node ids needed"),
    ],
)
def test_original_numbers_that_are_no_renumbering_are_refused(
    path_graph: Graph, tmp_path: Path, original: list[list[float]], message: str
) -> None:
    home = folder(tmp_path / "dgl", NEWER, [np.array(part) for part in original])
    with pytest.raises(FileError) as caught:
        open_partition(home, path_graph)
    assert message in str(caught.value)


@pytest.mark.slow  # imports torch and DGL
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # DGL's own
def test_what_dgl_itself_writes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DGLBACKEND", "pytorch")
    torch, dgl = pytest.importorskip("torch"), pytest.importorskip("dgl")
    draw = np.random.default_rng(3)
    ends = draw.integers(0, 40, (2, 120))
    graph = build_csr(ends[0], ends[1], 40, "drawn")
    rows = np.repeat(np.arange(40), graph.degrees)
    theirs = dgl.graph((torch.from_numpy(rows), torch.from_numpy(graph.indices.astype(np.int64))), num_nodes=40)
    home = tmp_path / "dgl"
    numbers = dgl.distributed.partition_graph(theirs, "drawn", 2, str(home), return_mapping=True)[0].numpy()
    ranges = json.loads((home / "drawn.json").read_text())["node_map"]["_N"]
    renumbered = np.argsort(numbers)
    same = build_csr(renumbered[ends[0]], renumbered[ends[1]], 40, "renumbered")
    assert open_partition(home, same).owner.tolist() == [0] * ranges[0][1] + [1] * (40 - ranges[0][1])
    for part, (first, end) in enumerate(ranges):
        kept = {"_N": torch.from_numpy(numbers[first:end])}
        dgl.data.utils.save_tensors(str(home / f"part{part}" / "orig_nids.dgl"), kept)
    partitioning = open_partition(home, graph)
    assert partitioning.owner[numbers[: ranges[0][1]]].tolist() == [0] * ranges[0][1]
    assert partitioning.owner[numbers[ranges[1][0] :]].tolist() == [1] * (ranges[1][1] - ranges[1][0])


def test_original_numbers_of_some_parts_alone_are_refused(path_graph: Graph, tmp_path: Path) -> None:
    home = folder(tmp_path / "dgl", NEWER, ORIGINAL)
    (home / "part1" / "orig_nids.dgl").unlink()
    with pytest.raises(FileError, match=r"part1/orig_nids.dgl: is missing, though other parts have theirs"):
        open_partition(home, path_graph)


def test_a_folder_without_such_a_json_is_refused(path_graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"loss": 1.0}))
    with pytest.raises(FileError, match="not a partition folder of DGL; it has no JSON with num_parts and node_map"):
        open_partition(tmp_path, path_graph)
    with pytest.raises(FileError, match=r"other.json: not the JSON of a DGL partition"):
        open_partition(tmp_path / "other.json", path_graph)


def test_bytes_after_the_last_array_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.dgl").write_bytes(tensors(ARRAYS) + b"more")
    with pytest.raises(FileError, match="4 bytes follow the last array"):
        read_dgl_tensors(tmp_path / "a.dgl")
