"""Edge lists and their columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, GcnsimError, GraphError, ScenarioError
from gcnsim.graph import Graph, graph_warnings, induced, load_graph, two_columns
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


def test_an_id_without_a_line_is_an_isolated_node(tmp_path: Path) -> None:
    assert load_graph(_written(tmp_path / "g.txt", "3 1\n")).degrees.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n# c\n1 two\n", "line 3: node ids must be integers, not 'two'; for names use --ids names"),
        ("0 1\n\n-4 1\n", "line 3: node id -4 is out of range; 0 to 2147483646 are allowed; --ids compact"),
        ("0 1\n1 2 3\n", "line 2: 3 columns; 2 are needed"),
        ("0 1 1\n1 2\n", "line 2: 2 columns; 3 are needed"),
        ("0,1\n1,,2\n", "line 2: 3 columns; 2 are needed"),
        ("0,1\n1,\n", "line 2: node ids must be integers, not ''"),
        ("# c\n0 1 2 3\n", "line 2: 4 columns; source, target and at most a weight are allowed"),
        ("source target\nann bob\n", "line 2: node ids must be integers, not 'ann'; for names use --ids names"),
        ("\x00\x01\x02\xff\n", "holds NUL bytes: binary data, or UTF-16 without its mark; text is needed, as UTF-8"),
        ("", "empty graph: no edges"),
        ("1 1\n", "empty graph: no edge between two different nodes"),
        ("0 2000000\n", "2 node ids up to 2,000,000: nearly all nodes would be isolated; --ids compact renumbers them"),
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


EDGES = ((5, 7), (7, 2), (2, 5), (9, 1), (1, 0), (0, 3), (3, 4), (4, 6), (6, 8), (8, 9))


def _lines(header: str, line: str) -> str:
    return header + "".join(line.format(k=k, a=a, b=b) + "\n" for k, (a, b) in enumerate(EDGES))


def _read(path: Path, content: str | bytes, ids: str = "numbers", ends: tuple[str, str] | None = None) -> Graph:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_graph(path, ids, ends)


def _is_the_graph(found: Graph) -> bool:
    """Whether it is that of `EDGES`, whatever its nodes are called."""
    names = range(10) if found.original_ids is None else [int(float(item)) for item in found.original_ids]
    rows = np.repeat(np.arange(found.nodes), found.degrees)
    pairs = {(names[row], names[col]) for row, col in zip(rows, found.indices, strict=True)}
    return pairs == {pair for edge in EDGES for pair in (edge, edge[::-1])}


@pytest.mark.parametrize("ids", ["numbers", "names"])
@pytest.mark.parametrize(
    ("name", "header", "line", "ignored"),
    [
        ("g.csv", ",source,target\n", "{k},{a},{b}", ("column 1",)),
        ("g.tsv", "head\trelation\ttail\n", "{a}\t0\t{b}", ("relation",)),
        ("g.csv", "Source,Target,Type,Id,Label\n", "{a},{b},Undirected,{k},", ("Type", "Id", "Label")),
        ("g.csv", "Id;Source;Target;Weight\n", "{k};{a};{b};0,5", ("Id", "Weight")),
        ("g.txt", "id|src|dst\n", "{k}|{a}|{b}", ("id",)),
        ("g.txt", "# weight source target\n", "0.5 {a} {b}", ("weight",)),
        ("g.txt", "% sym posweighted\n% 10 10 10\n", "{a} {b} 1 99", ("weight", "timestamp")),
        ("g.csv", '"source","target"\n', '"{a}","{b}"', ()),
        ("g.txt", '"source" "target"\n', '"{k}" {a} {b}', ("column 1",)),
        ("g.txt", "", "{a}.000000e+00 {b}.000000e+00", ()),
        ("g.csv", "src,dst\n", "{a}.0,{b}.0", ()),
        ("g.txt", "", "{a} {b} {{'weight': 0.5, 'since': 'May'}}", ("since", "weight")),
        ("g.csv", "", "{a},{b},{{'weight': 0.5}}", ("weight",)),
        ("g.txt", "", "{a} {b} 0,5", ("column 3",)),
        ("g.txt", "", "{a},{b},", ("column 3",)),
        ("g.tsv", "", "{a}\tknows\t{b}", ("column 2",)),
        ("g.txt", "", "    {a}      {b}   ", ()),
    ],
)
def test_every_spelling_is_the_same_graph(
    tmp_path: Path, name: str, header: str, line: str, ignored: tuple[str, ...], ids: str
) -> None:
    graph = _read(tmp_path / name, _lines(header, line), ids)
    assert _is_the_graph(graph)
    assert graph.cleaning.ignored == ignored


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_marked_encodings_and_all_line_ends_are_read(tmp_path: Path, encoding: str, end: str) -> None:
    text = _lines("id,source,target\n", "{k},{a},{b}").replace("\n", end)
    marked = text if encoding in ("utf-16", "utf-32", "utf-8-sig") else f"\ufeff{text}"
    assert _is_the_graph(_read(tmp_path / "g.csv", marked.encode(encoding)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_lines("", "{a} {b}").encode("utf-16-le"), "holds NUL bytes: binary data, or UTF-16 without its mark"),
        (b"\xff\xfe0\x00 ", "starts like UTF-16 text, but is not; save it as UTF-8"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FileError, match=message):
        _read(tmp_path / "g.txt", content)


def test_bytes_of_other_encodings_beside_the_ends_do_no_harm(tmp_path: Path) -> None:
    text = _lines("source,target,größe\n", "{a},{b},groß").encode("latin-1")
    assert _is_the_graph(_read(tmp_path / "g.csv", text))
    with pytest.raises(FileError, match="line 1: not UTF-8 text; save it as UTF-8"):
        _read(tmp_path / "g.csv", text, "names")


@pytest.mark.parametrize("ids", ["numbers", "names"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            _lines("alpha,beta,gamma\n", "{a},{b},{k}"),
            "line 1: the header (alpha, beta, gamma) does not say which two columns are the ends of an edge, as "
            "source, target do; say which with --ends NAME,NAME (gcnsim graph, gcnsim trace) or workload.ends",
        ),
        (_lines("node,label\n", "{a},{b}"), "line 1: the header (node, label) does not say"),
        (
            _lines("", "{a} {b} 1 2"),
            "line 1: 4 columns; source, target and at most a weight are allowed without a header",
        ),
    ],
)
def test_what_does_not_say_its_ends_is_refused_with_what_to_do(
    tmp_path: Path, content: str, message: str, ids: str
) -> None:
    with pytest.raises(FileError) as caught:
        _read(tmp_path / "g.csv", content, ids)
    assert str(caught.value).startswith(f"{tmp_path / 'g.csv'}: {message}")


@pytest.mark.parametrize("ends", [("alpha", "gamma"), ("GAMMA", "alpha"), ("1", "3")])
def test_ends_are_chosen_by_name_or_number(tmp_path: Path, ends: tuple[str, str]) -> None:
    graph = _read(tmp_path / "g.csv", _lines("alpha,beta,gamma\n", "{a},{k},{b}"), ends=ends)
    assert _is_the_graph(graph)
    assert graph.cleaning.ignored == ("beta",)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("alpha", "gamma"), "line 1: ends: no column 'gamma' in the header; known: alpha, beta"),
        (("1", "9"), "line 1: ends: column 9 is not allowed; 1 to 2 are"),
        (("1", "1"), "line 1: ends: 1,1 is one column; two different ones are needed"),
    ],
)
def test_ends_that_are_not_there_are_refused(tmp_path: Path, ends: tuple[str, str], message: str) -> None:
    with pytest.raises(FileError) as caught:
        _read(tmp_path / "g.csv", _lines("alpha,beta\n", "{a},{b}"), ends=ends)
    assert message in str(caught.value)
    for text in ("alpha", "a,b,c", "a,"):
        with pytest.raises(ScenarioError, match=r"--ends: .* is not allowed; two columns are needed"):
            two_columns(text, "--ends")
    with pytest.raises(GraphError, match="ends: 'alpha' is not allowed; two are needed"):
        load_graph(tmp_path / "g.csv", ends=("alpha",))


@pytest.mark.parametrize("ids", ["numbers", "compact", "names"])
@pytest.mark.parametrize(
    "header", ["% bip unweighted\n", "# A bipartite graph.\n", "# user item\n", "user_id item_id\n"]
)
def test_columns_that_number_two_kinds_of_nodes_make_two_ranges(tmp_path: Path, header: str, ids: str) -> None:
    graph = _read(tmp_path / "g.txt", f"{header}0 0\n0 1\n1 1\n2 0\n", ids)
    assert graph.cleaning.second_kind_from == 3
    assert (graph.nodes, graph.indptr.tolist(), graph.indices.tolist()) == (
        5,
        [0, 2, 3, 4, 6, 8],
        [3, 4, 4, 3, 0, 2, 0, 1],
    )
    assert "nodes of the second column are another kind, numbered from 3" in str(graph.cleaning)


@pytest.mark.parametrize(
    ("content", "nodes"),
    [
        ("u v\nann bob\nbob carl\n", 3),
        ("a b\nb c\n", 3),
        (",x1,x2\n0,ann,bob\n1,bob,carl\n", 3),
        ("boss1,boss2\n10,20\n20,30\n", 3),
        ("source,target\nsource,b\nb,c\n", 4),
    ],
)
def test_a_header_is_no_node_and_an_edge_no_header(tmp_path: Path, content: str, nodes: int) -> None:
    assert _read(tmp_path / "g.csv", content, "names").nodes == nodes


def test_a_first_line_whose_names_no_other_line_has_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    (note,) = graph_warnings(_read(path, "employee,manager\nann,bob\nbob,carl\n", "names"))
    assert note == (
        "g: the first line (employee, manager) may be a header, because its names occur on no other line; "
        "--ends employee,manager (workload.ends) treats it as one"
    )
    chosen = load_graph(path, "names", ("employee", "manager"))
    assert (chosen.nodes, graph_warnings(chosen)) == (3, ())


@pytest.mark.parametrize("text", ["0 1\n1 2,5\n", "0 1\n1 \n", "0 1\n1 ?\n"])
def test_names_are_suggested_only_where_they_would_help(tmp_path: Path, text: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        _read(tmp_path / "g.txt", text)
    assert "--ids names" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("7,8\n8,9\n9,7.0\n", "7 and 7.0"),
        ("7,8\n8,007\n", "7 and 007"),
        ("8,+7\n7,hub\n", "+7 and 7"),
        ("1e+05,8\n8,100000\n", "1e+05 and 100000"),
    ],
)
def test_a_number_in_two_spellings_is_noted_where_ids_are_names(tmp_path: Path, text: str, pair: str) -> None:
    path = tmp_path / "g.csv"
    (note,) = [line for line in graph_warnings(_read(path, text, "names")) if "same number" in line]
    assert note == f"g: {pair} are two names, though the same number: two nodes; --ids compact reads numbers"
    if "hub" not in text:
        assert not graph_warnings(load_graph(path, "compact"))


def test_the_same_number_in_two_kinds_of_nodes_is_no_second_spelling(tmp_path: Path) -> None:
    assert not graph_warnings(_read(tmp_path / "g.csv", "% bip\n7,7.0\n7,8\n8,8\n", "names"))
