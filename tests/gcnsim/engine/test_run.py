"""A run's starts and ends beyond those that were simulated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import Run
from gcnsim.engine.run import Period
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import OpKind

Builders = Callable[..., Builder]


@pytest.fixture
def schedule(builder: Builders) -> Schedule:
    b = builder(1.0)
    return b.close([b.compute(OpKind.STEP, 0, 1.0, after=[b.compute(OpKind.LOSS, 0, 1.0)])])


STARTS = np.array([[0, 5], [10, 16], [21, 25]])
ENDS = np.array([[5, 9], [16, 20], [25, 30]])


def test_the_last_iterations_are_repeated(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 8, Period(2, 20))
    assert (run.iterations, run.simulated, run.by_period, run.finished_ops) == (8, 3, 5, 16)
    assert run.starts[3:].tolist() == [[30, 36], [41, 45], [50, 56], [61, 65], [70, 76]]
    assert run.ends[3:].tolist() == [[36, 40], [45, 50], [56, 60], [65, 70], [76, 80]]
    np.testing.assert_array_equal(run.ends[:3], ENDS)
    assert run.ends_of([1]).tolist() == run.ends[:, [1]].tolist()


def test_a_run_that_was_simulated_is_as_it_was(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 3)
    assert (run.simulated, run.by_period) == (3, 0)
    assert run.starts is STARTS
    assert run.ends is ENDS


def test_what_nobody_asks_for_is_not_written_out(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 10**15, Period(1, 10))
    assert run.by_period == 10**15 - 3
    assert run.finished_ops == 2 * 10**15
