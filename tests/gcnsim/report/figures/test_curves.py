from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.figures.curves import Curve, MeasuredPoint, Series, curve_data, curve_figure, curve_of_rows
from tests.gcnsim.results.made import answer_of

TWO = Series("psc-gcn", (1.25e8, 1.25e9), (0.09, 0.03), (0.08, 0.02), (0.1, 0.04))


def test_curve_by_value() -> None:
    data = curve_data(Curve("bandwidth", (TWO,), requested=(2.5e8, 1.875e9)))
    assert data.requested == (2.5e8, 1.875e9)
    assert (data.unit, data.log_time) == ("ms", False)
    assert data.x_ticks.text == ("1", "2", "5", "10")
    assert data.x_ticks.at == pytest.approx((1.25e8, 2.5e8, 6.25e8, 1.25e9))


def test_time_axis_turns_logarithmic_where_the_values_span_much(curve: Curve) -> None:
    data = curve_data(curve)
    assert data.log_time
    assert data.y_ticks.text == ("0.5", "1", "2", "5", "10", "20")


def test_no_more_than_six_lines_the_recommended_among_them() -> None:
    series = [TWO._replace(name=f"s{k}", recommended=k == 8) for k in range(9)]
    data = curve_data(Curve("bandwidth", tuple(series)))
    assert [item.name for item in data.series] == ["s0", "s1", "s2", "s3", "s4", "s8"]
    assert data.left_out == ("s5", "s6", "s7")


def test_rows_make_a_line_for_each_setting_that_is_one_but_for_the_axis(payload: dict[str, Any]) -> None:
    for index, row in enumerate(payload["results"]):
        row |= {"method": "psc-gcn", "tau": index % 2, "gpus": 3 * (1 + index // 2), "cache_fraction": 0.0}
        row["epsilon"] = 0.1
    rows = answer_of(payload).results
    curve = curve_of_rows(rows, "gpus")
    named = {series.name: series for series in curve.series}
    assert set(named) == {"tau 0", "tau 1"}
    assert named["tau 0"].values == (3.0, 6.0)
    assert named["tau 0"].seconds == (rows[0].iteration_s, rows[2].iteration_s)
    assert named["tau 1"].high == (rows[1].iteration_s_high, rows[3].iteration_s_high)
    fastest = [min(series.seconds) for series in curve.series]
    assert fastest == sorted(fastest)


def test_a_line_names_the_knobs_in_which_lines_of_its_method_differ(payload: dict[str, Any]) -> None:
    settings = [("psc-gcn", 1, 0.1), ("psc-gcn", 2, 0.1), ("full-graph", 0, 1.0), ("pipegcn", 1, 1.0)]
    for row, (method, tau, epsilon) in zip(payload["results"], settings, strict=True):
        row |= {"method": method, "tau": tau, "epsilon": epsilon, "rate": 1.0, "cache_fraction": 0.0, "gpus": 6}
    curve = curve_of_rows(answer_of(payload).results, "gpus")
    names = {series.name for series in curve.series}
    assert names == {"psc-gcn, tau 1", "psc-gcn, tau 2", "full-graph", "pipegcn"}


def test_a_band_and_a_line_per_setting_and_the_question_is_marked(curve: Curve) -> None:
    figure = curve_figure(curve_data(curve)).to_dict()
    lines = [trace for trace in figure["data"] if trace.get("name")]
    assert [trace["name"] for trace in lines] == ["full-graph", "pipegcn", "psc-gcn"]
    assert len(figure["data"]) == 2 * len(lines)
    assert tuple(lines[2]["y"]) == curve.series[2].seconds
    assert figure["layout"]["xaxis"]["type"] == "log"
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [1.875e9]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["15 Gbps"]
    assert "15 Gbps" in lines[0]["customdata"][4]


def test_measured_runs_are_points() -> None:
    runs = (MeasuredPoint("run <1>", 2.5e8, 0.07), MeasuredPoint("run 2", 1.25e9, 0.035))
    points = curve_figure(curve_data(Curve("bandwidth", (TWO,), runs))).to_dict()["data"][-1]
    assert (points["name"], points["mode"]) == ("measured", "markers")
    assert tuple(points["x"]) == (2.5e8, 1.25e9)
    assert tuple(points["y"]) == pytest.approx((70.0, 35.0))
    assert points["customdata"][0] == "measured: run &lt;1&gt; at 2 Gbps<br>70.0 ms"
