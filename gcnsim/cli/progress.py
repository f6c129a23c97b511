"""Progress of long work, shown on stderr after two seconds, and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from gcnsim.core.terminal import LiveLine

PATIENCE_S = 2.0
"""Seconds; shorter work shows no progress."""


class ProgressLine:
    """Shows one line, replaced by the next, with a bar if a share in [0, 1] is done."""

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
        """Erase the line."""
        self._timer.cancel()
        with self._lock:
            self._shown, self._said = False, None
            self._line.clear()


@contextmanager
def progress() -> Iterator[ProgressLine]:
    """Return a function that shows progress; it is silent unless the work is long and stderr is a terminal."""
    display = ProgressLine()
    try:
        yield display
    finally:
        display.end()


def notice(text: str) -> None:
    """Print a note on stderr before the answer is ready."""
    click.echo(f"note: {text}", err=True)


def bar(what: str, total: int, say: Callable[[str, float], None]) -> Callable[[int], None]:
    """Return a function that adds newly finished work, out of `total`, and shows the sum, one per cent at a time."""
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
