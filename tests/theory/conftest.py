"""Runs until steady, for laws about the iteration time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gcnsim.engine import Run, simulate
from gcnsim.schedule import Schedule
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S


@pytest.fixture(scope="session")
def steady() -> Callable[..., tuple[Run, int]]:
    """A run of a schedule until it is steady, and its first measured iteration."""

    def run(schedule: Schedule, measured: int = 30) -> tuple[Run, int]:
        judge = Steady(schedule, measured)
        found = simulate(schedule, judge.most, judge.enough)
        return found, judge.window(found.ends).first

    return run


@pytest.fixture(scope="session")
def period(steady: Callable[..., tuple[Run, int]]) -> Callable[[Schedule], float]:
    """Mean seconds per iteration once steady, from the last worker's end to the last worker's end."""

    def seconds(schedule: Schedule) -> float:
        run, first = steady(schedule)
        closing = run.ends[:, list(schedule.ends)].max(axis=1)
        return float(closing[-1] - closing[first - 1]) / (run.iterations - first) / PS_PER_S

    return seconds
