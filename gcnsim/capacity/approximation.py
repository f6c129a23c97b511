"""Accuracy is never traded silently: what the choice would be by a stricter and by a laxer rule, on its machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gcnsim.capacity.goal import Goal
from gcnsim.capacity.search import Option, Setting, simulate
from gcnsim.errors import ScenarioError
from gcnsim.planning import Rule, StudyCache
from gcnsim.planning.candidate import central
from gcnsim.planning.recommend import mildest, rate_of, shortlist
from gcnsim.planning.study_cache import canonical
from gcnsim.results import OtherRule
from gcnsim.scenario import Scenario, setting_text

RATES: Final = (1.0, 0.5, 0.1)
TAUS: Final = (0, 1, 2)


def other_rules(studies: StudyCache, chosen: Option, rule: Rule, goal: Goal) -> tuple[OtherRule, ...]:
    """What would be chosen on the choice's machine by each rule that is a step stricter, where the choice breaks it, or
    a step laxer."""
    if chosen.work.training is not None:
        # How many iterations another method needs is not known here.
        rule = replace(rule, methods=(chosen.scenario.method.name,))
    found = ((option, _candidates(studies, chosen, other)) for option, other in _rules(chosen.scenario, rule))
    reports = [_report(studies, chosen, option, settings, goal) for option, settings in found if settings]
    return tuple(each for each in reports if each is not None)


def _rules(scenario: Scenario, rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rules, each with the option that states it."""
    rate, tau = rate_of(scenario.method), scenario.method.tau
    for least in RATES:
        if rate < least or least < rule.min_sampling_rate:
            yield f"--min-sampling-rate {least:g}", replace(rule, min_sampling_rate=least)
    for most in TAUS:
        if most < tau or most > rule.max_staleness:
            yield f"--max-staleness {most}", replace(rule, max_staleness=most)


def _candidates(studies: StudyCache, chosen: Option, rule: Rule) -> list[Scenario]:
    """What is worth simulating by a rule on the choice's machine."""
    try:
        found = shortlist(studies, replace(chosen.scenario, method=chosen.scenario.method.at_tau(0)), rule)
    except ScenarioError:
        return []
    return [each for each in found if studies.holds(each)]


def _report(studies: StudyCache, chosen: Option, option: str, settings: list[Scenario], goal: Goal) -> OtherRule | None:
    """What is chosen of `settings`, beside the choice; None where that is the choice itself."""
    work, rate = chosen.work, chosen.setting.rate
    found = simulate(studies, [Setting(each, work, 0.0, rate) for each in settings])
    best = mildest(found, (), lambda each: each.scenario, lambda each: each.seconds)
    if canonical(best.scenario) == canonical(chosen.scenario):
        return None
    now = 1.0 - best.seconds / chosen.seconds
    cost = None if work.per_hour is None else best.seconds * work.per_hour / 3600.0
    name, chance = setting_text(best.scenario.method), best.known_chance(goal)
    ends: tuple[float | None, float | None] = (None, None)
    if best.candidate.ranged:
        low, high = central(1.0 - best.candidate.over(chosen.candidate))
        ends = (min(low, now), max(high, now))
    return OtherRule(option, name, best.seconds, cost, now, *ends, best.meets(goal), chance)
