from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from gcnsim.report.figures.breakdown import Bar, Segment, breakdown_data, breakdown_figure, parts_data
from gcnsim.report.figures.style import LETTERS, LINE
from gcnsim.report.palette import DARK, RECOMMENDED, darkened
from gcnsim.timeline.breakdown import Parts
from tests.gcnsim.results.made import answer_of


def test_breakdown_by_value(payload: dict[str, Any]) -> None:
    data = breakdown_data(answer_of(payload))
    assert (data.unit, data.unit_s) == ("s", 1.0)
    total = 0.431 + 1.204 + 0.006
    sampled = payload["results"][1]["sampling_s"]
    assert data.bars[2] == Bar(
        "pipegcn",
        "",
        total,
        0.96 * total,
        1.05 * total,
        (Segment("compute", 0.431), Segment("exposed_comm", 1.204), Segment("exposed_other", 0.006)),
        (Segment("hidden_comm", 0.434), Segment("sampling", sampled)),
    )
    assert [bar.setting for bar in data.bars] == ["cache 25%", "cache 0%", "", ""]


def test_at_most_so_many_bars_the_recommended_among_them(answered: dict[str, Any]) -> None:
    answered["recommendation"]["row"] |= {"epoch_s": 9.0}
    bars = breakdown_data(answer_of(answered), 3).bars
    assert [(bar.method, bar.recommended) for bar in bars] == [("psc-gcn", False)] * 2 + [("psc-gcn", True)]
    assert len(breakdown_data(answer_of(answered)).bars) == 5


def test_bars_of_a_row_add_up_to_its_iteration(payload: dict[str, Any]) -> None:
    for bar in breakdown_data(answer_of(payload)).bars:
        assert sum(part.seconds for part in bar.parts) == pytest.approx(bar.iteration_s)


def test_parts_show_waits_by_their_cause() -> None:
    parts = Parts(1, 0.2, 0.01, 0.05, 0.02, 0.03, 0.0, 0.004, 0.005, 0.001, 0.1)
    data = parts_data([("worker 1", parts)])
    assert data.parts == [
        "compute",
        "handling",
        "network",
        "copies",
        "reduce",
        "exposed_sampling",
        "optimizer",
        "rest",
    ]
    assert data.beneath == ["hidden_comm"]
    bar = data.bars[0]
    assert bar.iteration_s == pytest.approx(0.32)
    assert (bar.seconds("network"), bar.seconds("waiting"), bar.seconds("hidden_comm")) == (0.05, 0.0, 0.1)
    assert (data.unit, bar.low_s) == ("ms", None)
    drawn = breakdown_figure(data).to_dict()["data"]
    assert [trace["name"] for trace in drawn[1:3]] == ["unpacking received rows", "row messages in flight"]
    assert drawn[2]["base"][0] == pytest.approx(210.0)
    assert "row messages in flight: 50.0 ms, 15.6 % of 320 ms" in drawn[2]["customdata"][0]


def test_breakdown_stacks_the_parts_and_hatches_what_adds_nothing(payload: dict[str, Any]) -> None:
    figure = breakdown_figure(breakdown_data(answer_of(payload))).to_dict()
    traces = {trace.get("name"): trace for trace in figure["data"]}
    compute, exposed, other = traces["compute"], traces["exposed communication"], traces["other"]
    hidden, whisker = traces["hidden communication (in parallel)"], traces[None]
    for i, row in enumerate(sorted(payload["results"], key=lambda row: row["iteration_s"])):
        assert exposed["base"][i] == compute["x"][i] == row["compute_s"]
        assert other["base"][i] + other["x"][i] == pytest.approx(row["iteration_s"])
        assert whisker["x"][i] + whisker["error_x"]["array"][i] == pytest.approx(row["iteration_s_high"])
        assert whisker["x"][i] - whisker["error_x"]["arrayminus"][i] == pytest.approx(row["iteration_s_low"])
    assert hidden["marker"]["pattern"]["shape"] == "/"
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time per iteration (s)"
    assert len(figure["layout"]["annotations"]) == len(payload["results"])
    assert not figure["layout"]["showlegend"]


def test_names_are_escaped_in_hover_text_and_labels(payload: dict[str, Any]) -> None:
    payload["results"][0]["method"] = "<b>x</b>"
    figure = breakdown_figure(breakdown_data(answer_of(payload))).to_dict()
    assert figure["layout"]["annotations"][-1]["text"] == "&lt;b&gt;x&lt;/b&gt;"
    assert "<b>x" not in str(figure["data"])


def test_the_recommended_setting_has_its_colour(answered: dict[str, Any]) -> None:
    data = breakdown_data(answer_of(answered))
    drawn = breakdown_figure(data).to_json()
    for text, color in ((drawn, RECOMMENDED), (darkened(drawn), DARK.recommended)):
        label = json.loads(text)["layout"]["annotations"][0]
        assert "(recommended)" in label["text"]
        assert label["font"]["color"] == color


def test_a_long_label_is_whole_in_lines_that_a_phone_shows(payload: dict[str, Any]) -> None:
    setting = "bns-gcn rate 0.1 on 1 x Standard_ND96amsr_A100_v4 (8 x a100-80)"
    data = breakdown_data(answer_of(payload))
    long = replace(data, bars=(replace(data.bars[0], method="3", setting=setting, recommended=True), *data.bars[1:]))
    figures = [breakdown_figure(each).to_dict()["layout"] for each in (data, long)]
    text = re.sub(r"</?(b|span[^>]*)>", "", figures[1]["annotations"][0]["text"])
    assert text.replace("<br>", " ") == f"3 (recommended) {setting}"
    assert max(map(len, text.split("<br>"))) <= LETTERS
    room = (figures[1]["height"] - 64) / (len(long.bars) + 0.2) * (1 - 0.16 - 0.53)
    assert room >= LINE * len(text.split("<br>")), "lines are between the bars of two kinds of hidden work"
