"""Made-up graphs: the same everywhere, as dense and as far-reaching as asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from runtime.survey import GeneratedGraph
from runtime.survey.program import made_up, save

NODES = {"cpu": 2000, "cuda": 4000}


def test_a_graph_is_drawn_from_its_name(tmp_path: Path) -> None:
    made = GeneratedGraph(NODES, 20, 0.1, 8, 4)
    first, other = made_up("a", made, "cpu"), made_up("b", made, "cpu")
    assert made_up("a", made, "cpu").content_hash() == first.content_hash() != other.content_hash()
    assert (first.nodes, made_up("a", made, "cuda").nodes) == (2000, 4000)
    assert first.entries == pytest.approx(2000 * 20, rel=0.1)
    save(tmp_path / "a.npz", first)
    save(tmp_path / "again.npz", first)
    assert load_graph(str(tmp_path / "a.npz")).content_hash() == first.content_hash()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "again.npz").read_bytes(), "servers may share the folder"
    save(tmp_path / "a.npz", other)
    assert load_graph(str(tmp_path / "a.npz")).content_hash() == first.content_hash(), "what is there stays"


def test_far_edges_make_boundaries() -> None:
    def boundary(far: float) -> int:
        graph = made_up("a", GeneratedGraph(NODES, 20, far, 8, 4), "cpu")
        return sum(part.boundary_nodes for part in split(graph, partition_graph(graph, 4, "metis", "vol", 0)))

    assert boundary(0.3) > 1.2 * boundary(0.02)
