"""Reduce hundreds of settings to those worth simulating without losing the best: bounds first, then the fast engine.

The lower bound of a setting is its analytic bound at the stated values (`gcnsim.schedule.bounds`); no simulated time is
below it. A setting whose bound misses a limit is not simulated, unless the requested chance allows the stated values to
miss it.

The others are simulated a few at a time, alternately by the lowest cost and by the lowest time of their bounds. An
option that meets the goal excludes every setting whose lower bound is slower and dearer than the option at the stated
values, by more than two settings may differ of which the less approximate one is chosen. If GPUs are minimised, the
option must use no more GPUs. So the best setting, all that are close to it and the Pareto front are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import inf
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.hardware import PriceBook, Rent
from gcnsim.planning.candidate import Candidate, canonical
from gcnsim.planning.capacity_goal import COST, GPUS, Goal, Iterations, Work
from gcnsim.planning.failures import Failures
from gcnsim.planning.recommend import NEAR
from gcnsim.planning.rows import rent_of
from gcnsim.planning.study import Studies
from gcnsim.scenario import ClusterSpec, Scenario

AT_A_TIME: Final = 8
"""The number of settings simulated before the next comparison; it does not depend on the cores."""

LIKELY: Final = 0.7
"""A chance of at least this is out of reach if the stated values miss a limit, because they lie near the middle of the
draws.
"""

FAR: Final = 3.0
"""A setting whose bound exceeds a limit by this factor meets it in practically no draw."""

BEATEN_BY: Final = (1 + NEAR) ** 2
"""An option excludes another setting if it is faster by this factor; either machine may choose another setting within
NEAR.
"""

ENDLESS: Final = "--checkpoint: with these failures, a training practically never ends on any machine"


@dataclass(frozen=True, slots=True)
class Setting:
    """A considered scenario. least_s: lower bound on seconds per iteration. rate: price per hour, or number of GPUs if
    some prices are unknown; for comparison only.
    """

    scenario: Scenario
    work: Work
    least_s: Seconds
    rate: float

    @property
    def least(self) -> tuple[float, float]:
        """Return the lower bounds of the compared time and cost, the latter in units of `rate`."""
        seconds = self.work.seconds(self.least_s)
        return seconds, seconds * self.rate


@dataclass(frozen=True, slots=True)
class Option:
    """A simulated setting."""

    setting: Setting
    candidate: Candidate

    @property
    def work(self) -> Work:
        """The amount of work and the price per hour."""
        return self.setting.work

    @property
    def scenario(self) -> Scenario:
        """The scenario as requested."""
        return self.setting.scenario

    @property
    def gpus(self) -> int:
        """The number of GPUs of the machine."""
        return self.scenario.cluster.gpus

    @property
    def seconds(self) -> Seconds:
        """The time that is compared."""
        return self.work.seconds(self.candidate.iteration_s)

    @property
    def price(self) -> float:
        """The compared cost, in units of the setting's rate."""
        return self.seconds * self.setting.rate

    @property
    def cost(self) -> float | None:
        """The compared cost in the currency of costs, or None if no price is known."""
        return self.work.cost(self.seconds)

    @property
    def seconds_by_draw(self) -> FloatArray:
        """Return the compared time under every joint draw of the assumptions, float64[draws]."""
        return self.work.seconds(self.candidate.times)

    def over(self, other: Option) -> FloatArray:
        """Return the ratio of the compared time to that of `other` in each draw, float64[draws]; 1 where neither
        ends.
        """
        return ratios(self.seconds_by_draw, other.seconds_by_draw)

    @property
    def fits(self) -> bool:
        """Whether it fits in GPU memory, as far as is known."""
        return self.candidate.result.fits is not False

    def meets(self, goal: Goal) -> bool:
        """Return whether it fits in GPU memory and meets every limit with the requested chance."""
        return self.fits and self.chance(goal) >= goal.confidence

    def chance(self, goal: Goal) -> float:
        """The chance that it is within every limit: the share of the joint draws in which it is."""
        return goal.chance(self.candidate.times, self.work)


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    options: the simulated settings. The other counts name the first reason that applies: not allowed by method or
    workload, too large for GPU memory, a limit missed at the bound or a training that never ends, beaten by a
    simulated option. considered: settings that fit in memory and whose training ends. settings: all settings. same:
    settings with the same schedule as another one. grid: the number of distinct settings they were sampled from, None
    for all.
    """

    options: tuple[Option, ...]
    considered: tuple[Setting, ...]
    settings: int
    same: int
    refused: int
    too_large: int
    unpriced: int
    missed: int
    beaten: int
    grid: int | None = None


Pick = Callable[[Sequence[Scenario], Callable[[Sequence[Scenario]], list[Setting]]], list[Setting]]
"""A function that samples settings; it receives a function that computes their bounds."""


def search(
    studies: Studies,
    every: Sequence[Scenario],
    goal: Goal,
    book: PriceBook,
    training: Iterations | None = None,
    on_batch: Callable[[int, int], object] = lambda done, left: None,
    pick: Pick | None = None,
    limit: float = inf,
    failures: Failures | None = None,
) -> Search:
    """Simulate those of `every` that may be the best, and count the reasons for which others are not simulated.

    training: iterations of a training, if its time or cost matters; failures: what ends it early. on_batch: a callback
    with the numbers of simulated and remaining settings. pick: samples the settings if more than `limit` differ.
    Raises ScenarioError if with these failures no training ends.
    """
    distinct = {canonical(setting): setting for setting in reversed(every)}
    unique = [setting for setting in every if distinct[canonical(setting)] == setting]
    rents = {one.cluster: rent_of(one.cluster, book) for one in unique}
    # If cost decides, a setting without a price is excluded and must not change how the others are compared.
    by_gpu = not needs_price(goal) and any(one is None for one in rents.values())

    def bounded(some: Sequence[Scenario]) -> list[Setting]:
        return with_bounds(studies, some, rents, training, failures, by_gpu=by_gpu)

    some = pick if len(unique) > limit else None
    known = bounded(unique) if some is None else some(unique, bounded)
    refused = len(unique) - len(known) if some is None else 0
    priced = [setting for setting in known if setting.work.per_hour is not None] if needs_price(goal) else known
    counted = [setting for setting in priced if training is None or setting.work.training is not None]
    held = [one for one in counted if studies.fits(one.scenario)]
    ending = [setting for setting in held if setting.work.ends(setting.least_s)]
    if held and not ending:
        raise ScenarioError(ENDLESS)
    possible = [setting for setting in ending if may_meet(studies, setting, goal)]
    options = simulated(studies, possible, goal, on_batch)
    if not any(option.meets(goal) for option in options):
        options += _closest(studies, [setting for setting in ending if setting not in possible], goal, options)
    within = sum(option.setting in possible for option in options)
    return Search(
        tuple(options),
        tuple(ending),
        settings=len(every) if some is None else len(known),
        same=len(every) - len(unique) if some is None else 0,
        grid=None if some is None else len(unique),
        refused=refused,
        too_large=len(counted) - len(held),
        unpriced=len(known) - len(counted),
        missed=len(held) - len(possible) - (len(options) - within),
        beaten=len(possible) - within,
    )


def may_meet(studies: Studies, setting: Setting, goal: Goal) -> bool:
    """Return whether the bound of a setting allows every limit to be met with the requested chance."""
    excess = goal.excess(setting.least_s, setting.work)
    if excess <= 1.0:
        return True
    if goal.confidence >= LIKELY or excess > FAR:
        return False
    left_open = studies.factors(setting.scenario)
    return goal.chance(left_open.scaled(setting.least_s, left_open.joint), setting.work) >= goal.confidence


def needs_price(goal: Goal) -> bool:
    """Return whether a setting without a known price cannot be judged."""
    return goal.minimise == COST or goal.per_hour is not None or goal.most_cost is not None


def with_bounds(
    studies: Studies,
    wanted: Sequence[Scenario],
    rents: Mapping[ClusterSpec, Rent | None],
    training: Iterations | None = None,
    failures: Failures | None = None,
    *,
    by_gpu: bool = False,
) -> list[Setting]:
    """Return the settings that method and workload allow, each with its lower bound on the iteration time.

    by_gpu: whether machines are compared by number of GPUs, because some prices are unknown.
    """
    settings = []
    for scenario, least in zip(wanted, studies.analytic(wanted), strict=True):
        if least.least_s is not None:
            rent = rents[scenario.cluster]
            per_hour = None if rent is None else rent.per_hour
            needed = None if training is None else training(scenario)
            work = Work(least.per_epoch, needed, per_hour, failures, scenario.cluster.servers)
            rate = float(scenario.cluster.gpus) if by_gpu or per_hour is None else per_hour
            settings.append(Setting(scenario, work, least.least_s, rate))
    return settings


def simulated(
    studies: Studies,
    possible: Sequence[Setting],
    goal: Goal,
    on_batch: Callable[[int, int], object] = lambda done, left: None,
) -> list[Option]:
    """Simulate the settings, except those that another one excludes."""
    left = promising(possible)
    options: list[Option] = []
    while left:
        made = simulate(studies, left[:AT_A_TIME])
        options += made
        left = unbeaten(left[AT_A_TIME:], made, goal)
        on_batch(len(options), len(left))
    return options


def promising(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings alternately by the lowest cost and by the lowest time of their bounds."""
    by_time = sorted(settings, key=lambda setting: setting.least)
    by_cost = sorted(settings, key=lambda setting: setting.least[::-1])
    return [one for one in dict.fromkeys(chain.from_iterable(zip_longest(by_cost, by_time))) if one is not None]


