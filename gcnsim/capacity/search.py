"""From hundreds of settings to those worth simulating, without losing the best: bounds first, then the fast engine.

A setting's least time is its analytic lower bound at the stated values (`gcnsim.schedule.bounds`), no simulated time is
below it. What misses a limit even so is never simulated, unless a chance is asked for that the stated values may miss.
The others are simulated a few at a time, in turn the one of the least cost and of the least time that their bounds
allow; each that meets the goal beats those that, at their least time, are slower and dearer than it is near the worst
end of its interval (and, where GPUs are minimised, on as few GPUs or more). So whatever is best by what is minimised,
and whatever is about as good, is simulated. Neither is what an option beats at the stated values and in nearly every
joint draw, the other one at its bound, moved in every draw as its estimate moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import inf
from typing import Final

import numpy as np

from gcnsim.capacity.goal import COST, GPUS, Goal, Iterations, Work
from gcnsim.hardware import PriceBook, Rent
from gcnsim.ids import FloatArray, Seconds
from gcnsim.planning import Candidate, StudyCache, rent_of
from gcnsim.planning.candidate import canonical, central
from gcnsim.planning.recommend import NEAR
from gcnsim.scenario import ClusterSpec, Scenario

AT_A_TIME: Final = 8
"""Settings that are simulated before others are compared with them: a number of its own, whatever the cores."""

LIKELY: Final = 0.7
"""A chance of this or more is not reached where the stated values miss a limit: they are about the middle of the
draws."""

FAR: Final = 3.0
"""What is so many times a limit at its bound is within it in no draw to speak of."""

BEATEN_BY: Final = (1 + NEAR) ** 2
"""What beats another setting is so many times as fast: of either machine another setting within NEAR may be chosen."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A scenario that is considered. least_s: seconds of an iteration that it takes at least; rate: what an hour costs,
    or GPUs where costs are not known of all, for comparing."""

    scenario: Scenario
    work: Work
    least_s: Seconds
    rate: float

    @property
    def least(self) -> tuple[float, float]:
        """The least time and cost of what is compared, the latter in units of `rate`."""
        seconds = self.least_s * self.work.compared
        return seconds, seconds * self.rate


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that was simulated."""

    setting: Setting
    candidate: Candidate

    @property
    def work(self) -> Work:
        """How much is done, and what an hour costs."""
        return self.setting.work

    @property
    def scenario(self) -> Scenario:
        """The scenario as it was asked for."""
        return self.setting.scenario

    @property
    def gpus(self) -> int:
        """GPUs of its machine."""
        return self.scenario.cluster.gpus

    @property
    def seconds(self) -> Seconds:
        """Time of what is compared."""
        return self.candidate.iteration_s * self.work.compared

    @property
    def price(self) -> float:
        """Cost of what is compared, in units of the setting's rate."""
        return self.seconds * self.setting.rate

    @property
    def cost(self) -> float | None:
        """Cost of what is compared, in the currency of costs; None where no price is known."""
        return None if self.work.per_hour is None else self.seconds * self.work.per_hour / 3600.0

    @property
    def seconds_by_draw(self) -> FloatArray:
        """Time of what is compared under every joint draw of the assumptions, float64[draws]."""
        return self.candidate.times * self.work.compared

    @property
    def fits(self) -> bool:
        """Whether the GPUs hold it, as far as is known."""
        return self.candidate.result.fits is not False

    def meets(self, goal: Goal) -> bool:
        """Whether it is within every limit with the chance that is asked for, and the GPUs hold it."""
        return self.fits and self.chance(goal) >= goal.confidence

    def chance(self, goal: Goal) -> float:
        """The chance that it is within every limit: the share of the joint draws in which it is."""
        return goal.chance(self.candidate.closest, self.work)


