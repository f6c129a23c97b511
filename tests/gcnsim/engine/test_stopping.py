"""A run that goes on has successors for its last iterations; one that would stop by itself is simulated until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.engine import Run
from gcnsim.engine.kernel.driver import simulate_by
from gcnsim.engine.kernel.run import run as uncompiled
from gcnsim.engine.reference import simulate
from gcnsim.engine.stopping import StopCondition
from gcnsim.schedule import Schedule
from tests.cases import Case, method
from tests.networks import coupled


class Simulate(Protocol):
    def __call__(
        self, schedule: Schedule, iterations: int, enough: StopCondition | None = None, *, endless: bool = False
    ) -> Run: ...


ENGINES: Sequence[Simulate] = (simulate, partial(simulate_by, uncompiled))

engines = pytest.mark.parametrize("run", ENGINES, ids=["reference", "kernel"])


def at(count: int) -> StopCondition:
    """Enough at `count` iterations."""
    return lambda ends: ends.shape[0] == count


def pipeline(facts: Callable[..., Case], tau: int) -> Schedule:
    """One that waits for its network."""
    return method("psc-gcn")(facts(tau=tau, slope=0.1, nic=5e7))


@engines
@pytest.mark.parametrize("tau", [1, 3])
def test_the_last_iterations_are_those_of_a_longer_run(facts: Callable[..., Case], run: Simulate, tau: int) -> None:
    schedule = pipeline(facts, tau)
    whole, endless, alone = run(schedule, 40), run(schedule, 7, endless=True), run(schedule, 7)
    np.testing.assert_array_equal(endless.ends, whole.ends[:7])
    np.testing.assert_array_equal(endless.starts, whole.starts[:7])
    # Its last transfers would have the links to themselves, and end early.
    assert (alone.ends[-1] < whole.ends[6]).any()
    assert (alone.ends <= whole.ends[:7]).all()


def test_the_last_iterations_of_random_networks_are_those_of_longer_runs() -> None:
    early = 0
    for index in range(30):
        schedule = coupled(stream(index, "stopping"))
        whole = simulate(schedule, 30)
        endless, alone = simulate(schedule, 6, endless=True), simulate(schedule, 6)
        np.testing.assert_array_equal(endless.ends, whole.ends[:6])
        early += (alone.ends != whole.ends[:6]).any()
    assert early >= 10


@engines
def test_a_run_that_is_enough_soon_is_the_same_whether_it_goes_on(facts: Callable[..., Case], run: Simulate) -> None:
    schedule = pipeline(facts, 1)
    one, other = run(schedule, 30, at(3)), run(schedule, 30, at(3), endless=True)
    assert one.iterations == other.iterations == other.simulated == 3
    np.testing.assert_array_equal(one.ends, other.ends)
    np.testing.assert_array_equal(one.starts, other.starts)


@engines
def test_a_run_that_is_enough_later_is_simulated_until_then(facts: Callable[..., Case], run: Simulate) -> None:
    schedule = method("full-graph")(facts())
    shown = run(schedule, 200, endless=True).simulated
    later = run(schedule, 200, at(shown + 5), endless=True)
    assert later.iterations == later.simulated == shown + 5
    assert later.period is None


@engines
def test_a_run_that_is_never_enough_repeats_its_period(facts: Callable[..., Case], run: Simulate) -> None:
    schedule = method("full-graph")(facts())
    shown = run(schedule, 200, endless=True).simulated
    requested: list[int] = []

    def never(ends: IntArray) -> bool:
        requested.append(ends.shape[0])
        return False

    found = run(schedule, 200, never, endless=True)
    assert (found.simulated, found.by_period) == (shown, 200 - shown)
    assert set(requested) == set(range(1, 201))
    np.testing.assert_array_equal(found.ends, run(schedule, 200).ends)


@engines
def test_a_run_ends_where_it_did_unless_it_goes_on(facts: Callable[..., Case], run: Simulate) -> None:
    assert run(method("full-graph")(facts()), 50).simulated == 50
