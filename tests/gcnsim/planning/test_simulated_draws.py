"""Which settings' draws are simulated, that this depends on the work alone, and that like is compared with like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.core import processes as processes_module
from gcnsim.core.ids import FloatArray
from gcnsim.engine import compile_now, use_reference
from gcnsim.methods import create_method
from gcnsim.planning import simulated_draws as module
from gcnsim.planning.candidate import Candidate, central, estimated_times
from gcnsim.planning.certainty import Difference
from gcnsim.planning.simulated_draws import competitors, simulate_draws
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation.assumed import DRAWS
from gcnsim.simulation.open_assumptions import DrawnRuns, paces_to_factors
from gcnsim.simulation.placement import PartOrder


def scenario(name: str = "full-graph", **cluster: Any) -> Scenario:
    given = {"gpus": 2, "gpus_per_server": 1, "bandwidth": "10Gbps"} | cluster
    mapping = {"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": name}, "run": {"iterations": 4}}
    return from_mapping(mapping, "test")


def candidate(shop: StudyCache, name: str, times: FloatArray) -> Candidate:
    return Candidate(scenario(name), shop.result(scenario()), times, None)


def test_those_compete_that_some_of_the_central_draws_put_near() -> None:
    shop = StudyCache(scenario())
    own = np.linspace(1.0, 2.0, DRAWS)
    chosen = candidate(shop, "full-graph", own)
    near = candidate(shop, "pipegcn", own * np.linspace(1.0, 3.0, DRAWS))
    alike = candidate(shop, "bns-gcn", 1.01 * own)
    slower = candidate(shop, "psc-gcn", 1.2 * own)
    faster = candidate(shop, "cagnet-1d", own * np.linspace(0.5, 0.8, DRAWS))
    assert competitors(chosen, [chosen, slower, alike, near, faster, alike]) == [alike, near]


def test_simulated_draws_move_the_simulated_time() -> None:
    base = scenario()
    shop = StudyCache(base)
    before = shop.candidate(base)
    assert before.simulated is None
    assert simulate_draws(shop, before, [before])
    after = shop.candidate(base)
    runs = DrawnRuns.of(base, shop.accesses, shop.seed)
    factor = paces_to_factors([runs.pace(draw) for draw in range(DRAWS + 1)])
    assert after.simulated is not None
    # What other drawn graphs would change is the same for both.
    left_open = shop.factors(base)
    key = (base, PartOrder.NUMBERED, False)
    rest = before.estimated / estimated_times(shop, key, left_open, after.iteration_s)
    assert after.simulated == pytest.approx(factor * after.iteration_s * rest, rel=1e-9)
    assert after.times is after.simulated
    assert after.estimated.tobytes() == before.estimated.tobytes() == shop.times(base).tobytes()
    low, high = central(after.simulated)
    estimate = shop.estimate(base)
    assert (estimate.low_s, estimate.high_s) == pytest.approx((max(low, estimate.lower_s), high))


def test_like_is_compared_with_like() -> None:
    shop = StudyCache(scenario())
    guess, run = np.geomspace(1.0, 2.0, DRAWS), np.geomspace(1.0, 3.0, DRAWS)
    both = Candidate(scenario(), shop.result(scenario()), guess, run)
    other = replace(both, estimated=2.0 * guess, simulated=1.5 * run)
    one = replace(other, simulated=None)
    drawn, guessed, back = Difference.of(other, both), Difference.of(one, both), Difference.of(both, one)
    assert drawn is not None
    assert guessed is not None
    assert back is not None
    assert drawn.high == pytest.approx(0.5)
    assert guessed.high == pytest.approx(1.0)
    assert back.low == pytest.approx(-0.5)


def test_the_processes_change_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_now() is None
    scenarios = [scenario(), scenario("pipegcn")]
    in_threads: list[int] = []
    threaded = processes_module._threaded

    def counted(function: Any, items: Any, count: int, meanwhile: Any) -> list[Any]:
        in_threads.append(count)
        return threaded(function, items, count, meanwhile)

    def times(processes: int) -> list[bytes]:
        shop = StudyCache(scenarios[0], processes)
        chosen, other = map(shop.candidate, scenarios)
        assert simulate_draws(shop, chosen, [replace(other, estimated=chosen.estimated)])
        assert shop.with_draws == tuple(scenarios)
        return [shop.candidate(item).times.tobytes() for item in scenarios]

    monkeypatch.setattr(processes_module, "_threaded", counted)
    one, *others = [times(processes) for processes in (1, 2, 5)]
    assert in_threads == [2, 5]
    with use_reference():
        others += [times(processes) for processes in (1, 2, 5)]
    assert in_threads == [2, 5], "the reference engine keeps the interpreter's lock: processes"
    assert others == [one] * 5


def test_what_is_simulated_is_limited_by_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    base, second = scenario(), scenario("pipegcn")
    shop = StudyCache(base)
    chosen = shop.candidate(base)
    other = replace(shop.candidate(second), estimated=chosen.estimated)
    run = chosen.result.run
    effort = run.schedule.columns.size * run.iterations * DRAWS
    monkeypatch.setattr(module, "AT_MOST", effort - 1)
    assert not simulate_draws(shop, chosen, [other])
    monkeypatch.setattr(module, "AT_MOST", effort)
    assert simulate_draws(shop, chosen, [other])
    assert shop.with_draws == (base,)
    assert shop.candidate(second).simulated is None


@pytest.mark.parametrize(
    ("name", "cluster"),
    [("roc", {"gpus_per_server": 2}), ("full-graph", {"sockets": "cores"})],
)
def test_other_methods_and_machines_stay_estimated(name: str, cluster: dict[str, Any]) -> None:
    base = scenario(name, **cluster)
    shop = StudyCache(base)
    assert not simulate_draws(shop, shop.candidate(base), [])


def test_where_gpus_are_unequal_every_order_of_the_parts_is_simulated() -> None:
    base = replace(scenario(devices="t4,a100-40"), method=create_method("full-graph"))
    shop = StudyCache(base)
    before = shop.candidate(base)
    assert simulate_draws(shop, before, [])
    after = shop.candidate(base)
    assert after.simulated is not None
    assert np.abs(after.times / before.times - 1.0).max() < 0.1
    assert after.times.tobytes() != before.times.tobytes()


def test_an_answer_says_what_was_simulated() -> None:
    payload = gcnsim.what_if(gpus=2, gpus_per_server=1, iterations=2, processes=1).payload
    content = payload["certainty"]
    row = payload["recommendation"]["row"]
    assert content["draws"] == DRAWS
    assert content["simulated"]
    assert content["simulated"][0].startswith(row["method"])
    for setting in content["simulated"]:
        assert setting in content["method"]
