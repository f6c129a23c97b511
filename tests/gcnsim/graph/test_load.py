"""Graphs read from files and from objects of other libraries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pymetis
import pytest
import scipy.sparse as sp

from gcnsim.core.container import write_sections
from gcnsim.core.errors import FileError, GraphError
from gcnsim.core.ids import AnyArray, BoolArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr, from_dgl, from_networkx, from_pyg, from_scipy, load_graph
from gcnsim.graph.assign import balanced_owners, partition_graph
from gcnsim.graph.csr import Cleaning
from gcnsim.graph.load import from_object
from gcnsim.graph.owners import read_partition, write_partition

_FACTS = [
    ("amazon_cs", 13_752, 245_861, 767, 10),
    ("coauthor_phy", 34_493, 247_962, 8_415, 5),
    ("tolokers", 11_758, 519_000, 10, 2),
    ("acl_papers", 102_797, 4_368_967, 4_096, 40),
    ("cnr-2000", 325_557, 2_738_969, None, None),
]
_UNUSED = {
    "tolokers": ("train_masks_all", "val_masks_all", "test_masks_all"),
    "acl_papers": ("labels_year7", "year7_starts", "label_names", "year", "vocab"),
}


@pytest.mark.parametrize(("name", "nodes", "edges", "features", "classes"), _FACTS)
def test_the_real_graphs_have_their_published_counts(
    data_dir: Path, name: str, nodes: int, edges: int, features: int | None, classes: int | None
) -> None:
    graph = load_graph(data_dir / f"{name}.npz")
    assert (graph.name, graph.nodes, graph.entries) == (name, nodes, 2 * edges)
    assert (graph.features, graph.classes) == (features, classes)
    assert graph.cleaning == Cleaning(ignored=_UNUSED.get(name, ()))


@pytest.mark.parametrize("name", ["g.odd", "g", "g.gz", "g.txt.zip"])
def test_an_unknown_format_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("0 1\n")
    with pytest.raises(
        FileError, match=r"unknown graph format '.*'; known: \.csv, \.edges, \.graph, \.mtx, \.npy, \.npz"
    ):
        load_graph(tmp_path / name)


_META: dict[str, Any] = {"parts": 2, "method": "block", "seed": 0, "graph_name": "g", "graph_hash": "00"}


def test_a_partition_read_back_is_the_same(tmp_path: Path, skewed: Graph) -> None:
    written = partition_graph(skewed, 3, seed=5)
    write_partition(tmp_path / "p.part", written)
    partitioning = read_partition(tmp_path / "p.part", skewed)
    assert partitioning.owner.tolist() == written.owner.tolist()
    assert (partitioning.parts, partitioning.method, partitioning.seed) == (3, "metis-vol", 5)
    assert (partitioning.graph_name, partitioning.graph_hash) == ("skewed", skewed.content_hash())
    assert not partitioning.owner.flags.writeable


def test_the_same_partition_makes_the_same_bytes(tmp_path: Path, skewed: Graph) -> None:
    first = write_partition(tmp_path / "a", partition_graph(skewed, 3))
    assert first == write_partition(tmp_path / "b", partition_graph(skewed, 3))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_graph_is_refused(tmp_path: Path, skewed: Graph) -> None:
    write_partition(tmp_path / "p.part", partition_graph(skewed, 3))
    other = build_csr(np.array([0]), np.array([1]), 400, "other")
    with pytest.raises(FileError, match=r"p.part: made for 'skewed' \(hash .*\), which is not the graph 'other'"):
        read_partition(tmp_path / "p.part", other)


@pytest.mark.parametrize(
    ("meta", "owner", "message"),
    [
        ({}, np.array([0, 1, 2], dtype=np.int32), "owners run from 0 to 2; with 2 parts 0 to 1 are allowed"),
        ({}, np.array([0, 0], dtype=np.int32), "2 parts for 2 nodes, but some parts are empty"),
        (
            {"parts": 10**12},
            np.array([0, 1], dtype=np.int32),
            "1,000,000,000,000 parts for 2 nodes, but some parts are empty",
        ),
        ({"parts": "two"}, np.array([0, 1], dtype=np.int32), "parts is 'two'; a int is needed"),
        ({"seed": None}, np.array([0, 1], dtype=np.int32), "seed is None"),
        ({}, np.array([0, 1], dtype=np.int64), "the section 'owner' is not a row of int32"),
    ],
)
def test_contents_that_are_no_partition_are_refused(
    tmp_path: Path, meta: dict[str, Any], owner: AnyArray, message: str
) -> None:
    path = tmp_path / "p.part"
    write_sections(path, kind="partition", version=1, meta={**_META, **meta}, arrays={"owner": owner})
    with pytest.raises(FileError) as caught:
        read_partition(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_missing_truncated_altered_and_foreign_files_are_refused(tmp_path: Path, skewed: Graph) -> None:
    path = tmp_path / "p.part"
    with pytest.raises(FileError, match="cannot be read"):
        read_partition(path)
    write_partition(path, partition_graph(skewed, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    with pytest.raises(FileError, match="truncated"):
        read_partition(path)
    path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
    with pytest.raises(FileError, match="altered"):
        read_partition(path)
    write_sections(path, kind="trace", version=1, meta={}, arrays={})
    with pytest.raises(FileError, match="is a trace file, wanted a partition file"):
        read_partition(path)
    write_sections(path, kind="partition", version=1, meta=_META, arrays={})
    with pytest.raises(FileError, match="the section 'owner'"):
        read_partition(path)


ROWS, COLS = np.array([0, 1, 1, 3]), np.array([1, 2, 2, 0])


def _data(**held: Any) -> SimpleNamespace:
    """What `torch_geometric.data.Data` shows of a graph; the library is not installed with the tests."""
    return SimpleNamespace(**({"edge_index": np.stack([ROWS, COLS]), "num_nodes": 5} | held))


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.coo_matrix])
def test_a_sparse_matrix_of_any_form_is_its_entries(make: Any) -> None:
    graph = from_object(make((np.ones(4), (ROWS, COLS)), shape=(5, 5)))
    assert (graph.name, graph.nodes, graph.entries) == ("scipy", 5, 6)
    assert graph.indices.tolist() == [1, 3, 0, 2, 1, 0]


def test_values_of_a_matrix_are_ignored_and_that_is_said() -> None:
    ones = sp.csr_array((np.ones(2), (ROWS[:2], COLS[:2])), (5, 5))
    assert from_scipy(ones).cleaning.ignored == ()
    assert from_scipy(ones * 2.0).cleaning.ignored == ("weights",)


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(GraphError, match="scipy: an adjacency matrix of 2 x 3 is not square"):
        from_scipy(sp.csr_array((2, 3)))
    with pytest.raises(GraphError, match="empty graph: no edge"):
        from_scipy(sp.csr_array((3, 3)))


def test_pyg_data_is_its_edges_and_widths() -> None:
    graph = from_object(_data(x=np.zeros((5, 16), np.float32), y=np.array([0, 1, 2, 1, 0])))
    assert (graph.name, graph.nodes, graph.entries, graph.features, graph.classes) == ("pyg", 5, 6, 16, 3)
    assert graph.cleaning == Cleaning(0, 1, 3)
    assert from_pyg(_data(y=np.zeros((5, 7)), edge_weight=np.ones(4))).classes == 7
    assert from_pyg(_data(edge_weight=np.ones(4))).cleaning.ignored == ("edge_weight",)


def test_pyg_data_without_usable_edges_is_refused() -> None:
    with pytest.raises(GraphError, match="pyg: no edge_index"):
        from_pyg(_data(edge_index=None))
    with pytest.raises(GraphError, match=r"edge_index has shape \(4,\)"):
        from_pyg(_data(edge_index=ROWS))


class _Drawn(SimpleNamespace):
    """What `dgl.DGLGraph` shows of a graph."""

    def edges(self) -> tuple[Any, Any]:
        return ROWS, COLS

    def num_nodes(self) -> int:
        return 5


def test_a_dgl_graph_is_its_edges_and_widths() -> None:
    held = {"feat": np.zeros((5, 8)), "label": np.array([0, 0, 1, 1, 3])}
    graph = from_object(_Drawn(is_homogeneous=True, ndata=held, edata={}))
    assert (graph.name, graph.nodes, graph.entries, graph.features, graph.classes) == ("dgl", 5, 6, 8, 4)
    with pytest.raises(GraphError, match="dgl: a heterogeneous graph"):
        from_dgl(_Drawn(is_homogeneous=False, ndata={}))


@pytest.mark.slow  # imports torch and DGL
def test_a_graph_of_dgl_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DGLBACKEND", "pytorch")
    torch, dgl = pytest.importorskip("torch"), pytest.importorskip("dgl")
    drawn = dgl.graph((torch.tensor(ROWS), torch.tensor(COLS)), num_nodes=5)
    drawn.ndata["feat"] = torch.zeros(5, 8, requires_grad=True)
    drawn.ndata["label"] = torch.tensor([0, 0, 1, 1, 3])
    graph = from_object(drawn)
    assert (graph.nodes, graph.entries, graph.features, graph.classes) == (5, 6, 8, 4)


def test_all_give_the_graph_that_networkx_gives() -> None:
    drawn = nx.barabasi_albert_graph(60, 3, seed=1)
    rows, cols = np.array(drawn.edges()).T
    wanted = from_networkx(drawn).indices.tolist()
    for graph in (nx.to_scipy_sparse_array(drawn), _data(edge_index=np.stack([rows, cols]), num_nodes=60), drawn):
        assert from_object(graph).indices.tolist() == wanted


def test_what_is_no_graph_is_refused_with_what_is_one() -> None:
    with pytest.raises(GraphError, match=r"graph: 'list' is not a graph that is known; allowed: a path, "):
        from_object([[0, 1]])


def one_sided() -> tuple[Graph, BoolArray]:
    """Two communities of 100 nodes, 10 edges between them; 80 nodes of the first train."""
    draw = stream(5, "one-sided")
    ends = [draw.integers(low, high, (2, 600)) for low, high in ((0, 100), (100, 200))]
    ends.append(np.stack([draw.integers(0, 100, 10), draw.integers(100, 200, 10)]))
    rows, columns = np.concatenate(ends, axis=1)
    return build_csr(rows, columns, 200, "one-sided"), np.arange(200) < 80


@pytest.mark.parametrize(("objective", "recursive"), [("vol", False), ("cut", False), ("cut", True)])
def test_with_one_weight_the_owners_are_those_of_pymetis(skewed: Graph, objective: str, recursive: bool) -> None:
    kind = pymetis.zero_copy_dtype()
    indptr, indices = skewed.indptr.astype(kind), skewed.indices.astype(kind)
    goal = pymetis.ObjType.VOL if objective == "vol" else pymetis.ObjType.CUT
    options = pymetis.Options(objtype=goal, seed=3)
    weights = np.ones((skewed.nodes, 1), kind)
    value, owner = balanced_owners(indptr, indices, weights, 5, options, recursive=recursive)
    adjacency = pymetis.CSRAdjacency(indptr, indices)
    expected = pymetis.part_graph(5, adjacency=adjacency, recursive=recursive, options=options)
    assert (value, owner.tolist()) == (expected[0], list(expected[1]))


@pytest.mark.parametrize(("objective", "algorithm"), [("vol", "kway"), ("cut", "kway"), ("cut", "recursive")])
@pytest.mark.parametrize("parts", [4])
def test_nodes_and_training_nodes_are_both_even(objective: str, algorithm: str, parts: int) -> None:
    graph, training = one_sided()
    before = partition_graph(graph, parts, "metis", objective, algorithm=algorithm)
    assert np.bincount(before.owner[training], minlength=parts).max() >= 1.9 * 80 / parts
    partitioning = partition_graph(
        graph, parts, "metis", objective, algorithm=algorithm, balance="training-nodes", training=training
    )
    assert partitioning.method == "-".join(
        ["metis", objective, *(["recursive"] * (algorithm != "kway")), "by-training-nodes"]
    )
    for counts, total in ((np.bincount(partitioning.owner), 200), (np.bincount(partitioning.owner[training]), 80)):
        assert counts.size == parts
        assert counts.max() <= 1.1 * total / parts


def test_the_same_seed_gives_the_same_owners_and_one_part_all_nodes() -> None:
    graph, training = one_sided()
    one, other = (
        partition_graph(graph, 4, seed=7, balance="training-nodes", training=training).owner.tolist() for _ in range(2)
    )
    assert one == other
    assert set(partition_graph(graph, 1, balance="training-nodes", training=training).owner.tolist()) == {0}


def test_a_pymetis_that_hides_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import math

    from pymetis import _internal

    monkeypatch.setattr(_internal, "__file__", math.__spec__.origin or __file__)
    graph, training = one_sided()
    with pytest.raises(GraphError, match=r"does not balance two things at a time .*: nodes or edges"):
        partition_graph(graph, 2, balance="training-nodes", training=training)


def test_pyg_data_without_a_number_of_nodes_has_those_that_edges_name() -> None:
    assert from_pyg(_data(num_nodes=None)).nodes == 4
