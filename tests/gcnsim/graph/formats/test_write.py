from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import build_csr, load_graph
from gcnsim.graph.csr import Cleaning
from gcnsim.graph.formats.write import write_edges, write_npz


def test_a_written_graph_is_read_back_and_its_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    graph = build_csr(np.array([0, 1, 2]), np.array([1, 2, 3]), 5, "path", features=7)
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, graph)
    found = load_graph(tmp_path / "a.npz")
    assert found.content_hash() == graph.content_hash()
    assert (found.nodes, found.features, found.classes, found.cleaning) == (5, 7, None, Cleaning())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    graph = build_csr(np.array([0]), np.array([1]), 2, "edge")
    with pytest.raises(FileError, match=r"nowhere/g\.npz: cannot be written"):
        write_npz(tmp_path / "nowhere" / "g.npz", graph)


def test_arrays_of_the_nodes_go_with_the_graph(tmp_path: Path) -> None:
    graph = build_csr(np.array([0]), np.array([1]), 3, "edge", features=2)
    write_npz(tmp_path / "g.npz", graph, {"x": np.ones((3, 2), np.float32), "labels": np.array([0, 1, -1])})
    found = load_graph(tmp_path / "g.npz")
    assert (found.features, found.classes) == (2, 2)
    assert sorted(np.load(tmp_path / "g.npz", allow_pickle=False)) == ["indices", "indptr", "labels", "x"]


@pytest.mark.parametrize(("name", "separator"), [("g.txt", " "), ("g.tsv", "\t"), ("g.csv", ",")])
def test_an_edge_list_holds_each_edge_once_and_every_node(tmp_path: Path, name: str, separator: str) -> None:
    graph = build_csr(np.array([0, 1, 2]), np.array([1, 2, 0]), 5, "triangle")
    write_edges(tmp_path / name, graph, separator=separator)
    lines = [line.split(separator) for line in (tmp_path / name).read_text().splitlines()]
    assert lines == [["0", "1"], ["0", "2"], ["1", "2"], ["4", "4"]]
    found = load_graph(tmp_path / name)
    assert (found.nodes, found.content_hash()) == (5, graph.content_hash())


def test_edge_lists_are_written_by_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcnsim.graph.formats.write._ROWS", 7)
    graph = build_csr(np.arange(50), (np.arange(50) * 3 + 1) % 50, 50, "drawn")
    write_edges(tmp_path / "g.txt", graph)
    assert load_graph(tmp_path / "g.txt").content_hash() == graph.content_hash()
