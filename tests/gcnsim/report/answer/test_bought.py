"""What a bought machine costs, as one line for each machine."""

from __future__ import annotations

from typing import Any, Final

import gcnsim
from gcnsim.hardware import PriceBook
from gcnsim.report.answer.table import energy_of, own_text

BOUGHT: Final[dict[str, Any]] = {
    "electricity": "0.3USD/kWh",
    "life_years": 4,
    "in_use": "60%",
    "purchase": "12000USD",
    "gpus": 4,
    "processes": 1,
}


def bought_lines(answer: Any) -> dict[str, str]:
    return {label: text for label, text in energy_of(answer.told) if label.endswith(", bought")}


def test_each_machine_of_one_price_has_its_line() -> None:
    answer = gcnsim.what_if(**BOUGHT, method="pipegcn", device=["mi60", "mi210"])
    lines = bought_lines(answer)
    assert {*lines} == {"pipegcn (mi60), bought", "pipegcn (mi210), bought"}
    assert len({*lines.values()}) == 2


def test_a_machine_is_bought_for_its_recommended_setting() -> None:
    question: dict[str, Any] = {"iterations_needed": 200_000, "interruptions": 0.3, "checkpoint": "30s"}
    question |= {"restart": "5min", "prices": PriceBook.of(pricing="spot")}
    for methods in (["pipegcn", "full-graph"], ["full-graph", "pipegcn"]):
        answer = gcnsim.what_if(**BOUGHT, **question, method=methods)
        report = answer.told.energy
        assert report is not None
        owned = {row.method: found.own for row, found in zip(answer.told.results, report.rows, strict=True)}
        texts = {name: own_text(own, report) for name, own in owned.items() if own is not None}
        assert len({*texts.values()}) == 2, "the methods' interruptions differ"
        chosen = answer.told.recommendation.row.method
        (line,) = bought_lines(answer).values()
        assert line == texts[chosen]
