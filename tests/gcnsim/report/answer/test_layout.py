from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.answer.columns import columns_of
from gcnsim.report.answer.layout import Page, fold, laid_out, lines_of, needed
from tests.gcnsim.results.made import answer_of


def _layout(payload: dict[str, Any], width: int) -> Any:
    rows = answer_of(payload).fastest_first
    return laid_out(lambda gap, brief: columns_of(rows, gap=gap, brief=brief), width)


@pytest.mark.parametrize("width", range(36, 130, 3))
def test_what_is_laid_out_fits(answered: dict[str, Any], width: int) -> None:
    layout = _layout(answered, width)
    assert needed(layout.columns, layout.gap) <= width
    head, lines = lines_of(layout.columns, [False] * 5, layout.gap)
    assert max(len(part) for line in (*head, *lines) for part in line.split("\n")) <= width
    keys = [column.key for column in layout.columns]
    assert keys[:3] == ["method", "knobs", "time"]
    assert set(keys) & set(layout.left_out) == set()


def test_the_least_important_go_first(answered: dict[str, Any]) -> None:
    left = [set(_layout(answered, width).left_out) for width in (120, 90, 75, 50)]
    assert left[0] == set()
    assert "shares" in left[1]
    assert "memory_bytes" not in left[2]
    assert left[3] >= {"shares", "limited_by", "usd_per_1000_iterations", "speedup_vs_full_graph"}


def test_a_rare_long_text_is_folded_before_a_column_goes(answered: dict[str, Any]) -> None:
    answered["results"][0]["limited_by"]["text"] = "drawing and loading of worker 0 (host CPU)"
    answered["results"][1] |= {"setting": "sample boundary-edges, threshold 0.02"}
    layout = _layout(answered, 105)
    assert layout.left_out == ()
    cells = {column.key: column.cells for column in layout.columns}
    assert "drawing and loading,\nworker 0 (host CPU)" in cells["limited_by"]
    assert "sample boundary-edges,\nthreshold 0.02" in cells["knobs"][3]
    _, rows = lines_of(layout.columns, [True] * 5, layout.gap)
    folded = next(row for row in rows if "boundary-edges" in row).split("\n")
    assert [line[0] for line in folded] == ["*", " "]
    assert folded[1].split() == ["threshold", "0.02"]


def test_the_time_that_rows_are_sorted_by_is_always_there(answered: dict[str, Any]) -> None:
    answered["results"][0] |= {"iterations_per_epoch": 5, "epoch_s": 9.0}
    assert "epoch_s" in {column.key for column in _layout(answered, 60).columns}


def test_words_are_folded_where_they_end() -> None:
    assert fold("NIC of server 2", 15) == "NIC of server 2"
    assert fold("NIC of server 12", 15) == "NIC of server\n12"
    assert fold("psc-gcn-on-ten", 8) == "psc-gcn-\non-ten"


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
