"""The rule of runs on emulated accelerators: what it makes, drawn by its number alone, and what it is held to."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core import units
from gcnsim.core.yaml_files import read_yaml
from studies.validate_accelerator import RULE, checks, settings

GOOD: dict[str, Any] = {
    "mape": 0.02,
    "p90_ape": 0.05,
    "bias": -0.01,
    "phases": {name: {"bias": 0.0, "p90": 0.05} for name in ("compute", "exposed_comm", "exposed_other")},
    "kendall": 0.97,
    "regret": {"mean": 0.0, "max": 0.01},
    "coverage": 0.9,
}


def rule(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(RULE)
    return found | changes


def test_sixty_configurations_or_more_of_2_to_16_workers_on_three_graphs() -> None:
    every = settings(rule())
    assert sum(len(item.runs) for item in every) >= 60
    assert len({name for item in every for name, *_ in item.runs}) == sum(len(item.runs) for item in every)
    assert {item.workers for item in every} >= {2, 4, 16}
    assert {item.facts["workers_per_host"] for item in every} == {1, 2, 3, 4}
    assert len({item.facts["graph"] for item in every}) == 3
    for name in ("slow", "background", "uneven", "gpus_per_switch"):
        assert any(name in item.facts for item in every)


def test_a_draw_decides_bandwidths_and_order_and_repeats_itself() -> None:
    first, again, other = settings(rule()), settings(rule()), settings(rule(draw=1))
    assert first == again
    assert [item.bandwidth for item in first] != [item.bandwidth for item in other]
    for item in (*first, *other):
        low, high = map(units.bandwidth, item.facts["bandwidth"])
        # Two digits may lie just beyond the ends.
        assert 0.95 * low <= units.bandwidth(item.bandwidth) <= 1.05 * high


def test_links_are_slow_enough_to_be_carried() -> None:
    scale = rule()["scale"]
    for setting in settings(rule()):
        carried = setting.facts["hosts"] * units.bandwidth(setting.bandwidth) / setting.scale
        assert setting.scale >= scale["least"]
        assert carried <= units.bandwidth(scale["carried"])


@pytest.mark.parametrize(
    ("worse", "missed"),
    [
        ({}, 0),
        ({"mape": 0.031}, 1),
        ({"p90_ape": 0.061}, 1),
        ({"bias": -0.016}, 1),
        ({"kendall": 0.94}, 1),
        ({"kendall": None}, 1),
        ({"regret": {"mean": 0.011, "max": 0.02}}, 1),
        ({"coverage": 0.84}, 1),
        ({"coverage": 0.96}, 1),
        ({"phases": {**GOOD["phases"], "compute": {"bias": 0.0, "p90": 0.081}}}, 1),
    ],
)
def test_each_bound_is_checked(worse: dict[str, Any], missed: int) -> None:
    found = checks(GOOD | worse, rule()["bounds"])
    assert sum(not kept for _, kept in found) == missed
