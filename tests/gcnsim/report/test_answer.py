from __future__ import annotations

from typing import Any

from gcnsim.report import answer


def test_recommendation_names_every_knob_where_no_sentence_is_given(payload: dict[str, Any]) -> None:
    assert answer.verdict_of(payload) == "Use psc-gcn, tau 2, epsilon 0.1, cache 25%: 418 ms per iteration"
    assert answer.reasons_of(payload) == [("why", payload["recommendation"]["why"])]


def test_steps_say_what_the_change_brings(payload: dict[str, Any]) -> None:
    steps = answer.steps_of(payload)
    assert [step.change for step in steps] == ["about the same", "11 % shorter", "7.5 % longer"]
    assert steps[1][:4] == ("epsilon", "0.1", "0.05", "371 ms")
    payload["next_steps"][0]["fits"] = False
    assert answer.steps_of(payload)[0].change == "about the same, does not fit"


def test_a_difference_whose_interval_holds_zero_is_not_told_apart(answered: dict[str, Any]) -> None:
    changes = [step.change for step in answer.steps_of(answered)]
    assert changes == ["cannot be told apart", "11 % shorter (8.0 to 16 %)", "7.5 % longer (5.0 to 10 %)"]


def test_the_label_is_the_certainty_and_else_the_calibration(payload: dict[str, Any], answered: dict[str, Any]) -> None:
    answered["certainty"]["label"] = "CALIBRATED"
    assert answer.label_of(answered) == "CALIBRATED"
    del payload["certainty"]
    assert answer.label_of(payload) == "UNCALIBRATED"
    payload["provenance"]["calibration"] = "t4.calibration"
    assert answer.label_of(payload) == ""


def test_a_title_names_unequal_and_unknown_devices(answered: dict[str, Any]) -> None:
    answered["scenario"]["cluster"] = {"device": "t4", "devices": ["t4", "a10g"], "gpus_per_server": 4}
    assert answer.title_of(answered) == "reddit, 6 x unequal GPUs in 2 servers, 15 Gbit/s"
    del answered["scenario"]["cluster"]["devices"]
    for row in (*answered["results"], answered["recommendation"]["row"]):
        row["device"] = "my\x1bgpu.yaml"
    assert answer.title_of(answered) == "reddit, 6 x my gpu.yaml in 2 servers, 15 Gbit/s"


def test_clauses_are_told_as_far_as_a_line_holds() -> None:
    assert answer.clauses_within(("one", "two", "three"), 9) == "one; two"
    assert answer.clauses_within(("longer than the line", "two"), 9) == "longer than the line"
