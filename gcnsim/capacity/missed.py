"""A goal that nothing meets: how close the closest comes, and which single change would meet it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from gcnsim.capacity.goal import Goal
from gcnsim.capacity.points import name_of
from gcnsim.capacity.search import Option, excess_of
from gcnsim.errors import plural
from gcnsim.hardware import PriceBook
from gcnsim.planning import Rule, StudyCache, rent_of
from gcnsim.planning.steps import Move, possible_moves, useless
from gcnsim.results import Change, Missed, Relaxed


def missed(
    studies: StudyCache, closest: Option, goal: Goal, book: PriceBook, rule: Rule, relaxed: Sequence[Relaxed]
) -> Missed:
    """How far the closest setting is from the goal, and its single changes, the most useful first. relaxed: what more
    approximation would bring."""
    excess = excess_of(closest, goal)
    moves = possible_moves(studies, closest.scenario, rule, ())
    studies.prepare([closest.scenario, *(each.scenario for each in moves if each.knob == "tau")])
    even = any(each.even for each in moves)
    none = useless(studies, closest.scenario, moves)
    studies.explore(closest.scenario, [each.scenario for each in moves if not each.even], even, useless=none)
    changes = [_change(studies, closest, each, goal, book) for each in moves if _known(studies, each)]
    changes.sort(key=lambda each: each.excess)
    text = _text(closest, goal, excess, changes) + _relaxed_text(relaxed)
    return Missed(text, excess if isfinite(excess) else None, tuple(changes))


def _known(studies: StudyCache, move: Move) -> bool:
    return not studies.refused(move.scenario) and studies.matters(move.scenario, move.even)


def _change(studies: StudyCache, closest: Option, move: Move, goal: Goal, book: PriceBook) -> Change:
    result = studies.result(move.scenario, even=move.even)
    rent = rent_of(move.scenario.cluster, book)
    work = replace(closest.work, per_hour=None if rent is None else rent.per_hour)
    seconds = result.metrics.iteration_s
    excess = float(goal.excess(seconds, work))
    meets = excess <= 1.0 and result.fits is not False
    return Change(move.knob, move.start, move.end, seconds, meets, excess)


def _relaxed_text(relaxed: Sequence[Relaxed]) -> str:
    """Which steps of more approximation would meet the goal, as a clause; nothing where none would."""
    enough = [each.option for each in relaxed if each.meets]
    return f"; allowing more approximation would meet it: {' or '.join(enough)}" if enough else ""


def _text(closest: Option, goal: Goal, excess: float, changes: list[Change]) -> str:
    name = name_of(closest.scenario)
    if not closest.fits:
        return f"{name} does not fit the GPUs' memory"
    far = f"{name} is {excess:.3g} times the limit that it misses most ({', '.join(goal.words)})"
    enough = [each for each in changes if each.meets]
    if enough:
        told = " or ".join(f"{each.knob} {each.start} -> {each.end}" for each in enough)
        return f"{far}; a single change would meet it: {told}"
    tried = f"none of {plural(len(changes), 'single change')} would meet it" if changes else "no single change is known"
    if not changes:
        return f"{far}; {tried}"
    best = changes[0]
    return f"{far}; {tried}, the best is {best.knob} {best.start} -> {best.end}, {best.excess:.3g} times the limit"
