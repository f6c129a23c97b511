"""What commands write: live lines, the screen's width, tables, the time left."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.core import clock
from gcnsim.core.clock import TimeLeft
from gcnsim.core.terminal import LiveLine, Screen, aligned, raw_of, screened, shown
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


NAME = "g\x1b[2J\x1b]0;title\x07\x9b1m\u202egpz"


def test_commands_are_written_out_and_text_is_not() -> None:
    assert shown(NAME) == r"g\x1b[2J\x1b]0;title\x07\x9b1m\u202egpz"
    assert shown("a\tb\nc \u00e4 \u4f60") == "a\tb\nc \u00e4 \u4f60"
    assert shown("\udcff\r\x08") == r"\udcff\r\x08"


def test_colours_pass_only_where_they_are_ours() -> None:
    held = io.StringIO()
    Screen(held, coloured=True).writelines(["\x1b[1mbold\x1b[0m", "\x1b[2J"])
    Screen(held).write("\x1b[1m")
    assert held.getvalue() == "\x1b[1mbold\x1b[0m" + r"\x1b[2J" + r"\x1b[1m"


def test_both_streams_are_screens_within_the_block_alone() -> None:
    before = sys.stdout, sys.stderr
    with screened(), screened():
        assert isinstance(sys.stdout, Screen)
        assert raw_of(sys.stderr) is before[1]
    assert (sys.stdout, sys.stderr) == before


def test_a_table_shows_them_and_stays_aligned() -> None:
    assert aligned([("\x1b[1mx", "1"), ("y", "2")]) == [r"\x1b[1mx  1", "y         2"]


def test_a_command_prints_no_sequence_of_a_file_or_of_a_member(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{NAME}.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a\x1b]52;c;eA==\x07.npy", b"x")
    assert main(["graph", "info", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.endswith("\n")
    assert captured.err[:-1].isprintable()
    assert r"\x1b]0;title\x07" in captured.err
    assert "52;c;eA==" in captured.err


def test_a_terminal_gets_none_either(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txt"
    path.write_text("0 1\n1 2\n")
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "gcnsim", "graph", "info", str(path)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    content = b""
    with contextlib.suppress(OSError):  # which is how Linux ends a terminal
        while chunk := os.read(reader, 4096):
            content += chunk
    os.close(reader)
    assert process.wait() == 0
    assert rb"g\x1b[2J\x1b]0;title\x07" in content
    # On a slow machine the live line was drawn, which has sequences of its own; none of these.
    for sequence in (b"\x1b[2J", b"\x1b]", b"\x07", "\x9b".encode()):
        assert sequence not in content


ROWS = [("a_long_name", "1,234,567", "one two three four five six seven"), ("b", "8", "[bold] :smile: 日本")]
HEADS = ("name", "rows\nof it", "what")
LEFT = (True, False, True)


def test_numbers_stand_to_the_right_and_headings_at_the_bottom() -> None:
    assert aligned(ROWS, HEADS, left=LEFT, indent=2) == [
        "                    rows",
        "  name             of it  what",
        "  a_long_name  1,234,567  one two three four five six seven",
        "  b                    8  [bold] :smile: 日本",
    ]


def test_the_first_columns_are_words_where_a_number_says_so() -> None:
    assert aligned([("a", "bb", "1"), ("aa", "b", "22")], left=2, gap=1) == ["a  bb  1", "aa b  22"]
    assert aligned([("1",), ("22",)], left=0) == [" 1", "22"]
    assert aligned([("1 (2) ", "x"), ("10 (20)", "y")], ("a wider head", ""), left=(False, True)) == [
        "a wider head",
        "      1 (2)   x",
        "     10 (20)  y",
    ]
    assert aligned([], HEADS) == []


def test_a_narrow_terminal_folds_words_and_cuts_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    folded = aligned(ROWS[:1], left=LEFT, width=45)
    assert folded == [
        "a_long_name  1,234,567  one two three four",
        "                        five six seven",
    ]
    # Not even words have room for less than some characters.
    assert aligned(ROWS[:1], left=LEFT, width=10) == aligned(ROWS[:1], left=LEFT, width=40)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "45")
    assert aligned(ROWS[:1], left=LEFT) == folded


def test_nothing_is_coloured_or_cut_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    (line,) = aligned([("name", "word " * 100, "1")], left=2)
    assert line == "name  " + "word " * 100 + "  1"


def at(*times: float) -> Callable[[], float]:
    """A clock that shows these times, one after the other."""
    return iter(times).__next__


def test_the_time_left_is_of_what_was_done_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", at(10.0, 12.0, 30.0))
    left = TimeLeft()
    assert left.text(0, 200) == "", "nothing is done"
    # A second for each of 2, then half a second for each of 40.
    assert left.text(2, 200) == ", 3 min left"
    assert left.text(40, 200) == ", 80 s left"
    assert left.text(200, 200) == "", "all is done"


def test_what_was_done_before_says_nothing_of_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", at(0.0, 100.0, 110.0))
    left = TimeLeft(None)
    assert left.text(100, 200) == ""
    assert left.text(150, 200) == ", 10 s left"
