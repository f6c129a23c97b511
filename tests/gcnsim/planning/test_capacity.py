"""Which machine a recommendation takes: one rule, fronts, sampled methods."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import PriceBook, prices
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.capacity_choice import _why, decide, dominance, front
from gcnsim.planning.capacity_goal import TIME, Goal, Work, read_budget
from gcnsim.planning.capacity_search import Option, Setting, dominated, simulate
from gcnsim.planning.failures import Failures
from gcnsim.planning.machines import Machines, priced_hosts, space_text, usual_gpus
from gcnsim.planning.recommend import NEAR, approximation_key, mildest
from gcnsim.planning.rows import rent_of
from gcnsim.planning.study import Studies
from gcnsim.scenario import SCHEMA, ClusterSpec, Scenario, from_mapping


def scenario(device: str, method: str = "pipegcn") -> Scenario:
    mapping = {"schema": SCHEMA, "cluster": {"gpus": 2, "device": device}, "method": {"name": method}}
    return from_mapping(mapping, "test")


@pytest.fixture(scope="module")
def studies() -> Studies:
    return Studies(scenario("t4"))


def test_where_nothing_has_the_chance_the_best_chance_comes_first(studies: Studies) -> None:
    settings = [Setting(scenario(device), Work(per_hour=1.0), 0.0, 1.0) for device in ("t4", "a10g")]
    options = simulate(studies, settings)
    median = float(np.median(options[1].candidate.times))
    decision = decide(options, Goal(iteration_s=median))
    assert not decision.met
    assert decision.ranked[0].scenario.cluster.device == "a10g"
    assert 0.4 < decision.ranked[0].chance(Goal(iteration_s=median)) < 0.6
    lower = decide(options, replace(Goal(iteration_s=median), confidence=0.3))
    assert lower.met


MACHINES: dict[str, dict[str, Any]] = {
    "a slow network": {"device": "t4", "gpus": 4, "bandwidth": "5Gbps"},
    "a fast network, where taus tie": {"device": "t4", "gpus": 4, "bandwidth": "50Gbps"},
    "one GPU, where all tie": {"device": "l4", "gpus": 1},
    "one server": {"device": "a100-40", "gpus": 2},
    "an instance": {"host": "g5.12xlarge", "gpus": 4},
}
RULES: dict[str, dict[str, Any]] = {
    "nothing sampled": {"min_sampling_rate": 1.0},
    "nothing stale": {"max_staleness": 0},
    "methods by name": {"method": ["pipegcn", "bns-gcn"]},
    "more of both": {"min_sampling_rate": 0.05, "max_staleness": 3},
}
ALSO = {
    "a slow network",
    "nothing sampled",
    "one server",
    "an instance",
    "small instances",
    "nothing stale",
    "more of both",
}
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


def option(times: list[float], rate: float, failures: Failures | None = None, servers: int = 1) -> Option:
    """An option with these times of an iteration in the draws, their median at the stated values; with failures, of a
    training of one iteration."""
    result: Any = SimpleNamespace(metrics=SimpleNamespace(iteration_s=float(np.median(times))), per_epoch=1, fits=True)
    scenario: Any = SimpleNamespace()
    candidate = Candidate(scenario, result, np.array(times))
    work = Work(1, None if failures is None else 1, rate, failures, servers)
    return Option(Setting(scenario, work, 0.0, rate), candidate)


def test_an_option_that_loses_is_not_on_the_front() -> None:
    good, bad = option([1.0] * 20, 1.0), option([1.1] * 20, 1.0)
    assert front([bad, good]) == [good]
    assert (dominance(good, bad), dominance(bad, good)) == (1.0, 0.0)


def test_faster_and_dearer_is_on_the_front_too() -> None:
    fast, cheap = option([1.0] * 20, 3.0), option([2.0] * 20, 1.0)
    assert front([cheap, fast]) == [fast, cheap]
    assert (dominance(fast, cheap), dominance(cheap, fast)) == (0.0, 0.0)


def test_draws_are_compared_in_pairs() -> None:
    """Both vary by half, together: the one is a tenth slower in every draw, though its interval holds the other's."""
    shared = np.linspace(0.75, 1.25, 40)
    one, other = option(list(shared), 1.0), option(list(1.1 * shared), 1.0)
    assert dominance(one, other) == 1.0
    assert 0.4 < dominance(one, option(list(1.1 * shared[::-1]), 1.0)) < 0.8


