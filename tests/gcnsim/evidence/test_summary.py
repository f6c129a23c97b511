"""Figures over four runs, worked out by hand; see `made.four`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcnsim.evidence.validation import by_configuration, kendall, regret, spread, summarise
from tests.gcnsim.evidence.made_validation import SETTING, four, judged


def test_errors_are_relative_to_what_was_measured() -> None:
    # +10 %, -8.33 %, -50 %, +10 %
    found = summarise(four())
    assert (found["runs"], found["configurations"]) == (4, 3)
    assert found["mape"] == pytest.approx((0.1 + 1 / 12 + 0.5 + 0.1) / 4)
    assert found["median_ape"] == pytest.approx(0.1)
    assert found["p90_ape"] == pytest.approx(0.1 + 0.7 * 0.4)
    assert found["max_ape"] == pytest.approx(0.5)
    assert found["bias"] == pytest.approx((0.1 - 1 / 12 - 0.5 + 0.1) / 4)


def test_coverage_is_the_share_of_runs_within_their_interval() -> None:
    # 1.0 and 1.2 lie within 0.99 to 1.21; 2.0 lies above 1.1; 3.0 within 2.97 to 3.63.
    assert summarise(four())["coverage"] == pytest.approx(3 / 4)
    edge = judged("e", "e", 1.0, 1.0, low_s=1.0, high_s=1.0)
    assert edge.covered


def test_phases_are_shares_of_the_measured_iteration() -> None:
    found = summarise(four())["phases"]
    # Half of everything is compute, so its errors are half of the whole's.
    assert found["compute"]["bias"] == pytest.approx(summarise(four())["bias"] / 2)
    assert found["compute"]["p90"] == pytest.approx(summarise(four())["p90_ape"] / 2)
    # None of the rest was predicted, a quarter was measured.
    assert found["exposed_other"] == pytest.approx({"bias": -0.25, "p90": 0.25})
    assert found["exposed_comm"]["bias"] == pytest.approx((0.3 + 0.25 * 5 / 6 + 0.0 + 0.3) / 4)


def test_repeats_are_one_configuration() -> None:
    found = by_configuration(four())
    assert set(found) == {SETTING}
    assert found[SETTING] == {
        "a": pytest.approx((1.1, 1.1)),
        "b": pytest.approx((2.0, 1.0)),
        "c": pytest.approx((3.0, 3.3)),
    }


def test_kendall_counts_pairs_in_the_right_order() -> None:
    # a-c and b-c agree; b is predicted to be quicker than a, and is not.
    assert kendall(four()) == pytest.approx((2 - 1) / 3)
    assert kendall([four()[0], four()[3]]) == 1.0
    assert kendall([four()[0], four()[2]]) == -1.0


def test_a_tie_is_neither_right_nor_wrong() -> None:
    assert kendall([judged("a", "a", 1.0, 1.0), judged("b", "b", 2.0, 1.0)]) == 0.0


def test_regret_is_what_the_predicted_best_costs() -> None:
    assert regret(four()) == pytest.approx({"mean": 2.0 / 1.1 - 1, "max": 2.0 / 1.1 - 1})
    assert regret([four()[0], four()[3]]) == {"mean": 0.0, "max": 0.0}


def test_configurations_compete_within_their_setting() -> None:
    runs = four()
    elsewhere = [replace(run, setting="other") for run in (judged("d", "a", 9.0, 9.0), judged("e", "b", 8.0, 7.0))]
    assert kendall([*runs, *elsewhere]) == pytest.approx((1 + 1 - 1 + 1) / 4)
    found = regret([*runs, *elsewhere])
    assert found == pytest.approx({"mean": (2.0 / 1.1 - 1) / 2, "max": 2.0 / 1.1 - 1})


def test_spread_is_that_of_repeats() -> None:
    assert spread(four()) == pytest.approx({"mean": 1 / 11, "p90": 1 / 11})
    more = [*four(), judged("b2", "b", 2.0, 1.0)]
    assert spread(more) == pytest.approx({"mean": 1 / 22, "p90": 1 / 11})


def test_one_run_has_no_rank_no_regret_and_no_spread() -> None:
    found = summarise(four()[:1])
    assert (found["kendall"], found["regret"], found["spread"]) == (None, None, None)
    assert (found["runs"], found["configurations"]) == (1, 1)
    assert found["mape"] == found["p90_ape"] == found["max_ape"] == found["bias"] == pytest.approx(0.1)


def test_repeats_of_one_configuration_have_a_spread_but_no_rank() -> None:
    found = summarise(four()[:2])
    assert (found["kendall"], found["regret"]) == (None, None)
    assert found["spread"] == pytest.approx({"mean": 1 / 11, "p90": 1 / 11})


def test_a_configuration_in_two_settings_is_none_to_rank() -> None:
    runs = [judged("a", "a", 1.0, 1.0), judged("b", "a", 2.0, 2.0, setting="other")]
    assert (kendall(runs), regret(runs), spread(runs)) == (None, None, None)
    assert summarise(runs)["configurations"] == 2
