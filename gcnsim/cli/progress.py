"""Progress of long work: what is being done, on stderr, after two seconds, and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

PATIENCE_S = 2.0
"""Work shorter than this says nothing."""

WIDTH = 32
"""Characters of a full bar."""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows one line, replaced by the next; silent unless stderr is a terminal and the work is long."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = _Line()
    timer = threading.Timer(PATIENCE_S, line.show)
    timer.daemon = True
    timer.start()
    try:
        yield line.say
    finally:
        timer.cancel()
        line.clear()


def bar(what: str, total: int, say: Callable[[str], None]) -> Callable[[int], None]:
    """A function that takes what has just been done out of `total`, and says all that is done as a bar."""
    done, shown = 0, -1

    def add(more: int) -> None:
        nonlocal done, shown
        done += more
        percent = 100 * done // total if total else 100
        if percent != shown:
            shown = percent
            say(f"{what} [{'#' * (percent * WIDTH // 100):{WIDTH}}] {percent:3} %")

    add(0)
    return add


class _Line:
    def __init__(self) -> None:
        self._text = ""
        self._shown = False
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        with self._lock:
            self._text = text
            if self._shown:
                click.echo(f"\r\x1b[2K{text} ...", err=True, nl=False)

    def show(self) -> None:
        with self._lock:
            self._shown = True
            if self._text:
                click.echo(f"{self._text} ...", err=True, nl=False)

    def clear(self) -> None:
        with self._lock:
            if self._shown:
                click.echo("\r\x1b[2K", err=True, nl=False)
            self._shown = False
            self._text = ""