def test_equals_do_not_beat_each_other() -> None:
    assert not dominated(np.array([1.0]), 1.0).any()
    twins = [option([1.0] * 5, 1.0), option([1.0] * 5, 1.0)]
    assert len(front(twins)) == 2


def test_slower_may_still_be_cheaper() -> None:
    assert list(dominated(np.array([0.5, 0.9, 1.0, 1.1]), 1.2)) == [True, False, False, False]


def test_failures_that_prolong_long_draws_more_are_counted_in_each_draw() -> None:
    """Four servers fail four times as often: they win where the training is short alone."""
    times = np.linspace(500.0, 1500.0, 40)
    failing = Failures(1.0, 0.0, 1e9, 0.0)
    often, seldom = option(list(times), 1.0, failing, servers=4), option(list(1.48 * times), 1.0, failing)
    assert dominance(often, seldom) == pytest.approx(0.5, abs=0.1)
    assert dominance(often, seldom) + dominance(seldom, often) == 1.0
    never = [option([1e9] * 5, 1.0, failing) for _ in range(2)]
    assert dominance(*never) == 0.0


BASE = ClusterSpec()


def test_every_instance_with_a_price_is_considered_from_one_gpu_up() -> None:
    clusters = Machines().clusters(BASE, PriceBook(), 32)
    listed = {item.instance for item in prices() if item.pricing == "on-demand"}
    assert {cluster.host for cluster in clusters} == listed
    for price in prices():
        whole = [cluster for cluster in clusters if cluster.host == price.instance and cluster.gpus == price.gpus]
        assert [(cluster.device, cluster.servers) for cluster in whole] == [(price.device, 1)]
    single = {(cluster.device, cluster.gpus) for cluster in clusters if cluster.gpus_per_server == 1}
    assert {(device, gpus) for device in ("t4", "a10g", "l4", "l40s", "v100-16") for gpus in (1, 2, 3, 4)} <= single


def test_two_t4_cost_what_two_t4_described_cost() -> None:
    clusters = Machines().clusters(BASE, PriceBook(), 32)
    pair = [cluster for cluster in clusters if (cluster.device, cluster.gpus) == ("t4", 2)]
    described = Machines(devices=("t4",), gpus=(2,)).clusters(BASE, PriceBook(), 32)[0]
    rents = [rent_of(item, PriceBook()) for item in (*pair, described)]
    paid = [rent.per_hour for rent in rents if rent is not None]
    assert len(paid) == len(pair) + 1
    assert min(paid[:-1]) == pytest.approx(paid[-1])
    assert {cluster.servers for cluster in pair} == {1, 2}, "two of one server, and one of each of two"


@pytest.mark.parametrize(
    ("of_one", "counts"), [(1, [1, 2, 3, 4]), (2, [2, 4, 6, 8]), (4, [2, 4, 8, 12, 16]), (8, [2, 4, 8, 16, 24, 32])]
)
def test_parts_of_an_instance_and_whole_ones_are_tried(of_one: int, counts: list[int]) -> None:
    assert usual_gpus(of_one) == counts


def test_prices_of_a_file_and_spot_have_their_own_instances() -> None:
    assert priced_hosts(PriceBook(pricing="spot"))
    assert set(priced_hosts(PriceBook(pricing="spot"))) < set(priced_hosts(PriceBook()))


def test_the_space_is_named() -> None:
    both = Machines(hosts=("g4dn.xlarge", "g4dn.12xlarge")).clusters(BASE, PriceBook(), 32)
    assert space_text(both) == "g4dn (2 instance types), 1 to 16 GPUs"
    assert space_text(Machines(hosts=("p4d.24xlarge",), gpus=(8,)).clusters(BASE, PriceBook(), 32)) == (
        "p4d.24xlarge, 8 GPUs"
    )
    described = Machines(devices=("t4", "l4"), bandwidths=(1.25e9,), gpus=(1,))
    assert space_text(described.clusters(BASE, PriceBook(), 32)) == "t4, l4 at 10Gbps, 1 GPU"


