"""Which of the simulated settings is recommended: the best of those that meet the target with the chance asked for.

Of a machine the setting is taken that a what-if would take; machines are compared by what is minimised. A chance that
is near the one asked for is found from more draws (`gcnsim.planning.closer_draws`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from gcnsim.capacity.goal import COST, GPUS, Goal
from gcnsim.capacity.search import Option, excess_of
from gcnsim.planning import StudyCache
from gcnsim.planning.closer_draws import look_closer
from gcnsim.planning.recommend import NEAR, mildest
from gcnsim.scenario import ClusterSpec, Scenario

BELOW: Final = 0.1
"""A chance this much below the one asked for may reach it with more draws: four standard deviations of it."""

ABOVE: Final = 0.06
"""A chance so much above the one asked for is sure to reach it."""

AT_A_TIME: Final = 4
"""Settings that are looked at more closely side by side."""


class Decision(NamedTuple):
    """ranked: options, the recommended one first; met: whether they meet the goal, else the closest is first."""

    ranked: list[Option]
    met: bool


def decide(studies: StudyCache, options: Sequence[Option], goal: Goal, asked: Collection[Scenario] = ()) -> Decision:
    """Rank the options that meet the goal; where none does, all of them, that of the best chance first."""
    known = {each.scenario: each for each in options}
    while goal.uncertain:
        order = best_of([each for each in known.values() if each.meets(goal)], goal, asked)
        doubtful = _doubtful(list(known.values()), order, goal)
        if not order and not doubtful:
            first = _closest_first(known.values(), goal)[:1]
            doubtful = [each for each in first if each.closer is None and each.candidate.ranged]
        if not doubtful:
            break
        chosen = doubtful[:AT_A_TIME]
        look_closer(studies, [each.scenario for each in chosen])
        known |= {each.scenario: replace(each, closer=studies.closest_times(each.scenario)) for each in chosen}
    enough = [each for each in known.values() if each.meets(goal)]
    # Where a chance is asked for, what has one goes before what only meets the target at the stated values.
    sure = [each for each in enough if each.candidate.ranged] if goal.uncertain else []
    meeting = best_of(sure or enough, goal, asked)
    return Decision(meeting, True) if meeting else Decision(_closest_first(known.values(), goal), False)


def _doubtful(options: Sequence[Option], order: Sequence[Option], goal: Goal) -> list[Option]:
    """The options whose chance is not known well enough: near the one asked for, and no worse than what would be
    recommended; the best first."""
    worst = objective(order[0], goal) if order else None
    near = [
        each
        for each in options
        if each.fits
        and each.candidate.ranged
        and each.closer is None
        and -BELOW <= each.chance(goal) - goal.confidence <= ABOVE
    ]
    # On the machine of what would be recommended, one that is a little slower may be taken instead.
    kept = [
        each
        for each in near
        if worst is None
        or objective(each, goal) <= worst
        or (each.scenario.cluster == order[0].scenario.cluster and each.seconds <= order[0].seconds * (1 + NEAR))
    ]
    return sorted(kept, key=lambda each: objective(each, goal))


def _closest_first(options: Collection[Option], goal: Goal) -> list[Option]:
    """Options that the GPUs hold, that of the best chance first; of equal chances the one nearest to the limits."""
    return sorted(options, key=lambda each: (not each.fits, -each.chance(goal), excess_of(each, goal)))


def best_of(options: Sequence[Option], goal: Goal, asked: Collection[Scenario] = ()) -> list[Option]:
    """Options from the best on: first the choice of every machine, by what is minimised, then the others. asked: those
    than which no choice is slower."""
    of_machine: dict[ClusterSpec, list[Option]] = {}
    for each in options:
        of_machine.setdefault(each.scenario.cluster, []).append(each)
    choices = [
        mildest(found, asked, lambda each: each.scenario, lambda each: each.seconds) for found in of_machine.values()
    ]
    chosen = {each.scenario for each in choices}
    others = [each for each in options if each.scenario not in chosen]
    return [*_sorted(choices, goal), *_sorted(others, goal)]


def _sorted(options: Sequence[Option], goal: Goal) -> list[Option]:
    return sorted(options, key=lambda each: objective(each, goal))


def objective(option: Option, goal: Goal) -> tuple[float, ...]:
    """What is minimised, the rest behind it."""
    if goal.minimise == COST:
        return option.price, option.seconds
    if goal.minimise == GPUS:
        return option.gpus, option.price, option.seconds
    return option.seconds, option.price
