"""Checkpoints and failures: the closed form against simulated trainings, and the best interval against others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gcnsim.cost.checkpoints import best_interval, expected_time

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
