"""The effect of each knob over its values and of each assumption over its range; and what would raise the chance of a
goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, log
from typing import Final

from gcnsim.core.errors import plural
from gcnsim.core.units import format_seconds
from gcnsim.hardware import PriceBook
from gcnsim.planning.alternatives import KnobChange
from gcnsim.planning.capacity_goal import Goal, percent
from gcnsim.planning.capacity_search import Option, Search, Setting, excess_of
from gcnsim.planning.capacity_settings import coordinates
from gcnsim.planning.certainty import how_to_measure, sensitivity, span_of
from gcnsim.planning.failures import NEVER_S
from gcnsim.planning.machines import name_of
from gcnsim.planning.recommend import Rule, rate_of
from gcnsim.planning.rows import lacking, rent_of
from gcnsim.planning.steps import try_changes
from gcnsim.planning.study import Studies
from gcnsim.results import AssumptionEffect, Change, KnobEffect, Missed, OtherRule
from gcnsim.scenario import Scenario, setting_text

METHOD: Final = "method"


def knob_effects(studies: Studies, chosen: Option, searched: Search) -> tuple[KnobEffect, ...]:
    """Return the effect of each knob alone, largest first, without knobs of one value."""
    here = coordinates(chosen.scenario)
    moved = {knob: _variants(chosen, searched.considered, knob) for knob in here}
    wanted = dict.fromkeys(setting for settings in moved.values() for setting in settings)
    studies.prepare([setting.scenario for setting in wanted], draws=False)
    effects = [
        _effect(studies, knob, here[knob], [chosen.setting, *settings]) for knob, settings in moved.items() if settings
    ]
    return tuple(sorted(effects, key=lambda effect: -log(effect.seconds_high / effect.seconds_low)))


def _variants(chosen: Option, considered: Sequence[Setting], knob: str) -> list[Setting]:
    """Return the settings that differ from the choice in this knob only.

    For the method knob, each other method has its fastest setting by the lower bound on the same machine.
    """
    if knob != METHOD:
        here = coordinates(chosen.scenario)
        return [setting for setting in considered if _apart(coordinates(setting.scenario), here) == {knob}]
    best: dict[str, Setting] = {}
    for setting in considered:
        method = setting.scenario.method
        other = method.name != chosen.scenario.method.name and rate_of(method) >= rate_of(chosen.scenario.method)
        if other and setting.scenario.cluster == chosen.scenario.cluster:
            first = best.setdefault(method.name, setting)
            best[method.name] = min(first, setting, key=lambda one: one.least)
    return list(best.values())


def _apart(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {knob for knob in {*one, *other} if one.get(knob) != other.get(knob)}


def _effect(studies: Studies, knob: str, value: str, settings: Sequence[Setting]) -> KnobEffect:
    times = {one: one.work.seconds(studies.result(one.scenario).metrics.iteration_s) for one in settings}
    least, most = (pick(settings, key=times.__getitem__) for pick in (min, max))
    low, high = (_word(one.scenario, knob) for one in (least, most))
    known = [cost for one, seconds in times.items() if (cost := one.work.cost(seconds)) is not None]
    ends = (min(known), max(known)) if len(known) == len(times) else (None, None)
    return KnobEffect(knob, value, low, high, times[least], times[most], *ends)


def _word(scenario: Scenario, knob: str) -> str:
    return setting_text(scenario.method) if knob == METHOD else coordinates(scenario)[knob]


def assumption_effects(studies: Studies, chosen: Option) -> tuple[AssumptionEffect, ...]:
    """Return the effect of each assumption on what is compared, largest first."""
    effects = []
    for effect in sensitivity(studies, chosen.candidate):
        ends = (effect.iteration_s_low, effect.iteration_s_high)
        low, high = (min(float(chosen.work.seconds(end)), NEVER_S) for end in ends)
        effects.append(replace(effect, seconds_low=low, seconds_high=high))
    return tuple(sorted(effects, key=lambda effect: -span_of(effect)))


def decides_text(chosen: Option, knobs: Sequence[KnobEffect], assumptions: Sequence[AssumptionEffect]) -> str:
    """Return which moves the time more, a knob or an unknown figure, and which one most."""
    spans: list[tuple[float, str]] = []
    if assumptions:
        one = max(assumptions, key=span_of)
        low, high = sorted(one.ends)
        ends = f"{one.name}: {format_seconds(low)} to {format_seconds(high)}"
        how = how_to_measure(chosen.scenario, one.name)
        spans.append((span_of(one), f"an assumption without a measurement ({ends}): {how}"))
    if knobs and format_seconds(knobs[0].seconds_low) != format_seconds(knobs[0].seconds_high):
        first = knobs[0]
        ends = f"{format_seconds(first.seconds_low)} to {format_seconds(first.seconds_high)}"
        spans.append((log(first.seconds_high / first.seconds_low), f"your choice of {first.knob} ({ends})"))
    if not spans:
        return ""
    spans.sort(key=lambda span: -span[0])
    more, *less = [text for _, text in spans]
    return f"the answer depends mostly on {more}{''.join(f'; less on {one}' for one in less)}"


def unmet_goal(
    studies: Studies,
    closest: Option,
    goal: Goal,
    book: PriceBook,
    rule: Rule,
    others: Sequence[OtherRule],
    assumptions: Sequence[AssumptionEffect],
) -> Missed:
    """Return how close the best setting comes to the goal, and what would raise its chance.

    Candidates are single changes of it (best chance first), another rule (`others`), or a measurement of an assumption.
    """
    excess = excess_of(closest, goal)
    tried, _ = try_changes(studies, closest.scenario, rule)
    known = [change for change in tried if studies.known(change.scenario, change.even)]
    changes = [_change(studies, closest, change, goal, book) for change in known]
    changes.sort(key=lambda change: (-(change.chance or 0.0), _over(change)))
    ways = [*_raised(closest, goal, changes), *_ruled(others), *_measured(closest, goal, assumptions)]
    raised = "; ".join(ways) or "nothing that was tried"
    return Missed(_text(closest, goal, excess), raised, excess if isfinite(excess) else None, tuple(changes))


def _change(studies: Studies, closest: Option, step: KnobChange, goal: Goal, book: PriceBook) -> Change:
    result = studies.result(step.scenario, even=step.even)
    rent = rent_of(step.scenario.cluster, book)
    per_hour = None if rent is None else rent.per_hour
    servers = step.scenario.cluster.servers
    work = replace(closest.work, per_hour=per_hour, per_epoch=result.per_epoch, servers=servers)
    seconds = result.metrics.iteration_s
    excess = float(goal.excess(seconds, work))
    fits = result.fits is not False
    known = excess if isfinite(excess) else None
    chance = goal.chance(studies.times(step.scenario, even=step.even), work) if fits else 0.0
    return Change(step.knob, step.start, step.end, seconds, chance >= goal.confidence, chance, known)


def _named(change: Change) -> str:
    chance = f" ({percent(change.chance)})"
    return f"{change.knob} {change.start} -> {change.end}{chance}"


def _over(change: Change) -> float:
    return inf if change.excess is None else change.excess


def _text(closest: Option, goal: Goal, excess: float) -> str:
    """Return how far the closest setting is from the goal, in words."""
    if not closest.fits:
        return f"{name_of(closest.scenario)} does not fit {lacking(closest.candidate.result)}"
    if excess <= 1.0:
        return f"at the stated values it meets the target, but in only {percent(closest.chance(goal))} of the draws"
    return f"at the stated values it is {excess:.3g} times the limit that it misses most ({', '.join(goal.words)})"


def _raised(closest: Option, goal: Goal, changes: Sequence[Change]) -> list[str]:
    """Return the single changes that would be enough, or the most useful one."""
    enough = [change for change in changes if change.meets]
    if enough:
        return [" or ".join(map(_named, enough))]
    best = next((change for change in changes if (change.chance or 0.0) > closest.chance(goal)), None)
    if best is None:
        closer = next((change for change in changes if _over(change) < excess_of(closest, goal)), None)
        tried = f"none of {plural(len(changes), 'single change')} is enough"
        if closer is None:
            return [tried] if changes else []
        return [
            f"{tried}, the nearest is {closer.knob} {closer.start} -> {closer.end}, {_over(closer):.3g} times the limit"
        ]
    return [f"no single change is enough, the best is {_named(best)}"]


def _ruled(others: Sequence[OtherRule]) -> list[str]:
    """Return the other rules that would be enough."""
    enough = [other.option for other in others if other.meets]
    return [f"allowing more approximation: {' or '.join(enough)}"] if enough else []


def _measured(closest: Option, goal: Goal, assumptions: Sequence[AssumptionEffect]) -> list[str]:
    """Return the assumption that alone decides whether the limits are met, if one does."""
    across = [
        effect
        for effect in assumptions
        if min(_excesses(closest, goal, effect)) <= 1.0 < max(_excesses(closest, goal, effect))
    ]
    if not across:
        return []
    one = max(across, key=span_of)
    low, high = sorted(one.ends)
    ends = f"{format_seconds(low)} to {format_seconds(high)}"
    how = how_to_measure(closest.scenario, one.name)
    return [f"measuring {one.name}, which alone decides whether the target is met ({ends}): {how}"]


def _excesses(closest: Option, goal: Goal, effect: AssumptionEffect) -> list[float]:
    ends = (effect.iteration_s_low, effect.iteration_s_high)
    return [float(goal.excess(seconds, closest.work)) for seconds in ends]
