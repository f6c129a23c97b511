"""Dominance by joint draws, on constructed ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gcnsim.planning.candidate import Candidate
from gcnsim.planning.capacity_choice import dominance, front
from gcnsim.planning.capacity_goal import Work
from gcnsim.planning.capacity_search import SURE, Option, Setting, dominated
from gcnsim.planning.failures import Failures


def option(times: list[float], rate: float, failures: Failures | None = None, servers: int = 1) -> Option:
    """An option with these times of an iteration in the draws, their median at the stated values; with failures, of a
    training of one iteration."""
    result: Any = SimpleNamespace(metrics=SimpleNamespace(iteration_s=float(np.median(times))), per_epoch=1, fits=True)
    scenario: Any = SimpleNamespace()
    candidate = Candidate(scenario, result, np.array(times), None)
    work = Work(1, None if failures is None else 1, rate, failures, servers)
    return Option(Setting(scenario, work, 0.0, rate), candidate)


def test_an_option_that_loses_in_every_draw_is_not_on_the_front() -> None:
    good, bad = option([1.0] * 20, 1.0), option([1.1] * 20, 1.0)
    assert [place.option for place in front([bad, good])] == [good]
    assert (dominance(good, bad), dominance(bad, good)) == (1.0, 0.0)


def test_faster_and_dearer_is_on_the_front_too() -> None:
    fast, cheap = option([1.0] * 20, 3.0), option([2.0] * 20, 1.0)
    assert [(place.option, place.at_values, place.share) for place in front([cheap, fast])] == [
        (fast, True, 0.0),
        (cheap, True, 0.0),
    ]


@pytest.mark.parametrize(("wins", "stays"), [(1, False), (2, True)])
def test_what_loses_in_nearly_every_draw_alone_goes(wins: int, stays: bool) -> None:
    one = option([1.0] * 40, 1.0)
    other = option([0.9] * wins + [1.1] * (40 - wins), 1.0)
    places = front([one, other])
    assert (other in [place.option for place in places]) is (stays and (40 - wins) / 40 < SURE)


def test_draws_are_compared_in_pairs() -> None:
    """Both vary by half, together: the one is a tenth slower in every draw, though its interval holds the other's."""
    shared = np.linspace(0.75, 1.25, 40)
    one, other = option(list(shared), 1.0), option(list(1.1 * shared), 1.0)
    assert [place.option for place in front([one, other])] == [one]
    apart = option(list(1.1 * shared[::-1]), 1.0)
    places = front([one, apart])
    assert [(place.option, place.at_values) for place in places] == [(one, True), (apart, False)]


def test_equals_do_not_beat_each_other() -> None:
    assert not dominated(np.array([1.0]), 1.0).any()
    twins = [option([1.0] * 5, 1.0), option([1.0] * 5, 1.0)]
    assert len(front(twins)) == 2


def test_slower_may_still_be_cheaper() -> None:
    assert list(dominated(np.array([0.5, 0.9, 1.0, 1.1]), 1.2)) == [True, False, False, False]


def test_failures_that_prolong_long_draws_more_are_counted_in_each_draw() -> None:
    """Four servers fail four times as often: they win where the training is short alone."""
    times = np.linspace(500.0, 1500.0, 40)
    failing = Failures(1.0, 0.0, 1e9, 0.0)
    often, seldom = option(list(times), 1.0, failing, servers=4), option(list(1.48 * times), 1.0, failing)
    assert dominance(often, seldom) == pytest.approx(0.5, abs=0.1)
    assert dominance(often, seldom) + dominance(seldom, often) == 1.0
    never = [option([1e9] * 5, 1.0, failing) for _ in range(2)]
    assert dominance(*never) == 0.0
