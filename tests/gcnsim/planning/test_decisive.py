"""Which assumption decides between settings, against settings whose times are products of known effects."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.planning import decisive as module
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.decisive import decisive
from gcnsim.planning.recommend import NEAR, Choice
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation.propagation import TimeFactors

DRAWS = 64
PLACES = {
    "network": np.linspace(-1, 1, DRAWS),
    "compute": np.random.default_rng(1).permutation(np.linspace(-1, 1, DRAWS)),
}


def scenario(method: str) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "method": {"name": method}}, "test")


def setting(method: str, seconds: float, ends: dict[str, tuple[float, float]]) -> tuple[Candidate, TimeFactors]:
    """A setting whose time in a draw is its time at the stated values times the effect of each assumption."""
    times = np.full(DRAWS, seconds)
    for name, (low, high) in ends.items():
        times *= np.where(PLACES[name] < 0, low, high) ** np.abs(PLACES[name])
    result: Any = SimpleNamespace(per_epoch=1, metrics=SimpleNamespace(iteration_s=seconds))
    return Candidate(scenario(method), result, times, None), TimeFactors(times / seconds, ends, seconds, np.ones(DRAWS))


def shares(monkeypatch: pytest.MonkeyPatch, *settings: tuple[Candidate, TimeFactors]) -> dict[str, float]:
    monkeypatch.setattr(module, "draw_positions", lambda name, shared, seed, draws: PLACES[name])
    factors = {candidate.scenario: effects for candidate, effects in settings}
    studies: Any = SimpleNamespace(seed=0, factors=factors.__getitem__)
    pool = tuple(candidate for candidate, _ in settings)
    wins = np.all([pool[0].times / rival.times <= 1 + NEAR for rival in pool], axis=0)
    return {name: share for name, (share, _) in decisive(studies, Choice(pool[0], pool, wins, "")).items()}


def test_what_moves_one_setting_past_the_other_decides_and_what_moves_both_alike_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = {"compute": (0.5, 2.0)}
    chosen, rival = setting("pipegcn", 1.0, both | {"network": (0.8, 1.5)}), setting("full-graph", 1.2, both)
    found = shares(monkeypatch, chosen, rival)
    # 1.5^x = 1.03 * 1.2 at x = log(1.236) / log(1.5): in the draws beyond it, the network alone makes the rival win.
    beyond = np.log(1.236) / np.log(1.5)
    assert found == {"network": float((PLACES["network"] > beyond).mean())}


def test_an_assumption_of_the_rival_alone_decides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shares(monkeypatch, setting("pipegcn", 1.0, {}), setting("full-graph", 1.2, {"network": (0.5, 1.5)}))
    beyond = np.log(1.2 * 1.03) / np.log(2.0)
    assert found == {"network": float((PLACES["network"] < -beyond).mean())}


def test_an_answer_says_what_to_measure_to_be_sure_of_its_setting() -> None:
    answer = gcnsim.what_if(gpus=4, bandwidth="25Gbps", processes=1)
    certainty = answer.payload["certainty"]
    by_name = {effect["name"]: effect.get("decides", 0.0) for effect in certainty["assumptions"]}
    first = max(by_name, key=lambda name: by_name[name])
    assert 0 < by_name[first] <= 1
    from gcnsim.report.answer.table import render_table

    text = " ".join(render_table(answer.told, assumptions=True).split())
    said = re.search(
        r"to be sure of the choice, measure (\S+): it (?:moves the time most and )?decides in (\d+)%", text
    )
    assert said is not None
    assert said.groups() == (first, f"{100 * by_name[first]:.0f}")
