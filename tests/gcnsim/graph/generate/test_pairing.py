from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.errors import FileError, GraphError
from gcnsim.graph import Cleaning, from_csr
from gcnsim.graph.generate import configuration, read_degrees
from gcnsim.ids import IntArray
from gcnsim.streams import stream


def _degrees() -> IntArray:
    found: IntArray = stream(0, "degrees").integers(0, 60, 2000)
    found[0] += found.sum() % 2
    return found


def test_every_node_has_its_degree_and_the_graph_is_clean() -> None:
    degrees = _degrees()
    graph = configuration(degrees, 5)
    assert graph.degrees.tolist() == degrees.tolist()
    assert graph.cleaning == from_csr(graph.indptr, graph.indices, "again").cleaning == Cleaning()


def test_a_seed_is_a_graph() -> None:
    one, two, other = (configuration(_degrees(), seed).content_hash() for seed in (1, 1, 2))
    assert one == two != other


def test_a_dense_graph_is_found_too() -> None:
    assert configuration(np.full(60, 30), 0).entries == 1800


def test_a_sequence_without_room_says_how_many_edges_it_lost() -> None:
    graph = configuration(np.array([3, 3, 1, 1]), 0)
    assert graph.cleaning.duplicates_dropped == 4 - graph.entries // 2 > 0


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        ([3, 2, 2], "a degree of 3; 3 nodes allow 0 to 2"),
        ([1, 1, 1], "the degrees' sum 3 is odd"),
        ([0, 0, 0], "0 edges; 3 nodes allow 1 to 3"),
        ([-1, 2, 1], "a degree of -1"),
    ],
)
def test_a_sequence_that_no_graph_has_is_refused(degrees: list[int], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        configuration(np.array(degrees), 0)


def test_degrees_are_read_from_text_and_npy(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("3\n2\n1\n")
    np.save(tmp_path / "d.npy", np.array([3, 2, 1], np.int32))
    assert read_degrees(tmp_path / "d.txt").tolist() == read_degrees(tmp_path / "d.npy").tolist() == [3, 2, 1]


@pytest.mark.parametrize("text", ["3\n-2\n", "1.5\n", "", "degree\n3\n"])
def test_other_text_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.txt"
    path.write_text(text)
    with pytest.raises(FileError, match=r"d\.txt: "):
        read_degrees(path)
