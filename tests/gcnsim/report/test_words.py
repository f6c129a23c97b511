from __future__ import annotations

from typing import Any

from gcnsim.report import words


def test_bottlenecks_are_grouped_and_need_no_rows_when_all_share_one(payload: dict[str, Any]) -> None:
    assert words.bottlenecks_of(payload) == [
        ("NIC bandwidth", ("full-graph", "pipegcn")),
        ("GPU compute", ("psc-gcn",)),
    ]
    payload["results"][3]["bottleneck"] = "NIC bandwidth"
    assert words.bottlenecks_of(payload) == [
        ("NIC bandwidth", ("full-graph", "pipegcn", "psc-gcn (cache 25%)")),
        ("GPU compute", ("psc-gcn (cache 0%)",)),
    ]
    for row in payload["results"]:
        row["bottleneck"] = "PCIe"
    assert words.bottlenecks_of(payload) == [("PCIe", ())]


def test_recommendation_names_every_knob(payload: dict[str, Any]) -> None:
    setting, why = words.recommendation_of(payload)
    assert setting == "psc-gcn, tau 2, epsilon 0.1, cache 25%: 418 ms per iteration"
    assert why == payload["recommendation"]["why"]


def test_steps_say_what_the_change_brings(payload: dict[str, Any]) -> None:
    steps = words.steps_of(payload)
    assert [step.change for step in steps] == ["about the same", "11.2% shorter", "7.5% longer"]
    assert steps[1][:4] == ("epsilon", "0.1", "0.05", "371 ms")


def test_provenance_holds_every_fact_but_assumptions_and_warnings(payload: dict[str, Any]) -> None:
    payload["provenance"]["device"] = {"name": "t4", "peaks": ["8.1TFLOP/s", 0.3]}
    told = dict(words.provenance_of(payload))
    assert set(told) == {
        "graph",
        "device",
        "interval",
        "calibration",
        "engine",
        "version",
        "seed",
        "scenario hash",
    }
    assert told["device"] == "name t4, peaks 8.1TFLOP/s, 0.3"
    assert told["graph"].endswith("(published-statistics)")


def test_assumptions_carry_their_range(payload: dict[str, Any]) -> None:
    first = words.assumptions_of(payload)[0]
    assert (first.value, first.range) == ("4", "2 to 9.5")


def test_control_characters_do_not_reach_a_terminal(payload: dict[str, Any]) -> None:
    payload["provenance"]["warnings"] = ["bad\x1b[2Jname\nnext"]
    assert words.warnings_of(payload) == ["bad [2Jname next"]
