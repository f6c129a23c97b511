"""Next steps: each simulated from the given setting, compared under the same draws; what cannot matter says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gcnsim.planning.alternatives import KnobChange
from gcnsim.planning.candidate import PRECISION, central
from gcnsim.planning.recommend import Rule
from gcnsim.planning.steps import _changes, next_steps, no_effect, one_server_more, possible_changes
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import NoEffect, Step
from gcnsim.scenario import Scenario, from_mapping

PSC = {"name": "psc-gcn", "tau": 1, "epsilon": 0.1, "cache": "10%"}


def scenario(method: Mapping[str, Any], **cluster: object) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "bandwidth": "15Gbps"} | cluster,
        "method": dict(method),
        "run": {"iterations": 4},
    }
    return from_mapping(mapping, "test")


def stepped(base: Scenario, *methods: str) -> tuple[StudyCache, dict[str, Step], dict[str, str]]:
    """The studies, the steps by knob, and why knobs have no effect."""
    shop = StudyCache(base)
    steps, idle = next_steps(shop, base, Rule(methods, named=True) if methods else Rule())
    assert not {step.knob for step in steps} & {item.knob for item in idle}, "a knob has an effect or has none"
    order = [(step.fits is False, -step.gain) for step in steps]
    assert order == sorted(order)
    return shop, {step.knob: step for step in steps}, {item.knob: item.why for item in idle}


def test_steps_are_simulated_from_the_given_setting_and_sorted_by_gain() -> None:
    base = scenario(PSC)
    shop, steps, idle = stepped(base)
    now = shop.result(base).metrics.iteration_s
    for step in steps.values():
        assert step.gain == pytest.approx(1 - step.iteration_s / now)
    assert {"epsilon", "bandwidth", "gpus", "partition"} <= steps.keys()
    assert steps.keys() | idle.keys() >= {"tau", "cache", "device", "PCIe", "host cores", "sampler", "sampler threads"}
    starts = {knob: (step.start, step.end) for knob, step in steps.items()}
    assert starts["bandwidth"] == ("15Gbps", "30Gbps")
    assert starts["gpus"] == (4, 6)
    assert starts["epsilon"] == (0.1, 0.05)
    assert starts["partition"] == ("as it is", "perfectly even")


def test_gains_are_paired_differences_under_the_same_draws() -> None:
    base = scenario(PSC)
    shop, steps, _ = stepped(base)
    moves = {move.knob: move for move in _changes(base, Rule())}
    for knob, step in steps.items():
        saved = 1.0 - shop.times(moves[knob].scenario, even=moves[knob].even) / shop.times(base)
        low, high = central(saved)
        assert step.gain_low is not None
        assert step.gain_high is not None
        assert step.gain_low == pytest.approx(min(low, step.gain))
        assert step.gain_high == pytest.approx(max(high, step.gain))
        assert step.gain_low <= step.gain <= step.gain_high
        assert step.distinguishable == (not step.gain_low <= 0 <= step.gain_high)


def test_what_both_share_cancels() -> None:
    # Intervals that overlap, and a gain that is sure.
    base = scenario({"name": "full-graph"}, bandwidth="5Gbps")
    shop, steps, _ = stepped(base, "full-graph")
    (faster,) = (move.scenario for move in _changes(base, Rule()) if move.knob == "bandwidth")
    high_s, low_s, gain_low = shop.estimate(faster).high_s, shop.estimate(base).low_s, steps["bandwidth"].gain_low
    assert high_s is not None
    assert low_s is not None
    assert gain_low is not None
    assert high_s > low_s
    assert steps["bandwidth"].distinguishable
    assert gain_low > 0.1


@pytest.mark.parametrize(
    ("ends", "sure"), [((0.1, 0.3), True), ((-0.3, -0.1), True), ((-0.1, 0.3), False), ((0.0, 0.1), False)]
)
def test_only_an_interval_without_zero_tells_apart(ends: tuple[float, float], sure: bool) -> None:
    low, high = ends
    step = Step("tau", 1, 2, 1.0, (low + high) / 2, low, high, True)
    assert step.distinguishable == sure


def test_on_one_server_the_network_is_not_used() -> None:
    _, steps, idle = stepped(scenario(PSC, gpus=2, gpus_per_server=2))
    assert idle["bandwidth"] == "one server: the network is not used"
    assert "bandwidth" not in steps


def test_on_one_gpu_nothing_is_exchanged() -> None:
    _, steps, idle = stepped(scenario({"name": "pipegcn"}, gpus=1), "pipegcn")
    assert "partition" not in steps
    assert idle["partition"] == idle["tau"] == "one GPU: nothing is exchanged"


def test_where_nothing_is_drawn_cores_of_the_host_do_not_matter() -> None:
    _, steps, idle = stepped(scenario({"name": "pipegcn"}), "pipegcn")
    assert idle["host cores"] == "nothing is sampled, so the GPUs wait for no CPU"
    assert not {"host cores", "sampler", "sampler threads", "tau", "epsilon", "cache"} & steps.keys()


def test_workers_on_cores_and_mini_batches_may_need_them() -> None:
    cores = scenario({"name": "pipegcn"}, gpus=2, device="cpu-core")
    assert "host cores" not in {item.knob for item in no_effect(cores)}
    _, steps, idle = stepped(scenario({"name": "dgl"}, gpus=2, gpus_per_server=2), "dgl")
    assert idle.get("host cores") != "nothing is sampled, so the GPUs wait for no CPU"
    assert "gpus" not in steps.keys() | idle.keys(), "a second server cannot hold the graph too"


def test_a_step_that_the_method_does_not_allow_is_left_out() -> None:
    base = from_mapping(
        {
            "schema": "gcnsim.scenario/1",
            "cluster": {"gpus": 2},
            "workload": {"preaggregate": True},
            "method": {"name": "full-graph"},
            "run": {"iterations": 2},
        },
        "test",
    )
    _, steps, idle = stepped(base)
    assert "epsilon" not in steps.keys() | idle.keys(), "what is summed beforehand cannot be drawn anew"
    assert "tau" in steps


def unchanged(base: Scenario, rule: Rule) -> dict[str, float]:
    """Of the steps that were left unsimulated, by what share a simulation does change the time."""
    shop = StudyCache(base)
    _, idle = next_steps(shop, base, rule)
    now = shop.result(base).metrics.iteration_s
    found = {}
    for move in _changes(base, rule):
        if _untried(move, idle):
            found[move.knob] = abs(shop.result(move.scenario, even=move.even).metrics.iteration_s / now - 1.0)
    return found


def _untried(move: KnobChange, idle: list[NoEffect]) -> bool:
    return any(item.knob == move.knob and "changes less than 1 %" in item.why for item in idle)


@pytest.mark.parametrize(
    ("method", "cluster"),
    [
        (
            {"name": "psc-gcn", "tau": 1, "epsilon": 0.1, "cache": "0%"},
            {"gpus": 2, "gpus_per_server": 1, "device": "h100"},
        ),
        ({"name": "pipegcn"}, {"gpus_per_server": 1, "bandwidth": "1Gbps"}),
    ],
)
def test_a_step_that_is_not_simulated_changes_less_than_a_percent(
    method: Mapping[str, Any], cluster: Mapping[str, Any]
) -> None:
    found = unchanged(scenario(method, **cluster), Rule())
    assert found
    assert max(found.values()) < PRECISION, found


@pytest.mark.slow
def test_nor_those_of_the_default_question() -> None:
    base = scenario({"name": "psc-gcn", "tau": 1, "epsilon": 0.1, "cache": "30%"}, gpus=6)
    found = unchanged(base, Rule())
    assert found
    assert max(found.values()) < PRECISION, found


def test_no_step_leads_to_parts_that_are_known_from_elsewhere() -> None:
    last, before = (scenario(PSC, gpus=gpus, gpus_per_server=8) for gpus in (32, 24))
    shop = StudyCache(last)
    knobs = {move.knob for move in possible_changes(shop, last, Rule(), {"tau"})}
    assert "gpus" not in knobs, "there is no profile of 40 parts"
    assert "tau" not in knobs
    assert "bandwidth" in knobs
    assert "gpus" in {move.knob for move in possible_changes(shop, before, Rule(), ())}


def test_what_can_be_told_apart_nowhere_has_no_effect() -> None:
    """A step within a per cent, whose interval holds zero and reaches less than five per cent, is no next step."""
    _, steps, idle = stepped(scenario(PSC, gpus=8))
    for step in steps.values():
        assert step.gain_low is not None
        assert step.gain_high is not None
        slight = abs(step.gain) < 0.01 and not step.distinguishable and max(-step.gain_low, step.gain_high) < 0.05
        assert not slight, step.knob
    slight_texts = [why for why in idle.values() if "no clear difference" in why or "changes little" in why]
    assert slight_texts
    for why in slight_texts:
        assert ("no clear difference" in why) == ("longer" in why and "shorter" in why), why


@pytest.mark.parametrize(("gpus", "of_one", "more"), [(1, 2, 2), (4, 8, 8), (7, 2, 8), (8, 8, 16), (3, 1, 4)])
def test_a_step_of_gpus_fills_the_last_server_first(gpus: int, of_one: int, more: int) -> None:
    base = scenario({"name": "pipegcn"}, gpus=gpus, gpus_per_server=of_one)
    after = one_server_more(base)
    assert after is not None
    assert after.cluster.gpus == more
