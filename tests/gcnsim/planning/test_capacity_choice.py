"""Which of the simulated settings is chosen: chances near the one asked for are found from more draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.planning.capacity_choice import decide
from gcnsim.planning.capacity_goal import TIME, Goal, Work
from gcnsim.planning.capacity_search import Setting, simulate
from gcnsim.planning.simulated_draws import CLOSER, look_closer
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import SCHEMA, Scenario, from_mapping


def scenario(device: str, method: str = "pipegcn") -> Scenario:
    mapping = {"schema": SCHEMA, "cluster": {"gpus": 2, "device": device}, "method": {"name": method}}
    return from_mapping(mapping, "test")


@pytest.fixture(scope="module")
def studies() -> StudyCache:
    return StudyCache(scenario("t4"))


def test_more_draws_know_the_chance_better_whatever_the_seed(studies: StudyCache) -> None:
    base = scenario("t4")
    target = float(np.quantile(studies.candidate(base).times, 0.9))
    few, many = [], []
    for seed in range(5):
        one = StudyCache(base)
        one.seed = seed
        few.append(float((one.candidate(base).times <= target).mean()))
        look_closer(one, [base])
        assert one.candidate(base).closest.shape == (CLOSER,)
        many.append(float((one.candidate(base).closest <= target).mean()))
    assert np.std(many) < np.std(few)
    assert max(many) - min(many) < 0.04


def test_a_chance_near_the_one_asked_for_is_looked_at_more_closely(studies: StudyCache) -> None:
    settings = [Setting(scenario(device), Work(per_hour=1.0), 0.0, 1.0) for device in ("t4", "a10g")]
    options = simulate(studies, settings)
    near = float(np.quantile(options[1].candidate.times, 0.9))
    decision = decide(studies, options, Goal(minimise=TIME, iteration_s=near))
    first = decision.ranked[0]
    assert first.scenario.cluster.device == "a10g"
    assert first.candidate.closer is not None
    assert first.candidate.closer.size == CLOSER
    assert decision.met is (first.chance(Goal(iteration_s=near)) >= 0.9)
    sure = decide(studies, options, Goal(minimise=TIME, iteration_s=10 * near))
    assert sure.met
    assert [option.candidate.closer for option in sure.ranked] == [None, None]


def test_where_nothing_has_the_chance_the_best_chance_comes_first(studies: StudyCache) -> None:
    settings = [Setting(scenario(device), Work(per_hour=1.0), 0.0, 1.0) for device in ("t4", "a10g")]
    options = simulate(studies, settings)
    median = float(np.median(options[1].candidate.times))
    decision = decide(studies, options, Goal(iteration_s=median))
    assert not decision.met
    assert decision.ranked[0].scenario.cluster.device == "a10g"
    assert 0.4 < decision.ranked[0].chance(Goal(iteration_s=median)) < 0.6
    lower = decide(studies, options, replace(Goal(iteration_s=median), confidence=0.3))
    assert lower.met
