"""Pruning never drops the winner: brute force over a small grid gives the same choice."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from gcnsim.hardware import PriceBook
from gcnsim.planning.capacity_choice import best_of, decide, front
from gcnsim.planning.capacity_goal import COST, GPUS, TIME, Goal
from gcnsim.planning.capacity_search import Option, search
from gcnsim.planning.capacity_settings import considered, worth_listing
from gcnsim.planning.machines import Machines
from gcnsim.planning.recommend import Rule
from gcnsim.planning.rows import rent_of
from gcnsim.planning.shortlist import candidates, extremes
from gcnsim.planning.study import Studies
from gcnsim.scenario import SCHEMA, ClusterSpec, Scenario, from_mapping
from gcnsim.workload.caching import CacheSize

BASE = from_mapping({"schema": SCHEMA, "name": "x", "run": {"iterations": 5}}, "x", ())
RULE = Rule(("full-graph", "pipegcn", "psc-gcn"), named=True)
GRID = Machines(
    devices=("t4", "a10g"),
    bandwidths=(1.875e9, 6.25e9),
    gpus=(2, 4, 8),
)
RATES = {"method.epsilon": (1.0, 0.1), "method.rate": (1.0, 0.1)}
KNOBS = {"method.tau": (0, 1), "method.cache": (CacheSize(fraction=0.0), CacheSize(fraction=0.3)), **RATES}


@pytest.fixture(scope="module")
def studies() -> Studies:
    return Studies(BASE)


@pytest.fixture(scope="module")
def every(studies: Studies) -> list[Scenario]:
    clusters = GRID.clusters(BASE.cluster, PriceBook(), studies.accesses.most_gpus)
    return list(considered(studies, BASE, clusters, KNOBS, RULE).settings)


@pytest.fixture(scope="module")
def all_options(studies: Studies, every: list[Scenario]) -> list[Option]:
    """Every setting simulated, without any pruning."""
    found = search(studies, every, Goal(minimise=TIME), PriceBook())
    known = {option.scenario for option in found.options}
    rest = [setting for setting in found.considered if setting.scenario not in known]
    studies.prepare([setting.scenario for setting in rest])
    return [*found.options, *(Option(setting, studies.candidate(setting.scenario)) for setting in rest)]


GOALS = [
    Goal(minimise=minimise, iteration_s=limit, per_hour=budget)
    for minimise in (COST, GPUS, TIME)
    for limit, budget in ((None, None), (1.0, 3.0), (0.5, None))
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.text)
def test_the_choice_is_that_of_brute_force(
    goal: Goal, studies: Studies, every: list[Scenario], all_options: list[Option]
) -> None:
    found = search(studies, every, goal, PriceBook())
    chosen = best_of([option for option in found.options if option.meets(goal)], goal)
    wanted = best_of([option for option in all_options if option.meets(goal)], goal)
    assert [option.scenario for option in chosen[:1]] == [option.scenario for option in wanted[:1]]


def test_something_is_pruned_and_all_is_counted(studies: Studies, every: list[Scenario]) -> None:
    found = search(studies, every, Goal(iteration_s=1.0), PriceBook())
    content = (found.same, found.refused, found.too_large, found.unpriced, found.missed, found.beaten)
    assert found.missed > 0
    assert found.beaten > 0
    assert sum(content) + len(found.options) == found.settings == len(every)


def test_no_simulated_time_is_below_the_bound(all_options: list[Option]) -> None:
    assert len(all_options) > 50
    assert all(option.candidate.iteration_s >= option.setting.least_s for option in all_options)


def test_what_may_be_recommended_keeps_the_rule(studies: Studies, every: list[Scenario]) -> None:
    clusters = list(dict.fromkeys(scenario.cluster for scenario in every))
    rule = replace(RULE, min_sampling_rate=1.0, max_staleness=0)
    kept = considered(studies, BASE, clusters, KNOBS, rule).settings
    assert 0 < len(kept) < len(every)
    assert all(item.method.sampling().whole and item.method.tau == 0 for item in kept)


def test_a_machine_without_a_price_does_not_change_which_is_the_cheapest(studies: Studies) -> None:
    goal, rule = Goal(minimise=COST), replace(RULE, min_sampling_rate=1.0, max_staleness=1)
    chosen = []
    for devices in (("t4", "a100-80"), ("t4", "a100-80", "rtx-3090")):
        machines = replace(GRID, devices=devices, bandwidths=(1.875e9,), gpus=(2, 4))
        knobs = {**KNOBS, **dict.fromkeys(RATES, (1.0,))}
        clusters = machines.clusters(BASE.cluster, PriceBook(), studies.accesses.most_gpus)
        found = search(studies, considered(studies, BASE, clusters, knobs, rule).settings, goal, PriceBook())
        chosen.append(best_of(found.options, goal)[0])
    assert chosen[0].scenario == chosen[1].scenario
    # Of those within 3 % of the least the mildest is taken.
    assert chosen[1].price <= 1.03 * min(option.price for option in found.options if option.meets(goal))


def test_machines_that_cost_nothing_are_compared_by_time(studies: Studies, every: list[Scenario]) -> None:
    book = PriceBook.of(price=["t4=0USD/h"])
    found = search(studies, every, Goal(minimise=COST), book)
    assert best_of(found.options, Goal(minimise=COST))[0].scenario.cluster.device == "t4"


@pytest.fixture(scope="module")
def instances() -> list[ClusterSpec]:
    """Priced instances of all kinds, of few GPUs."""
    return [one for one in Machines().clusters(BASE.cluster, PriceBook(), 8) if one.gpus in (2, 4)][::3]


def test_the_extremes_of_a_machine_have_its_lowest_bound(studies: Studies, instances: list[ClusterSpec]) -> None:
    for cluster in instances[::4]:
        every = candidates(replace(BASE, cluster=cluster), Rule())
        bounds = {setting: found.least_s for setting, found in zip(every, studies.analytic(every), strict=True)}
        ends = extremes(every)
        assert len(ends) < len(every) / 4
        assert min(bounds[one] or inf for one in ends) == min(bound or inf for bound in bounds.values())


@pytest.mark.parametrize("goal", [Goal(iteration_s=0.4), Goal(minimise=TIME)], ids=lambda goal: goal.text)
def test_machines_that_cannot_win_are_not_listed_and_nothing_else_is_chosen(
    goal: Goal, studies: Studies, instances: list[ClusterSpec]
) -> None:
    book = PriceBook()
    rents = {cluster: rent_of(cluster, book) for cluster in instances}
    some = worth_listing(studies, BASE, instances, RULE, goal, rents)
    every = considered(studies, BASE, instances, {}, RULE)
    assert some.unlisted
    assert some.beaten + some.missed + some.slower + len(some.settings) == every.slower + len(every.settings)
    (chosen, front_of_some), (wanted, front_of_every) = (
        (ranked, [option.scenario for option in front(ranked)])
        for found in (some, every)
        for ranked in [decide(search(studies, found.settings, goal, book).options, goal, found.shown).ranked]
    )
    assert chosen[0].scenario == wanted[0].scenario
    assert front_of_some == front_of_every
