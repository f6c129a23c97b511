"""Lines on a terminal are those that rich prints: its console is what they were drawn with before."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gcnsim.report.answer.printed import Page, wrapped

WORDS = st.text("abc-_/.,:", min_size=1, max_size=9) | st.sampled_from(
    ["a" * 40, "caf\u00e9", "\u6f22\u5b57", "x" * 130]
)
TEXTS = st.lists(WORDS, max_size=25).map(" ".join) | st.lists(WORDS, max_size=5).map("  ".join)


def drawn(width: int, lit: bool, title: str, lines: Sequence[str], pairs: Sequence[tuple[str, str]]) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=lit,
        color_system="standard" if lit else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=width * 2 // 5, overflow="fold")
    grid.add_column(overflow="fold")
    for name, text in pairs:
        grid.add_row(Text(name), Text(text))
    with console.capture() as capture:
        for line, style in zip(lines, ("bold", "dim", "bold green", ""), strict=False):
            console.print(Text(line, style=style), crop=False, no_wrap=True, overflow="ignore", soft_wrap=True)
        for body in (Text("\n".join(lines), overflow="fold"), grid):
            console.print(Text(title, style="bold"))
            console.print(Padding(body, (0, 0, 0, 2)))
            console.print()
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


@settings(max_examples=150)
@given(
    st.sampled_from([20, 31, 60, 100, 140]),
    st.booleans(),
    st.sampled_from(["Next steps", "Provenance (more: --provenance, --assumptions)"]),
    st.lists(TEXTS, min_size=1, max_size=4),
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4),
)
def test_lines_are_those_of_rich(
    width: int, lit: bool, title: str, lines: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> None:
    page = Page(width, lit=lit)
    for line, style in zip(lines, ("bold", "dim", "bold green", ""), strict=False):
        page.line(line, style)
    page.block(title, lines)
    page.pairs(title, pairs)
    assert page.text == drawn(width, lit, title, lines, pairs)


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
    assert wrapped("one two three", 8) == ["one two ", "three"]
    assert wrapped("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrapped("", 4) == [""]