@pytest.mark.parametrize(
    ("text", "hours", "per_hour"),
    [("10USD/h", None, 10.0), ("24usd/d", 8, 3.0), ("500USD/mo", 8, 500 / 730 * 3)],
)
def test_budgets_are_money_over_time(text: str, hours: float | None, per_hour: float) -> None:
    budget = read_budget(text, hours)
    assert budget is not None
    assert budget.per_hour == pytest.approx(per_hour)


QUESTION = {
    "device": ["t4", "a10g", "l4"],
    "gpus": [2, 4, 8],
    "iterations": 5,
    "tau": [0, 1],
    "epsilon": 1.0,
    "cache": ["0%", "10%", "30%"],
}


def test_a_training_is_asked_for_with_its_accuracy_and_its_cost() -> None:
    goal = Goal(most_cost=2e6, confidence=0.9, accuracy=0.78)
    assert goal.text == (
        "cheapest way to train to 78 % validation accuracy for 2,000,000 USD or less, with a chance of at least 90 %"
    )
    assert goal.targets == "the target (2,000,000 USD for the training)"


def test_a_grid_that_is_too_large_needs_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ScenarioError, match=r"--limit: 54 settings are more than 40; .*gcnsim\[recommend\]"):
        gcnsim.recommend(**QUESTION, limit=40)  # type: ignore[arg-type]


def test_the_same_question_picks_the_same_settings() -> None:
    pytest.importorskip("optuna")
    one, again = (gcnsim.recommend(**QUESTION, limit=20, processes=count) for count in (1, 2))  # type: ignore[arg-type]
    assert one.payload == again.payload
    search = one.told.search
    assert search.grid == 54
    assert 0 < search.settings <= 20
    assert "of 54, picked by their bounds" in search.text


@pytest.mark.parametrize("limit", [0, -1, True])
def test_limits_are_whole_numbers(limit: int) -> None:
    with pytest.raises(ScenarioError, match="--limit: "):
        gcnsim.recommend(**QUESTION, limit=limit)  # type: ignore[arg-type]


def test_where_a_price_is_unknown_gpu_hours_are_compared_and_said() -> None:
    """Of one machine with a price and one without, no cost can be dearer."""

    def of(seconds: float, gpus: int, per_hour: float | None) -> Option:
        made = option([seconds] * 4, float(gpus))
        scenario: Any = SimpleNamespace(cluster=SimpleNamespace(gpus=gpus))
        return replace(made, setting=replace(made.setting, scenario=scenario, work=Work(per_hour=per_hour)))

    def why(chosen: Option, other: Option) -> str:
        return _why(chosen, other, Goal(minimise=TIME), None, None)

    assert why(of(1.0, 4, None), of(2.0, 2, 1.0)) == "2 times as slow and not more GPU-hours"
    assert why(of(1.0, 4, None), of(1.0, 4, 1.0)) == "as fast, in as many GPU-hours"
    assert why(of(1.0, 4, 2.0), of(1.25, 8, 2.0)) == "25 % slower and 25 % dearer"
    assert why(of(1.0, 2, None), of(1.25, 8, 2.0)) == "25 % slower and 5 times the GPU-hours"


def test_another_rule_compares_by_the_epoch() -> None:
    """An iteration of mini-batches is a part of an epoch, one of full-graph training is a whole one."""
    asked: dict[str, Any] = {"device": "t4", "gpus": 2, "bandwidth": "15Gbps", "processes": 1}
    asked["overrides"] = ["run.iterations=4"]
    found = gcnsim.recommend(**asked, method=["bns-gcn", "distdgl"], minimise="time")
    (row,) = gcnsim.what_if(**asked, method="distdgl").rows
    others = [other for other in found.told.other_rules if other.name.startswith("distdgl")]
    assert found.told.choice.row.method == "bns-gcn"
    assert row.iterations_per_epoch > 1
    assert [other.seconds for other in others] == [row.epoch_s] * len(others)
    assert others
