"""Headers of text tables, clear and unclear ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.formats.columns import EndPlaces, named_ends


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        (",source,target", (1, 2)),
        ("HEAD,relation,Tail", (0, 2)),
        ("target,weight,source", (2, 0)),
        ("FromNodeId,ToNodeId", (0, 1)),
        ("id,Node1,Node2", (1, 2)),
        ("source_id,target_id,start_date,end_date", (0, 1)),
        ("u,v,weight", (0, 1)),
    ],
)
def test_the_ends_are_found_wherever_they_stand(header: str, ends: tuple[int, int]) -> None:
    assert named_ends(header.split(",")) == EndPlaces(*ends)


@pytest.mark.parametrize("header", ["userId,itemId,rating,timestamp", "rating,user,item"])
def test_user_and_item_are_two_kinds_of_nodes(header: str) -> None:
    ends = named_ends(header.split(","))
    assert ends is not None
    assert ends.two_kinds


@pytest.mark.parametrize(
    "header",
    ["alpha,beta,gamma", "gene1,gene2,protein1,protein2", "drug,protein,score", "source,target,source", "x,y,z"],
)
def test_other_names_and_two_pairs_say_nothing(header: str) -> None:
    assert named_ends(header.split(",")) is None


@pytest.mark.parametrize("header", ["gene1,gene2", "paperA,paper_b", ",x1,x2", "a,b"])
def test_two_columns_named_alike_are_the_ends(tmp_path: Path, header: str) -> None:
    before = "9," * header.startswith(",")
    graph = _read(tmp_path / "g.csv", f"{header}\n{before}5,7\n{before}7,2\n{before}2,5\n")
    assert _pairs(graph) == EDGES
    assert graph.cleaning.second_kind_from == 0


@pytest.mark.parametrize(
    "header", ["alpha,beta,gamma", "node,label", "alpha,weight", "person,met,since", "user_id,movie_id", "drug,protein"]
)
def test_what_no_known_words_name_is_refused(tmp_path: Path, header: str) -> None:
    rows = "".join(f"{','.join(str(k + n) for n in range(header.count(',') + 1))}\n" for k in range(3))
    assert "does not say which two columns are the ends of an edge" in _refusal(tmp_path / "g.csv", f"{header}\n{rows}")


ALL_IDS = pytest.mark.parametrize("ids", ["numbers", "compact", "names"])

EDGES = {(5, 7), (7, 5), (7, 2), (2, 7), (2, 5), (5, 2)}
COUNTED = "0,5,7\n1,7,2\n2,2,5\n"
SHUFFLED = "9,5,7\n4,7,2\n6,2,5\n"


def _read(path: Path, content: str, ids: str = "numbers", ends: tuple[str, str] | None = None) -> Graph:
    path.write_text(content, encoding="utf-8")
    return load_graph(path, ids, ends)


def _pairs(graph: Graph) -> set[tuple[int, int]]:
    names = range(graph.nodes) if graph.original_ids is None else [int(float(item)) for item in graph.original_ids]
    return {
        (names[v], names[u]) for v in range(graph.nodes) for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
    }


def _refusal(path: Path, content: str, ids: str = "numbers") -> str:
    with pytest.raises(FileError) as caught:
        _read(path, content, ids)
    return str(caught.value).removeprefix(f"{path}: ")


@ALL_IDS
@pytest.mark.parametrize(
    ("name", "content", "edges"),
    [
        ("g.txt", "1e+02 2e+02\n2e+02 300\n", [(100, 200), (200, 300)]),
        ("g.csv", "1E2,2E2\n2E2,3E2\n", [(100, 200), (200, 300)]),
        ("g.txt", "1e0 2e0\n2e0 3e0\n", [(1, 2), (2, 3)]),
        ("g.tsv", "0e0\t1e0\t0.5\n1e0\t30e-1\t0.7\n", [(0, 1), (1, 3)]),
        ("g.csv", "1e1;2e1;0,5\n2e1;3;0,7\n", [(10, 20), (20, 3)]),
        ("g.txt", "1.e1 20.0e0\n2 3\n", [(10, 20), (2, 3)]),
    ],
)
def test_a_line_of_numbers_in_any_notation_is_an_edge(
    tmp_path: Path, name: str, content: str, edges: list[tuple[int, int]], ids: str
) -> None:
    graph = _read(tmp_path / name, content, ids)
    assert _pairs(graph) == {pair for edge in edges for pair in (edge, edge[::-1])}


def test_exponents_change_neither_counts_nor_refusals(tmp_path: Path) -> None:
    counted = _read(tmp_path / "g.txt", "4 3\n0 1e0\n1e0 2\n2 3e0\n")
    assert (counted.nodes, counted.cleaning.ignored) == (4, ("line 1, which counts nodes and edges",))
    assert "looks like the numbers of lines" in _refusal(tmp_path / "g.csv", "0,5,7e0\n1,7,2\n2,2,5\n")
    for word in ("15e-1", "1D5", "1e400"):
        assert f"line 1: node ids must be integers, not '{word}'" in _refusal(tmp_path / "g.txt", f"{word} 2e0\n3 4\n")


@ALL_IDS
@pytest.mark.parametrize("ends", [None, ("2", "3"), ("0", "1")])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", f",0,1\n{COUNTED}"),
        ("g.csv", ",0,1\n1,5,7\n2,7,2\n3,2,5\n"),
        ("g.tsv", "\t0\t1\n" + COUNTED.replace(",", "\t")),
        ("g.txt", '"" 0 1\n' + COUNTED.replace(",", " ")),
        ("g.csv", f"index,0,1\n{COUNTED}"),
    ],
)
def test_row_numbers_beside_columns_without_names_make_a_header(
    tmp_path: Path, name: str, content: str, ends: tuple[str, str] | None, ids: str
) -> None:
    assert _pairs(_read(tmp_path / name, content, ids, ends)) == EDGES


def test_columns_without_names_are_the_ends_beside_any_index(tmp_path: Path) -> None:
    found = _read(tmp_path / "g.csv", f",0,1\n{SHUFFLED}")
    assert (_pairs(found), found.cleaning.ignored) == (EDGES, ("column 1",))


@pytest.mark.parametrize("ids", ["numbers", "names"])
@pytest.mark.parametrize("header", ["a,b,c", "V1,V2,V3", "x,y,z"])
def test_a_header_that_says_nothing_over_line_numbers_is_refused(tmp_path: Path, header: str, ids: str) -> None:
    path = tmp_path / "g.csv"
    assert _refusal(path, f"{header}\n{COUNTED}", ids) == (
        f"line 1: the header ({header.replace(',', ', ')}) does not say which two columns are the ends of an edge, as "
        "source, target do; say which with --ends NAME,NAME (gcnsim graph, gcnsim trace) or workload.ends"
    )
    _, one, other = header.split(",")
    assert _pairs(_read(path, f"{header}\n{COUNTED}", ids, (one, other))) == EDGES


@pytest.mark.parametrize("header", ["u,v,weight", "u,v,w", "source,target,c", "user,item,c", "node1,node2,foo"])
def test_a_header_that_says_more_is_believed(tmp_path: Path, header: str) -> None:
    assert _read(tmp_path / "g.csv", f"{header}\n{COUNTED}").cleaning.ignored == (header.split(",")[2],)


@pytest.mark.parametrize(
    ("header", "pairs"),
    [
        ("from,to,source,target", "source, target and from, to"),
        ("src,dst,head,tail", "src, dst and head, tail"),
        ("source,target,destination", "source, target and source, destination"),
        ("src,src_id,dst", "src, dst and src_id, dst"),
    ],
)
def test_a_header_with_two_pairs_of_ends_is_refused(tmp_path: Path, header: str, pairs: str) -> None:
    message = _refusal(
        tmp_path / "g.csv", f"{header}\n" + ("0,1,5,7\n1,2,7,2\n" if header.count(",") > 2 else "0,1,5\n1,2,7\n")
    )
    assert message.startswith(f"line 1: the header names the ends of an edge twice ({pairs}); say which with --ends")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5\xa07\n7\xa02\n", "line 1: character 2 is U+00A0 (no-break space)"),
        ("5 7\n 7\u20032\n", "line 2: character 3 is U+2003 (em space)"),
        ("5,7\n7,\u200b2\n", "line 2: character 3 is U+200B (zero width space)"),
        ("5,7\n\ufeff7,2\n", "line 2: character 1 is U+FEFF (zero width no-break space)"),
    ],
)
def test_white_space_that_separates_nothing_is_named(tmp_path: Path, content: str, message: str) -> None:
    allowed = "which separates no columns; allowed: a space, a tab or a comma in its place"
    assert _refusal(tmp_path / "g.txt", content) == f"{message}, {allowed}"
