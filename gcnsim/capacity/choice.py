"""Which of the simulated settings is recommended: the best of those that meet the target with the chance asked for.

Of a machine the setting is taken that a what-if would take; machines are compared by what is minimised. A chance that
is near the one asked for is found from more draws (`gcnsim.planning.simulated_draws`). Of all that meet the target, the
Pareto front of time against cost, as far as the assumptions tell options apart; the best are run again by the reference
engine, which must give the same picoseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from gcnsim.capacity.goal import COST, GPUS, Goal
from gcnsim.capacity.search import SURE, Option, cost_ratio, dominated, excess_of
from gcnsim.capacity.settings import name_of
from gcnsim.engine import use_reference
from gcnsim.planning import StudyCache
from gcnsim.planning.candidate import canonical
from gcnsim.planning.recommend import NEAR, mildest
from gcnsim.planning.simulated_draws import look_closer
from gcnsim.processes import parallel_map
from gcnsim.results import Confirmed
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.simulation import Result, simulate_scenario

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


def decide(studies: StudyCache, options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> Decision:
    """Rank the options that meet the goal; where none does, all of them, that of the best chance first."""
    known = {option.scenario: option for option in options}
    while goal.uncertain:
        order = best_of([option for option in known.values() if option.meets(goal)], goal, shown)
        doubtful = _doubtful(list(known.values()), order, goal)
        if not order and not doubtful:
            first = _closest_first(known.values(), goal)[:1]
            doubtful = [option for option in first if option.candidate.closer is None]
        if not doubtful:
            break
        chosen = doubtful[:AT_A_TIME]
        look_closer(studies, [option.scenario for option in chosen])
        known |= {option.scenario: replace(option, candidate=studies.candidate(option.scenario)) for option in chosen}
    meeting = best_of([option for option in known.values() if option.meets(goal)], goal, shown)
    return Decision(meeting, True) if meeting else Decision(_closest_first(known.values(), goal), False)


def _doubtful(options: Sequence[Option], order: Sequence[Option], goal: Goal) -> list[Option]:
    """The options whose chance is not known well enough: near the one asked for, and no worse than what would be
    recommended; the best first."""
    worst = objective(order[0], goal) if order else None
    near = [
        option
        for option in options
        if option.fits and option.candidate.closer is None and -BELOW <= option.chance(goal) - goal.confidence <= ABOVE
    ]
    # On the machine of what would be recommended, one that is a little slower may be taken instead.
    kept = [
        option
        for option in near
        if worst is None
        or objective(option, goal) <= worst
        or (option.scenario.cluster == order[0].scenario.cluster and option.seconds <= order[0].seconds * (1 + NEAR))
    ]
    return sorted(kept, key=lambda one: objective(one, goal))


def _closest_first(options: Collection[Option], goal: Goal) -> list[Option]:
    """Options that the GPUs hold, that of the best chance first; of equal chances the one nearest to the limits."""
    return sorted(options, key=lambda option: (not option.fits, -option.chance(goal), excess_of(option, goal)))


def best_of(options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> list[Option]:
    """Options from the best on: first the choice of every machine, by what is minimised, then the others. shown: those
    than which no choice is slower."""
    of_machine: dict[ClusterSpec, list[Option]] = {}
    for option in options:
        of_machine.setdefault(option.scenario.cluster, []).append(option)
    choices = [
        mildest(found, shown, lambda one: one.scenario, lambda one: one.seconds) for found in of_machine.values()
    ]
    chosen = {choice.scenario for choice in choices}
    others = [option for option in options if option.scenario not in chosen]
    by_objective = partial(objective, goal=goal)
    return [*sorted(choices, key=by_objective), *sorted(others, key=by_objective)]


def objective(option: Option, goal: Goal) -> tuple[float, ...]:
    """What is minimised, the rest behind it."""
    if goal.minimise == COST:
        return option.price, option.seconds
    if goal.minimise == GPUS:
        return option.gpus, option.price, option.seconds
    return option.seconds, option.price


@dataclass(frozen=True, slots=True)
class Place:
    """An option that nothing surely dominates. at_values: whether it is on the front at the stated values, where
    nothing beats it; share: of the draws in which the option that beats it most often does."""

    option: Option
    at_values: bool
    share: float


def front(options: Sequence[Option]) -> list[Place]:
    """The options that no other one beats in nearly every joint draw, the fastest first."""
    found = []
    for option in options:
        others = [one for one in options if one is not option]
        share = max((dominance(one, option) for one in others), default=0.0)
        if share < SURE:
            found.append(Place(option, not any(_at_values(one, option) for one in others), share))
    return sorted(found, key=lambda place: (place.option.seconds, place.option.price))


def dominance(one: Option, other: Option) -> float:
    """The share of the joint draws, in pairs, in which `one` is no slower and no dearer, and not the same in both."""
    work = one.work.compared / other.work.compared
    return float(
        dominated(one.candidate.over(other.candidate) * work, cost_ratio(one.setting.rate, other.setting.rate)).mean()
    )


def _at_values(one: Option, other: Option) -> bool:
    return bool(dominated(np.array([one.seconds / other.seconds]), cost_ratio(one.setting.rate, other.setting.rate))[0])


CONFIRMED: Final = 3
"""Options that are confirmed, the best first."""

AFFORDED: Final = 120_000
"""Most ops times iterations of a run that is confirmed: about three seconds of the reference engine."""


def confirm(studies: StudyCache, options: Sequence[Option]) -> tuple[Confirmed, ...]:
    """The first few options by the reference engine, those that it can answer for in a moment: whether every start and
    end is the same picosecond; None where it was not run again, and why."""
    first = options[:CONFIRMED]
    why = [_too_much(option) for option in first]
    wanted = [option for option, reason in zip(first, why, strict=True) if not reason]

    def again(option: Option) -> bool:
        with use_reference():
            return _same(simulate_scenario(canonical(option.scenario), studies.accesses), option.candidate.result)

    same = iter(parallel_map(again, wanted, studies.processes))
    return tuple(
        Confirmed(name_of(option.scenario), None if reason else next(same), reason)
        for option, reason in zip(first, why, strict=True)
    )


def _same(one: Result, other: Result) -> bool:
    runs = (one.run, other.run)
    starts, ends = ([getattr(run, name) for run in runs] for name in ("first_starts", "first_ends"))
    return np.array_equal(*starts) and np.array_equal(*ends) and runs[0].iterations == runs[1].iterations


def _too_much(option: Option) -> str:
    """Why an option is not run again; empty where it is."""
    run = option.candidate.result.run
    if run.schedule.grain_s > 0.0:
        return "its links are shared once per grain, which the reference engine does not do"
    effort = run.schedule.columns.size * run.simulated
    return f"{effort:,} ops are more than {AFFORDED:,}" if effort > AFFORDED else ""
