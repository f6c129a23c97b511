from __future__ import annotations

import networkx as nx
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.graph import from_networkx
from gcnsim.graph.csr import Cleaning


def test_nodes_that_compare_are_sorted_whatever_their_insertion() -> None:
    graph = from_networkx(nx.Graph([(30, 20), (20, 10)]), "path")
    assert graph.name == "path"
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning()


def test_nodes_that_do_not_compare_keep_their_insertion() -> None:
    graph = from_networkx(nx.Graph([("a", 1), (1, (2, 3))]))
    assert graph.degrees.tolist() == [1, 2, 1]


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


def test_the_karate_club_has_its_known_counts() -> None:
    graph = from_networkx(nx.karate_club_graph())
    assert (graph.nodes, graph.entries, int(graph.degrees.max())) == (34, 2 * 78, 17)


def test_nothing_to_partition_is_refused() -> None:
    with pytest.raises(GraphError, match="empty graph: no nodes"):
        from_networkx(nx.Graph())
    with pytest.raises(GraphError, match="empty graph: no edge"):
        from_networkx(nx.empty_graph(3))
