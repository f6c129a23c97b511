from __future__ import annotations

import pytest

from gcnsim.core.errors import GraphError
from gcnsim.graph.generate import outline, outlines, surrogate, surrogate_facts, surrogates

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
def test_a_row_says_how_many_seeds_it_is_the_mean_of(name: str) -> None:
    for row in surrogate_facts(name).rows:
        assert (row.spread is None) == (row.seeds == 1)
        assert row.spread is None or 0.0 < row.spread < 0.15
    for check in surrogate_facts(name).checks:
        assert check.cite
        assert abs(check.residual) < 0.2


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


def test_an_unknown_dataset_names_the_nearest() -> None:
    with pytest.raises(GraphError, match="no surrogate of 'redit'; did you mean 'reddit'"):
        surrogate("redit")


def test_memory_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(GraphError, match=r"amazon-surrogate: .* allowed: 1\.00 GiB"):
        surrogate("amazon", max_memory=2**30)