@dataclass(frozen=True, slots=True)
class Search:
    """What was found. options: simulated; the others were not, each for the first reason that holds: not allowed by
    method or workload, too large for the GPUs' memory, a limit missed at the bound, beaten by what was simulated.

    considered: those that the GPUs hold. settings: all that were looked at; same: those that run the same schedule as
    another one and were not looked at again. grid: of how many that differ they were picked; None: they are all.
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
"""Of many settings those that are looked at, by what gives some of them with their bounds."""


def search(
    studies: StudyCache,
    every: Sequence[Scenario],
    goal: Goal,
    book: PriceBook,
    training: Iterations | None = None,
    on_batch: Callable[[int, int], object] = lambda done, left: None,
    pick: Pick | None = None,
    limit: float = inf,
) -> Search:
    """Simulate those of `every` that may be the best, and what tells the reader why the others are not.

    training: iterations of a training, where its time or cost counts. on_batch: hears how many were simulated, and how
    many are left. pick: which settings are looked at, with their bounds, of more than limit that differ.
    """
    distinct = {canonical(setting): setting for setting in reversed(every)}
    unique = [setting for setting in every if distinct[canonical(setting)] == setting]
    rents = {one.cluster: rent_of(one.cluster, book) for one in unique}
    # Where cost decides, a setting without a price is left out, and may not change how the others are compared.
    by_gpu = not needs_price(goal) and any(one is None for one in rents.values())

    def bounded(some: Sequence[Scenario]) -> list[Setting]:
        return _with_bounds(studies, some, rents, training, by_gpu=by_gpu)

    some = pick if len(unique) > limit else None
    known = bounded(unique) if some is None else some(unique, bounded)
    refused = len(unique) - len(known) if some is None else 0
    priced = [setting for setting in known if setting.work.per_hour is not None] if needs_price(goal) else known
    counted = [setting for setting in priced if training is None or setting.work.training is not None]
    held = [one for one in counted if studies.fits(one.scenario)]
    possible = [setting for setting in held if _may_meet(studies, setting, goal)]
    options = _simulated(studies, possible, goal, on_batch)
    if not any(option.meets(goal) for option in options):
        options += _closest(studies, [setting for setting in held if setting not in possible], goal, options)
    within = sum(option.setting in possible for option in options)
    return Search(
        tuple(options),
        tuple(held),
        settings=len(every) if some is None else len(known),
        same=len(every) - len(unique) if some is None else 0,
        grid=None if some is None else len(unique),
        refused=refused,
        too_large=len(counted) - len(held),
        unpriced=len(known) - len(counted),
        missed=len(held) - len(possible) - (len(options) - within),
        beaten=len(possible) - within,
    )


def _may_meet(studies: StudyCache, setting: Setting, goal: Goal) -> bool:
    """Whether a setting may be within every limit with the chance that is asked for, by its bound."""
    excess = goal.excess(setting.least_s, setting.work)
    if excess <= 1.0:
        return True
    if goal.confidence >= LIKELY or excess > FAR:
        return False
    left_open = studies.factors(setting.scenario)
    return goal.chance(left_open.scaled(setting.least_s, left_open.joint), setting.work) >= goal.confidence


def needs_price(goal: Goal) -> bool:
    """Whether a setting without a known price cannot be judged."""
    return goal.minimise == COST or goal.per_hour is not None or goal.most_cost is not None


def _with_bounds(
    studies: StudyCache,
    wanted: Sequence[Scenario],
    rents: Mapping[ClusterSpec, Rent | None],
    training: Iterations | None,
    *,
    by_gpu: bool,
) -> list[Setting]:
    """The settings that method and workload allow, each with the least time of an iteration.

    by_gpu: whether machines are compared by their GPUs, since of some no price is known.
    """
    found = []
    for scenario, least in zip(wanted, studies.least_times(wanted), strict=True):
        if least is not None:
            rent = rents[scenario.cluster]
            per_hour = None if rent is None else rent.per_hour
            work = Work(least[1], None if training is None else training(scenario), per_hour)
            rate = float(scenario.cluster.gpus) if by_gpu or per_hour is None else per_hour
            found.append(Setting(scenario, work, least[0], rate))
    return found


def _simulated(
    studies: StudyCache, possible: Sequence[Setting], goal: Goal, on_batch: Callable[[int, int], object]
) -> list[Option]:
    by_time = sorted(possible, key=lambda setting: setting.least)
    by_cost = sorted(possible, key=lambda setting: setting.least[::-1])
    left = [one for one in dict.fromkeys(chain.from_iterable(zip_longest(by_cost, by_time))) if one is not None]
    options: list[Option] = []
    good: list[Option] = []
    while left:
        first, left = left[:AT_A_TIME], left[AT_A_TIME:]
        if good:
            studies.prepare_factors([setting.scenario for setting in first])
            first = [one for one in first if not any(_beats_in_draws(studies, option, one, goal) for option in good)]
        options += simulate(studies, first)
        good = [option for option in options if option.meets(goal)]
        left = [setting for setting in left if not any(_beats(one, setting, goal) for one in good)]
        on_batch(len(options), len(left))
    return options


def simulate(studies: StudyCache, settings: Sequence[Setting]) -> list[Option]:
    """The settings simulated side by side."""
    studies.prepare([setting.scenario for setting in settings])
    return [Option(setting, studies.candidate(setting.scenario)) for setting in settings]


def _beats(option: Option, setting: Setting, goal: Goal) -> bool:
    """Whether an option is surely better in every way: near its worst end it is no slower and no dearer than the other
    at its least time."""
    worst = max(option.seconds * BEATEN_BY, central(option.seconds_by_draw)[1])
    seconds, cost = setting.least
    return _on_as_few(option, setting, goal) and worst <= seconds and worst * option.setting.rate <= cost


def _beats_in_draws(studies: StudyCache, option: Option, setting: Setting, goal: Goal) -> bool:
    """Whether an option is better in nearly every joint draw, in pairs, and by more than NEAR at the stated values:
    the other at its least time, moved in every draw as its estimate moves."""
    seconds, cost = setting.least
    now = option.seconds * BEATEN_BY
    if not _on_as_few(option, setting, goal) or now > seconds or now * option.setting.rate > cost:
        return False
    left_open = studies.factors(setting.scenario)
    least = left_open.scaled(setting.least_s, left_open.joint) * setting.work.compared
    return (
        float(dominated(option.seconds_by_draw / least, cost_ratio(option.setting.rate, setting.rate)).mean()) >= SURE
    )


def _on_as_few(option: Option, setting: Setting, goal: Goal) -> bool:
    """Whether an option has no more GPUs than a setting, where these count."""
    return goal.minimise != GPUS or option.gpus <= setting.scenario.cluster.gpus


def _closest(studies: StudyCache, missed: Sequence[Setting], goal: Goal, options: Sequence[Option]) -> list[Option]:
    """Of settings that miss a limit at their bounds, those that may come closest to meeting it."""
    left = sorted(missed, key=lambda setting: goal.excess(setting.least_s, setting.work))
    found: list[Option] = []
    best = min((excess_of(option, goal) for option in options), default=inf)
    while left and (not found or goal.excess(left[0].least_s, left[0].work) < best):
        found += simulate(studies, left[:AT_A_TIME])
        best = min(best, *(excess_of(one, goal) for one in found))
        left = left[AT_A_TIME:]
    return found


def excess_of(option: Option, goal: Goal) -> float:
    """The largest limited amount over its limit; infinite where the GPUs do not hold it."""
    return float(goal.excess(option.candidate.iteration_s, option.work)) if option.fits else inf


SURE: Final = 0.95
"""Of the joint draws: an option that another one beats in so many is dominated; in fewer, they cannot be told apart."""


def cost_ratio(price: float, other: float) -> float:
    """`price` over `other`, either of which may be 0 (a machine of one's own): two that cost nothing cost the same."""
    if other == 0.0:
        return 1.0 if price == 0.0 else inf
    return price / other


def dominated(times: FloatArray, rates: float) -> FloatArray:
    """Draw by draw, whether an option of `times` the time of another, at `rates` its price of an hour, beats it: it is
    no slower and no dearer, and not the same in both, bool[draws]."""
    cost = times * rates
    no_worse = (times <= 1.0) & (cost <= 1.0)
    return np.asarray(no_worse & ((times < 1.0) | (cost < 1.0)))
