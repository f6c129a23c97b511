"""Progress is shown on a terminal alone, and only of long work."""

from __future__ import annotations

import re
import sys
import threading
from itertools import count

import pytest

from gcnsim.cli import main
from gcnsim.cli.progress import bar, progress
from gcnsim.core import clock
from tests.terminals import drawn


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody looks at stderr from now on."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_bar_fills_as_work_is_done() -> None:
    text: list[tuple[str, float]] = []
    add = bar("drawing", 200, lambda *what: text.append(what))
    for _ in range(4):
        add(50)
    assert text == [("drawing", share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def test_a_bar_says_nothing_twice() -> None:
    text: list[tuple[str, float]] = []
    add = bar("drawing", 10_000, lambda *what: text.append(what))
    for _ in range(10_000):
        add(1)
    assert len(text) == len(set(text)) == 101


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


def test_a_question_shows_what_is_done_of_how_many_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    ticks = count()
    monkeypatch.setattr(clock, "now", lambda: 3.0 * next(ticks))
    monkeypatch.setattr("gcnsim.api.question.cores", lambda: 1)
    assert main(["what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "4"]) == 0
    text = drawn(capsys.readouterr().err)
    for what in (
        "simulating 1 setting and",
        "simulating draws of the assumptions",
        "trying the next step of each knob",
    ):
        content = [line for line in text if line.startswith(what)]
        assert re.search(r": 1 of \d+ runs, \d+ (s|min) left \.\.\.$", content[1])
        assert re.search(r": (\d+) of \1 runs \.\.\.$", content[-1])


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
