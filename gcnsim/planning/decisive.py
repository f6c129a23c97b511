"""Which assumption decides between settings: how often its value makes the choice win or lose in the joint draws.

In each draw, one assumption alone is put back to its stated value. Each setting's time changes as between the ends of
that assumption's range (first order in the logarithms). The draws are those already made; nothing is simulated. It is
the total effect of the assumption on the decision: alone and together with others (Saltelli et al., "Global Sensitivity
Analysis", 2008, section 1.2.8), with the stated value in place of another draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.planning.candidate import Candidate, canonical
from gcnsim.planning.certainty import assumptions_by_name
from gcnsim.planning.recommend import NEAR, Choice
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import Scenario
from gcnsim.simulation.assumed import other_paths, path_by_draw
from gcnsim.simulation.open_assumptions import draw_positions

LEAST: Final = 3
"""Draws below which a share is noise: effects are of first order."""


def decisive(studies: StudyCache, choice: Choice) -> dict[str, tuple[float, Scenario]]:
    """Return, per assumption, the share of the joint draws in which the choice wins only with or only without it, and
    a setting that assumes it, of those that decide in LEAST draws or more.

    The choice wins if it is the fastest of its pool or within NEAR of it.
    """
    chosen, draws = choice.estimate, choice.wins.size
    moved = {rival.scenario: _moved(studies, rival, draws) for rival in (*choice.pool, chosen)}
    own, still = moved[chosen.scenario], np.ones(draws)
    shares = {}
    for name, setting in {name: setting for setting, effects in moved.items() for name in effects}.items():
        back = [
            chosen.epochs_over(rival) * moved[rival.scenario].get(name, still) / own.get(name, still) <= 1 + NEAR
            for rival in choice.pool
        ]
        changed = np.all(back, axis=0) != choice.wins
        if changed.sum() >= LEAST:
            shares[name] = float(changed.mean()), setting
    return shares


def _moved(studies: StudyCache, candidate: Candidate, draws: int) -> Mapping[str, FloatArray]:
    """Return, per assumption, the ratio of a setting's time in each draw to that with the stated value,
    float64[draws].
    """
    scenario = canonical(candidate.scenario)
    effects, known = studies.factors(candidate.scenario), assumptions_by_name(scenario)
    paths = other_paths(scenario)
    taken = path_by_draw(paths, studies.seed, draws)
    places = {path.name: np.where(taken == index, -1.0, 0.0) for index, path in enumerate(paths)}
    found = {}
    for name, ends in effects.alone.items():
        shared = known[name].shared if name in known else name
        place = places[name] if name in places else draw_positions(name, shared, studies.seed, draws)
        low, high = effects.scaled(candidate.iteration_s, np.array(ends)) / candidate.iteration_s
        found[name] = np.asarray(np.where(place < 0, low, high) ** np.abs(place))
    return found
