from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.container import write_sections
from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, build_csr
from gcnsim.workload.norms import read_norms, write_norms


def ring(nodes: int) -> Graph:
    return build_csr(np.arange(nodes), (np.arange(nodes) + 1) % nodes, nodes, "ring")


def test_norms_come_back_as_they_were(tmp_path: Path) -> None:
    graph, norms = ring(5), np.array([0.0, 1.5, 2.0, 3.25, 1e-20], np.float32)
    write_norms(tmp_path / "n", norms, graph.content_hash())
    assert np.array_equal(read_norms(tmp_path / "n", graph), norms)


def test_another_graph_is_refused(tmp_path: Path) -> None:
    graph, other = ring(5), build_csr(np.array([0, 1, 2]), np.array([1, 2, 4]), 5, "path")
    write_norms(tmp_path / "n", np.ones(5, np.float32), graph.content_hash())
    with pytest.raises(FileError, match="norms of another graph than path"):
        read_norms(tmp_path / "n", other)
    with pytest.raises(FileError, match="norms of 5 nodes, graph ring has 6"):
        read_norms(tmp_path / "n", ring(6))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_values_that_are_no_norms_are_refused(tmp_path: Path, bad: float) -> None:
    graph, norms = ring(4), np.array([1.0, 1.0, bad, 1.0], np.float32)
    with pytest.raises(ValueError, match="norm of node 2 is"):
        write_norms(tmp_path / "n", norms, graph.content_hash())
    meta = {"graph_hash": graph.content_hash()}
    write_sections(tmp_path / "n", kind="norms", version=1, meta=meta, arrays={"norms": norms})
    with pytest.raises(FileError, match="norm of node 2 is"):
        read_norms(tmp_path / "n", graph)


def test_foreign_truncated_and_altered_files_are_refused(tmp_path: Path) -> None:
    graph, path = ring(64), tmp_path / "n"
    write_sections(path, kind="norms", version=1, meta={}, arrays={"norms": np.ones(64)})
    with pytest.raises(FileError, match="no float32 section 'norms'"):
        read_norms(path, graph)
    write_norms(path, np.ones(64, np.float32), graph.content_hash())
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(FileError, match="truncated"):
        read_norms(path, graph)
    path.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(FileError, match="altered"):
        read_norms(path, graph)
