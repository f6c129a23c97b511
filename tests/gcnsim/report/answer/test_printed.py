"""Lines on a terminal: wrapped, folded, and styled where styles are shown."""

from __future__ import annotations

import pytest

from gcnsim.report.answer.printed import Page


def test_nothing_is_printed_of_nothing() -> None:
    page = Page(80, lit=True)
    page.block("Title", [])
    page.pairs("Title", [])
    assert page.text == ""


def test_colours_can_be_left_out_and_styles_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    page = Page(80, lit=True)
    page.line("best", "bold green")
    assert page.text == "\x1b[1mbest\x1b[0m\n"


def test_words_stay_whole_where_a_line_holds_them() -> None:
    page = Page(14, lit=False)
    page.line("this line is asked for whole")
    page.block("Title", ["one two three", "abcdefghijklmn"])
    page.pairs("", [("name", "one two")])
    assert page.text.splitlines() == [
        *("this line is asked for whole", "Title"),
        *("  one two", "  three", "  abcdefghijkl", "  mn", ""),
        *("  name  one", "        two", ""),
    ]


def test_what_commands_a_terminal_is_printed_as_text() -> None:
    page = Page(80, lit=True)
    page.block("", ["graph\x1b[2J"], end=False)
    page.pairs("", [("[bold]name", ":smile: \x07")])
    assert page.text == "  graph\\x1b[2J\n  [bold]name  :smile: \\x07\n\n"
