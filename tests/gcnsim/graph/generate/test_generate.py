"""Generated graphs: communities, fitted ones, their cross edges and boundaries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.csr import Cleaning, from_csr
from gcnsim.graph.generate import (
    BlockModel,
    block_model,
    communities,
    model_parameters,
    outline,
    outlines,
    surrogate,
    surrogate_facts,
    surrogates,
)
from gcnsim.graph.generate.communities import distinct_edges, graph_of, keys_of
from gcnsim.graph.parts import part_of
from studies.cross_edges import CLASSES, lognormal, ratio
from studies.measured_boundary import random_boundary

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


FITTED = {
    "reddit": [4, 6, 8],
    "ogbn-products": [4, 6, 8],
    "yelp": [4, 6, 8],
    "reddit-train": [8, 10],
    "yelp-train": [10],
}
"""The numbers of parts whose boundary counts are published; none may miss by more than a tenth."""


def test_a_surrogate_has_the_published_nodes_entries_and_widths() -> None:
    graph = surrogate("flickr")
    assert (graph.name, graph.nodes, graph.entries) == ("flickr-surrogate", 89_250, 899_756)
    assert (graph.features, graph.classes) == (500, 7)
    assert graph.content_hash() != surrogate("flickr", 2).content_hash()


@pytest.mark.parametrize("name", surrogates())
def test_every_surrogate_says_where_its_figures_come_from_and_what_is_assumed(name: str) -> None:
    facts = surrogate_facts(name)
    assert {"nodes", "features", "classes"} <= {field for field, _ in facts.cite}
    assert facts.assumed
    assert facts.partition in ("metis-vol", "metis-cut")


@pytest.mark.parametrize("name", list(FITTED))
def test_boundary_counts_are_near_the_published_ones(name: str) -> None:
    rows = surrogate_facts(name).rows
    assert [row.parts for row in rows] == FITTED[name]
    assert max(abs(row.residual) for row in rows) <= 0.10


@pytest.mark.parametrize("name", surrogates())
def test_the_range_of_cross_edges_is_in_order_and_has_a_source(name: str) -> None:
    share = surrogate_facts(name).cross_edges
    assert 0.0 < share.low < share.likely < share.high < 1.0
    assert share.source


def test_an_outline_says_what_it_assumes() -> None:
    assert outlines() == ("ogbn-papers100M",)
    facts = outline("ogbn-papers100M")
    assert (facts.nodes, facts.features, facts.classes, facts.parts) == (111_059_956, 128, 172, (32, 1024))
    assert facts.entries == 2 * 1_615_685_872
    boundary = facts.boundary
    assert len(boundary.unevenness) == 10
    assert boundary.low < boundary.likely < boundary.high
    assert "6.6 s" in boundary.source
    assert sum(boundary.uneven(192)) / 192 == pytest.approx(1.0)
    assert max(boundary.uneven(192)) > 1.5
    assert "Reddit's ten training parts" in facts.assumed
    with pytest.raises(GraphError, match="no outline of 'ogbn-papers'; did you mean 'ogbn-papers100M'"):
        outline("ogbn-papers")


def test_memory_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(GraphError, match=r"amazon-surrogate: .* allowed: 1\.00 GiB"):
        surrogate("amazon", max_memory=2**30)


def _draw(nodes: int, seed: int) -> tuple[list[int], object]:
    requested: list[int] = []

    def draw(turn: int, count: int) -> IntArray:
        requested.append(count)
        ends = stream(seed, "test", turn).integers(0, nodes, (2, count))
        return keys_of(ends[0], ends[1])

    return requested, draw


def test_all_pairs_are_found_by_drawing_again_what_was_drawn_twice() -> None:
    requested, draw = _draw(20, 0)
    keys = distinct_edges(draw, 190, 0, "complete")  # type: ignore[arg-type]
    assert np.unique(keys).size == 190
    assert len(requested) > 2


def test_a_surplus_is_left_out_and_the_number_is_exact() -> None:
    _, draw = _draw(1000, 1)
    keys = distinct_edges(draw, 5000, 0, "g")  # type: ignore[arg-type]
    assert keys.size == 5000
    assert np.all(np.diff(keys) > 0)


def test_draws_that_only_repeat_themselves_are_given_up() -> None:
    with pytest.raises(GraphError, match="g: 5 edges: only 1 different ones were found; use fewer"):
        distinct_edges(lambda turn, count: np.full(count, keys_of(np.array([1]), np.array([0]))[0]), 5, 0, "g")


def test_the_graph_of_keys_is_the_one_built_from_both_directions() -> None:
    _, draw = _draw(300, 2)
    keys = distinct_edges(draw, 900, 0, "g")  # type: ignore[arg-type]
    low, high = keys >> 32, keys & 0xFFFFFFFF
    built = build_csr(np.concatenate([low, high]), np.concatenate([high, low]), 300, "g")
    assert graph_of(keys, 300, "g").content_hash() == built.content_hash()


@pytest.mark.parametrize(("mean", "spread"), [(3.0, 1.0), (30.0, 1.6)])
def test_the_lognormal_keeps_its_mean(mean: float, spread: float) -> None:
    chance = lognormal(mean, spread)
    assert chance.sum() == pytest.approx(1.0)
    assert float(chance @ CLASSES) == pytest.approx(mean, rel=1e-6)


def test_the_ratio_with_hardly_any_spread_is_that_of_one_number_of_cross_edges() -> None:
    m, crossing = 5, 0.2
    by_hand = (1.0 - 0.9**m) / (1.0 - (0.9 * crossing) ** m)
    assert ratio(5.0, 0.01, crossing / m) == pytest.approx(by_hand, rel=1e-9)


def test_random_parts_have_the_boundary_that_degrees_say() -> None:
    graph = block_model(BlockModel(3000, 12_000), 1)
    owners = partition_graph(graph, 5, "random")
    counted = sum(part_of(graph, owners, rank).boundary_nodes for rank in range(5))
    assert random_boundary(graph, 5) == pytest.approx(counted, rel=0.02)


def test_an_unknown_dataset_names_the_nearest() -> None:
    with pytest.raises(GraphError, match="no surrogate of 'redit'; did you mean 'reddit'"):
        surrogate("redit")
