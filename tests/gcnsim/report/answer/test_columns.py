"""Columns, rows, layout and files of a what-if answer."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.schemas import schema_of
from gcnsim.report.answer import rows
from gcnsim.report.answer.columns import BYTE_UNITS, TIME_UNITS, columns_of, scale_of, shown_keys
from gcnsim.report.answer.layout import Page, laid_out, lines_of, needed
from gcnsim.report.answer.rows import labels_of, shared_knobs, write_csv
from gcnsim.report.answer.table import render_notebook
from gcnsim.results import COLUMNS, FLAT, Form, Table
from tests.gcnsim.results.made import answer_of


def _cells(payload: dict[str, Any], *keys: str) -> dict[str, tuple[str, ...]]:
    return {column.key: column.cells for column in columns_of(answer_of(payload).results, keys or None)}


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ([0.418, 2.056], "ms", ["418", "2056"]),
        ([0.418, 0.439], "ms", ["418.0", "439.0"]),
        ([1.5, 90.0], "s", ["1.50", "90.00"]),
        ([2.5e-5], "us", ["25.00"]),
        ([0.0], "ps", ["0"]),
    ],
)
def test_scale_gives_the_smallest_value_three_digits(values: list[float], unit: str, texts: list[str]) -> None:
    scale = scale_of(values, TIME_UNITS)
    assert scale.unit == unit
    assert [scale.text(value) for value in values] == texts


def test_knobs_are_those_that_a_method_has(payload: dict[str, Any]) -> None:
    payload["results"][1] |= {"method": "bns-gcn", "rate": 0.05, "setting": "sample edges"}
    assert _cells(payload)["knobs"] == (
        "",
        "rate 0.05  sample edges",
        "tau 2  eps 0.1",
        "tau 2  eps 0.1  cache 25%",
    )


def test_a_difference_that_holds_zero_is_an_equal_sign(answered: dict[str, Any]) -> None:
    answered["results"][2]["vs_recommended"] = {"low": -0.1, "high": 0.2, "distinguishable": False}
    answered["results"][3]["vs_recommended"] = None
    assert _cells(answered, "vs_recommended")["vs_recommended"] == ("+712 to +732%", "+546 to +566%", "=", "-")


def test_price_and_memory_are_columns_where_known(payload: dict[str, Any], answered: dict[str, Any]) -> None:
    assert _cells(answered)["cost_per_1000_iterations"] == ("1.80", "1.44", "0.39", "0.37")
    answered["results"][0] |= {"cost": None, "memory_bytes": 17e9, "fits": False}
    answered["results"][1]["memory_bytes"] = None
    cells = _cells(answered)
    assert cells["cost_per_1000_iterations"][0] == "-"
    assert cells["memory_bytes"] == ("15.8!", "-", "5.7", "5.7")
    for row in answered["results"]:
        row |= {"cost": None, "memory_bytes": None}
    assert not {"cost_per_1000_iterations", "memory_bytes"} & set(_cells(answered))


def test_gpus_and_bandwidth_show_only_where_they_vary(payload: dict[str, Any]) -> None:
    assert not {"gpus", "bandwidth"} & set(_cells(payload))
    payload["results"][0]["bandwidth"] = "1Gbps"
    cells = _cells(payload)
    assert "gpus" not in cells
    assert cells["bandwidth"] == ("1Gbps", "15Gbps", "15Gbps", "15Gbps")


def test_bytes_that_need_four_digits_take_the_larger_unit() -> None:
    values = [923 * 2.0**20, 1010.7 * 2.0**20]
    scale = scale_of(values, BYTE_UNITS)
    assert (scale.unit, [scale.text(value) for value in values]) == ("GiB", ["0.901", "0.987"])


def test_the_recommended_row_is_marked_or_added(answered: dict[str, Any]) -> None:
    rows = answer_of(answered).fastest_first
    assert [row.recommended for row in rows] == [True, False, False, False, False]
    assert rows[0].iteration_s == 0.25
    answered["recommendation"] |= {"in_results": 3}
    assert answer_of(answered).rows == answer_of(answered).results


def test_shared_knobs_need_two_rows(answered: dict[str, Any]) -> None:
    rows = answer_of(answered).results
    assert shared_knobs(rows) == {}
    assert shared_knobs(rows[2:]) == {"tau": "tau 2", "epsilon": "eps 0.1"}
    assert shared_knobs(rows[2:3]) == {}


def test_labels_say_only_what_tells_rows_of_a_method_apart(payload: dict[str, Any]) -> None:
    assert labels_of(answer_of(payload).results) == [
        ("full-graph", ""),
        ("pipegcn", ""),
        ("psc-gcn", "cache 0%"),
        ("psc-gcn", "cache 25%"),
    ]
    payload["results"][0] |= {"method": "bns-gcn", "rate": 0.1}
    payload["results"][1] |= {"method": "bns-gcn", "tau": 0, "rate": 0.5}
    assert labels_of(answer_of(payload).results)[:2] == [("bns-gcn", "rate 0.1"), ("bns-gcn", "rate 0.5")]
    payload["results"][3]["gpus"] = 8
    assert labels_of(answer_of(payload).results)[3] == ("psc-gcn", "8 GPUs, cache 25%")
    payload["results"][3] |= {"gpus": 1, "bandwidth": "25Gbps"}
    assert labels_of(answer_of(payload).results)[3] == ("psc-gcn", "1 GPU, 25Gbps, cache 25%")


def _layout(payload: dict[str, Any], width: int) -> Any:
    rows = answer_of(payload).fastest_first
    return laid_out(lambda gap, brief: columns_of(rows, gap=gap, brief=brief), width)


@pytest.mark.parametrize("width", range(36, 130, 6))
def test_what_is_laid_out_fits(answered: dict[str, Any], width: int) -> None:
    layout = _layout(answered, width)
    assert needed(layout.columns, layout.gap) <= width
    head, lines = lines_of(layout.columns, [False] * 5, layout.gap)
    assert max(len(part) for line in (*head, *lines) for part in line.split("\n")) <= width
    keys = [column.key for column in layout.columns]
    assert keys[:3] == ["method", "knobs", "time"]
    assert set(keys) & set(layout.left_out) == set()


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


def test_reads_back_every_number_exactly(payload: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    payload["results"][0]["bottleneck"] = 'NIC, "tx"'
    write_csv(path, answer_of(payload))
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames or ()) == FLAT
    assert FLAT[:6] == ("dataset", "host", "gpus", "gpus_per_server", "device", "bandwidth")
    for row, result in zip(rows, payload["results"], strict=True):
        assert (row["gpus"], row["bandwidth"]) == ("6", "15Gbps")
        for key in ("iteration_s", "nic_bytes", "bottleneck", "epoch_s", "memory_bytes"):
            assert type(result[key])(row[key]) == result[key]


def test_carries_the_machine_the_limit_and_the_recommended_row(answered: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    answered["results"][0]["cost"] = None
    write_csv(path, answer_of(answered))
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["recommended"] for row in rows] == ["False"] * 4 + ["True"]
    assert [rows[4][key] for key in ("dataset", "device", "gpus", "bandwidth")] == ["reddit", "t4", "6", "15Gbps"]
    found = [rows[1][key] for key in ("limited_by", "limited_by_share", "limited_by_kind_share")]
    assert found == ["NIC of server 2", "0.33", "0.58"]
    assert rows[0]["cost_per_1000_iterations"] == rows[4]["vs_recommended_low"] == ""


def test_a_notebook_shows_the_verdict_and_the_fastest_rows(answered: dict[str, Any]) -> None:
    text = render_notebook(answer_of(answered), most=3)
    assert answered["recommendation"]["verdict"] in text
    assert "UNCALIBRATED" in text
    assert text.count("<tr") == 1 + 3
    assert "2 more rows" in text
    assert "<script" not in text
    assert "1 more row:" in render_notebook(answer_of(answered), most=4)


def test_text_from_outside_is_escaped(answered: dict[str, Any]) -> None:
    answered["results"][0]["method"] = answered["recommendation"]["verdict"] = "<img src=x>"
    answered["certainty"]["label"] = "<b>"
    text = render_notebook(answer_of(answered))
    assert "<img" not in text
    assert "&lt;img" in text
    assert "<b>" not in text


def test_control_characters_do_not_reach_a_terminal(payload: dict[str, Any]) -> None:
    payload["provenance"]["warnings"] = ["bad\x1b[2Jname\nnext"]
    assert rows.warnings_of(answer_of(payload)) == ["bad [2Jname next"]


def test_cells_by_value(payload: dict[str, Any]) -> None:
    keys = ("iteration_s", "interval", "time", "hidden_comm_s", "cache_fraction", "speedup_vs_full_graph", "shares")
    cells = _cells(payload, *keys)
    assert tuple(cells) == keys
    assert cells["iteration_s"] == ("2056", "1641", "439", "418")
    assert cells["interval"][3] == "401-439"
    assert cells["time"] == ("2056 (1974-2159)", "1641 (1575-1723)", " 439 (421-461)  ", " 418 (401-439)  ")
    assert cells["shares"] == ("20|80", "26|73", "88| 5", "93| 0")
    assert cells["hidden_comm_s"] == ("0", "434", "352", "271")
    assert cells["cache_fraction"] == ("0%", "0%", "0%", "25%")
    assert cells["speedup_vs_full_graph"][3] == "4.92x"


def test_a_column_is_declared_once_and_every_table_has_it(answered: dict[str, Any]) -> None:
    """Text, files, schema and page read the field; nothing else lists columns."""
    rows = answer_of(answered).results
    for key, column in COLUMNS.items():
        (text,) = columns_of(rows, [key])
        assert (text.key, len(text.cells)) == (key, len(rows))
        assert column.of in FLAT
        assert key in FLAT or column.form in (Form.KNOBS, Form.TIME, Form.ENDS, Form.SHARES, Form.DIFFERENCE)
    told = schema_of("what-if")["$defs"]["JudgedRow"]["properties"]
    assert told["compute_s"]["description"] == COLUMNS["compute_s"].says
    shown = set(shown_keys(rows, wide=True))
    assert {key for key, column in COLUMNS.items() if column.table is Table.ASKED} & shown == set()
    assert shown >= set(shown_keys(rows))
