"""Progress of long work: what is being done, on stderr, after two seconds, and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from gcnsim.terminal import LiveLine

PATIENCE_S = 2.0
"""Work shorter than this says nothing."""


class ProgressLine:
    """A function that shows one line, replaced by the next, with a bar where a share in [0, 1] is done."""

    def __init__(self) -> None:
        self._line = LiveLine(sys.stderr)
        self._said: tuple[str, float | None] | None = None
        self._shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE_S, self._show)
        self._timer.daemon = True
        if self._line.watched:
            self._timer.start()

    def __call__(self, text: str, share: float | None = None) -> None:
        with self._lock:
            self._said = (f"{text} ...", share)
            if self._shown:
                self._line.show(*self._said)

    def _show(self) -> None:
        with self._lock:
            self._shown = True
            if self._said is not None:
                self._line.show(*self._said)

    def end(self) -> None:
        """Wipe the line."""
        self._timer.cancel()
        with self._lock:
            self._shown, self._said = False, None
            self._line.clear()


@contextmanager
def progress() -> Iterator[ProgressLine]:
    """What says how far work is; silent unless the work is long and stderr a terminal."""
    display = ProgressLine()
    try:
        yield display
    finally:
        display.end()


def notice(text: str) -> None:
    """Say on stderr what is to be known before an answer is there."""
    click.echo(f"note: {text}", err=True)


def bar(what: str, total: int, say: Callable[[str, float], None]) -> Callable[[int], None]:
    """A function that takes what has just been done out of `total`, and says all that is done, per cent by per cent."""
    done, shown = 0, -1

    def add(more: int) -> None:
        nonlocal done, shown
        done += more
        percent = 100 * done // total if total else 100
        if percent != shown:
            shown = percent
            say(what, percent / 100)

    add(0)
    return add
