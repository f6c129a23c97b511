from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from gcnsim.core.errors import GraphError
from gcnsim.graph import from_dgl, from_networkx, from_pyg, from_scipy
from gcnsim.graph.csr import Cleaning
from gcnsim.graph.load import from_object

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


def test_pyg_data_without_a_number_of_nodes_has_those_that_edges_name() -> None:
    assert from_pyg(_data(num_nodes=None)).nodes == 4


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
