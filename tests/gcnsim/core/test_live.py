"""A line that is replaced: seen on terminals alone, and never in the way of the work."""

from __future__ import annotations

import io
import re

import pytest

from gcnsim.core.terminal import LiveLine
from tests.terminals import Terminal, drawn


def test_a_line_is_replaced_cut_at_the_edge_and_wiped() -> None:
    terminal = Terminal()
    line = LiveLine(terminal)
    for text in ("first", "long " * 40):
        line.show(text)
    line.clear()
    line.clear()
    first, second = drawn(terminal.getvalue())
    assert first == "first"
    assert second == ("long " * 40)[:79] + "…"


def test_a_share_is_a_bar() -> None:
    terminal = Terminal()
    line = LiveLine(terminal)
    for share in (0.0, 0.5, 1.0):
        line.show("work", share)
    line.clear()
    bars = [text.removeprefix("work").rpartition(" ")[0].strip() for text in drawn(terminal.getvalue())]
    assert [text.split()[-1] for text in bars] == ["0", "50", "100"]
    assert bars[2].count("━") == 32


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    line = LiveLine(terminal)
    line.show("work", 0.5)
    line.clear()
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", terminal.getvalue())


def test_nothing_is_said_where_nobody_watches() -> None:
    stream = io.StringIO()
    line = LiveLine(stream)
    line.show("work", 0.5)
    line.clear()
    assert (stream.getvalue(), line.watched) == ("", False)


@pytest.mark.parametrize("error", [BrokenPipeError, OSError, ValueError])
def test_a_reader_that_goes_away_ends_the_telling(error: type[Exception]) -> None:
    class Broken(Terminal):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            raise error

    stream = Broken()
    line = LiveLine(stream)
    for text in ("first", "second"):
        line.show(text)
    line.clear()
    assert stream.writes == 1