def unbeaten(settings: Sequence[Setting], options: Sequence[Option], goal: Goal) -> list[Setting]:
    """Return the settings that no option which meets the goal excludes."""
    good = [option for option in options if option.meets(goal)]
    return [setting for setting in settings if not any(_beats(option, setting, goal) for option in good)]


def simulate(studies: Studies, settings: Sequence[Setting]) -> list[Option]:
    """Simulate the settings in parallel."""
    studies.prepare([setting.scenario for setting in settings])
    return [Option(setting, studies.candidate(setting.scenario)) for setting in settings]


def _beats(option: Option, setting: Setting, goal: Goal) -> bool:
    """Return whether an option is surely better at the stated values: by BEATEN_BY, no slower and no dearer than the
    setting's bound, on as few GPUs if they matter.
    """
    if goal.minimise == GPUS and option.gpus > setting.scenario.cluster.gpus:
        return False
    seconds, cost = setting.least
    now = option.seconds * BEATEN_BY
    return now <= seconds and now * option.setting.rate <= cost


def _closest(studies: Studies, missed: Sequence[Setting], goal: Goal, options: Sequence[Option]) -> list[Option]:
    """Return, of the settings whose bounds miss a limit, those that may come closest to it."""
    left = sorted(missed, key=lambda setting: goal.excess(setting.least_s, setting.work))
    closest: list[Option] = []
    best = min((excess_of(option, goal) for option in options), default=inf)
    while left and (not closest or goal.excess(left[0].least_s, left[0].work) < best):
        closest += simulate(studies, left[:AT_A_TIME])
        best = min(best, *(excess_of(one, goal) for one in closest))
        left = left[AT_A_TIME:]
    return closest


def excess_of(option: Option, goal: Goal) -> float:
    """Return the largest ratio of an amount to its limit; infinite if it does not fit in GPU memory."""
    return float(goal.excess(option.candidate.iteration_s, option.work)) if option.fits else inf


def cost_ratio(price: float, other: float) -> float:
    """Return `price` over `other`. Either may be 0 (a machine you own); two prices of 0 have the ratio 1."""
    if other == 0.0:
        return 1.0 if price == 0.0 else inf
    return price / other


def ratios(times: FloatArray, others: FloatArray) -> FloatArray:
    """Return `times` over `others`, float64[draws]; 1 where both are infinite."""
    return np.divide(times, others, out=np.ones_like(times), where=~(np.isinf(times) & np.isinf(others)))


def dominated(times: FloatArray, rates: float) -> FloatArray:
    """Return, per draw, whether an option with `times` the time and `rates` the price of another dominates it,
    bool[draws].

    It dominates if it is no slower and no dearer, and not equal in both.
    """
    cost = times * rates
    no_worse = (times <= 1.0) & (cost <= 1.0)
    return np.asarray(no_worse & ((times < 1.0) | (cost < 1.0)))
