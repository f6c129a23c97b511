from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, GcnsimError, GraphError
from gcnsim.graph import graph_warnings, induced, load_graph
from gcnsim.graph.csr import Cleaning


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
    assert graph.cleaning == Cleaning(1, 1, 0, ignored=("weight",))
    assert graph.entries == 2


def test_an_id_without_a_line_is_an_isolated_node(tmp_path: Path) -> None:
    assert load_graph(_written(tmp_path / "g.txt", "3 1\n")).degrees.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n# c\n1 two\n", "line 3: node ids must be integers, not 'two'; for names use --ids names"),
        ("0 1\n1 1.5\n", "line 2: node ids must be integers, not '1.5'"),
        ("0 1\n\n-4 1\n", "line 3: node id -4 is out of range; 0 to 2147483646 are allowed; --ids compact"),
        ("0 1\n1 99999999999999999999\n", "line 2: node id 99999999999999999999 is out of range"),
        ("0 1\n1 2 3\n", "line 2: 3 columns; 2 are needed"),
        ("0 1 1\n1 2\n", "line 2: 2 columns; 3 are needed"),
        ("5 0 7\n7 knows 2\n", "line 2: node ids must be integers, not 'knows'"),
        ("0,1\n1,,2\n", "line 2: 3 columns; 2 are needed"),
        ("0,1\n1,\n", "line 2: node ids must be integers, not ''"),
        ("# c\n0 1 2 3\n", "line 2: 4 columns; source, target and at most a weight are allowed"),
        ("source target\nann bob\n", "line 2: node ids must be integers, not 'ann'; for names use --ids names"),
        ("\x00\x01\x02\xff\n", "holds NUL bytes: binary data, or UTF-16 without its mark; text is needed, as UTF-8"),
        ("", "empty graph: no edges"),
        ("# nothing\n\n", "empty graph: no edges"),
        ("1 1\n", "empty graph: no edge between two different nodes"),
        ("0 2000000\n", "2 node ids up to 2,000,000: nearly all nodes would be isolated; --ids compact renumbers them"),
        ("0 3000000000\n", "2 node ids up to 3,000,000,000: nearly all"),
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
    with pytest.raises(FileError, match="line 4: node ids must be integers, not 'x'"):
        load_graph(_written(tmp_path / "g.csv", "# c\nsource,target\n0,1\n1,x\n"))


def test_ids_with_gaps_are_isolated_nodes_with_a_warning_or_renumbered(tmp_path: Path) -> None:
    path = _written(tmp_path / "tens.txt", "".join(f"{10 * v} {10 * (v + 1)}\n" for v in range(20)))
    graph = load_graph(path)
    assert (graph.nodes, graph.unused_ids, graph.original_ids) == (201, 180, None)
    (text,) = graph_warnings(graph)
    assert text == (
        "tens: 180 of 201 nodes are isolated (no edges): the ids have gaps, 180 numbers do not occur; --ids compact "
        "leaves them out"
    )
    compact = load_graph(path, ids="compact")
    assert (compact.nodes, compact.unused_ids, graph_warnings(compact)) == (21, 0, ())
    assert compact.original_ids is not None
    assert list(compact.original_ids) == list(range(0, 201, 10))
    plain = load_graph(_written(tmp_path / "ones.txt", "".join(f"{v} {v + 1}\n" for v in range(20))))
    assert compact.content_hash() == plain.content_hash()


def test_compact_takes_any_integer(tmp_path: Path) -> None:
    text = f"-5 {2**63 - 1}\n7 -5\n7 7\n"
    graph = load_graph(_written(tmp_path / "g.txt", text), ids="compact")
    assert graph.original_ids is not None
    assert list(graph.original_ids) == [-5, 7, 2**63 - 1]
    assert graph.degrees.tolist() == [2, 1, 1]
    with pytest.raises(FileError, match="line 1: node ids must be integers, not 'a'; for names use --ids names"):
        load_graph(_written(tmp_path / "g.txt", "a b\n"), ids="compact")
    with pytest.raises(FileError, match="line 1: node id 9223372036854775808 is out of range"):
        load_graph(_written(tmp_path / "g.txt", f"0 {2**63}\n"), ids="compact")


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("g.txt", "ann bob\n# no edge\nbob carl\n", ("ann", "bob", "carl")),
        ("g.txt.gz", "% no edge\n\nC# C%\nC% 12\n", ("C#", "C%", "12")),
        ("g.txt", "a b\tc\nc\td e\n", ("a b", "c", "d e")),
        ("g.csv", "Source,Target,weight\nann,bob,1\nbob,carl,2.5\n", ("ann", "bob", "carl")),
        ("g.csv", '"Lee, Ann",bob\r\n#x,y\r\nbob, "O""K"\r\n', ("Lee, Ann", "bob", 'O"K')),
        ("g.csv", "ann,bob\nbob,carl\n", ("ann", "bob", "carl")),
        ("g.tsv", "src\tdst\nü\t日本\n日本\tz\n", ("ü", "日本", "z")),
    ],
)
def test_names_are_nodes_in_order_of_appearance(tmp_path: Path, name: str, text: str, ids: tuple[str, ...]) -> None:
    graph = load_graph(_written(tmp_path / name, text), ids="names")
    assert graph.original_ids == ids
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert induced(graph, np.array([False, True, True]), "some").original_ids == ids[1:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a b\nc\n", "line 2: 1 column; 2 are needed"),
        (b"a b c d\n", "line 1: 4 columns; source, target and at most a weight are allowed"),
        (b"a b\nb c  # d\n", "line 2: 4 columns"),
        (b"a,b\n\nc,\n", "line 3: an empty name; a node needs one"),
        (b"a b 1\nb c d\n", "line 2: the weight must be a number, not 'd'"),
        (b"a b\nc \xff\n", "line 2: not UTF-8 text"),
        (b"a a\n", "empty graph: no edge between two different nodes"),
        (b"# a\n", "empty graph: no edges"),
        (b"", "empty graph: no edges"),
    ],
)
def test_a_bad_line_of_names_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "g.txt").write_bytes(text)
    with pytest.raises(GcnsimError) as caught:
        load_graph(tmp_path / "g.txt", ids="names")
    assert str(caught.value).startswith(f"{tmp_path / 'g.txt'}: {message}")


def test_ids_of_other_formats_and_other_words_are_refused(tmp_path: Path) -> None:
    matrix = _written(tmp_path / "g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    with pytest.raises(FileError, match=r"g\.mtx: ids: names is for edge lists"):
        load_graph(matrix, ids="names")
    with pytest.raises(GraphError, match="ids: 'name' is not allowed; did you mean 'names'"):
        load_graph(matrix, ids="name")
