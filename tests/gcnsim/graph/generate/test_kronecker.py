from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.errors import GraphError
from gcnsim.graph import Cleaning, from_csr
from gcnsim.graph.generate import RMat, distinct, rmat

SMALL = RMat(1500, 12_000)


def test_any_number_of_nodes_gives_a_clean_graph_with_exactly_its_edges() -> None:
    graph = rmat(SMALL, 4)
    assert (graph.nodes, graph.entries) == (1500, 24_000)
    assert from_csr(graph.indptr, graph.indices, "again").cleaning == Cleaning()


def test_a_seed_is_a_graph_in_any_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "BLOCK", 1024)
    assert rmat(SMALL, 1).content_hash() == rmat(SMALL, 1, processes=2).content_hash() != rmat(SMALL, 2).content_hash()


def test_skewed_chances_give_hubs_and_even_ones_do_not() -> None:
    even = rmat(replace(SMALL, a=0.25, b=0.25, c=0.25), 0).degrees
    skewed = rmat(SMALL, 0).degrees
    assert even.std() == pytest.approx(np.sqrt(16.0), rel=0.15)
    assert skewed.max() > 5 * even.max()


def test_chances_that_are_none_are_refused() -> None:
    with pytest.raises(GraphError, match=r"a 0\.9, b 0\.1, c 0\.1; chances of sum 1 at most are allowed"):
        rmat(replace(SMALL, a=0.9, b=0.1, c=0.1), 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": float("nan")}, r"rmat: a nan is outside 0 to 1$"),
        ({"b": -0.1}, r"rmat: b -0\.1 is outside 0 to 1$"),
        ({"a": 1.0, "b": 0.0, "c": 0.0}, r"a 1, b 0, c 0 join no two nodes; b or c above 0 is needed$"),
        ({"a": 0.0, "b": 1.0, "c": 0.0}, r"a 0, b 1, c 0: 12,000 edges: only 0 .*; use fewer, or other parameters$"),
    ],
)
def test_chances_that_draw_too_few_edges_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        rmat(replace(SMALL, **change), 0)


def test_more_edges_than_pairs_are_refused() -> None:
    with pytest.raises(GraphError, match="46 edges; 10 nodes allow 1 to 45"):
        rmat(RMat(10, 46), 0)
