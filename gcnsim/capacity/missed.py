"""A goal that nothing meets with the chance asked for: the best chance there is, and what would raise it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite

from gcnsim.capacity.goal import Goal, percent, time_text
from gcnsim.capacity.points import name_of
from gcnsim.capacity.search import Option, excess_of
from gcnsim.errors import plural
from gcnsim.hardware import PriceBook
from gcnsim.planning import Rule, StudyCache, rent_of
from gcnsim.planning.measure_first import how_to_measure, span_of
from gcnsim.planning.steps import Move, pointless, possible_moves, useless
from gcnsim.results import AssumptionEffect, Change, Missed, OtherRule


def missed(
    studies: StudyCache,
    closest: Option,
    goal: Goal,
    book: PriceBook,
    rule: Rule,
    others: Sequence[OtherRule],
    assumptions: Sequence[AssumptionEffect],
) -> Missed:
    """How close the setting of the best chance comes, and what would raise it: its single changes, the best chance
    first, another rule (others), or a measurement of what is assumed."""
    excess = excess_of(closest, goal)
    moves = possible_moves(studies, closest.scenario, rule, {each.knob for each in pointless(closest.scenario)})
    studies.prepare([closest.scenario, *(each.scenario for each in moves if each.knob == "tau")])
    even = any(each.even for each in moves)
    none = useless(studies, closest.scenario, moves)
    studies.explore(closest.scenario, [each.scenario for each in moves if not each.even], even, useless=none)
    changes = [_change(studies, closest, each, goal, book) for each in moves if _known(studies, each)]
    changes.sort(key=lambda each: (-_chance(each), _over(each)))
    told = [*_raised(closest, goal, changes), *_ruled(others), *_measured(closest, goal, assumptions)]
    raised = "; ".join(told) or "nothing that was tried"
    return Missed(_text(closest, goal, excess), raised, excess if isfinite(excess) else None, tuple(changes))


def _known(studies: StudyCache, move: Move) -> bool:
    return not studies.refused(move.scenario) and studies.matters(move.scenario, move.even)


def _change(studies: StudyCache, closest: Option, move: Move, goal: Goal, book: PriceBook) -> Change:
    result = studies.result(move.scenario, even=move.even)
    rent = rent_of(move.scenario.cluster, book)
    per_hour = None if rent is None else rent.per_hour
    work = replace(closest.work, per_hour=per_hour, per_epoch=result.per_epoch)
    seconds = result.metrics.iteration_s
    excess = float(goal.excess(seconds, work))
    fits = result.fits is not False
    known = excess if isfinite(excess) else None
    if not closest.candidate.ranged:
        return Change(move.knob, move.start, move.end, seconds, fits and excess <= 1.0, None, known)
    chance = goal.chance(studies.times(move.scenario, even=move.even), work) if fits else 0.0
    return Change(move.knob, move.start, move.end, seconds, chance >= goal.confidence, chance, known)


def _chance(change: Change) -> float:
    """The chance of a change; 0 or 1, by the stated values, where draws do not say it."""
    return float(change.meets) if change.chance is None else change.chance


def _named(change: Change) -> str:
    chance = "" if change.chance is None else f" ({percent(change.chance)})"
    return f"{change.knob} {change.start} -> {change.end}{chance}"


def _over(change: Change) -> float:
    return inf if change.excess is None else change.excess


def _text(closest: Option, goal: Goal, excess: float) -> str:
    """How far the closest setting is from the goal."""
    if not closest.fits:
        return f"{name_of(closest.scenario)} does not fit the GPUs' memory"
    if excess <= 1.0:
        return f"at the stated values it meets the target, but in only {percent(closest.chance(goal))} of the draws"
    return f"at the stated values it is {excess:.3g} times the limit that it misses most ({', '.join(goal.words)})"


def _raised(closest: Option, goal: Goal, changes: Sequence[Change]) -> list[str]:
    """The single changes that would be enough, else the one that helps most."""
    enough = [each for each in changes if each.meets]
    if enough:
        return [" or ".join(map(_named, enough))]
    best = next((each for each in changes if _chance(each) > closest.chance(goal)), None)
    if best is None:
        closer = next((each for each in changes if _over(each) < excess_of(closest, goal)), None)
        tried = f"none of {plural(len(changes), 'single change')} is enough"
        if closer is None:
            return [tried] if changes else []
        return [
            f"{tried}, the nearest is {closer.knob} {closer.start} -> {closer.end}, {_over(closer):.3g} times the limit"
        ]
    return [f"no single change is enough, the best is {_named(best)}"]


def _ruled(others: Sequence[OtherRule]) -> list[str]:
    """Other rules of what may be recommended that would be enough."""
    enough = [each.option for each in others if each.meets]
    return [f"allowing more approximation: {' or '.join(enough)}"] if enough else []


def _measured(closest: Option, goal: Goal, assumptions: Sequence[AssumptionEffect]) -> list[str]:
    """The assumption that decides whether the limits are met, where one alone does."""
    across = [
        each for each in assumptions if min(_excesses(closest, goal, each)) <= 1.0 < max(_excesses(closest, goal, each))
    ]
    if not across:
        return []
    one = max(across, key=span_of)
    low, high = sorted((one.iteration_s_low, one.iteration_s_high))
    work = closest.work.compared
    ends = f"{time_text(low * work)} to {time_text(high * work)}"
    how = how_to_measure(closest.scenario, one.name)
    return [f"measuring {one.name}, which alone decides whether the target is met ({ends}): {how}"]


def _excesses(closest: Option, goal: Goal, effect: AssumptionEffect) -> list[float]:
    ends = (effect.iteration_s_low, effect.iteration_s_high)
    return [float(goal.excess(seconds, closest.work)) for seconds in ends]
