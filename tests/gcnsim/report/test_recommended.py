"""The text of a recommendation says nothing that another line of it contradicts."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gcnsim
from gcnsim.core.units import format_seconds
from gcnsim.planning.failures import NEVER_S
from gcnsim.report.answer.sentences import saved_range
from gcnsim.report.figures.tornado import tornado_of_advice
from gcnsim.results import SearchReport

QUESTION: dict[str, Any] = {"gpus": [2], "device": ["t4"], "iterations": 4, "processes": 1}
ROW = re.compile(r"  assumed +(\S+) +(\S+ \S+) to (\S+ \S+) +(.+) \.\. (.+)")


def lines_of(**question: Any) -> list[str]:
    return str(gcnsim.recommend(**(QUESTION | question))).splitlines()


def test_each_end_of_an_assumption_stands_beside_its_time() -> None:
    answer = gcnsim.recommend(**QUESTION, method=["full-graph"])
    effects = {assumption["name"]: assumption for assumption in answer.payload["assumptions"]}
    found = [match.groups() for match in map(ROW.match, str(answer).splitlines()) if match]
    assert found
    for name, _, _, first, second in found:
        effect = effects[name]
        ends = [effect["low"], effect["high"]]
        faster_at_low = effect["iteration_s_low"] < effect["iteration_s_high"]
        assert [first, second] == (ends if faster_at_low else ends[::-1])
    falling = [entry for entry in effects.values() if entry["iteration_s_low"] > entry["iteration_s_high"]]
    assert {entry["name"] for entry in falling} & {name for name, *_ in found}, "an efficiency is among them"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.88, 0.19, "88 % longer to 19 % shorter"),
        (0.08, 0.16, "8.0 to 16 % shorter"),
        (-1.37, -0.37, "37 to 137 % longer"),
        (0.0, 0.2, "0.0 to 20 % shorter"),
    ],
)
def test_a_range_of_what_is_saved_has_no_negative_percentages(low: float, high: float, text: str) -> None:
    assert saved_range(low, high) == text


def test_what_became_of_the_settings_adds_up() -> None:
    content = gcnsim.recommend(**QUESTION, target_iteration="0.5s").payload["search"]
    parts = ("slower", "same", "refused", "too_large", "unpriced", "missed", "beaten", "simulated")
    assert set(parts) <= set(SearchReport.__dataclass_fields__)
    assert sum(content[part] for part in parts) == content["settings"]


def test_a_budget_that_only_what_is_too_large_keeps_says_so() -> None:
    """16 GB of a T4 do not hold ogbn-products, and an hour of an L4 costs more."""
    question: dict[str, Any] = {
        "dataset": "ogbn-products",
        "device": ["t4", "l4"],
        "gpus": [1],
        "method": ["full-graph"],
    }
    answer = gcnsim.recommend(**question, budget="0.6USD/h", iterations=4, processes=1)
    assert answer.payload["search"]["too_large"] > 0
    assert "fits the memory and costs 0.6 USD an hour or less" in answer.payload["verdict"]


def test_of_a_missed_budget_no_chance_and_no_knob_without_effect_is_named() -> None:
    answer = gcnsim.recommend(device=["t4"], gpus=[1], budget="0.1USD/h", iterations=4, processes=1)
    assert answer.payload["missed"]["changes"]
    assert not {"tau", "cache", "bandwidth"} & {change["knob"] for change in answer.payload["missed"]["changes"]}
    assert not any("chance" in line for line in str(answer).splitlines())


def test_an_assumption_has_one_range_also_where_failures_prolong_long_trainings_more() -> None:
    """Without checkpoints, the time grows faster than the work."""
    failing: dict[str, Any] = {
        "mtbf": "3h",
        "checkpoint": "100h",
        "restart": "1s",
        "iterations_needed": {"full-graph": 4000},
    }
    answer = gcnsim.recommend(**QUESTION, method=["full-graph"], **failing)
    first = answer.payload["assumptions"][0]
    text = " ".join(str(answer).split())
    said = re.search(rf"{first['name']}: (\S+ \S+) to (\S+ \S+)\)", text)
    assert said is not None
    drawn = [match for match in map(ROW.match, str(answer).splitlines()) if match]
    assert [match.groups()[1:3] for match in drawn if match[1] == first["name"]] == [said.groups()]
    swing = next(one for one in tornado_of_advice(answer.told).swings if one.name == first["name"])
    assert {format_seconds(end) for end in (swing.low_s, swing.high_s)} == set(said.groups())


def test_an_end_that_is_practically_never_is_a_number() -> None:
    failing: dict[str, Any] = {"mtbf": "30h", "checkpoint": "10000h", "restart": "1s"}
    answer = gcnsim.recommend(**QUESTION, method=["full-graph"], iterations_needed={"full-graph": 700000}, **failing)
    choice = answer.payload["choice"]
    assert choice["seconds"] < choice["seconds_high"] == NEVER_S
    assert max(one["seconds_low"] for one in answer.payload["assumptions"]) <= NEVER_S
