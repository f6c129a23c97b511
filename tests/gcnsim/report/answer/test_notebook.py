from __future__ import annotations

from typing import Any

from gcnsim.report.answer.table import render_notebook
from tests.gcnsim.results.made import answer_of


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
