from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.figures.tornado import Swing, Tornado, tornado_data, tornado_figure, tornado_lines
from gcnsim.report.palette import LIGHT
from tests.gcnsim.results.made import answer_of


def test_the_longest_first_and_what_changes_nothing_by_name(answered: dict[str, Any]) -> None:
    tornado = tornado_data(answer_of(answered))
    assert [swing.name for swing in tornado.swings] == ["t4.spmm_efficiency", "cross_edges"]
    assert tornado.swings[0][1:] == ("60%", "40% to 80%", 0.31, 0.21, 0.5, None)
    assert tornado.still == ("ethernet.latency_s",)
    assert tornado.center_s == 0.25


def test_bars_share_one_scale_with_the_answer_at_the_mark(answered: dict[str, Any]) -> None:
    lines = tornado_lines(tornado_data(answer_of(answered)), 60)
    (first, second), still = (line for line in lines if "|" in line), lines[-1]
    assert max(map(len, lines)) <= 60
    place = first.index("|")
    assert second.index("|") == place
    assert 0 < first.count("#") > second.count("#") > 0
    assert still == "less than 0.1 % each: ethernet.latency_s"


def test_without_assumptions_there_are_no_lines(payload: dict[str, Any]) -> None:
    assert tornado_lines(tornado_data(answer_of(payload)), 80) == []
    assert tornado_lines(Tornado(1.0, (), ("x",)), 80) == ["no assumption changes the time by 0.1 % or more"]


def test_the_time_and_the_choice_have_each_what_to_measure_first() -> None:
    time = Swing("gpu", "1", "0.5 to 2", 0.9, 0.3, 0.8, 0.1)
    own, rival = Swing("nic", "1", "0.5 to 2", 0.6, 0.4, 0.2, 0.4), Swing("host", "1", "0.5 to 2", 0.5, 0.5, 0.0, 0.4)

    def text(*swings: Swing) -> str:
        return " ".join(" ".join(tornado_lines(Tornado(0.5, swings, ()), 100)).split())

    assert "to know the time, measure gpu; to be sure of the choice, measure nic: it decides in 40% of" in text(
        time, own
    )
    assert "host (of rivals) 1" in text(time, rival)
    assert "to be sure of the choice, measure host: it decides in 40% of the draws" in text(time, rival)
    both = "to know the time and to be sure of the choice, measure gpu: it moves the time most and decides in 10% of"
    assert both in text(time)
    assert "(of rivals)" not in text(time, own)


def test_the_figure_has_a_bar_for_each_swing() -> None:
    swings = (Swing("gpu", "1", "0.5 to 2", 0.9, 0.3, 0.8), Swing("knob tau", "1", "0 to 2", 0.4, 0.6, None))
    figure = tornado_figure(Tornado(0.5, swings, ())).to_dict()
    assert [trace["base"][0] for trace in figure["data"]] == pytest.approx([300.0, 400.0])
    assert [trace["x"][0] for trace in figure["data"]] == pytest.approx([600.0, 200.0])
    assert [trace["marker"]["color"] for trace in figure["data"]] == [LIGHT.assumption, LIGHT.compute]
    assert figure["layout"]["shapes"][0]["x0"] == pytest.approx(500.0)
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time (ms)"
