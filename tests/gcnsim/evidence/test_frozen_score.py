"""The frozen score: what moved and what was lost is said, paper by paper."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.yaml_files import read_yaml
from gcnsim.evidence.frozen_score import ALL, FILE, MOVED, drift

FROZEN: dict[str, dict[str, Any]] = read_yaml(FILE)


def payload(**changes: dict[str, Any]) -> dict[str, Any]:
    """The frozen score, with changed figures of some papers."""
    found = {name: dict(figures) | changes.get(name, {}) for name, figures in FROZEN.items()}
    return {"all": found.pop(ALL), "papers": found}


def test_the_frozen_score_itself_has_not_moved() -> None:
    assert drift(payload()) == []


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_median_that_moves_by_two_points_is_told_better_or_worse(sign: int) -> None:
    before = FROZEN["pipegcn"]["median"]
    assert drift(payload(pipegcn={"median": before + sign * MOVED * 0.9})) == []
    (line,) = drift(payload(pipegcn={"median": before + sign * MOVED * 1.1}))
    assert line.startswith("pipegcn: median error ")
    assert line.endswith(f"{100 * before:.1f} % in the frozen score")


@pytest.mark.parametrize("name", ["predicted", "judged"])
def test_a_lost_cell_is_told_and_a_new_one_is_not(name: str) -> None:
    before = FROZEN["sancus"][name]
    assert drift(payload(sancus={name: before - 1})) == [
        f"sancus: {before - 1} cells {name}, {before} in the frozen score"
    ]
    assert drift(payload(sancus={name: before + 1})) == []


def test_papers_that_were_not_asked_for_are_not_compared_nor_all_together() -> None:
    some = payload(all={"predicted": 1, "judged": 1, "median": 1.0})
    del some["papers"]["pipegcn"]
    assert drift(some) == []
