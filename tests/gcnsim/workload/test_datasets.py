from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.workload import MODELS, dataset, datasets


def test_reddit_as_published() -> None:
    reddit = dataset("reddit")
    assert (reddit.features, reddit.classes, reddit.model, reddit.layers, reddit.hidden) == (602, 41, "gcn", 4, 256)
    assert reddit.entries == 114_615_892
    counted = {row.partitions: row.boundary for row in reddit.boundary}
    assert sorted(counted) == [2, 3, 4, 6, 8, 16, 32, 64]
    assert (counted[4], counted[6], counted[32]) == (100_880.0, 89_400.0, 72_569.0)


@pytest.mark.parametrize("name", datasets())
def test_every_fact_is_cited_and_adds_up(name: str) -> None:
    facts = dataset(name)
    cited = dict(facts.citations)
    counted = {"boundary"} if facts.boundary else set()
    assert set(cited) == {"nodes", "entries", "features", "classes", "model", "layers", "hidden"} | counted
    assert all("," in text for text in cited.values())
    assert facts.model in MODELS
    assert 0.0 < facts.train <= 1.0
    assert (facts.degree_spread is None) == (not facts.degree_source)
    for row in facts.boundary:
        assert row.partitions * row.inner == pytest.approx(facts.nodes, rel=2e-3)
        assert 0 < row.boundary <= facts.nodes - row.inner


def test_edges_count_in_both_directions() -> None:
    assert dataset("ogbn-products").entries == 2 * 61_859_140
    assert dataset("yelp").entries == 2 * 7_000_000
    assert dataset("ogbn-papers100M").entries == 2 * 1_615_685_872
    assert dataset("orkut").entries == 2 * 117_185_083
    assert dataset("ogbn-arxiv").directed < dataset("ogbn-arxiv").entries <= 2 * dataset("ogbn-arxiv").directed


def test_unknown_dataset_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="unknown dataset 'redit'; did you mean 'reddit'"):
        dataset("redit")
