from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.errors import FileError
from gcnsim.graph import Cleaning, build_csr, load_graph
from gcnsim.graph.write import write_npz


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
