"""What a cache holds of cells is what it holds of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.trace.bins import Bins, inclusion_at
from gcnsim.trace.sample_counts import cached_in_cells
from gcnsim.trace.stored_profile import StoredProfile, stored_profile
from gcnsim.workload.caching import cached_mask
from gcnsim.workload.draws import inclusion
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


def test_a_cache_of_everything_holds_everything(profile: StoredProfile) -> None:
    cells = profile.cells["vr"]
    for policy in ("inclusion", "degree", "random"):
        held = cached_in_cells(cells, inclusion_at(cells, 0.2), policy, profile.boundary_nodes)
        assert held == pytest.approx(cells.nodes)


@pytest.mark.parametrize("policy", ["inclusion", "degree"])
@pytest.mark.parametrize("sampler", ["uniform", "vr"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
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


def test_an_unknown_policy_is_refused(profile: StoredProfile) -> None:
    cells = profile.cells["uniform"]
    with pytest.raises(ScenarioError, match="policy"):
        cached_in_cells(cells, inclusion_at(cells, 0.3), "lucky", profile.boundary_nodes)
