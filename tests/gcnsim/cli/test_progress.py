"""Progress is shown on a terminal alone, and only of long work."""

from __future__ import annotations

import sys
import threading

import pytest

from gcnsim.cli import progress as room
from gcnsim.cli.progress import bar, progress


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody looks at stderr from now on."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_bar_fills_as_work_is_done() -> None:
    said: list[str] = []
    add = bar("drawing", 200, said.append)
    for _ in range(4):
        add(50)
    assert [line[-5:] for line in said] == ["  0 %", " 25 %", " 50 %", " 75 %", "100 %"]
    assert said[0] == f"drawing [{' ' * room.WIDTH}]   0 %"
    assert said[2] == f"drawing [{'#' * (room.WIDTH // 2):{room.WIDTH}}]  50 %"
    assert said[4].count("#") == room.WIDTH


def test_a_bar_says_nothing_twice() -> None:
    said: list[str] = []
    add = bar("drawing", 10_000, said.append)
    for _ in range(10_000):
        add(1)
    assert len(said) == len(set(said)) == 101


class Hurried(threading.Timer):
    """A timer that has run out when it starts."""

    def start(self) -> None:
        self.function()


def test_long_work_is_shown_and_wiped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    with progress() as say:
        say("first")
        say("second")
    assert capsys.readouterr().err == "\r\x1b[2Kfirst ...\r\x1b[2Ksecond ...\r\x1b[2K"


def test_short_work_is_not_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""
