"""Accesses counted, in bins and per cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.trace.bins import Bins, inclusion_at
from gcnsim.trace.counts import AccessCounts, Store, count_batches
from gcnsim.trace.sample_counts import cached_in_cells
from gcnsim.trace.stored_profile import StoredProfile, stored_profile
from gcnsim.workload.caching import cached_mask
from gcnsim.workload.draws import inclusion
from gcnsim.workload.mini_batches import Batch
from tests.sampled import edge_probabilities


def of_one(cells: Bins, nodes: list[list[int]], degree: list[int], size: int, chance: list[float]) -> FloatArray:
    """Cached nodes of worker 0 by owner and cell, where every cell has one degree."""
    count, parts = len(degree), len(nodes)
    held = np.zeros((1, parts, count), np.int64)
    held[0] = nodes
    changed = replace(
        cells,
        nodes=held,
        degree=np.log1p(np.array([degree], np.float64)),
        degree_spread=np.zeros((1, count)),
    )
    return np.asarray(cached_in_cells(changed, np.array([chance]), "inclusion", np.array([size]))[0])


@pytest.fixture(scope="module")
def profile(small: Any) -> StoredProfile:
    return stored_profile(small.parts, small.owners)


def test_ties_go_to_the_owners_of_lower_rank(profile: StoredProfile) -> None:
    cells = profile.cells["uniform"]
    held = of_one(cells, [[0, 0], [4, 1], [3, 5]], [7, 7], 6, [0.5, 0.5])
    assert held.sum(axis=1) == pytest.approx([0, 5, 1])


def test_inclusion_goes_before_degree_and_degree_before_owner(profile: StoredProfile) -> None:
    cells = profile.cells["uniform"]
    nodes = [[0, 0, 0], [2, 2, 2], [2, 2, 2]]
    assert of_one(cells, nodes, [9, 1, 5], 5, [0.1, 0.5, 0.1]).tolist() == [[0, 0, 0], [1, 2, 0], [0, 2, 0]]
    assert of_one(cells, nodes, [9, 1, 5], 7, [0.2, 0.2, 0.2]).tolist() == [[0, 0, 0], [2, 0, 2], [2, 0, 1]]


@pytest.mark.parametrize("policy", ["inclusion", "degree"])
@pytest.mark.parametrize("sampler", ["uniform", "vr"])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_owners_are_those_of_the_nodes(
    small: Any, profile: StoredProfile, policy: str, sampler: str, share: float
) -> None:
    cells = profile.cells[sampler]
    size: IntArray = (share * profile.boundary_nodes).astype(np.int64)
    held = cached_in_cells(cells, inclusion_at(cells, 0.3), policy, size)
    assert held.sum(axis=(1, 2)) == pytest.approx(size, abs=1e-6)
    for part, rows, found in zip(small.parts, size.tolist(), held.sum(axis=2), strict=True):
        chance = inclusion(part, edge_probabilities(sampler, part, 0.3)).astype(np.float32)
        mask = cached_mask(policy, rows, chance, part.boundary_degree, stream(0, "cache"))
        ends = np.concatenate([[0], np.cumsum(mask)])[part.boundary_ptr]
        assert np.abs(found - np.diff(ends)).max() <= 2.0


def ids(*nodes: int) -> np.ndarray:
    return np.array(nodes, dtype=np.int64)


ONE = Batch(levels=(ids(0, 1, 2, 3, 5), ids(1, 2), ids(2)), entries=(7, 2), looked=11)
TWO = Batch(levels=(ids(0, 3, 4, 5), ids(4, 5), ids(5)), entries=(5, 1), looked=9)
OWNER = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)


def mask(*nodes: int) -> np.ndarray:
    return np.isin(np.arange(6), nodes)


def test_batches_are_counted_by_who_stores_their_input() -> None:
    store = Store(OWNER, (mask(3), mask(0, 1)), ids(6, 5))
    batch_counts = count_batches([[ONE, TWO], [TWO, ONE]], store, per_epoch=3)
    assert batch_counts.levels.tolist() == [[[5, 2, 1], [4, 2, 1]], [[4, 2, 1], [5, 2, 1]]]
    assert batch_counts.entries.tolist() == [[[7, 2], [5, 1]], [[5, 1], [7, 2]]]
    assert batch_counts.looked.tolist() == [[11, 9], [9, 11]]
    assert batch_counts.wanted.tolist() == [[[3, 2], [1, 3]], [[1, 3], [3, 2]]]
    assert batch_counts.hits.tolist() == [[[0, 1], [1, 0]], [[0, 1], [2, 0]]]
    assert (batch_counts.cached.tolist(), batch_counts.stored.tolist()) == ([1, 2], [6, 5])
    assert (batch_counts.iterations, batch_counts.per_epoch, batch_counts.hit_rate) == (2, 3, 5 / 18)
    assert not batch_counts.wanted.flags.writeable


def test_where_each_keeps_all_rows_it_asks_itself() -> None:
    batch_counts = count_batches([[ONE, TWO]], Store(None, (), ids(6, 6)), per_epoch=1)
    assert batch_counts.wanted.tolist() == [[[5, 0], [0, 4]]]
    assert not batch_counts.hits.any()
    assert batch_counts.cached.tolist() == [0, 0]
    assert batch_counts.hit_rate == 0.0


def counts() -> AccessCounts:
    return AccessCounts(
        rows=np.array([[[0, 4, 6], [2, 0, 8], [1, 3, 0]]]),
        hits=np.array([[[0, 1, 2], [2, 0, 1], [0, 0, 0]]]),
        inner_edges=np.array([[10, 20, 30]]),
        boundary_edges=np.array([[1, 2, 3]]),
        inner_nodes=np.array([5, 6, 7]),
        boundary_nodes=np.array([10, 10, 4]),
        entries=np.array([11, 22, 33]),
        cached_rows=np.array([3, 3, 0]),
    )


def test_shares_of_the_cache() -> None:
    found = counts()
    assert (found.iterations, found.workers) == (1, 3)
    assert found.hit_rate == 6 / 24
    assert found.cache_fraction == 6 / 24
    nothing = replace(found, rows=0 * found.rows, hits=0 * found.hits, boundary_nodes=0 * found.boundary_nodes)
    assert (nothing.hit_rate, nothing.cache_fraction) == (0.0, 0.0)


def test_of_mini_batches_the_shares_are_theirs() -> None:
    batches = count_batches([[ONE, TWO]], Store(OWNER, (mask(3), mask(0, 1)), ids(6, 5)), per_epoch=1)
    found = replace(counts(), batches=batches)
    assert (found.hit_rate, found.cache_fraction) == (2 / 9, 3 / 11)
    with pytest.raises(ValueError, match="no parts to place"):
        found.placed(ids(0, 1, 2))


def test_the_same_graphs_over_again() -> None:
    found = counts()
    assert found.repeated(1) is found
    twice = found.repeated(2)
    assert twice.iterations == 2
    assert (twice.rows[0] == twice.rows[1]).all()
    assert twice.inner_edges.tolist() == [[10, 20, 30]] * 2
    assert twice.boundary_edges.tolist() == [[1, 2, 3]] * 2
    assert twice.hit_rate == found.hit_rate
    assert twice.entries is found.entries, "the partition is one"


def test_parts_change_places_with_their_rows() -> None:
    moved = counts().placed(ids(2, 0, 1))
    assert moved.rows.tolist() == [[[0, 1, 3], [6, 0, 4], [8, 2, 0]]]
    assert moved.hits.tolist() == [[[0, 0, 0], [2, 0, 1], [1, 2, 0]]]
    assert (moved.inner_edges.tolist(), moved.boundary_edges.tolist()) == ([[30, 10, 20]], [[3, 1, 2]])
    assert (moved.inner_nodes.tolist(), moved.boundary_nodes.tolist()) == ([7, 5, 6], [4, 10, 10])
    assert (moved.entries.tolist(), moved.cached_rows.tolist()) == ([33, 11, 22], [0, 3, 3])
