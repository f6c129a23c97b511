"""The machine's clock: progress and remaining time of counted work.

No result depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from gcnsim.core.ids import Seconds

OnProgress: TypeAlias = Callable[[int, int], object]
"""A callback that receives the number of finished simulations and the total."""


def now() -> Seconds:
    """Seconds since a fixed moment, the same in all processes of this machine."""
    return os.times().elapsed


class TimeLeft:
    """The remaining time of counted work, from its speed so far.

    done: the count before the start; None: the first reported one.
    """

    def __init__(self, done: int | None = 0) -> None:
        self._since, self._before = now(), done

    def text(self, done: int, total: int) -> str:
        """The text to append for this progress: `, 5 s left`; empty if it is unknown."""
        if self._before is None:
            self._since, self._before = now(), done
        if done in (self._before, total):
            return ""
        left = (now() - self._since) / (done - self._before) * (total - done)
        return f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"


def running_total(on_progress: OnProgress, total: int) -> Callable[[int], None]:
    """Return a callback that adds up finished work and reports it against `total`."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if more:
            on_progress(done, total)

    return count


def counted(progress: Callable[[str], object], text: str) -> OnProgress:
    """Announce the next step, then report its finished simulations and the remaining time."""
    progress(text)
    left = TimeLeft()
    return lambda done, total: progress(f"{text}: {done:,} of {total:,} runs{left.text(done, total)}")
