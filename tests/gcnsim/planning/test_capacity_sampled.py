"""Settings picked of a grid that is too large."""

from __future__ import annotations

import sys

import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError

QUESTION = {
    "device": ["t4", "a10g", "l4"],
    "gpus": [2, 4, 8],
    "iterations": 5,
    "tau": [0, 1],
    "epsilon": 1.0,
    "cache": ["0%", "10%", "30%"],
}


def test_a_grid_that_is_too_large_needs_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ScenarioError, match=r"--limit: 54 settings are more than 40; .*gcnsim\[recommend\]"):
        gcnsim.recommend(**QUESTION, limit=40)  # type: ignore[arg-type]


def test_the_same_question_picks_the_same_settings() -> None:
    pytest.importorskip("optuna")
    one, again = (gcnsim.recommend(**QUESTION, limit=20, processes=count) for count in (1, 2))  # type: ignore[arg-type]
    assert one.payload == again.payload
    search = one.told.search
    assert search.grid == 54
    assert 0 < search.settings <= 20
    assert "of 54, picked by their bounds" in search.text


def test_picking_all_finds_the_best() -> None:
    pytest.importorskip("optuna")
    question = QUESTION | {"device": ["t4", "a10g"], "gpus": [2, 4]}
    whole = gcnsim.recommend(**question)  # type: ignore[arg-type]
    picked = gcnsim.recommend(**question, limit=23)  # type: ignore[arg-type]
    assert picked.told.choice.seconds <= 2 * whole.told.choice.seconds
    assert picked.told.choice.cost is not None
    assert whole.told.choice.cost is not None
    assert picked.told.choice.cost >= whole.told.choice.cost * (1 - 1e-12)


@pytest.mark.parametrize("limit", [0, -1, True])
def test_limits_are_whole_numbers(limit: int) -> None:
    with pytest.raises(ScenarioError, match="--limit: "):
        gcnsim.recommend(**QUESTION, limit=limit)  # type: ignore[arg-type]
