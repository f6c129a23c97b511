"""On the same machine `what_if` and `recommend` recommend the same setting, by the same rule and with the same ties."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import gcnsim
from gcnsim.planning.recommend import NEAR, approximation_key, mildest
from gcnsim.scenario import SCHEMA, Scenario, from_mapping

MACHINES: dict[str, dict[str, Any]] = {
    "a slow network": {"device": "t4", "gpus": 4, "bandwidth": "5Gbps"},
    "a fast network, where taus tie": {"device": "t4", "gpus": 4, "bandwidth": "50Gbps"},
    "one GPU, where all tie": {"device": "l4", "gpus": 1},
    "one server": {"device": "a100-40", "gpus": 2},
    "an instance": {"host": "g5.12xlarge", "gpus": 4},
    "small instances": {"host": "g4dn.xlarge", "gpus": 2},
}
RULES: dict[str, dict[str, Any]] = {
    "nothing sampled": {"min_sampling_rate": 1.0},
    "nothing stale": {"max_staleness": 0},
    "methods by name": {"method": ["pipegcn", "bns-gcn"]},
    "more of both": {"min_sampling_rate": 0.05, "max_staleness": 3},
}
ALSO = {"one server", "an instance", "small instances", "nothing stale", "more of both"}
"""In the slow run: to both of them, which ask one search, these are other numbers."""


def often(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in ALSO)) for name in names]


def both(**question: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What either recommends: the row."""
    options = {"iterations": 4, "processes": 1} | question
    one = gcnsim.what_if(**options).payload["recommendation"]["row"]
    return one, gcnsim.recommend(**options, minimise="time").payload["choice"]["row"]


def setting(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("method", "tau", "epsilon", "rate", "cache_fraction", "iteration_s"))


@pytest.mark.parametrize("name", often(MACHINES))
def test_on_every_machine_both_recommend_the_same(name: str) -> None:
    one, other = both(**MACHINES[name])
    assert setting(one) == setting(other)


@pytest.mark.parametrize("name", often(RULES))
def test_by_every_rule_both_recommend_the_same(name: str) -> None:
    one, other = both(device="t4", gpus=2, gpus_per_server=1, bandwidth="10Gbps", **RULES[name])
    assert setting(one) == setting(other)


def test_of_ties_within_3_percent_the_mildest_is_taken() -> None:
    def at(tau: int, cache: float = 0.0) -> Scenario:
        return from_mapping(
            {"schema": SCHEMA, "name": "x", "method": {"name": "psc-gcn", "tau": tau, "cache": f"{100 * cache:g}%"}},
            "x",
            (),
        )

    times = {at(2): 1.0, at(1): 1.0 + NEAR - 1e-6, at(0): 1.0 + NEAR + 1e-3, at(1, 0.3): 1.01}
    assert approximation_key(at(1)) < approximation_key(at(1, 0.3)) < approximation_key(at(2))

    def chosen(scenarios: set[Scenario]) -> Scenario:
        return mildest(list(times), scenarios, lambda item: item, times.__getitem__)

    assert chosen(set()) == at(1)
    assert chosen({at(2)}) == at(2), "nothing slower than what was asked for, by more than half a per cent"
