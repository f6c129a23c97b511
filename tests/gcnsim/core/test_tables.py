"""Tables as text: numbers to the right and whole, words folded on a terminal alone."""

from __future__ import annotations

import sys

import pytest

from gcnsim.core.terminal import aligned

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
