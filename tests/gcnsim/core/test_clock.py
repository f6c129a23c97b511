"""How long counted work will still take, by what was done since it began."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gcnsim.core import clock
from gcnsim.core.clock import TimeLeft


def at(*times: float) -> Callable[[], float]:
    """A clock that shows these times, one after the other."""
    return iter(times).__next__


def test_the_clock_goes_on() -> None:
    assert 0.0 < clock.now() <= clock.now()


def test_the_time_left_is_of_what_was_done_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", at(10.0, 12.0, 30.0))
    left = TimeLeft()
    assert left.text(0, 200) == "", "nothing is done"
    # A second for each of 2, then half a second for each of 40.
    assert left.text(2, 200) == ", 3 min left"
    assert left.text(40, 200) == ", 80 s left"
    assert left.text(200, 200) == "", "all is done"


def test_what_was_done_before_says_nothing_of_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", at(0.0, 100.0, 110.0))
    left = TimeLeft(None)
    assert left.text(100, 200) == ""
    assert left.text(150, 200) == ", 10 s left"
