"""Consecutive waits without drift: each ends at an absolute instant, computed from the end of the previous one.

A thread wakes about 0.1 ms after the requested instant. Lengths counted from there would accumulate that error; counted
from the instant itself, a shorter sleep compensates a late start.

Spans of such waits are recorded as the work that they represent.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Final

from gcnsim.core.ids import Rank
from gcnsim.timeline import Timeline
from runtime.record import Recorder

_PR_SET_TIMERSLACK: Final = 29
NS: Final = 1_000_000_000


def now() -> int:
    """Nanoseconds of the machine's monotonic clock, which all its processes share."""
    return time.perf_counter_ns()


def sleep_until(instant: int) -> None:
    """Sleep until `instant`, or not at all if it has passed. Cores are shared, so there is no busy waiting."""
    while (left := instant - time.perf_counter_ns()) > 0:
        time.sleep(left / NS)


def wake_sharply() -> None:
    """Let this thread, and those it starts, be woken on time instead of up to 50 us later (Linux's prctl(2))."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class Lane:
    """A stream: its work runs in sequence, each item from when it is ready and the previous one is done."""

    def __init__(self) -> None:
        self.free = 0
        """When the last piece ended, in ns."""

    def work(self, ready: int, length: int) -> tuple[int, int]:
        """Do work of `length` ns that is ready at the instant `ready`; returns its begin and end."""
        start = max(self.free, ready)
        self.free = start + length
        sleep_until(self.free)
        return start, self.free


class ScaledRecorder(Recorder):
    """A recorder whose clock is `scale` times slower than the machine's."""

    def __init__(self, rank: Rank, scale: float, *, enabled: bool = True) -> None:
        super().__init__(rank, enabled, now=lambda: self.at(now()))
        self._scale = scale

    def at(self, instant: int) -> int:
        """The mark of an instant of the machine's clock, in ns."""
        return round(instant / self._scale)

    def timeline(self, origin_ns: int, offset_ns: int = 0) -> Timeline:
        """See `Recorder.timeline`; both arguments are of the machine's clock."""
        return super().timeline(self.at(origin_ns), round(offset_ns / self._scale))
