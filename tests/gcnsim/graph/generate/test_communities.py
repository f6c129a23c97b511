from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.core.streams import stream
from gcnsim.graph.csr import Cleaning, from_csr
from gcnsim.graph.generate import BlockModel, block_model, communities, model_parameters

SMALL = BlockModel(3000, 45_000, communities=16, bridges=0.4, cross_mean=0.3)


def test_a_drawn_graph_is_clean_has_exactly_its_edges_and_its_widths() -> None:
    graph = block_model(SMALL, 7, "drawn", features=5, classes=3)
    assert (graph.nodes, graph.entries, graph.features, graph.classes) == (3000, 90_000, 5, 3)
    again = from_csr(graph.indptr, graph.indices, "again")
    assert again.cleaning == Cleaning()
    assert again.content_hash() == graph.content_hash()


def test_a_seed_is_a_graph_in_any_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communities, "BLOCK", 4096)
    one, two, other = (block_model(SMALL, seed, processes=count) for seed, count in ((1, 1), (1, 2), (2, 1)))
    assert one.content_hash() == two.content_hash()
    assert one.content_hash() != other.content_hash()


def test_degrees_follow_the_weights_and_widen_with_their_spread() -> None:
    model = BlockModel(20_000, 200_000, communities=8, degree_spread=1.0)
    degrees = block_model(model, 3).degrees
    assert degrees.mean() == 20.0
    assert np.log(degrees[degrees > 0]).std() == pytest.approx(1.0, abs=0.08)
    assert np.median(degrees) == pytest.approx(20.0 * np.exp(-0.5), rel=0.08)
    even = block_model(replace(model, degree_spread=0.0), 3).degrees
    assert even.std() == pytest.approx(np.sqrt(20.0), rel=0.1)


def test_bridges_are_a_share_of_the_nodes_and_more_often_hubs() -> None:
    model = replace(SMALL, nodes=50_000, edges=500_000, bridges=0.3, hub_bias=1.0)
    nature = model_parameters(model, 0)
    bridge = nature.cross > 0.0
    assert bridge.mean() == pytest.approx(0.3, abs=0.01)
    assert nature.cross[bridge].mean() == pytest.approx(model.cross_mean, abs=0.01)
    assert nature.degree[bridge].mean() > 1.5 * nature.degree[~bridge].mean()
    assert nature.degree.sum() == pytest.approx(1_000_000)
    blind = model_parameters(replace(model, hub_bias=0.0), 0)
    plain = blind.cross > 0.0
    assert blind.degree[plain].mean() == pytest.approx(blind.degree[~plain].mean(), rel=0.05)


def test_without_bridges_the_communities_are_components() -> None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = block_model(BlockModel(800, 16_000, communities=4, size_spread=0.0, bridges=0.0, degree_spread=0.3), 0)
    rows = csr_array((np.ones(graph.entries), graph.indices, graph.indptr), shape=(800, 800))
    count, labels = connected_components(rows, directed=False)
    assert count == 4
    assert np.bincount(labels).tolist() == [200] * 4


def test_leaving_edges_stay_near_or_go_far_by_reach() -> None:
    model = BlockModel(4000, 40_000, communities=16, size_spread=0.0, bridges=1.0, fanout=4, cross_mean=0.5)
    near, far = (_within_groups(replace(model, reach=reach), 1000) for reach in (0.0, 1.0))
    assert near == 1.0
    # Half of the edges leave their community; a quarter of those that may go anywhere land in their own group.
    assert far == pytest.approx(0.5 + 0.5 / 4, abs=0.05)


def _within_groups(model: BlockModel, size: int) -> float:
    """Share of entries within `size` nodes of neighbouring communities, the shuffling of ids undone."""
    graph = block_model(model, 1)
    place = np.empty(model.nodes, np.int64)
    place[stream(1, "generate", "order").permutation(model.nodes)] = np.arange(model.nodes)
    rows = np.repeat(place, graph.degrees)
    return float(np.mean(rows // size == place[graph.indices] // size))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": 4_498_501}, "4,498,501 edges; 3,000 nodes allow 1 to 4,498,500"),
        ({"nodes": 300, "edges": 40_000, "bridges": 0.0}, "only .* different ones were found"),
        ({"cross_mean": 1.5}, "cross_mean 1.5 is outside"),
        ({"communities": 3001}, "3,001 communities for 3,000 nodes"),
        ({"nodes": 1}, "1 nodes; 2 to"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(change: dict[str, int], message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        block_model(replace(SMALL, **change), 0)
    assert "\n" not in str(caught.value)


def test_more_memory_than_allowed_is_refused_before_drawing() -> None:
    with pytest.raises(GraphError, match=r"need about .* GiB of memory; allowed: 1.00 GiB"):
        block_model(BlockModel(232_965, 57_307_946), 0, max_memory=2**30)
