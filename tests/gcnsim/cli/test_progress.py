"""Progress is shown on a terminal alone, and only of long work."""

from __future__ import annotations

import sys
import threading

import pytest

from gcnsim.cli.progress import bar, progress
from tests.terminals import drawn


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody looks at stderr from now on."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_bar_fills_as_work_is_done() -> None:
    said: list[tuple[str, float]] = []
    add = bar("drawing", 200, lambda *what: said.append(what))
    for _ in range(4):
        add(50)
    assert said == [("drawing", share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def test_a_bar_says_nothing_twice() -> None:
    said: list[tuple[str, float]] = []
    add = bar("drawing", 10_000, lambda *what: said.append(what))
    for _ in range(10_000):
        add(1)
    assert len(said) == len(set(said)) == 101


class Hurried(threading.Timer):
    """A timer that runs out as soon as it is started."""

    def start(self) -> None:
        self.function()


def test_long_work_is_shown_and_wiped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    with progress() as say:
        say("first")
        say("second")
    assert drawn(capsys.readouterr().err) == ["first ...", "second ..."]


def test_a_wait_on_somebodys_own_graph_is_noted_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(threading.Timer):
        """A timer that runs out when it is told to."""

        def start(self) -> None:
            started.append(self)

    started: list[threading.Timer] = []
    monkeypatch.setattr(threading, "Timer", Asked)
    with progress(own=True) as say:
        say("cutting the graph")
        started[0].function()
    assert capsys.readouterr().err == "note: this takes more than 10 s (cutting the graph; Ctrl-C stops it)\n"
    with progress(own=True) as say:
        say.notice("this takes about 20 s (1 setting)")
        assert started[1].finished.is_set(), "what was announced is not said again"
    with progress():
        assert len(started) == 2, "what is of no graph of one's own is foreseen"


def test_a_share_is_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    with progress() as say:
        bar("drawing", 4, say)(1)
    first, second = drawn(capsys.readouterr().err)
    assert first.split()[:2] + first.split()[-2:] == ["drawing", "...", "0", "%"]
    assert second.split()[-2:] == ["25", "%"]


def test_short_work_is_not_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""
