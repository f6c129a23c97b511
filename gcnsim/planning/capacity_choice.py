"""Choose the recommended setting: the best simulated one that meets the target with the requested chance.

On each machine the setting is chosen as in what-if; machines are compared by the minimised amount. If a chance is close
to the requested one, more draws are simulated (`gcnsim.planning.simulated_draws`). The Pareto front of time against
cost contains the settings that meet the target, as far as the assumptions distinguish them. The reference engine
repeats the best settings and must return the same picoseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.processes import parallel_map
from gcnsim.engine import use_reference
from gcnsim.planning.candidate import canonical
from gcnsim.planning.capacity_goal import COST, GPUS, Goal
from gcnsim.planning.capacity_search import SURE, Option, cost_ratio, dominated, excess_of
from gcnsim.planning.capacity_settings import name_of
from gcnsim.planning.recommend import NEAR, mildest
from gcnsim.planning.simulated_draws import look_closer
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import Confirmed
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.simulation import Result, simulate_scenario

BELOW: Final = 0.1
"""A chance this far below the requested one may still reach it with more draws (four standard deviations)."""

ABOVE: Final = 0.06
"""A chance this far above the requested one certainly reaches it."""

AT_A_TIME: Final = 4
"""The number of settings examined more closely in parallel."""


class Decision(NamedTuple):
    """A ranking. ranked: options, the recommended one first. met: whether they meet the goal; otherwise the closest one
    is first.
    """

    ranked: list[Option]
    met: bool


def decide(studies: StudyCache, options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> Decision:
    """Rank the options that meet the goal; if none does, rank all of them by their chance."""
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
    """Return the options whose chance is close to the requested one and which could be recommended, best first."""
    worst = objective(order[0], goal) if order else None
    near = [
        option
        for option in options
        if option.fits and option.candidate.closer is None and -BELOW <= option.chance(goal) - goal.confidence <= ABOVE
    ]
    # A slightly slower setting may be chosen on the machine of the recommendation.
    kept = [
        option
        for option in near
        if worst is None
        or objective(option, goal) <= worst
        or (option.scenario.cluster == order[0].scenario.cluster and option.seconds <= order[0].seconds * (1 + NEAR))
    ]
    return sorted(kept, key=lambda one: objective(one, goal))


def _closest_first(options: Collection[Option], goal: Goal) -> list[Option]:
    """Return the options that fit in GPU memory by falling chance; ties go to the one closest to the limits."""
    return sorted(options, key=lambda option: (not option.fits, -option.chance(goal), excess_of(option, goal)))


def best_of(options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> list[Option]:
    """Return options, best first: the choice of every machine by the minimised amount, then the others.

    shown: no choice is slower than these.
    """
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
    """Return the minimised amount, followed by the tie-breakers."""
    if goal.minimise == COST:
        return option.price, option.seconds
    if goal.minimise == GPUS:
        return option.gpus, option.price, option.seconds
    return option.seconds, option.price


@dataclass(frozen=True, slots=True)
class Place:
    """An option that is not surely dominated.

    at_values: whether no option beats it at the stated values. share: the share of draws in which its strongest
    competitor beats it.
    """

    option: Option
    at_values: bool
    share: float


def front(options: Sequence[Option]) -> list[Place]:
    """Return the options that no other one beats in nearly every joint draw, fastest first."""
    places = []
    for option in options:
        others = [one for one in options if one is not option]
        share = max((dominance(one, option) for one in others), default=0.0)
        if share < SURE:
            places.append(Place(option, not any(_at_values(one, option) for one in others), share))
    return sorted(places, key=lambda place: (place.option.seconds, place.option.price))


def dominance(one: Option, other: Option) -> float:
    """The share of the joint draws, in pairs, in which `one` is no slower and no dearer, and not the same in both."""
    return float(dominated(one.over(other), cost_ratio(one.setting.rate, other.setting.rate)).mean())


def _at_values(one: Option, other: Option) -> bool:
    return bool(dominated(np.array([one.seconds / other.seconds]), cost_ratio(one.setting.rate, other.setting.rate))[0])


CONFIRMED: Final = 3
"""The number of options to confirm, best first."""

AFFORDED: Final = 120_000
"""The most ops times iterations of a confirmed run: about three seconds of the reference engine."""


def confirm(studies: StudyCache, options: Sequence[Option]) -> tuple[Confirmed, ...]:
    """Run the first few options with the reference engine if they are small enough.

    Returns whether every start and end has the same picosecond, or None and the reason if it was not run.
    """
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
    """Return why an option is not run again, or an empty text if it is."""
    run = option.candidate.result.run
    if run.schedule.grain_s > 0.0:
        return "its links are shared once per grain, which the reference engine does not do"
    effort = run.schedule.columns.size * run.simulated
    return f"{effort:,} ops are more than {AFFORDED:,}" if effort > AFFORDED else ""
