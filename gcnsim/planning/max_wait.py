"""A longest wait: when it is over, no further draw of the assumptions is simulated, and nothing else changes.

How many were is told by the answer (`gcnsim.results.MaxWait`), since it depends on the clock. Without a longest wait
nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gcnsim import clock
from gcnsim.errors import ScenarioError, UnitError
from gcnsim.ids import Seconds
from gcnsim.units import SECONDS

LEAST_S: Final = 1e-3
"""The least limit: less is no time to answer anything in."""


def read_max_wait(text: object) -> Seconds:
    """A longest wait (30s, 2min) in seconds. Raises ScenarioError or UnitError, which name the option."""
    try:
        seconds = SECONDS.parse(text)
    except UnitError as error:
        raise UnitError(f"--max-wait: {error}") from None
    if seconds < LEAST_S:
        raise ScenarioError(f"--max-wait: {text!r} is not allowed; a time of at least {SECONDS.shown_as(LEAST_S)}")
    return seconds


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a longest wait. max_wait_s: as it was given; end_s: on the machine's clock."""

    max_wait_s: Seconds
    end_s: Seconds

    @classmethod
    def after(cls, max_wait_s: Seconds) -> Deadline:
        """The end of a wait that begins now."""
        return cls(max_wait_s, clock.now() + max_wait_s)

    @property
    def over(self) -> bool:
        """Whether the wait is over."""
        return clock.now() >= self.end_s
