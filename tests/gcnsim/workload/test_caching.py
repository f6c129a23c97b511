"""Caches: rules, sizes, policies, comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.workload.caching import (
    _CERTAIN,
    DEMAND,
    KINDS,
    RANKINGS,
    CacheSize,
    cached_mask,
    capacity,
    expanded,
)
from gcnsim.workload.staleness import slot, source_iteration

INCLUSION = np.array([0.2, 0.9, 0.5, 0.5, 0.5], np.float32)
DEGREE = np.array([50, 1, 3, 8, 8], np.uint32)


def mask(policy: str, rows: int, seed: int = 0) -> list[int]:
    return np.flatnonzero(cached_mask(policy, rows, INCLUSION, DEGREE, stream(seed, "cache", 0))).tolist()


def test_inclusion_first_then_degree_then_index() -> None:
    assert [mask("inclusion", rows) for rows in range(6)] == [
        [],
        [1],
        [1, 3],
        [1, 3, 4],
        [1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    ]


def test_degree_then_index() -> None:
    assert [mask("degree", rows) for rows in (1, 2, 3)] == [[0], [0, 3], [0, 3, 4]]


def test_random_is_a_reproducible_choice() -> None:
    assert mask("random", 3) == mask("random", 3)
    assert len(mask("random", 3)) == 3
    assert len({tuple(mask("random", 2, seed)) for seed in range(20)}) > 3


def test_no_fixed_choice_of_that_size_expects_more_hits_than_inclusion() -> None:
    rng = np.random.default_rng(0)
    best = INCLUSION[cached_mask("inclusion", 2, INCLUSION, DEGREE, rng)].sum()
    for _ in range(20):
        other = cached_mask("random", 2, INCLUSION, DEGREE, rng)
        assert INCLUSION[other].sum() <= best + 1e-12


def test_synchronous_reads_its_own_iteration() -> None:
    assert [source_iteration(t, 0) for t in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("tau", [1, 2, 5])
def test_stale_values_are_exactly_tau_old_after_the_cold_start(tau: int) -> None:
    assert [source_iteration(t, tau) for t in range(tau)] == [None] * tau
    assert [source_iteration(t, tau) for t in range(tau, 4 * tau)] == list(range(3 * tau))


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_a_ring_hands_every_reader_the_values_of_its_source(tau: int) -> None:
    ring: list[int | None] = [None] * tau
    for t in range(5 * tau):
        assert ring[slot(t, tau)] == source_iteration(t, tau)
        ring[slot(t, tau)] = t


def ranking(policy: str, inclusion: list[float], degree: list[int]) -> list[int]:
    rule = RANKINGS[policy]
    order = rule.ranking(np.array(inclusion, np.float32), np.array(degree, np.uint32), stream(0, "cache", 0))
    return [int(node) for node in order]


def test_the_ratio_is_of_cross_edges_to_degree_at_the_uniform_rate() -> None:
    cross, degree = np.array([1, 2, 3, 8, 5]), np.array([1, 8, 4, 10, 50])
    chance = (1.0 - 0.9**cross).tolist()
    # ratios 1, 1/4, 3/4, 4/5, 1/10
    assert ranking("degree-ratio", chance, degree.tolist()) == [0, 3, 2, 1, 4]


def test_equal_ratios_fall_to_the_degree_then_to_the_index() -> None:
    assert ranking("degree-ratio", [0.0, 0.0, 0.0], [2, 7, 7]) == [1, 2, 0]


def test_a_certain_node_has_a_finite_ratio() -> None:
    assert ranking("degree-ratio", [1.0, 0.5], [10**6, 1]) == [1, 0]


def test_names_and_groups_stand_for_rules_each_once_in_one_order() -> None:
    assert expanded(["all"]) == tuple(KINDS)
    assert expanded(["lru", "static", "degree", "lru"]) == (*RANKINGS, "inclusion-refresh", "lru")
    assert expanded(["demand"]) == DEMAND


def test_a_stored_chance_of_1_is_the_largest_number_below() -> None:
    """float32 rounds 1 - (1 - epsilon)^m to 1 for many cross edges: the ratio is that of the number just below."""
    below = np.nextafter(np.float32(1.0), np.float32(0.0))
    assert float(below) == _CERTAIN
    # 1,000 and 999 nodes of degree: ln(2^-24) / 1000 against one of a chance whose ratio lies between.
    reads = -np.log1p(-float(below))
    between = 1.0 - np.exp(-reads / 999.5)
    assert ranking("degree-ratio", [1.0, between, 1.0], [1000, 1, 999]) == [2, 1, 0]


@pytest.mark.parametrize(
    ("cache", "rows"),
    [
        (CacheSize.none(), 0),
        (CacheSize(fraction=0.0), 0),
        (CacheSize(fraction=0.29), 29),
        (CacheSize(fraction=0.295), 29),
        (CacheSize(fraction=1.0), 100),
        (CacheSize(nbytes=0.0), 0),
        (CacheSize(nbytes=799.0), 19),
        (CacheSize(nbytes=800.0), 20),
        (CacheSize(nbytes=1e12), 100),
    ],
)
def test_capacity_in_whole_rows(cache: CacheSize, rows: int) -> None:
    assert capacity(cache, boundary_nodes=100, feature_width=10) == rows


def test_no_boundary_needs_no_rows() -> None:
    assert capacity(CacheSize(fraction=0.5), 0, 10) == 0
    assert capacity(CacheSize(nbytes=1e9), 0, 10) == 0


@pytest.mark.parametrize("fraction", [-0.1, 1.01, float("nan")])
def test_shares_outside_the_range_are_refused(fraction: float) -> None:
    with pytest.raises(ScenarioError, match=r"cache: .*% is outside 0%..100%"):
        CacheSize(fraction=fraction)


@pytest.mark.parametrize("nbytes", [-1.0, float("inf"), float("nan")])
def test_bad_bytes_are_refused(nbytes: float) -> None:
    with pytest.raises(ScenarioError, match="allowed: 0 B or more"):
        CacheSize(nbytes=nbytes)


def test_auto_is_a_size_of_its_own() -> None:
    assert CacheSize(auto=True).describe() == "auto"
    assert not CacheSize(auto=True).empty
    for given in ({"fraction": 0.1}, {"nbytes": 100.0}):
        with pytest.raises(ScenarioError, match="both auto and a size; give one"):
            CacheSize(auto=True, **given)
    with pytest.raises(ScenarioError, match="auto is not allowed"):
        capacity(CacheSize(auto=True), 100, 10)
