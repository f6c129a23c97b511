"""A validation and reproduced tables, as text."""

from __future__ import annotations

import copy
import csv
import re
from pathlib import Path
from typing import Any

import pytest

from gcnsim.evidence.validation import payload as plain
from gcnsim.report import evidence as calibration_report
from gcnsim.report import evidence as report
from gcnsim.report.evidence import render_reproduction, write_reproduction
from gcnsim.report.figures.style import LETTERS, LINE, label_lines
from gcnsim.report.figures.validation import errors_data, errors_figure, validation_data, validation_figure
from tests.gcnsim.evidence.made_calibration import calibration, of_gpu
from tests.gcnsim.evidence.made_validation import SETTING, four


@pytest.fixture
def found() -> dict[str, Any]:
    return plain(four(), None, ["a: cpu X, calibrated on Y"])


def test_lines_say_every_figure_in_words(found: dict[str, Any]) -> None:
    assert dict(report.validation_lines(found)) == {
        "runs": "4 of 3 configurations",
        "mean absolute error": "19.6 %",
        "median absolute error": "10.0 %",
        "90th percentile": "38.0 %",
        "largest": "50.0 %",
        "bias": "-9.6 %",
        "compute": "bias -4.8 %, 90th percentile 19.0 % of the iteration",
        "exposed communication": "bias +20.2 %, 90th percentile 30.0 % of the iteration",
        "the rest": "bias -25.0 %, 90th percentile 25.0 % of the iteration",
        "rank agreement (Kendall)": "0.33",
        "regret": "mean 81.8 %, largest 81.8 %",
        "interval coverage": "75.0 %",
        "repeats differ by": "mean 9.1 %, p90 9.1 %",
    }


def test_what_is_not_known_is_a_dash() -> None:
    lines = dict(report.validation_lines(plain(four()[:1], None, [])))
    assert [lines[name] for name in ("rank agreement (Kendall)", "regret", "repeats differ by")] == ["-"] * 3


def test_text_ends_with_what_to_mind(found: dict[str, Any]) -> None:
    text = report.render_validation(found)
    title = "Predicted against measured iterations, UNCALIBRATED: figures of the catalogue"
    assert text.startswith(f"{title}\n\n  runs ")
    assert text.endswith("\nnote: a: cpu X, calibrated on Y\nnote: 1 of 4 runs lie outside the calibrated settings\n")
    calm = report.render_validation(plain(four()[:1], None, []))
    assert "note" not in calm
    assert calm.endswith("  a\n")


def test_markdown_has_a_line_for_each_run(found: dict[str, Any]) -> None:
    lines = report.validation_markdown(found).splitlines()
    assert "| mean absolute error | 19.6 % |" in lines
    rows = [line for line in lines if f"| {SETTING} " in line]
    assert len(rows) == 4
    assert rows[2] == f"| b1 | {SETTING} | b | 2,000 | 1,000 | 900 to 1,100 | -50.0 % |"
    assert {line.count("|") for line in rows} == {8}


def test_text_has_the_milliseconds_of_each_run_and_the_interval(found: dict[str, Any]) -> None:
    lines = report.render_validation(found).splitlines()
    at = lines.index("Milliseconds per iteration; low to high is the prediction's 90 % interval")
    assert lines[at + 1].split() == ["run", "measured", "predicted", "low", "high", "error", "configuration"]
    assert lines[at + 2] == SETTING, "said once"
    assert lines[at + 3].split() == ["a1", "1,000", "1,100", "990", "1,210", "+10.0", "%", "a"]
    assert lines[at + 5].split() == ["b1", "2,000", "1,000", "900", "1,100", "-50.0", "%", "b", "(outside)"]


