from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    graph = configuration(np.array([3, 3, 2, 2, 0]), 0)
    assert graph.cleaning.duplicates_dropped == 5 - graph.entries // 2 > 0


@pytest.mark.parametrize("missing", [0, 3])
def test_a_graph_of_nearly_all_pairs_loses_none(missing: int) -> None:
    degrees = np.full(200, 199 - missing)
    graph = configuration(degrees, 0)
    assert graph.degrees.tolist() == degrees.tolist()
    assert graph.cleaning == from_csr(graph.indptr, graph.indices, "again").cleaning == Cleaning()


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 7), min_size=2, max_size=8))
def test_what_is_refused_is_what_no_graph_has(given_degrees: list[int]) -> None:
    total, most = sum(given_degrees), len(given_degrees) - 1
    falling = sorted(given_degrees, reverse=True)
    room = all(
        sum(falling[:k]) <= k * (k - 1) + sum(min(each, k) for each in falling[k:]) for k in range(1, len(falling) + 1)
    )
    try:
        configuration(np.array(given_degrees), 0)
    except GraphError:
        assert not room or total == 0 or total % 2 or falling[0] > most
    else:
        assert room


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        ([3, 3, 1, 1], r"the 2 largest degrees add up to 6; these 4 nodes allow 4 at most, so no graph has them"),
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


@pytest.mark.parametrize(
    "values", [np.array([1, 2**64 - 1], np.uint64), np.array([1, 2**31], np.int64), np.array([1, -1], np.int64)]
)
def test_a_degree_that_no_node_has_is_refused_with_its_path(tmp_path: Path, values: IntArray) -> None:
    path = tmp_path / "d.npy"
    np.save(path, values)
    with pytest.raises(
        FileError, match=rf"d\.npy: degrees must be whole numbers from 0 to 2,147,483,647, not {values[1]}"
    ):
        read_degrees(path)


@pytest.mark.parametrize(
    "text",
    ["1\n99999999999999999999999\n", "1\n" + "9" * 5000, "1\n3000000000\n", "3\n-2\n", "1.5\n", "", "degree\n3\n"],
)
def test_other_text_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.txt"
    path.write_text(text)
    with pytest.raises(FileError, match=r"d\.txt: "):
        read_degrees(path)
