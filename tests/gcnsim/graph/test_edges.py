from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gcnsim.errors import FileError, GcnsimError, GraphError
from gcnsim.graph import Cleaning, load_graph


def _written(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "0 1\n1 2\n"),
        ("g.edges", "% sym unweighted\n# nodes\n0\t1\n\n 1   2  # last\n"),
        ("g.tsv", "source\ttarget\n0\t1\n1\t2"),
        ("g.csv", "\ufeffsource,target\r\n0, 1\r\n1, 2\r\n"),
        ("g.csv", "# a comment\n\nfrom,to\n0,1\n1,2\n"),
        ("g.csv", "0,1\n1,2\n"),
        ("g.txt.gz", "0,1\n1,2\n"),
        ("g.csv.gz", "a,b\n0,1\n1,2\n"),
    ],
)
def test_every_spelling_of_a_path_is_the_same_graph(tmp_path: Path, name: str, text: str) -> None:
    graph = load_graph(_written(tmp_path / name, text))
    assert graph.name == "g"
    assert graph.indptr.tolist() == [0, 1, 3, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning(reverse_entries_added=2)


def test_weights_are_ignored_and_said_so(tmp_path: Path) -> None:
    graph = load_graph(_written(tmp_path / "g.csv", "u,v,weight\n0,1,0.5\n1,0,2e3\n1,1,1\n0,1,0.5\n"))
    assert graph.cleaning == Cleaning(1, 1, 0, weights_ignored=True)
    assert graph.entries == 2


def test_an_id_without_a_line_is_an_isolated_node(tmp_path: Path) -> None:
    assert load_graph(_written(tmp_path / "g.txt", "3 1\n")).degrees.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n# c\n1 two\n", "line 3: 'two' is no node id; integers from 0 are"),
        ("0 1\n1 1.5\n", "line 2: '1.5' is no node id; integers from 0 are"),
        ("0 1\n\n-4 1\n", "line 3: node id -4 is out of range; 0 to 2147483646 are allowed"),
        ("0 1\n1 99999999999999999999\n", "line 2: node id 99999999999999999999 is out of range"),
        ("0 1\n1 2 3\n", "line 2: 3 columns; 2 are needed"),
        ("0 1 1\n1 2\n", "line 2: 2 columns; 3 are needed"),
        ("0 1 1\n1 2 heavy\n", "line 2: weight 'heavy' is no number"),
        ("0,1\n1,,2\n", "line 2: 3 columns; 2 are needed"),
        ("0,1\n1,\n", "line 2: '' is no node id"),
        ("# c\n0 1 2 3\n", "line 2: 4 columns; source, target and at most a weight are allowed"),
        ("source target\n0 1\n", "line 1: 'source' is no node id"),
        ("\x00\x01\x02\xff\n", "line 1: 1 columns"),
        ("", "empty graph: no edges"),
        ("# nothing\n\n", "empty graph: no edges"),
        ("1 1\n", "empty graph: no edge between two different nodes"),
        ("0 2000000\n", "node ids are too sparse: 2 ids up to 2,000,000; number the nodes from 0 first"),
        ("0 3000000000\n", "node ids are too sparse: 2 ids up to 3,000,000,000"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = _written(tmp_path / "g.txt", text)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_header_alone_is_an_empty_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="empty graph: no edges"):
        load_graph(_written(tmp_path / "g.csv", "source,target\n"))


def test_a_bad_line_after_a_header_keeps_its_number_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="line 4: 'x' is no node id"):
        load_graph(_written(tmp_path / "g.csv", "# c\nsource,target\n0,1\n1,x\n"))
