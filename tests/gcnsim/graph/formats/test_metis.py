from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gcnsim.core.errors import GcnsimError
from gcnsim.graph import load_graph
from gcnsim.graph.csr import Cleaning


@pytest.mark.parametrize(
    ("text", "weighted"),
    [
        ("4 2\n2\n1 3\n2\n\n", False),
        ("% c\n4 2\n2\n% c\n1 3\n2\n\n\n\n", False),
        ("4 2 000\r\n2\r\n1 3\r\n2\r\n\r\n", False),
        ("4 2 1\n2 9\n1 9 3 7\n2 7\n\n", True),
        ("4 2 10\n5 2\n5 1 3\n5 2\n5\n", True),
        ("4 2 011 2\n5 6 2 9\n5 6 1 9 3 7\n5 6 2 7\n5 6", True),
        ("4 2 100\n8 2\n8 1 3\n8 2\n8\n", True),
    ],
)
def test_every_format_flag_gives_the_same_graph(tmp_path: Path, text: str, weighted: bool) -> None:
    path = tmp_path / "g.graph"
    path.write_bytes(text.encode())
    graph = load_graph(path)
    assert graph.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning(ignored=("weights",) * weighted)


def test_gzip_and_isolated_nodes_between_others(tmp_path: Path) -> None:
    path = tmp_path / "g.graph.gz"
    path.write_bytes(gzip.compress(b"3 1\n3\n\n1\n"))
    graph = load_graph(path)
    assert graph.name == "g"
    assert graph.degrees.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header ''; 'nodes edges [fmt [ncon]]' is needed"),
        ("four 2\n", "header 'four 2'"),
        pytest.param(f"{'9' * 5000} 2\n", "; 'nodes edges [fmt [ncon]]' is needed", id="endless"),
        ("3 2 012\n2\n1 3\n2\n", "fmt must be up to three digits 0 or 1"),
        ("3 2 0011\n2\n1 3\n2\n", "fmt must be up to three digits 0 or 1"),
        ("4 2\n2\n1 3\n2\n", "the header says 4 nodes, so as many lines follow it; found 3"),
        ("2 2\n2\n1 3\n2\n", "the header says 2 nodes, so as many lines follow it; found 3"),
        ("900000000000 2\n2\n", "the header says 900000000000 nodes, so as many lines follow it; found 1"),
        ("3 3\n2\n1 3\n2\n", "the header says 3 edges, so 6 neighbours; found 4"),
        ("3 2\n% c\n2\n1 4\n2\n", "line 4: neighbour 4 is out of range; 1 to 3 are allowed"),
        ("3 2\n2\n0 3\n2\n", "line 3: neighbour 0 is out of range; 1 to 3 are allowed"),
        ("3 2\n2\n1 99999999999999999999\n2\n", "line 3: neighbour "),
        ("3 2\n2\n% c\n1 -3\n2\n", "line 4: numbers must be whole, from 1, not '-3'"),
        ("3 2 1\n2 9\n1 9 3\n2 7\n", "line 3: 3 numbers do not fit the header's format"),
        ("3 2 10 2\n5\n5 6 1 3\n5 6 2\n", "line 2: 1 numbers do not fit the header's format"),
        ("2 0\n\n\n", "empty graph"),
        ("0 0\n", "empty graph: 0 nodes"),
    ],
)
def test_a_file_that_contradicts_itself_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.graph"
    path.write_text(text)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
