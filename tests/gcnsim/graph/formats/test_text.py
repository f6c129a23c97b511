"""Text formats: METIS, Matrix Market, lines before the first edge."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.graph import Graph, load_graph
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
        pytest.param(f"{'9' * 5000} 2\n", "; 'nodes edges [fmt [ncon]]' is needed", id="endless"),
        ("3 2 012\n2\n1 3\n2\n", "fmt must be up to three digits 0 or 1"),
        ("4 2\n2\n1 3\n2\n", "the header says 4 nodes, so as many lines follow it; found 3"),
        ("900000000000 2\n2\n", "the header says 900000000000 nodes, so as many lines follow it; found 1"),
        ("3 3\n2\n1 3\n2\n", "the header says 3 edges, so 6 neighbours; found 4"),
        ("3 2\n% c\n2\n1 4\n2\n", "line 4: neighbour 4 is out of range; 1 to 3 are allowed"),
        ("3 2\n2\n1 99999999999999999999\n2\n", "line 3: neighbour "),
        ("3 2\n2\n% c\n1 -3\n2\n", "line 4: numbers must be whole, from 1, not '-3'"),
        ("3 2 1\n2 9\n1 9 3\n2 7\n", "line 3: 3 numbers do not fit the header's format"),
        ("3 2 10 2\n5\n5 6 1 3\n5 6 2\n", "line 2: 1 numbers do not fit the header's format"),
        ("2 0\n\n\n", "empty graph"),
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


_HEAD = "%%MatrixMarket matrix coordinate "


def test_a_symmetric_pattern_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx.gz"
    path.write_bytes(gzip.compress(f"{_HEAD}pattern symmetric\n% c\n4 4 2\n2 1\n3 2\n".encode()))
    graph = load_graph(path)
    assert graph.name == "g"
    assert graph.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning()


def test_a_general_real_matrix_is_symmetrised_and_its_values_ignored(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"  # the content says what it is
    path.write_text(f"{_HEAD}real general\n3 3 3\n1 2 0.5\n2 1 0.5\n3 3 1\n")
    assert load_graph(path).cleaning == Cleaning(1, 0, 0, ignored=("weights",))


def test_complex_and_skew_symmetric_files_and_a_tab_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    for text in ("complex hermitian\n3 3 2\n2 1 1 0\n3 2 1 0", "real skew-symmetric\n3 3 2\n2 1 1\n3 2 1\t"):
        path.write_text(_HEAD + text)
        graph = load_graph(path)
        assert graph.indices.tolist() == [1, 0, 2, 1]
        assert graph.cleaning == Cleaning()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n", "is not a sparse Matrix Market file"),
        ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "is not a sparse Matrix Market file"),
        (f"{_HEAD}pattern general\n3 4 1\n1 2\n", "an adjacency matrix must be square, not 3 x 4"),
        (f"{_HEAD}pattern sideways\n3 3 1\n1 2\n", "is not a sparse Matrix Market file"),
        (f"{_HEAD}pattern general\n3 3\n1 2\n", "line 2: sizes '3 3'; 'rows columns entries' is needed"),
        (f"{_HEAD}pattern general\n3 3 2\n1 2\n", "line 2 says 2 entries; found 1"),
        (f"{_HEAD}pattern general\n3 3 0\n", "empty graph"),
        (f"{_HEAD}pattern general\n% c\n3 3 1\n1 x\n", "line 4: node ids must be integers, not 'x'"),
        (f"{_HEAD}pattern general\n3 3 1\n0 2\n", "line 3: node id 0 is out of range; 1 to 2147483647 are allowed"),
        (f"{_HEAD}pattern general\n3 3 1\n1 9\n", "node id 9 is out of range; 1 to 3 are allowed"),
        (f"{_HEAD}pattern general\n1000000000 1000000000 1\n1 2\n", "1,000,000,000 nodes for 1 entries"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(text)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message.lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def _read(path: Path, text: str, ids: str = "numbers", ends: tuple[str, str] | None = None) -> Graph:
    path.write_text(text)
    return load_graph(path, ids, ends)


@pytest.mark.parametrize("ids", ["numbers", "names"])
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
        ("0,5,7\n1,7,2\n2,2,5\n", "the numbers of lines or of nodes"),
        ("1 5 7\n2 7 2\n3 2 5\n", "the numbers of lines or of nodes"),
        ("1082008561,5,7\n1082008562,7,2\n", "times"),
    ],
)
def test_times_and_row_numbers_without_a_header_are_no_ends(tmp_path: Path, text: str, held: str) -> None:
    with pytest.raises(FileError, match=f"the first looks like {held} .* --ends 2,3, or --ends 1,2"):
        _read(tmp_path / "g.csv", text)
    assert _read(tmp_path / "g.csv", text, ends=("2", "3")).indices.size == 2 * text.count("\n")


def test_without_a_header_the_first_two_columns_of_whole_numbers_are_the_ends(tmp_path: Path) -> None:
    for text in ("2020-01-01,5,7\n2020-01-02,7,2\n", "a,5,0.5,7\nb,7,0.5,2\n"):
        graph = _read(tmp_path / "g.csv", text)
        assert (graph.nodes, graph.indices.size, graph.cleaning.ignored[0]) == (8, 4, "column 1")


_CYCLE = "".join(f"{k} {(k + 1) % 9} {(k - 1) % 9}\n" for k in range(9))
_TREE = "0 1 2\n1 3 4 5\n2 6\n3\n4 7\n"


@pytest.mark.parametrize("ends", [None, ("1", "2"), ("2", "3")])
@pytest.mark.parametrize(
    "text",
    [
        *(_CYCLE, _CYCLE.replace(" ", ","), _TREE, f"# made by hand\n{_TREE}"),
        *("0: 1 4 7\n1: 0 2 8\n", "ann: bob carl\nbob: ann\n", "0:,1,4\n1:,0,2\n"),
    ],
)
def test_an_adjacency_list_is_refused_whatever_ends_are_asked_for(
    tmp_path: Path, text: str, ends: tuple[str, str] | None
) -> None:
    for name in ("g.txt", "g.csv"):
        with pytest.raises(FileError, match=r"line [12]: '.*': an adjacency list, .*networkx\.read_adjlist\(FILE\)"):
            _read(tmp_path / name, text, ends=ends)


@pytest.mark.parametrize("text", ["0 1 5\n1 2 3\n2 3 4\n0 3 1\n", "0 1 1\n1 2 1\n2 0 1\n", "7 1 3\n4 2 9\n5 3 4\n"])
def test_an_edge_list_with_weights_is_no_adjacency_list(tmp_path: Path, text: str) -> None:
    assert _read(tmp_path / "g.txt", text).cleaning.ignored == ("column 3",)


@pytest.mark.parametrize("text", ["p edge 3 2\ne 1 2\ne 2 3\n", "c six nodes\np sp 3 2\na 1 2 5\na 2 3 5\n"])
@pytest.mark.parametrize("ends", [None, ("2", "3")])
def test_dimacs_is_named_with_what_to_do(tmp_path: Path, text: str, ends: tuple[str, str] | None) -> None:
    with pytest.raises(FileError, match=r"line [12]: 'p .*' begins a DIMACS graph, which is not read; grep "):
        _read(tmp_path / "g.txt", text, ends=ends)


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
