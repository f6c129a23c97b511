"""A validation as text, Markdown, CSV and a figure."""

from __future__ import annotations

import copy
import csv
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.evidence.validation import payload as plain
from gcnsim.report import evidence as calibration_report
from gcnsim.report import evidence as report
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


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0"), (4.2e-5, "0.0420"), (0.00124, "1.24"), (0.184, "184"), (12.3456, "12,346")]
)
def test_milliseconds_have_three_digits_and_no_exponent(seconds: float, shown: str) -> None:
    row = {"run": "r", "setting": SETTING, "configuration": "c", "error": 0.1, "covered": True, "outside": ""}
    times = dict.fromkeys(("measured_s", "predicted_s", "low_s", "high_s"), seconds)
    (line,) = (
        text
        for text in report.render_validation({**plain(four(), None, []), "rows": [row | times]}).splitlines()
        if text.endswith("  c")
    )
    assert line.split()[1:5] == [shown] * 4


def test_csv_reads_back_every_number(found: dict[str, Any]) -> None:
    rows = list(csv.DictReader(report.validation_csv(found).splitlines()))
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


def test_files_are_written_whole(found: dict[str, Any], tmp_path: Path) -> None:
    report.write_validation(tmp_path, found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["validation.csv", "validation.html", "validation.md"]
    assert (tmp_path / "validation.md").read_text() == report.validation_markdown(found)
    assert (tmp_path / "validation.csv").read_text() == report.validation_csv(found)
    assert 'gcnsim.draw("validation"' in (tmp_path / "validation.html").read_text()
    with pytest.raises(FileError, match="cannot be written"):
        report.write_validation(tmp_path / "none", found)


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


def test_of_many_configurations_the_worst_are_drawn(found: dict[str, Any]) -> None:
    row = found["rows"][0]
    rows = [row | {"configuration": f"<b>{k}", "error": 0.01 * k} for k in range(30)]
    data = errors_data(found | {"rows": rows})
    assert (len(data.judged), data.left_out) == (24, 6)
    assert data.judged[0].configuration == "<b>29"
    assert "<b>29" not in errors_figure(data).to_json()
