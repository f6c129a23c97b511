from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report import (
    BandwidthCurve,
    bandwidth_figure,
    bandwidth_info,
    breakdown_figure,
    breakdown_info,
)
from gcnsim.report.palette import RECOMMENDED, SETTINGS
from tests.gcnsim.results.made import answer_of


def test_breakdown_stacks_the_parts_and_hatches_the_hidden_one(payload: dict[str, Any]) -> None:
    figure = breakdown_figure(breakdown_info(answer_of(payload))).to_dict()
    compute, exposed, other, hidden, whisker = figure["data"]
    for i, row in enumerate(sorted(payload["results"], key=lambda row: row["iteration_s"])):
        assert exposed["base"][i] == compute["x"][i] == row["compute_s"]
        assert other["base"][i] + other["x"][i] == pytest.approx(row["iteration_s"])
        assert whisker["x"][i] + whisker["error_x"]["array"][i] == pytest.approx(row["iteration_s_high"])
        assert whisker["x"][i] - whisker["error_x"]["arrayminus"][i] == pytest.approx(row["iteration_s_low"])
    assert hidden["marker"]["pattern"]["shape"] == "/"
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time per iteration (s)"
    assert len(figure["layout"]["annotations"]) == len(payload["results"])
    assert not figure["layout"]["showlegend"]


def test_bandwidth_draws_a_band_and_a_line_per_method_and_marks_the_question(
    payload: dict[str, Any], curve: BandwidthCurve
) -> None:
    figure = bandwidth_figure(bandwidth_info(curve, answer_of(payload))).to_dict()
    lines = [trace for trace in figure["data"] if trace.get("name")]
    assert [trace["name"] for trace in lines] == ["full-graph", "pipegcn", "psc-gcn"]
    assert len(figure["data"]) == 2 * len(lines)
    assert tuple(lines[2]["y"]) == curve.series[2].seconds
    assert figure["layout"]["xaxis"]["type"] == "log"
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [1.875e9]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["15 Gbps"]
    assert "15 Gbps" in lines[0]["customdata"][4]


def test_names_are_escaped_in_hover_text_and_labels(payload: dict[str, Any]) -> None:
    payload["results"][0]["method"] = "<b>x</b>"
    figure = breakdown_figure(breakdown_info(answer_of(payload))).to_dict()
    assert figure["layout"]["annotations"][-1]["text"] == "&lt;b&gt;x&lt;/b&gt;"


def test_the_recommended_setting_has_the_same_colour_in_both_figures(
    answered: dict[str, Any], curve: BandwidthCurve
) -> None:
    label = breakdown_figure(breakdown_info(answer_of(answered))).to_dict()["layout"]["annotations"][0]
    assert "(recommended)" in label["text"]
    assert label["font"]["color"] == RECOMMENDED
    marked = (curve.series[0], curve.series[1]._replace(recommended=True), curve.series[2])
    lines = bandwidth_figure(bandwidth_info(curve._replace(series=marked), answer_of(answered))).to_dict()["data"][1::2]
    assert [line["line"]["color"] == RECOMMENDED for line in lines] == [False, True, False]
    assert [line["line"]["dash"] for line in lines] == [SETTINGS[0][1], "solid", SETTINGS[1][1]]
