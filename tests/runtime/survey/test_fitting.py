"""Which runs fit into a time: repeats go first, then configurations, then whatever is last."""

from __future__ import annotations

from runtime.survey.rule import PlannedRun, fitting

CALIBRATION = [PlannedRun(f"c{index}", "g", (), index, 0, True) for index in range(2)]
HELD_OUT = [
    PlannedRun(f"h{which}r{repeat}", "g", (), which, repeat, False) for repeat in range(3) for which in (4, 2, 3)
]
RUNS = (*CALIBRATION, *HELD_OUT)
"""2 runs for a calibration, 3 configurations held out, 3 rounds in another order than the rule's: 11 runs."""


def names(took: dict[str, float], seconds: float) -> list[str]:
    return [run.name for run in fitting(RUNS, took, seconds, 2)]


def test_everything_is_tried_while_nothing_is_known() -> None:
    assert names({}, 1.0) == [run.name for run in RUNS]


def test_what_is_done_is_not_done_again() -> None:
    assert names({"c0": 1.0, "h2r0": 1.0}, 100.0) == [run.name for run in RUNS if run.name not in ("c0", "h2r0")]
    assert names({run.name: 1.0 for run in RUNS}, 100.0) == []


def test_third_repeats_go_first_the_last_of_the_rule_first() -> None:
    done = {"c0": 10.0, "c1": 10.0}
    assert names(done, 90.0)[-3:] == ["h4r2", "h2r2", "h3r2"]
    assert names(done, 80.0)[-3:] == ["h3r1", "h2r2", "h3r2"]
    assert names(done, 60.0) == ["h4r0", "h2r0", "h3r0", "h4r1", "h2r1", "h3r1"]


def test_then_whole_configurations_go_so_that_the_others_keep_their_repeats() -> None:
    done = {"c0": 10.0, "c1": 10.0}
    assert names(done, 49.0) == ["h2r0", "h3r0", "h2r1", "h3r1"]
    assert names(done, 29.0) == ["h2r0", "h2r1"]


def test_time_that_no_configuration_fits_in_goes_to_repeats() -> None:
    assert names({"c0": 10.0, "c1": 10.0}, 39.0) == ["h2r0", "h2r1", "h2r2"]


def test_a_configuration_that_is_begun_keeps_its_repeats_before_another_begins() -> None:
    done = {"c0": 10.0, "c1": 10.0, "h4r0": 10.0}
    assert names(done, 35.0) == ["h2r0", "h4r1", "h2r1"]
    assert names(done, 15.0) == ["h4r1"]


def test_a_known_configuration_takes_as_long_as_it_did() -> None:
    done = {"c0": 1.0, "c1": 1.0, "h4r0": 30.0, "h2r0": 1.0, "h3r0": 1.0}
    assert names(done, 4.0) == ["h2r1", "h3r1", "h2r2", "h3r2"]


def test_an_unknown_one_takes_as_long_as_those_on_its_graph() -> None:
    runs = [PlannedRun(name, name[0], (), index, 0, False) for index, name in enumerate(("a0", "a1", "a2", "b0", "b1"))]
    done = {"a0": 1.0, "a1": 3.0, "b0": 50.0}
    assert [run.name for run in fitting(runs, done, 2.0, 1)] == ["a2"]
    assert [run.name for run in fitting(runs, done, 52.0, 1)] == ["a2", "b1"]


def test_no_time_takes_nothing_once_runs_are_known_to_take_some() -> None:
    assert names({"c0": 1.0}, 0.5) == []
    assert names({"c0": 1.0}, -5.0) == []
    assert names({"c0": 1.0}, 1.0) == ["c1"]
