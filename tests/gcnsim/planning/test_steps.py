"""Next steps, and all methods in one question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.core.schemas import schema_of
from gcnsim.methods import COMPARED, every_method, methods
from gcnsim.planning.alternatives import KnobChange
from gcnsim.planning.candidate import PRECISION, central
from gcnsim.planning.recommend import Rule
from gcnsim.planning.steps import _changes, next_steps, no_effect, one_server_more, possible_changes
from gcnsim.planning.study import Studies
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


def stepped(base: Scenario, *methods: str) -> tuple[Studies, dict[str, Step], dict[str, str]]:
    """The studies, the steps by knob, and why knobs have no effect."""
    shop = Studies(base)
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


def test_even_parts_are_a_step_of_equal_gpus_only() -> None:
    """An A100 beside a T4: with even parts it waits for the T4."""
    for devices, steps in (("a100-40,t4", False), ("t4,t4", True)):
        base = scenario({"name": "full-graph"}, devices=devices.split(","), gpus=4, gpus_per_server=2)
        assert any(change.even for change in _changes(base, Rule())) is steps


def test_on_one_gpu_nothing_is_exchanged() -> None:
    _, steps, idle = stepped(scenario({"name": "pipegcn"}, gpus=1), "pipegcn")
    assert "partition" not in steps
    assert idle["partition"] == idle["tau"] == "one GPU: nothing is exchanged"


def test_workers_on_cores_and_mini_batches_may_need_them() -> None:
    cores = scenario({"name": "pipegcn"}, gpus=2, device="cpu-core")
    assert "host cores" not in {item.knob for item in no_effect(cores)}
    _, steps, idle = stepped(scenario({"name": "dgl"}, gpus=2, gpus_per_server=2), "dgl")
    assert idle.get("host cores") != "nothing is sampled, so the GPUs wait for no CPU"
    assert "gpus" not in steps.keys() | idle.keys(), "a second server cannot hold the graph too"


def unchanged(base: Scenario, rule: Rule) -> dict[str, float]:
    """Of the steps that were left unsimulated, by what share a simulation does change the time."""
    shop = Studies(base)
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


def test_a_step_of_gpus_goes_on_beyond_the_last_profile() -> None:
    last = scenario(PSC, gpus=32, gpus_per_server=8)
    knobs = {move.knob for move in possible_changes(Studies(last), last, Rule(), {"tau"})}
    assert {"gpus", "bandwidth", "placement of parts"} <= knobs
    assert "tau" not in knobs


def test_parts_placed_evenly_on_servers_are_a_step() -> None:
    base = scenario(PSC, gpus=16, gpus_per_server=2)
    _, steps, _ = stepped(base)
    step = steps["placement of parts"]
    assert (step.start, step.end) == ("any", "balanced")
    assert step.gain > 0.02
    for known in ("as-numbered", "balanced"):
        chosen = replace(base, partition=replace(base.partition, placement=known))
        knobs = {move.knob for move in possible_changes(Studies(base), chosen, Rule(), ())}
        assert "placement of parts" not in knobs


def test_what_can_be_told_apart_nowhere_has_no_effect() -> None:
    """A step within a per cent, whose interval holds zero and reaches less than five per cent, is no next step."""
    _, steps, idle = stepped(scenario(PSC, gpus=6, gpus_per_server=1))
    for step in steps.values():
        assert step.gain_low is not None
        assert step.gain_high is not None
        slight = abs(step.gain) < 0.01 and not step.distinguishable and max(-step.gain_low, step.gain_high) < 0.05
        assert not slight, step.knob
    slight_texts = [why for why in idle.values() if "no clear difference" in why or "changes little" in why]
    assert slight_texts
    for why in slight_texts:
        assert ("no clear difference" in why) == ("longer" in why and "shorter" in why), why


@pytest.mark.parametrize(("gpus", "of_one", "more"), [(4, 8, 8), (7, 2, 8), (8, 8, 16)])
def test_a_step_of_gpus_fills_the_last_server_first(gpus: int, of_one: int, more: int) -> None:
    base = scenario({"name": "pipegcn"}, gpus=gpus, gpus_per_server=of_one)
    after = one_server_more(base)
    assert after is not None
    assert after.cluster.gpus == more


def answer_of(**question: Any) -> Any:
    return gcnsim.what_if(dataset="ogbn-products", iterations=3, processes=1, **question)


@pytest.fixture(scope="module")
def answer() -> Any:
    return answer_of(method="all", gpus=2, gpus_per_server=1)


def test_every_method_has_a_row_or_a_reason(answer: Any) -> None:
    rows = [(row["method"], row["setting"]) for row in answer.results]
    left = [(one["method"], one["setting"]) for one in answer.payload["left_out"]]
    assert {name for name, _ in rows + left} == set(methods())
    assert len(set(rows + left)) == len(rows + left) == sum(len(kind.variants) for kind in every_method().values())


def test_every_row_says_whether_it_fits(answer: Any) -> None:
    for row in answer.results:
        assert row["memory_bytes"] > 0, row["method"]
        assert row["fits"] is not None
    roc = [text for text in answer.payload["provenance"]["warnings"] if text.startswith("roc on 2 GPUs")]
    assert len(roc) == 1
    assert "no all-reduce" in roc[0]
    assert "GiB of the fullest server's memory" in roc[0]


def test_every_interval_holds_the_stated_value_and_no_low_end_is_below_the_bound(answer: Any) -> None:
    for row, bound in zip(answer.results, answer.payload["provenance"]["bounds"], strict=True):
        assert row["iteration_s_low"] <= row["iteration_s"] <= row["iteration_s_high"], row["method"]
        assert bound["lower_s"] <= row["iteration_s_low"], row["method"]
        assert bound["upper_s"] >= row["iteration_s_high"], row["method"]
        assert row["iteration_s_high"] > 1.02 * row["iteration_s_low"], "assumed figures leave every method open"


def test_those_left_out_say_why(answer: Any) -> None:
    reasons = {one["method"]: one["reason"] for one in answer.payload["left_out"]}
    assert "pagraph keeps the graph in the memory of one" in reasons["pagraph"]
    assert "dgl" in reasons
    assert not set(reasons) & set(COMPARED)


def test_the_payload_is_of_the_shipped_schema(answer: Any) -> None:
    schema = dict(schema_of("what-if"))
    Draft202012Validator(schema).validate(json.loads(json.dumps(answer.payload)))


def test_what_was_not_asked_for_by_name_is_shown_for_comparison_only(answer: Any) -> None:
    assert answer.recommendation["method"] in COMPARED
    content = {entry["what"]: entry["why"] for entry in answer.recommendation["excluded"]}
    assert content["distdgl"] == "distdgl is shown for comparison only (--allow distdgl allows it)"


def test_what_was_asked_for_by_name_is_refused_not_left_out() -> None:
    with pytest.raises(ScenarioError, match="dgl keeps the graph in the memory of one"):
        answer_of(method="dgl", gpus=2, gpus_per_server=1)


def test_overrides_of_own_knobs_reach_the_methods_that_have_them() -> None:
    answer = answer_of(
        method=["dgl", "full-graph"], gpus=2, gpus_per_server=2, overrides=["method.fanout=5,5,5", "method.batch=2000"]
    )
    assert [row["setting"] for row in answer.results] == ["batch 2000, fanout 5,5,5", ""]
    with pytest.raises(ScenarioError, match="full-graph has no fanout; methods with it: dgl, pagraph"):
        answer_of(method="full-graph", gpus=2, overrides=["method.fanout=5,5,5"])
    with pytest.raises(ScenarioError, match=r"method.batch: 0 is not allowed"):
        answer_of(method="dgl", gpus=2, overrides=["method.batch=0"])


def test_what_is_recommended_of_mini_batches_is_what_was_asked() -> None:
    answer = answer_of(method="dgl", gpus=1, overrides=["method.batch=500"])
    assert [row["setting"] for row in answer.results] == ["batch 500, fanout 5,10,15"]
    assert answer.recommendation["setting"] == "batch 500, fanout 5,10,15", "not the usual batch"


@pytest.mark.slow
def test_what_no_gpu_holds_is_left_out_of_a_comparison_of_all() -> None:
    answer = answer_of(method="all", gpus=2, gpus_per_server=2, device="gtx-1080-ti", hidden=4096)
    reasons = {one["method"]: one["reason"] for one in answer.payload["left_out"]}
    assert "does not fit" in reasons["distdgl"]
    assert "a smaller mini-batch would" in reasons["distdgl"]
    assert all(row["fits"] is not False for row in answer.results if row["method"] not in COMPARED)
