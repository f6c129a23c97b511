"""Progress of long work: what is being done, on stderr, after two seconds, and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

PATIENCE_S = 2.0
"""Work shorter than this says nothing."""


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
