"""Hits of caches under mini-batches, from degrees alone, beside counted ones."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.workload import dataset
from gcnsim.workload.reach import lognormal_law
from studies.batch_hits import REDDIT, REDDIT_ROWS, REDDIT_TRAINING, drawn, expected, spread_of
from studies.measured_boundary import random_boundary


def test_reddits_hits_are_within_three_points_of_the_counted() -> None:
    facts = dataset("reddit")
    assert facts.degree_spread is not None
    law = lognormal_law(facts.nodes, facts.entries / facts.nodes, facts.degree_spread)
    rows, hits = expected(law, (5, 5, 5, 5))
    assert np.abs(hits - np.array(REDDIT)).max() <= 0.03
    assert rows * REDDIT_TRAINING / 1024 == pytest.approx(REDDIT_ROWS, rel=0.1)


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_random_parts_tell_the_spread_with_which_hits_are_met(spread: float) -> None:
    graph = block_model(BlockModel(6_000, 120_000, communities=4, degree_spread=spread), 0)
    found = spread_of(graph.nodes, graph.entries, 10, random_boundary(graph, 10))
    assert found == pytest.approx(spread, abs=0.2)
    law = lognormal_law(graph.nodes, graph.entries / graph.nodes, found)
    (rows, hits), (true, counted) = expected(law, (5, 5)), drawn(graph, (5, 5))
    assert rows == pytest.approx(true, rel=0.1)
    assert np.abs(hits - counted).max() <= 0.03


@pytest.mark.parametrize(
    ("name", "parts", "boundary"),
    [("ogbn-products", 10, 16_797_000), ("reddit-train", 8, 1_016_000), ("yelp-train", 10, 2_026_000)],
)
def test_published_spreads_are_those_of_random_parts(name: str, parts: int, boundary: int) -> None:
    facts = dataset(name)
    assert spread_of(facts.nodes, facts.entries, parts, boundary) == pytest.approx(facts.degree_spread, abs=0.03)
