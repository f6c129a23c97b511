"""Failures and interruptions of a training, and spot against on demand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from jsonschema import validate

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.core.schemas import schema_of
from gcnsim.core.units import format_seconds
from gcnsim.planning.failures import Failures, best_interval, expected_time
from gcnsim.report.answer.rows import with_failures
from gcnsim.results import TargetRow


def test_failures_and_checkpoints_prolong_the_training_and_its_cost() -> None:
    answer = gcnsim.what_if(
        gpus=6,
        method="pipegcn",
        target_accuracy=0.9,
        iterations_needed={"pipegcn": 500_000},
        mtbf="1000h",
        interruptions=0.05,
        prices=SPOT_PRICES,
        checkpoint="30s",
        restart="5min",
        processes=1,
    )
    (row,) = answer.payload["target"]["rows"]
    found, mtbf_s = row["failures"], 3600 / (3 * (1 / 1000 + 0.05))
    assert found["checkpoint_every_s"] == pytest.approx(best_interval(30.0, mtbf_s))
    wanted = expected_time(row["seconds"], found["checkpoint_every_s"], 30.0, 300.0, mtbf_s)
    assert found["seconds"] == pytest.approx(wanted)
    assert found["seconds_low"] < found["seconds"] < found["seconds_high"]
    assert found["failures"] == pytest.approx(wanted / mtbf_s)
    assert found["cost"] / row["cost"] == pytest.approx(found["seconds"] / row["seconds"])
    schema = dict(schema_of("what-if"))
    validate(dict(answer.payload), schema)
    text = " ".join(str(answer).split())
    assert f"with failures ({found['failures']:.2g} expected, a checkpoint every " in text


def test_a_simulated_training_on_three_servers_takes_as_long_as_is_answered() -> None:
    failures, servers, pieces, trainings = Failures(1 / 200, 0.3, 60.0, 300.0), 3, 20, 1500
    often = failures.interval(1e6, servers)
    assert often is not None
    draw = np.random.default_rng(11)
    total = 0.0
    for _ in range(pieces * trainings):
        needed = often + 60.0
        # Each server fails at a time of its own, and is taken back at another.
        while (lost := 3600.0 * min(*draw.exponential(200.0, servers), *draw.exponential(1 / 0.3, servers))) < needed:
            total += lost
            needed = 300.0 + often + 60.0
        total += needed
    assert total / trainings == pytest.approx(failures.seconds(pieces * often, servers), rel=0.01)


def test_a_checkpoint_in_the_notice_loses_no_work_as_a_simulation_says() -> None:
    servers, pieces, trainings, checkpoint, restart = 3, 20, 1500, 60.0, 300.0
    failures = Failures(1 / 200, 0.3, checkpoint, restart, saved=True)
    often = failures.interval(1e6, servers)
    assert often is not None
    assert often == pytest.approx(best_interval(checkpoint, 200 * 3600.0 / servers))
    draw = np.random.default_rng(12)

    def event() -> tuple[float, bool]:
        """Seconds until the next one, and whether it comes with a notice."""
        failed, taken = (3600.0 * draw.exponential(hours, servers).min() for hours in (200.0, 1 / 0.3))
        return min(failed, taken), taken < failed

    def restarted() -> float:
        passed = 0.0
        while (lost := event()[0]) < restart:
            passed += lost
        return passed + restart

    total = 0.0
    for _ in range(pieces * trainings):
        left = often + checkpoint
        while left > 0.0:
            after, noticed = event()
            worked = min(after, left)
            total += worked
            left -= worked
            if left > 0.0:
                total += checkpoint * noticed + restarted()
                left = left if noticed else often + checkpoint
    assert total / trainings == pytest.approx(failures.seconds(pieces * often, servers), rel=0.01)
    assert failures.seconds(pieces * often, servers) < replace(failures, saved=False).seconds(pieces * often, servers)


def test_spot_with_a_notice_is_cheaper_and_says_why() -> None:
    question: dict[str, Any] = {
        "gpus": 6, "method": "pipegcn", "iterations_needed": 500_000, "checkpoint": "30s", "restart": "5min",
        "prices": SPOT_PRICES, "interruptions": 0.05, "processes": 1,
    }  # fmt: skip
    told = gcnsim.what_if(**question, interruption_notice="30s")
    (row,), (lost,) = (item.payload["target"]["rows"] for item in (told, gcnsim.what_if(**question)))
    rate = 3 * 0.05 / 3600
    restart = math.expm1(300 * rate) / rate
    assert row["failures"]["seconds"] == pytest.approx(row["seconds"] * (1 + rate * (30 + restart)))
    assert row["failures"]["checkpoint_every_s"] is None
    assert row["failures"]["saved"] is True
    assert "saved" not in lost["failures"]
    assert row["failures"]["cost"] < lost["failures"]["cost"]
    assert row["other_pricing"]["break_even_per_hour"] > lost["other_pricing"]["break_even_per_hour"]
    schema = dict(schema_of("what-if"))
    validate(dict(told.payload), schema)
    assert "expected, no checkpoint; interruptions lose no work)" in " ".join(str(told).split())


SPOT_PRICES = gcnsim.PriceBook.of(pricing="spot")


def test_at_the_break_even_rate_spot_costs_what_it_costs_on_demand() -> None:
    question: dict[str, Any] = {
        "gpus": 6, "method": "pipegcn", "iterations_needed": 500_000, "checkpoint": "30s", "restart": "5min",
        "mtbf": "1000h", "processes": 1,
    }  # fmt: skip
    (on_demand,) = gcnsim.what_if(**question).payload["target"]["rows"]
    other = on_demand["other_pricing"]
    assert other["pricing"] == "spot"
    assert other["cost"] < on_demand["failures"]["cost"], "without interruptions"
    rate = other["break_even_per_hour"]
    (spot,) = gcnsim.what_if(**question, prices=SPOT_PRICES, interruptions=rate).payload["target"]["rows"]
    assert spot["failures"]["cost"] == pytest.approx(on_demand["failures"]["cost"])
    assert spot["other_pricing"]["pricing"] == "on-demand"
    assert spot["other_pricing"]["cost"] == pytest.approx(on_demand["failures"]["cost"])
    assert spot["other_pricing"]["break_even_per_hour"] == pytest.approx(rate)
    text = " ".join(str(gcnsim.what_if(**question)).split())
    assert f"spot costs less below {rate:.2g} interruptions of a server per hour" in text


def test_one_price_for_both_is_not_compared() -> None:
    own = gcnsim.PriceBook.of(["t4=1USD/h"])
    answer = gcnsim.what_if(
        gpus=2, method="pipegcn", iterations_needed=500, checkpoint="30s", restart="5min", prices=own, processes=1
    )
    (row,) = answer.payload["target"]["rows"]
    assert "other_pricing" not in row
    assert row["one_price"] is True
    assert "; on demand and spot have one price, so they are not compared" in " ".join(str(answer).split())
    assert "failures" not in row, "none was said to happen"


def test_only_spot_servers_are_interrupted() -> None:
    with pytest.raises(ScenarioError, match="--interruptions: only spot servers are interrupted"):
        gcnsim.what_if(gpus=2, iterations_needed=5, interruptions=0.1, checkpoint="30s", restart="5min")


def _with_failures(seconds: float, high: float, failures: Failures) -> TargetRow:
    row = TargetRow("pipegcn", 1, 1.0, 1.0, 2, 100, seconds, seconds / 2, high, "your figure")
    return replace(row, failures=failures.report(row, 1))


@pytest.mark.parametrize(("work", "best"), [(60.0, 61.1), (600.0, None), (1100.0, None)])
def test_a_training_below_the_interval_needs_no_checkpoint(work: float, best: float | None) -> None:
    mtbf_s = 5 * 3600.0
    found = _with_failures(work, 2 * work, Failures(0.2, 0.0, 30.0, 300.0)).failures
    assert found is not None
    assert found.checkpoint_every_s is None
    without = mtbf_s * math.exp(300 / mtbf_s) * math.expm1(work / mtbf_s)
    assert found.seconds == pytest.approx(without)
    assert best is None or found.seconds == pytest.approx(best, abs=0.1)
    assert without < expected_time(work, work, 30.0, 300.0, mtbf_s)


def test_an_upper_end_without_end_is_said() -> None:
    row = _with_failures(60.0, 1.5e7, Failures(60.0, 0.0, 1e5, 300.0))
    assert row.failures is not None
    assert (row.failures.seconds_low is None, row.failures.seconds_high) == (False, None)
    low = format_seconds(row.failures.seconds_low or 0.0)
    assert f" ({low} to practically never)" in with_failures(row)


def test_a_training_without_a_checkpoint_says_so() -> None:
    text = with_failures(_with_failures(60.0, 120.0, Failures(0.2, 0.0, 30.0, 300.0)))
    assert text.startswith("; with failures (0.0034 expected, no checkpoint) 61.1 s (")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mtbf": "1000h"}, "--mtbf: failures need --checkpoint and --restart, both"),
        ({"checkpoint": "30s"}, "--checkpoint: failures need --checkpoint and --restart, both"),
        ({"mtbf": "0s"}, "--mtbf: '0s' is not allowed; a time above 0"),
        ({"interruption_notice": "2min", "checkpoint": "30s", "restart": "1min"}, "--interruption-notice: is of inter"),
        (
            {
                "interruption_notice": "9s",
                "interruptions": 1.0,
                "checkpoint": "30s",
                "restart": "1min",
                "prices": gcnsim.PriceBook.of(pricing="spot"),
            },
            "--interruption-notice: no checkpoint of 30 s fits into 9 s; leave it out",
        ),
        ({"interruptions": -1.0}, "--interruptions: -1 is not allowed"),
    ],
)
def test_failures_are_asked_for_whole(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        gcnsim.what_if(gpus=2, target_accuracy=0.9, iterations_needed={"pipegcn": 5}, **given)


def test_failures_without_iterations_are_not_computed_and_that_is_said() -> None:
    said: list[str] = []
    gcnsim.what_if(
        gpus=2,
        method="pipegcn",
        target_accuracy=0.9,
        mtbf="1000h",
        checkpoint="30s",
        restart="1min",
        processes=1,
        notice=said.append,
    )
    assert said == ["failures not computed: the number of iterations is not known"]


@pytest.mark.parametrize(
    ("work", "failures"),
    [
        (3.2e9, Failures(0.01, 0.0, 30.0, 300.0)),  # more than 100 years
        (60.0, Failures(3.0, 0.0, 30.0, 12_000.0)),  # a restart takes ten times as long as until the next failure
    ],
)
def test_a_training_of_centuries_or_of_a_thousand_times_its_work_practically_never_ends(
    work: float, failures: Failures
) -> None:
    assert failures.seconds(work, 1) < math.inf
    row = _with_failures(work, 2 * work, failures)
    assert row.failures is not None
    assert (row.failures.seconds, row.failures.failures, row.failures.cost) == (None, None, None)
    assert with_failures(row) == "; with failures it practically never ends"


TRAININGS = 4_000


def simulated(work: float, interval: float, checkpoint: float, restart: float, mtbf: float) -> float:
    """The mean time of trainings whose failures are drawn one by one."""
    draw = np.random.default_rng(7)
    total = 0.0
    for _ in range(TRAININGS * round(work / interval)):  # a piece forgets what was before it
        needed = interval + checkpoint
        while (fails := float(draw.exponential(mtbf))) < needed:
            total += fails
            needed = restart + interval + checkpoint
        total += needed
    return total / TRAININGS


@pytest.mark.parametrize(
    ("interval", "checkpoint", "restart", "mtbf"),
    [(1800.0, 60.0, 300.0, 7200.0), (600.0, 30.0, 120.0, 3600.0), (3600.0, 300.0, 60.0, 36000.0)],
)
def test_simulated_trainings_take_what_the_closed_form_says(
    interval: float, checkpoint: float, restart: float, mtbf: float
) -> None:
    work = 4 * interval
    closed = expected_time(work, interval, checkpoint, restart, mtbf)
    assert simulated(work, interval, checkpoint, restart, mtbf) == pytest.approx(closed, rel=0.02)


@pytest.mark.parametrize(("checkpoint", "mtbf"), [(30.0, 3600.0), (60.0, 86400.0), (300.0, 7200.0)])
def test_no_other_interval_is_much_better_than_the_best(checkpoint: float, mtbf: float) -> None:
    best = best_interval(checkpoint, mtbf)
    least = min(expected_time(1e5, best * scale / 20, checkpoint, 60.0, mtbf) for scale in range(2, 100))
    assert expected_time(1e5, best, checkpoint, 60.0, mtbf) <= 1.001 * least


def test_without_a_checkpoint_each_failure_loses_all_work() -> None:
    draw = np.random.default_rng(7)
    total, work, restart, mtbf = 0.0, 600.0, 300.0, 1800.0
    for _ in range(TRAININGS):
        needed = work
        while (fails := float(draw.exponential(mtbf))) < needed:
            total += fails
            needed = restart + work
        total += needed
    closed = expected_time(work, None, 30.0, restart, mtbf)
    assert total / TRAININGS == pytest.approx(closed, rel=0.06)


def test_rare_failures_leave_the_work_alone_and_frequent_ones_no_end() -> None:
    assert expected_time(1e4, best_interval(1.0, 1e12), 1.0, 1.0, 1e12) == pytest.approx(1e4, rel=1e-4)
    assert best_interval(100.0, 50.0) == 50.0
    assert expected_time(1e4, 1e4, 1.0, 1.0, 1.0) == math.inf
