from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.workload.caching import _CERTAIN, DEMAND, KINDS, RANKINGS, expanded


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


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"cache policy: unknown 'seive'; did you mean 'sieve'\? known: all, arc"):
        expanded(["seive"])


def test_a_stored_chance_of_1_is_the_largest_number_below() -> None:
    """float32 rounds 1 - (1 - epsilon)^m to 1 for many cross edges: the ratio is that of the number just below."""
    below = np.nextafter(np.float32(1.0), np.float32(0.0))
    assert float(below) == _CERTAIN
    # 1,000 and 999 nodes of degree: ln(2^-24) / 1000 against one of a chance whose ratio lies between.
    reads = -np.log1p(-float(below))
    between = 1.0 - np.exp(-reads / 999.5)
    assert ranking("degree-ratio", [1.0, between, 1.0], [1000, 1, 999]) == [2, 1, 0]
