"""Draws of the assumptions, simulated or estimated, and the longest wait."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.core import clock
from gcnsim.core import processes as processes_module
from gcnsim.core.errors import GcnsimError, ScenarioError, UnitError
from gcnsim.core.ids import FloatArray
from gcnsim.core.schemas import schema_of
from gcnsim.engine import compile_now, use_reference
from gcnsim.methods import create_method
from gcnsim.planning import simulated_draws as module
from gcnsim.planning.candidate import Candidate, central, estimated_times
from gcnsim.planning.certainty import Difference
from gcnsim.planning.simulated_draws import Deadline, competitors, read_max_wait, simulate_draws
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import MaxWait
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
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
    one, *others = [times(processes) for processes in (1, 3)]
    assert in_threads == [3]
    with use_reference():
        others.append(times(2))
    assert in_threads == [3], "the reference engine keeps the interpreter's lock: processes"
    assert others == [one] * 2


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


def test_where_gpus_are_unequal_draws_have_different_orders_of_the_parts() -> None:
    base = replace(scenario(devices="t4,a100-40"), method=create_method("full-graph"))
    shop = StudyCache(base)
    before = shop.candidate(base)
    assert simulate_draws(shop, before, [])
    after = shop.candidate(base)
    assert after.simulated is not None
    # Single estimated draws are up to 27 % beside: an order's effect is that at the stated figures.
    assert np.median(np.abs(after.times / before.times - 1.0)) < 0.03
    assert central(after.times) == pytest.approx(central(before.times), rel=0.1)
    assert after.times.tobytes() != before.times.tobytes()


QUESTION: dict[str, Any] = {"gpus": 2, "gpus_per_server": 1, "method": "pipegcn", "iterations": 4}


def make_scenario(**cluster: Any) -> Scenario:
    given = {"gpus": 2, "gpus_per_server": 1, "bandwidth": "10Gbps"} | cluster
    run = {"iterations": 4}
    return from_mapping({"schema": SCHEMA, "cluster": given, "method": {"name": "full-graph"}, "run": run}, "t")


def ends_after(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait is over when somebody has looked so often whether it is."""
    looked = count()
    monkeypatch.setattr(Deadline, "over", property(lambda self: next(looked) >= looks))


def test_a_wait_is_over_when_its_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", iter((100.0, 129.0, 130.0)).__next__)
    deadline = Deadline.after(30.0)
    assert deadline.max_wait_s == 30.0
    assert [deadline.over, deadline.over] == [False, True]


def test_the_first_draws_are_simulated_and_the_others_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, some = StudyCache(make_scenario()), StudyCache(make_scenario())
    assert simulate_draws(whole, whole.candidate(make_scenario()), [])
    ends_after(31, monkeypatch)
    # The stated values and 30 draws.
    assert simulate_draws(some, some.candidate(make_scenario()), [], deadline=Deadline(5.0, 0.0))
    assert some.max_wait == MaxWait(5.0, 30, DRAWS)
    full, candidate = whole.candidate(make_scenario()), some.candidate(make_scenario())
    assert full.simulated is not None
    assert candidate.simulated is not None
    assert candidate.simulated[:30].tobytes() == full.simulated[:30].tobytes()
    assert candidate.simulated[30:].tobytes() == candidate.estimated[30:].tobytes()
    assert not np.array_equal(full.simulated[30:], full.estimated[30:])


@pytest.mark.parametrize("looks", [0, 1])
def test_where_no_draw_is_simulated_all_are_estimated(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = StudyCache(make_scenario())
    ends_after(looks, monkeypatch)
    assert not simulate_draws(studies, studies.candidate(make_scenario()), [], deadline=Deadline(5.0, 0.0))
    assert studies.max_wait == MaxWait(5.0, 0, DRAWS)
    assert studies.candidate(make_scenario()).simulated is None


def test_a_wait_that_was_not_needed_leaves_nothing_out() -> None:
    scenario = make_scenario(sockets="cores")
    studies = StudyCache(scenario)
    assert not simulate_draws(studies, studies.candidate(scenario), [], deadline=Deadline(5.0, 0.0))
    assert studies.max_wait == MaxWait(5.0, 0, 0)
    assert studies.max_wait.complete


@pytest.fixture(scope="module")
def free() -> Mapping[str, Any]:
    """The answer without a longest wait."""
    return gcnsim.what_if(**QUESTION, processes=1).payload


def test_an_ample_wait_changes_nothing_but_that_it_is_said(free: Mapping[str, Any]) -> None:
    ample = gcnsim.what_if(**QUESTION, processes=2, max_wait="1000s").payload
    assert ample["provenance"].pop("max_wait") == {"max_wait_s": 1000.0, "draws": DRAWS, "wanted": DRAWS}
    assert ample == free


def test_an_answer_says_how_many_draws_there_was_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ends_after(40, monkeypatch)
    answer = gcnsim.what_if(**QUESTION, processes=1, max_wait="2s")
    payload = json.loads(json.dumps(answer.payload))
    schema = dict(schema_of("what-if"))
    Draft202012Validator(schema).validate(payload)
    content = payload["provenance"]["max_wait"]
    assert (content["max_wait_s"], content["wanted"]) == (2.0, DRAWS)
    assert 0 < content["draws"] < 40
    line = f"{content['draws']} of {DRAWS} draws of the assumptions simulated within 2.00 s, the others estimated; "
    assert any(text.startswith(line) for text in payload["provenance"]["warnings"])
    assert line in " ".join(str(answer).split()) + " "
    assert (
        f"the first {content['draws']} are simulated for {payload['certainty']['simulated'][0]}"
        in (payload["certainty"]["method"])
    )


def test_a_wait_that_is_over_at_once_leaves_all_draws_estimated_and_all_else_as_it_is(free: Mapping[str, Any]) -> None:
    short = [gcnsim.what_if(**QUESTION, processes=number, max_wait="1ms").payload for number in (1, 2)]
    assert short[0] == short[1]
    assert short[0]["provenance"]["max_wait"] == {"max_wait_s": 1e-3, "draws": 0, "wanted": DRAWS}
    assert short[0]["certainty"]["simulated"] == []
    assert short[0]["next_steps"] != []
    assert [row["iteration_s"] for row in short[0]["results"]] == [row["iteration_s"] for row in free["results"]]


def test_without_a_wait_no_clock_changes_an_answer(free: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = count()
    monkeypatch.setattr(clock, "now", lambda: 1e9 * (-1.0) ** next(steps))
    monkeypatch.setattr(Deadline, "over", property(lambda self: pytest.fail("a wait that nobody limited is over")))
    assert gcnsim.what_if(**QUESTION, processes=1).payload == free


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("2min", 120.0), ("500 ms", 0.5), ("1h", 3600.0)])
def test_longest_waits_are_times_with_units(text: str, seconds: float) -> None:
    assert read_max_wait(text) == seconds


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("30", UnitError, "--max-wait: '30' has no unit; write a time with its unit, e.g. "),
        (30, UnitError, "--max-wait: 30 has no unit; write a time with its unit, e.g. "),
        ("soon", UnitError, "--max-wait: 'soon': not a time"),
        ("-3s", UnitError, "--max-wait: '-3s': a time cannot be negative; write e.g. "),
        ("0s", ScenarioError, "--max-wait: '0s' is not allowed; a time of at least 1.00 ms"),
    ],
)
def test_other_waits_are_refused(text: object, error: type[GcnsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        read_max_wait(text)
    assert str(caught.value).startswith(message)
