from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.trace.counts import BoundaryProfile, expected_rows, profile_of
from gcnsim.trace.sizes_only import distribute, likely_cross_fraction, published_profile


def reddit(cross_fraction: float = 0.5, dispersion: float = 1.4) -> BoundaryProfile:
    """Reddit on 6 workers, the published mean counts."""
    entries = np.full(6, 114_600_000 // 6)
    return published_profile(np.full(6, 38_800), np.full(6, 89_400), entries, cross_fraction, dispersion)


@pytest.mark.parametrize("dispersion", [0.8, 1.4, 1.8])
@pytest.mark.parametrize("cross_fraction", [0.35, 0.5, 0.74])
def test_published_counts_and_the_assumed_mean_are_kept(cross_fraction: float, dispersion: float) -> None:
    profile = reddit(cross_fraction, dispersion)
    assert profile.boundary_nodes.tolist() == [89_400] * 6
    assert profile.cross_fraction == pytest.approx(cross_fraction, rel=2e-3)
    assert profile.entries.tolist() == [19_100_000] * 6
    assert np.array_equal((profile.nodes * profile.cross_edges).sum(axis=(1, 2)), profile.boundary_entries)
    assert profile.cross_edges.size <= 64
    assert profile.cross_edges[0] == 1


def test_owners_share_the_boundary_equally_and_none_owns_its_own() -> None:
    owned = reddit().nodes.sum(axis=2)
    assert not np.diagonal(owned).any()
    assert owned[~np.eye(6, dtype=bool)].min() == owned.max() == 89_400 // 5


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0, 1.0], [1.0, 2.5, 1.0, 7.0], [0.3, 0.3, 0.9, 0.31]])
def test_nodes_are_dealt_in_turns_of_which_an_owner_has_as_many_as_it_weighs(weights: list[float]) -> None:
    found = distribute(np.array([0.2, 0.27, 0.9, 1.0]), 1003, np.array(weights))
    slots = [max(1, round(weight / min(weights) * (1 if len(set(weights)) == 1 else 16))) for weight in weights]
    turns = sorted(((i + 0.5) / count, owner, i) for owner, count in enumerate(slots) for i in range(count))
    owners = [turns[node % len(turns)][1] for node in range(1003)]
    ends = [round(0.2 * 1003), round(0.27 * 1003), round(0.9 * 1003), 1003]
    for k, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        assert found[:, k].tolist() == [owners[first:last].count(owner) for owner in range(4)]


@pytest.mark.parametrize("parts", [6, 150])
def test_nodes_are_dealt_when_they_are_asked_for(parts: int) -> None:
    inner = np.full(parts, 700)
    boundary = np.where(np.arange(parts) > 0, 100 + 9 * np.arange(parts), 0)
    profile = published_profile(inner, boundary, 90 * inner, 0.4, 1.2)
    nodes = profile.nodes
    assert nodes.shape == (parts, parts, profile.cross_edges.size)
    assert np.array_equal(nodes.sum(axis=2), profile.pairs)
    assert np.array_equal(profile.boundary_nodes, boundary)
    assert np.array_equal((nodes @ profile.cross_edges).sum(axis=1), profile.boundary_entries)
    assert np.array_equal(profile.of_worker(parts - 1), nodes[-1])


def test_dispersion_is_the_spread_of_the_logarithms() -> None:
    profile = reddit(dispersion=1.0)
    weights, logs = profile.nodes.sum(axis=(0, 1)), np.log(profile.cross_edges)
    mean = np.average(logs, weights=weights)
    assert np.sqrt(np.average((logs - mean) ** 2, weights=weights)) == pytest.approx(1.0, rel=0.02)


def test_fewer_rows_the_wider_the_spread_and_more_the_more_cross_edges() -> None:
    rows = [expected_rows(reddit(dispersion=spread), 0.1).sum() for spread in (0.8, 1.4, 1.8)]
    assert rows[0] > rows[1] > rows[2]
    assert expected_rows(reddit(0.35), 0.1).sum() < expected_rows(reddit(0.74), 0.1).sum()


def test_uneven_workers_and_workers_without_a_boundary() -> None:
    profile = published_profile(np.array([100, 200, 50]), np.array([30, 0, 40]), np.array([2000, 4000, 1000]), 0.1, 1.0)
    assert profile.boundary_nodes.tolist() == [30, 0, 40]
    assert profile.entries.tolist() == [2000, 4000, 1000]
    assert profile.boundary_entries[1] == 0
    assert profile.boundary_entries[0] == pytest.approx(200, rel=0.1)


def test_one_worker_has_no_boundary() -> None:
    profile = published_profile(np.array([1000]), np.array([0]), np.array([5000]), 0.3, 1.0)
    assert profile.nodes.sum() == 0
    assert profile.inner_entries.tolist() == [5000]
    with pytest.raises(ScenarioError, match="with one worker"):
        published_profile(np.array([1000]), np.array([5]), np.array([5000]), 0.3, 1.0)


def test_impossible_cross_fractions_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"cross fraction: 0 is outside \(0, 1\]"):
        reddit(0.0)
    with pytest.raises(ScenarioError, match=r"cross fraction: 0\.001 gives worker 0 0\.214 edges per boundary node"):
        reddit(0.001)
    with pytest.raises(ScenarioError, match="allowed: 1 to its 10 inner nodes"):
        published_profile(np.array([10, 10]), np.array([1, 1]), np.array([500, 500]), 0.9, 1.0)


def test_the_likely_fraction_follows_the_boundary() -> None:
    low, likely, high = likely_cross_fraction(38_800, 89_400)
    assert (low, likely, high) == pytest.approx((0.215, 0.400, 0.661), abs=1e-3)
    assert likely_cross_fraction(10, 1000) == (0.95, 0.95, 0.95)


@pytest.mark.parametrize(("name", "dispersion"), [("tolokers", 1.5), ("amazon_cs", 1.5), ("coauthor_phy", 1.0)])
def test_stated_accuracy_on_real_graphs(real: Callable[[str], Any], name: str, dispersion: float) -> None:
    true = profile_of(real(name).parts)
    inner, boundary = int(true.inner_nodes.mean()), int(true.boundary_nodes.mean())
    low, _, high = likely_cross_fraction(inner, boundary)
    assert low <= true.cross_fraction <= high
    for spread, below, above in ((dispersion, 0.95, 1.05), (1.3, 0.91, 1.16)):
        guess = published_profile(
            np.full(4, inner), np.full(4, boundary), np.full(4, true.entries.sum() // 4), true.cross_fraction, spread
        )
        for epsilon in (0.5, 0.1, 0.01):
            ratio = expected_rows(guess, epsilon).sum() / expected_rows(true, epsilon).sum()
            assert below - 0.005 < ratio < above + 0.005
