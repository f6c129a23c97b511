"""Compressed rows: built, checked, cut out."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import AnyArray, Int32Array, IntArray
from gcnsim.graph import Graph, build_csr, csr, from_networkx, graph_warnings, induced
from gcnsim.graph.csr import Cleaning, from_csr


def test_the_content_hash_depends_on_the_structure_alone() -> None:
    rows, cols = np.array([0, 1]), np.array([1, 2])
    graph = build_csr(rows, cols, 3, "a", features=5)
    assert graph.content_hash() == build_csr(cols, rows, 3, "b").content_hash()
    assert graph.content_hash() != build_csr(rows, cols, 4, "a").content_hash()


def test_cleaning_speaks_in_one_line() -> None:
    assert str(Cleaning()) == "already clean"
    assert str(Cleaning(3, 2000, 1, ignored=("id", "weights"))) == (
        "dropped 3 self-loops, dropped 2,000 duplicates, added 1 reverse entry, ignored: id, weights"
    )


@pytest.mark.parametrize("seed", range(2))
def test_it_is_the_matrix_without_the_others_rows_and_columns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, 40, (2, 120))
    graph = build_csr(ends[0], ends[1], 40, "random")
    kept = generator.random(40) < (0.0, 0.3, 0.7, 1.0)[seed]
    found = induced(graph, kept, "some")
    assert found.name == "some"
    np.testing.assert_array_equal(dense(found), dense(graph)[kept][:, kept])


def dense(graph: Graph) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    matrix = np.zeros((graph.nodes, graph.nodes), np.bool_)
    matrix[np.repeat(np.arange(graph.nodes), graph.degrees), graph.indices] = True
    return matrix


_Pairs = list[tuple[int, int]]


def _pairs(graph: Graph) -> set[tuple[int, int]]:
    rows = np.repeat(np.arange(graph.nodes), graph.degrees)
    return set(zip(rows.tolist(), graph.indices.tolist(), strict=True))


def _build(pairs: _Pairs, nodes: int) -> Graph:
    ends: IntArray = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return build_csr(ends[:, 0], ends[:, 1], nodes, "g")


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=40))
def test_any_entries_become_the_symmetric_sorted_graph_and_every_change_is_counted(pairs: _Pairs) -> None:
    directed = {(u, v) for u, v in pairs if u != v}
    if not directed:
        with pytest.raises(GraphError, match="empty graph"):
            _build(pairs, 8)
        return
    graph = _build(pairs, 8)
    full = directed | {(v, u) for u, v in directed}
    loops = sum(u == v for u, v in pairs)
    assert _pairs(graph) == full
    assert graph.entries == len(full)
    assert graph.cleaning == Cleaning(loops, len(pairs) - loops - len(directed), len(full) - len(directed))
    for node in range(8):
        row = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        assert np.all(np.diff(row) > 0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] != p[1]), min_size=1))
def test_a_clean_graph_built_again_is_the_same_and_reports_no_change(pairs: _Pairs) -> None:
    graph = _build(pairs, 8)
    again = from_csr(graph.indptr, graph.indices, "again")
    assert again.cleaning == Cleaning()
    assert again.content_hash() == graph.content_hash()


def test_hundreds_of_duplicates_of_one_edge_neither_cancel_nor_overflow() -> None:
    graph = _build([(0, 1)] * 512 + [(1, 0)] * 256, 2)
    assert graph.entries == 2
    assert graph.cleaning.duplicates_dropped == 511 + 255


def test_arrays_are_read_only_and_apart_from_the_callers() -> None:
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
    graph = from_csr(indptr, indices, "pair")
    indices[0] = 0
    indptr[1] = 2
    assert graph.indices.tolist() == [1, 0]
    assert graph.indptr.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        graph.indices[0] = 0


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([0, 2, 1, 3], [1, 2, 0], "decreases after row 1"),
        ([1, 2, 3], [1, 0, 1], "runs from 1 to 3; it must run from 0 to 3"),
        ([0, 1, 2], [1, 2], "node id 2 is out of range; 0 to 1 are allowed"),
        ([0, 1, 2], [1, -1], "node id -1 is out of range"),
        ([0.0, 1.0, 2.0], [1, 0], "indptr is float64[3]; integers[N + 1] are needed"),
        ([0, 1, 2], [1.0, 0.0], "node ids are float64[2]; a 1-D array of integers is needed"),
        ([0], [], "empty graph: 0 nodes"),
        ([0, 1, 2], [0, 1], "empty graph: no edge between two different nodes (2 nodes, 2 self-loops)"),
    ],
)
def test_rows_that_are_no_graph_are_refused_in_one_line(
    indptr: list[float], indices: list[float], message: str
) -> None:
    columns: AnyArray = np.array(indices) if indices else np.empty(0, dtype=np.int32)
    with pytest.raises(GraphError) as caught:
        from_csr(np.array(indptr), columns, "g", where="dir/g.npz")
    assert str(caught.value).startswith("dir/g.npz: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unequal_lengths_and_absurd_node_counts_are_refused() -> None:
    with pytest.raises(GraphError, match="3 row ids and 2 column ids"):
        build_csr(np.array([0, 1, 2]), np.array([1, 0]), 3, "g")
    with pytest.raises(GraphError, match="4294967296 nodes; 1 to 2147483647 are allowed"):
        build_csr(np.array([0]), np.array([1]), 2**32, "g")
    with pytest.raises(GraphError, match="1,000,000,000 nodes for 1 entries"):
        build_csr(np.array([0]), np.array([1]), 10**9, "g")


@pytest.mark.parametrize("place", [0, csr._PIECE - 1, csr._PIECE, 2 * csr._PIECE - 1])
def test_one_pair_of_entries_out_of_order_is_found_in_a_large_graph(place: int) -> None:
    """Order is looked for by pieces, and between them."""
    indptr, indices = ring(70_000)
    clean = from_csr(indptr, indices, "ring")
    assert (clean.cleaning.duplicates_dropped, clean.cleaning.reverse_entries_added) == (0, 0)
    assert clean.indptr.tolist() == indptr.tolist()
    rows = np.repeat(np.arange(70_000, dtype=np.int32), 2)
    rows[[place, place + 1]], indices[[place, place + 1]] = rows[[place + 1, place]], indices[[place + 1, place]]
    graph = build_csr(rows, indices, 70_000, "ring")
    assert graph.content_hash() == clean.content_hash()


def ring(nodes: int) -> tuple[IntArray, Int32Array]:
    """Every node beside the two next to it, as sorted rows."""
    near = np.stack([(np.arange(nodes) - 1) % nodes, (np.arange(nodes) + 1) % nodes], axis=1)
    return np.arange(nodes + 1) * 2, np.sort(near, axis=1).astype(np.int32).ravel()


def test_few_isolated_nodes_are_no_reason_to_warn() -> None:
    ends = np.arange(95)
    ring = build_csr(ends, (ends + 1) % 95, 100, "ring")
    assert graph_warnings(ring) == ()
    assert graph_warnings(build_csr(ends, (ends + 1) % 95, 101, "ring")) == (
        "ring: 6 of 101 nodes are isolated (no edges)",
    )


def test_nodes_that_compare_are_sorted_whatever_their_insertion() -> None:
    graph = from_networkx(nx.Graph([(30, 20), (20, 10)]), "path")
    assert graph.name == "path"
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning()


def test_attributes_of_edges_and_nodes_are_named() -> None:
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = 2.0
    graph.edges[1, 2]["since"] = 1
    graph.nodes[0]["club"] = "Hi"
    assert from_networkx(graph).cleaning == Cleaning(ignored=("weight", "since", "club"))


def test_directed_multigraph_and_loop_are_cleaned() -> None:
    assert from_networkx(nx.DiGraph([(0, 1), (1, 0), (1, 2)])).cleaning == Cleaning(0, 0, 1)
    assert from_networkx(nx.MultiGraph([(0, 1), (0, 1)])).cleaning == Cleaning(0, 2, 0)
    assert from_networkx(nx.MultiDiGraph([(0, 1), (0, 1)])).cleaning == Cleaning(0, 1, 1)
    assert from_networkx(nx.Graph([(0, 1), (1, 1)])).cleaning == Cleaning(1, 0, 0)


def test_nodes_that_do_not_compare_keep_their_insertion() -> None:
    graph = from_networkx(nx.Graph([("a", 1), (1, (2, 3))]))
    assert graph.degrees.tolist() == [1, 2, 1]


def test_nothing_to_partition_is_refused() -> None:
    with pytest.raises(GraphError, match="empty graph: no nodes"):
        from_networkx(nx.Graph())
    with pytest.raises(GraphError, match="empty graph: no edge"):
        from_networkx(nx.empty_graph(3))
