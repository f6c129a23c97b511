"""The frozen score of published tables: what a change may not move without a word.

`gcnsim/data/frozen_score.yaml` holds the score of the last accepted version, by paper: how many cells are predicted,
how many are judged, and their median absolute error. Who moves a score on purpose writes the new figures there, and a
line into docs/reproduce.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gcnsim.core.yaml_files import read_yaml

FILE: Final = Path(__file__).resolve().parent.parent / "data" / "frozen_score.yaml"

MOVED: Final = 0.02
"""A median that differs by this much has moved."""

ALL: Final = "all"
"""The name of all papers together."""


def drift(payload: Mapping[str, Any]) -> list[str]:
    """One line for each score of `payload` (schema `gcnsim.reproduction/1`) that moved or lost a cell; none: as it was.

    Papers that `payload` lacks are not compared, and all together only where no paper is missing.
    """
    frozen: Mapping[str, Mapping[str, Any]] = read_yaml(FILE)
    every = payload["papers"].keys() >= frozen.keys() - {ALL}
    found = {**payload["papers"], **({ALL: payload["all"]} if every else {})}
    return [f"{name}: {text}" for name in frozen if name in found for text in _differences(frozen[name], found[name])]


def _differences(frozen: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    lost = [
        f"{found[name]} cells {name}, {frozen[name]} in the frozen score"
        for name in ("predicted", "judged")
        if found[name] < frozen[name]
    ]
    before, now = frozen["median"], found["median"]
    if now is None or abs(now - before) < MOVED:
        return lost
    return [*lost, f"median error {100 * now:.1f} %, {100 * before:.1f} % in the frozen score"]