def test_csv_reads_back_every_number(found: dict[str, Any], tmp_path: Path) -> None:
    report.write_validation(tmp_path, found)
    rows = list(csv.DictReader((tmp_path / "validation.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4
    for read, row in zip(rows, found["rows"], strict=True):
        assert {name: str(value) for name, value in row.items()} == read
        assert float(read["predicted_s"]) == row["predicted_s"]


def test_the_figure_has_every_run_once(found: dict[str, Any]) -> None:
    exact, inside, beyond = validation_figure(validation_data(found)).data
    assert list(inside.x) == [1.0, 1.2, 3.0]
    assert list(inside.y) == [1.1, 1.1, 3.3]
    assert (list(beyond.x), list(beyond.y)) == ([2.0], [1.0])
    assert list(inside.error_y.array) == pytest.approx([0.11, 0.11, 0.33])
    assert list(inside.error_y.arrayminus) == pytest.approx([0.11, 0.11, 0.33])
    assert beyond.name == "outside its interval (1)"
    assert exact.x == exact.y
    assert exact.x[0] <= 0.9
    assert exact.x[1] >= 3.63


def test_an_interval_that_reaches_down_to_nothing_is_drawn(found: dict[str, Any]) -> None:
    found["rows"][0]["low_s"] = 0.0
    data = validation_data(found)
    times = [row[name] for row in found["rows"] for name in ("measured_s", "predicted_s", "low_s", "high_s")]
    assert data.ends == (min(time for time in times if time), max(time for time in times if time))
    assert validation_figure(data).to_json()


def test_hover_text_is_text_whatever_a_run_is_called(found: dict[str, Any]) -> None:
    found = copy.deepcopy(found)
    found["rows"][0] |= {"setting": "<a href='x'>s</a>", "configuration": "<b>c</b>"}
    texts = [
        text
        for trace in validation_figure(validation_data(found)).data
        for text in map(str, trace.customdata if trace.customdata is not None else ())
    ]
    assert any(text.startswith("&lt;a href=&#x27;x&#x27;&gt;s&lt;/a&gt;<br>&lt;b&gt;c&lt;/b&gt;<br>") for text in texts)
    assert not any("<a" in text or "<b>" in text for text in texts)


def test_a_calibration_in_words() -> None:
    text = calibration_report.render_calibration(of_gpu(error=0.043), "c.json")
    lines = text.splitlines()
    assert lines[0] == "c.json: t4 on Xeon, measured in 1.0 minutes"
    assert any(line.split()[:2] == ["device.memory_bandwidth", "20GB/s"] for line in lines)
    assert any(line.split()[:3] == ["graph", "feed", "1.25"] for line in lines)
    assert "  sockets: 5.0 %, 10.0 %, -1.0 % of 12 points" in lines
    assert lines[-1] == "90 % interval of a prediction: +-4.3 %"
    assert text.endswith("\n")
    assert "90 % interval" not in calibration_report.render_calibration(calibration(), "c.json")


def test_errors_by_configuration_by_value(found: dict[str, Any]) -> None:
    data = errors_data(found)
    assert [item.configuration for item in data.judged] == ["b", "c", "a"]
    assert data.judged[2].errors == pytest.approx((0.1, 1.1 / 1.2 - 1))
    assert data.judged[2].mean == pytest.approx((0.1 + 1.1 / 1.2 - 1) / 2)
    assert [item.covered for item in data.judged] == [(False,), (True,), (True, True)]
    figure = errors_figure(data)
    inside, outside = figure.data[-2:]
    assert list(outside.x) == pytest.approx([-50.0])
    assert list(inside.x) == pytest.approx([10.0, 10.0, 100 * (1.1 / 1.2 - 1)])
    assert "configuration" not in str(figure.layout.title.text)


def test_a_long_configuration_is_whole_in_lines_that_a_phone_shows(found: dict[str, Any]) -> None:
    long = "full-graph, 6 workers on 3 servers of 2, transport direct, bandwidth 15Gbps, tau 1, epsilon 0.1"
    rows = [found["rows"][0] | {"configuration": each} for each in ("a", long)]
    drawn = errors_figure(errors_data(found | {"rows": rows})).to_dict()
    texts = [re.sub(r"<[^b>]*>", "", each["text"]) for each in drawn["layout"]["annotations"]]
    whole = next(text for text in texts if "<br>" in text)
    assert long in whole.replace("<br>", " ")
    assert max(map(len, whole.split("<br>"))) <= LETTERS
    labels = drawn["layout"]["annotations"]
    assert labels[1]["y"] - labels[0]["y"] > LINE * len(whole.split("<br>")), "no label is on another's bar"


def test_a_head_longer_than_a_line_stands_alone() -> None:
    assert label_lines("x" * (LETTERS + 9), "of it") == ["", "of it"]


def cell(row: str, predicted: float | None, **more: Any) -> dict[str, Any]:
    content = {"paper": "A", "table": "T1", "row": row, "metric": "time", "published": 2.0, "reason": ""}
    numbers = {"predicted": predicted, "low": None, "high": None, "error": None}
    return content | numbers | more


def errors(cells: int, **nulls: Any) -> dict[str, Any]:
    numbers = {"median": 0.125, "largest": -0.5, "within": 0.75, "covered": None}
    return {"cells": cells, "predicted": cells - 1, "judged": cells - 2, "nulls": nulls} | numbers


PAYLOAD: dict[str, Any] = {
    "cells": [
        cell("one", 1.23456, low=1.0, high=2.5, error=-0.38272),
        cell("two", 20000.0),
        cell("three", None, reason="no law"),
        cell("four", None, reason="no law"),
        cell("five", None, paper="B", table="T2", reason="no figure"),
    ],
    "papers": {"A": errors(4, size={"cells": 2, "null": 0.5, "ours": 0.125}), "B": errors(3, size=None)},
    "all": errors(7, size={"cells": 2, "null": 0.5, "ours": 0.125}) | {"held": {"judged": 1, "median": 0.25}},
    "platforms": {
        "box": {
            "spmm_efficiency": 0.4,
            "stream_efficiency": None,
            "staging_bandwidth": 1.25e9,
            "rate_beside_copies": None,
        }
    },
}

WHOLE = """\
A
table  row  metric  predicted  low  high  published    error
T1     one  time        1.235    1   2.5          2  -38.3 %
T1     two  time        2e+04                     2

paper            cells  predicted  judged  median error  largest  within 25 %  in interval
A                    4          3       2        12.5 %  -50.0 %       75.0 %            -
B                    3          2       1        12.5 %  -50.0 %       75.0 %            -
all                  7          6       5        12.5 %  -50.0 %       75.0 %            -
all, not fitted                         1        25.0 %  -50.0 %       75.0 %            -
6 of 7 cells are predicted (85.7 %)

paper  null model  cells  its median error    ours
A      size            2            50.0 %  12.5 %
all    size            2            50.0 %  12.5 %

platform  SpMM efficiency  column by column  host side of a worker  rate beside transfers
box                40.0 %                 -              1.25 GB/s                      -
"""


def test_the_whole_text() -> None:
    assert render_reproduction(PAYLOAD) == WHOLE


def test_every_cell_is_a_line_of_csv(tmp_path: Path) -> None:
    write_reproduction(tmp_path / "cells.csv", PAYLOAD)
    assert (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines() == [
        "paper,table,row,metric,predicted,low,high,published",
        "A,T1,one,time,1.23456,1.0,2.5,2.0",
        "A,T1,two,time,20000.0,,,2.0",
        "A,T1,three,time,,,,2.0",
        "A,T1,four,time,,,,2.0",
        "B,T2,five,time,,,,2.0",
    ]
