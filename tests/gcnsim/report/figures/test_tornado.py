from __future__ import annotations

from typing import Any

from gcnsim.report.figures.tornado import Tornado, tornado_lines, tornado_of
from tests.gcnsim.results.made import answer_of


def test_the_longest_first_and_what_changes_nothing_by_name(answered: dict[str, Any]) -> None:
    tornado = tornado_of(answer_of(answered))
    assert [swing.name for swing in tornado.swings] == ["t4.spmm_efficiency", "cross_edges"]
    assert tornado.swings[0][1:] == ("60%", "40% to 80%", 0.31, 0.21, 0.5)
    assert tornado.still == ("ethernet.latency_s",)
    assert tornado.center_s == 0.25


def test_bars_share_one_scale_with_the_answer_at_the_mark(answered: dict[str, Any]) -> None:
    head, first, second, still = tornado_lines(tornado_of(answer_of(answered)), 60)
    assert max(map(len, (head, first, second))) <= 60
    place = first.index("|")
    assert second.index("|") == place
    assert 0 < first.count("#") > second.count("#") > 0
    assert still == "less than 0.1 % each: ethernet.latency_s"


def test_without_assumptions_there_are_no_lines(payload: dict[str, Any]) -> None:
    assert tornado_lines(tornado_of(answer_of(payload)), 80) == []
    assert tornado_lines(Tornado(1.0, (), ("x",)), 80) == ["no assumption changes the time by 0.1 % or more"]
