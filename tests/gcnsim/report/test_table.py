from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report import render_table
from gcnsim.report.columns import columns_of
from gcnsim.report.rows import rows_of
from gcnsim.report.table import folded, pages


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_no_number_is_cut_and_no_line_is_too_long(payload: dict[str, Any], width: int) -> None:
    text = render_table(payload, width, color=False)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for column in columns_of(rows_of(payload)):
        if column.key != "interval":
            assert all(cell in text for cell in column.cells), column.key


def test_one_table_in_a_pipe_of_100_columns(payload: dict[str, Any]) -> None:
    text = render_table(payload, 100, color=False)
    assert sum(line.startswith("full-graph") for line in text.splitlines()) == 1
    assert "1974-2159" in text
    assert text.isascii()


def test_everything_that_was_answered_is_printed(payload: dict[str, Any]) -> None:
    text = " ".join(render_table(payload, 200, color=False).split())
    said = ("NIC bandwidth full-graph, pipegcn", payload["recommendation"]["why"], "tau 2 -> 1: 450 ms (7.5% longer)")
    assert all(part in text for part in said)
    provenance = payload["provenance"]
    covered = {item["name"]: item["basis"] in text for item in provenance["assumptions"]}
    assert covered == {item["name"]: item["in_interval"] for item in provenance["assumptions"]}
    assert all(name in text for name in covered)
    assert "4 (2 to 9.5)" in text
    assert all(part in text for part in (*provenance["warnings"], provenance["interval"], provenance["scenario_hash"]))


def test_gpus_and_bandwidth_are_columns_when_lists_were_asked(payload: dict[str, Any]) -> None:
    payload["scenario"]["grid"][1] = {"gpus": 8, "bandwidth": "100Gbps"}
    lines = render_table(payload, 180, color=False).splitlines()
    assert lines[1].split()[:2] == ["GPUs", "width"]
    assert next(line for line in lines if "pipegcn" in line).split()[:3] == ["8", "100Gbps", "pipegcn"]


def test_colour_only_where_asked(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in render_table(payload, 120, color=True)
    assert "\x1b[" not in render_table(payload, 120, color=False)


def test_square_brackets_are_text_not_markup(payload: dict[str, Any]) -> None:
    payload["provenance"]["graph"]["text"] = "[bold]graph[/bold] :smile:"
    assert "[bold]graph[/bold] :smile:" in render_table(payload, 120, color=False)


def test_pages_repeat_the_columns_that_name_the_row(payload: dict[str, Any]) -> None:
    columns = folded(columns_of(rows_of(payload)))
    split = pages(columns, 60)
    assert len(split) > 1
    assert all([column.key for column in page[:4]] == ["method", "tau", "epsilon", "cache_fraction"] for page in split)
    shown = [column.key for page in split for column in page[4:]]
    assert shown == [column.key for column in columns][4:]
