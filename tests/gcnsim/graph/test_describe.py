from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr, describe, from_networkx
from gcnsim.graph.describe import Components, DegreeBin, components, degree_bins, degree_percentiles, homophily


@pytest.fixture
def star() -> Graph:
    """Node 0 joined to 1, 2, 3, 4; node 5 alone."""
    return build_csr(np.zeros(4, dtype=np.int64), np.arange(1, 5), 6, "star")


def test_degree_bins_are_powers_of_two(star: Graph) -> None:
    found = degree_bins(star)
    assert found == (DegreeBin(0, 0, 1, 0), DegreeBin(1, 1, 4, 4), DegreeBin(2, 3, 0, 0), DegreeBin(4, 7, 1, 4))


def test_degree_bins_hold_every_node_and_entry() -> None:
    graph = from_networkx(nx.barabasi_albert_graph(500, 3, seed=1))
    found = degree_bins(graph)
    assert (sum(degree_bin.nodes for degree_bin in found), sum(degree_bin.entries for degree_bin in found)) == (
        graph.nodes,
        graph.entries,
    )
    for degree_bin in found:
        inside = (graph.degrees >= degree_bin.least) & (graph.degrees <= degree_bin.most)
        assert degree_bin.nodes == np.count_nonzero(inside)


def test_percentiles_are_numpys(star: Graph) -> None:
    expected = {"p10": 0.5, "p25": 1.0, "p50": 1.0, "p75": 1.0, "p90": 2.5, "p99": 3.85}
    assert degree_percentiles(star) == pytest.approx(expected)


def test_an_isolated_node_is_a_component(star: Graph) -> None:
    assert components(star) == Components(2, 5)


def test_homophily_by_hand(star: Graph) -> None:
    found = homophily(star, np.array([0, 0, 1, 1, -1, 0]))
    assert found is not None
    assert found.edges == 3
    assert found.edge == pytest.approx(1 / 3)  # 0-1 alike, 0-2 and 0-3 not, 0-4 unknown
    chance = (4 / 6) ** 2 + (2 / 6) ** 2  # class 0 has degrees 3 + 1 of 6, class 1 has 2
    assert found.adjusted == pytest.approx((1 / 3 - chance) / (1 - chance))


def test_homophily_by_chunks_is_that_of_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = nx.random_partition_graph([60, 40, 20], 0.3, 0.05, seed=2)
    labels = np.repeat([0, 1, 2], [60, 40, 20])
    for node, label in enumerate(labels):
        drawn.nodes[node]["label"] = int(label)
    monkeypatch.setattr(describe, "_CHUNK", 50)
    found = homophily(from_networkx(drawn), labels)
    assert found is not None
    alike = sum(labels[a] == labels[b] for a, b in drawn.edges())
    assert found.edge == pytest.approx(alike / drawn.number_of_edges())
    # With one class a node, adjusted homophily is the modularity-like assortativity coefficient.
    assert found.adjusted == pytest.approx(nx.attribute_assortativity_coefficient(drawn, "label"))


def test_homophily_needs_an_edge_between_known_nodes(star: Graph) -> None:
    assert homophily(star, np.full(6, -1)) is None
    assert homophily(star, np.array([-1, 0, 0, 0, 0, 0])) is None
    one = homophily(star, np.zeros(6, dtype=np.int64))
    assert one is not None
    assert (one.edge, one.adjusted) == (1.0, None)
