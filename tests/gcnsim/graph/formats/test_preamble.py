"""What text files hold besides edges: counts, a spreadsheet's lines, JSON, times and row numbers without a header."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, load_graph


def _read(path: Path, text: str, ids: str = "numbers", ends: tuple[str, str] | None = None) -> Graph:
    path.write_text(text)
    return load_graph(path, ids, ends)


@pytest.mark.parametrize("ids", ["numbers", "compact", "names"])
@pytest.mark.parametrize(
    "text",
    ["4 3\n0 1\n1 2\n2 3\n", "4 4 3\n1 2 5\n2 3 1\n3 4 1\n", "# c\n4 3\n1,2\n2,3\n3,4\n", "4 3\n0 1 9\n1 2 9\n2 3 9"],
)
def test_a_first_line_of_counts_is_no_edge_and_named(tmp_path: Path, text: str, ids: str) -> None:
    graph = _read(tmp_path / "g.txt", text, ids)
    assert graph.indices.size == 6
    assert any("which counts nodes and edges" in name for name in graph.cleaning.ignored)


@pytest.mark.parametrize("text", ["4 3\n0 1\n1 2\n", "1 3\n0 1\n1 2\n2 3\n", "4 3\n0 1\n1 2\n2 5\n"])
def test_a_first_line_that_counts_something_else_is_an_edge(tmp_path: Path, text: str) -> None:
    graph = _read(tmp_path / "g.txt", text)
    assert graph.indices.size == 2 * text.count("\n")
    assert graph.cleaning.ignored == ()


@pytest.mark.parametrize("ids", ["numbers", "names"])
@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nsource;target\n0;1\n1;2\n",
        '"sep=,"\nsource,target\n0,1\n1,2\n',
        "source,target,,\n0,1,,\n1,2,,\n,,,\n,,,",
    ],
)
def test_lines_that_only_a_spreadsheet_needs_are_passed_over(tmp_path: Path, text: str, ids: str) -> None:
    graph = _read(tmp_path / "g.csv", text, ids)
    assert (graph.nodes, graph.indices.size) == (3, 4)


@pytest.mark.parametrize("ids", ["numbers", "names"])
@pytest.mark.parametrize(
    "text",
    ['{"source": 5, "target": 7}\n{"source": 7, "target": 2}\n', "[5, 7]\n[7, 2]\n", "(5, 7)\n(7, 2)\n", "[\n5\n"],
)
def test_json_and_tuples_are_refused_whatever_ids_are(tmp_path: Path, text: str, ids: str) -> None:
    with pytest.raises(FileError, match=r"line 1: .* is JSON or a Python list, not an edge; .* as in 0,1"):
        _read(tmp_path / "g.csv", text, ids)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("0,5,7\n1,7,2\n2,2,5\n", "the numbers of lines"),
        ("1 5 7\n2 7 2\n3 2 5\n", "the numbers of lines"),
        ("1082008561,5,7\n1082008562,7,2\n", "times"),
        ("2020-01-01,5,7\n2020-01-02,7,2\n", "times"),
        ("2020-01-01T10:00:00Z,a,b\n2020-01-02T10:00:00Z,b,c\n", "times"),
    ],
)
def test_times_and_row_numbers_without_a_header_are_no_ends(tmp_path: Path, text: str, held: str) -> None:
    ids = "names" if "a" in text else "numbers"
    with pytest.raises(FileError, match=f"the first looks like {held} .* --ends 2,3, or --ends 1,2"):
        _read(tmp_path / "g.csv", text, ids)
    assert _read(tmp_path / "g.csv", text, ids, ("2", "3")).indices.size == 2 * text.count("\n")


@pytest.mark.parametrize("text", ["0 1 1\n1 2 1\n2 3 1\n", "0,1,0.5\n1,2,1.5\n2,3,2.5\n", "0 1 5\n1 2 7\n2 3 1\n"])
def test_weights_of_a_path_are_weights(tmp_path: Path, text: str) -> None:
    assert _read(tmp_path / "g.csv", text).indices.size == 2 * text.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target\nann,bob\nbob,NaN\n", "line 3: bob, NaN: a missing value"),
        ("source,target\nann,bob\nbob,null\n", "a missing value"),
        ("source,target\nann,bob\nsource,target\nbob,cid\n", "line 3: the header again"),
    ],
)
def test_names_that_are_none_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        _read(tmp_path / "g.csv", text, "names")


@pytest.mark.parametrize("text", ["source,target\n5.0,7.0\n7.0,NaN\n", "source,target\n5,7\n7,NA\n"])
def test_a_missing_number_is_not_called_a_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match=r"line 3: node ids must be integers, not '(NaN|NA)'$"):
        _read(tmp_path / "g.csv", text)
