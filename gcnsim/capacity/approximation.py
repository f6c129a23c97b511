"""Accuracy is never traded silently: what was held fixed, and what allowing more approximation would bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gcnsim.capacity.goal import Goal
from gcnsim.capacity.machines import Machines, Permitted
from gcnsim.capacity.search import Option, Setting, simulate
from gcnsim.errors import ScenarioError
from gcnsim.planning import StudyCache
from gcnsim.planning.candidate import central
from gcnsim.planning.recommend import NEAR
from gcnsim.planning.study_cache import canonical
from gcnsim.results import Held, Relaxed
from gcnsim.scenario import Scenario, setting_text

RATES: Final = (0.5, 0.1)
TAUS: Final = (2,)


def held(
    studies: StudyCache, chosen: Option, machines: Machines, permitted: Permitted, goal: Goal, *, on_record: bool
) -> Held:
    """The rule, and the fastest setting of the choice's machine for each step that would relax it. on_record: whether
    recorded iterations said what is accurate enough."""
    text = f"{permitted.text}, or settings whose iterations to the accuracy are known" if on_record else permitted.text
    text += f"; of a machine's settings within {100 * NEAR:g} % of the best time the least approximate is taken"
    found = [
        told
        for option, settings in _steps(studies, chosen, machines, permitted)
        if (told := _relaxed(studies, chosen, option, settings, goal)) is not None
    ]
    return Held(text, permitted.least_epsilon, permitted.most_tau, tuple(found))


def _steps(
    studies: StudyCache, chosen: Option, machines: Machines, permitted: Permitted
) -> Iterator[tuple[str, list[Scenario]]]:
    """Options that allow more, with the settings on the choice's machine that each adds."""
    for rate in RATES:
        if rate < permitted.least_epsilon:
            more = replace(machines, rates=(rate,))
            yield f"--least-epsilon {rate:g}", _added(studies, chosen, more, replace(permitted, least_epsilon=rate))
    for tau in TAUS:
        if tau > permitted.most_tau:
            more = replace(machines, taus=(tau,))
            yield f"--most-tau {tau}", _added(studies, chosen, more, replace(permitted, most_tau=tau))


def _added(studies: StudyCache, chosen: Option, machines: Machines, permitted: Permitted) -> list[Scenario]:
    base = chosen.scenario
    same = canonical(base)
    every = machines.settings(base, base.cluster)
    kept = [each for each in every if permitted.allows(each) and canonical(each) != same]
    allowed = []
    for each in kept:
        try:
            studies.check(each)
            allowed.append(each)
        except ScenarioError:
            continue
    return [each for each in allowed if studies.holds(each)]


def _relaxed(studies: StudyCache, chosen: Option, option: str, settings: list[Scenario], goal: Goal) -> Relaxed | None:
    """The fastest of `settings` beside the choice; None where there is none."""
    if not settings:
        return None
    work, rate = chosen.work, chosen.setting.rate
    found = simulate(studies, [Setting(each, work, 0.0, rate) for each in settings])
    best = min(found, key=lambda each: each.seconds)
    saved = 1.0 - best.candidate.over(chosen.candidate)
    now = 1.0 - best.seconds / chosen.seconds
    low, high = central(saved)
    cost = None if work.per_hour is None else best.seconds * work.per_hour / 3600.0
    name = setting_text(best.scenario.method)
    return Relaxed(option, name, best.seconds, cost, now, min(low, now), max(high, now), best.meets(goal))
