"""The goal: limits to meet, an amount to minimise, and a budget over time such as 500 USD a month."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError, UnitError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.ids import FloatArray, Iteration, Seconds
from gcnsim.core.units import DOLLARS, format_number, format_seconds
from gcnsim.hardware import USD
from gcnsim.planning.failures import Amount, Failures
from gcnsim.scenario import Scenario

COST, GPUS, TIME = "cost", "gpus", "time"
MINIMISED: Final = (COST, GPUS, TIME)

CONFIDENCE: Final = 0.9
"""The default chance of meeting a target."""

Iterations = Callable[[Scenario], int | None]
"""Iterations of a training, or None if unknown."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a setting in iterations, and its price per hour.

    per_epoch: iterations in which every training node is used once. training: iterations until the training is done,
    None if that is not asked or unknown. per_hour: US dollars, None if unknown. failures: what ends
    the training early, on so many servers.
    """

    per_epoch: Iteration = 1
    training: Iteration | None = None
    per_hour: float | None = None
    failures: Failures | None = None
    servers: int = 1

    @property
    def compared(self) -> Iteration:
        """Iterations by which settings are compared: a whole training if its length is known, otherwise an epoch."""
        return self.per_epoch if self.training is None else self.training

    def ends(self, iteration_s: Seconds) -> bool:
        """Return whether the training ends, as far as that is asked; with many failures it practically never does."""
        if self.failures is None or self.training is None:
            return True
        return self.failures.total(iteration_s * self.training, self.servers) is not None

    def cost(self, seconds: Seconds) -> float | None:
        """Return the price of seconds in the currency of costs, or None if no price is known."""
        return None if self.per_hour is None else seconds * self.per_hour / 3600.0

    def seconds(self, iteration_s: Amount) -> Amount:
        """Return the compared time, of one iteration time or each of several; of a training with its failures."""
        work_s = iteration_s * self.compared
        return work_s if self.failures is None or self.training is None else self.failures.seconds(work_s, self.servers)


@dataclass(frozen=True, slots=True)
class Goal:
    """Upper limits, None where there is none, and the amount to minimise.

    iteration_s, epoch_s, training_s: seconds. per_hour: currency per hour. most_cost: currency per training.
    confidence: the least chance of meeting the limits. budget: the budget that per_hour comes from. accuracy: that the
    training reaches, None if it is not asked.
    """

    minimise: str = COST
    iteration_s: Seconds | None = None
    epoch_s: Seconds | None = None
    training_s: Seconds | None = None
    per_hour: float | None = None
    most_cost: float | None = None
    currency: str = USD
    confidence: float = CONFIDENCE
    budget: Budget | None = None
    accuracy: float | None = None

    @property
    def of_training(self) -> bool:
        """Whether a limit applies to a whole training."""
        return self.training_s is not None or self.most_cost is not None

    def excess(self, iteration_s: Amount, work: Work) -> Amount:
        """Return the largest ratio of an amount to its limit, for one time or each of several; at most 1 means met.

        Infinite if a limited amount is unknown.
        """
        per_hour = inf if work.per_hour is None else work.per_hour
        training_s = iteration_s * inf if work.training is None else work.seconds(iteration_s)
        known = work.training is not None and work.per_hour is not None
        amounts = (
            (iteration_s, self.iteration_s),
            (iteration_s * work.per_epoch, self.epoch_s),
            (training_s, self.training_s),
            (iteration_s * 0.0 + per_hour, self.per_hour),
            (training_s * per_hour / 3600.0 if known else iteration_s * inf, self.most_cost),
        )
        worst = iteration_s * 0.0
        for amount, limit in amounts:
            if limit is not None:
                worst = np.maximum(worst, amount / limit)
        return worst

    def chance(self, times: FloatArray, work: Work) -> float:
        """Return the chance of meeting every limit: the share of the joint draws that meet them all.

        times: seconds per iteration under every draw, float64[draws].
        """
        return float((self.excess(times, work) <= 1.0).mean())

    @property
    def uncertain(self) -> bool:
        """Whether a limited amount depends on a time; then the draws decide whether it is met."""
        return any(one is not None for one in (self.iteration_s, self.epoch_s, self.training_s, self.most_cost))

    @property
    def targets(self) -> str:
        """Return the limits that the draws decide, as a phrase: `the 1.50 s target`."""
        whole = self.epoch_s is not None or self.training_s is not None or self.most_cost is not None
        if not whole and self.iteration_s is not None:
            return f"the {format_seconds(self.iteration_s)} target"
        limits = self._times
        if self.most_cost is not None:
            limits.append(f"{self.most_cost:,.12g} {self.currency} for the training")
        return f"the target{'s' if len(limits) > 1 else ''} ({', '.join(limits)})"

    @property
    def words(self) -> list[str]:
        """Return all limits in words."""
        limits = self._times
        if self.budget is not None:
            limits.append(self.budget.text)
        elif self.per_hour is not None:
            limits.append(f"{self.per_hour:,.12g} {self.currency} an hour")
        if self.most_cost is not None:
            limits.append(f"{self.most_cost:,.12g} {self.currency} for the training")
        return limits

    @property
    def _times(self) -> list[str]:
        limits = [
            ("an iteration in", self.iteration_s),
            ("an epoch in", self.epoch_s),
            ("the training in", self.training_s),
        ]
        return [f"{what} {format_seconds(value)}" for what, value in limits if value is not None]

    @property
    def text(self) -> str:
        """Return the question as a clause."""
        what = {COST: "cheapest way", GPUS: "fewest GPUs", TIME: "fastest way"}[self.minimise]
        runs = [f"run {one} or less" for one in self._times] or ["train"]
        paid = [f"for {one} or less" for one in self.words[len(self._times) :]]
        if not self._times:
            paid = [one.replace(" for the training", "") for one in paid]
        if self.accuracy is not None:
            runs[-1] += f" to {100.0 * self.accuracy:g} % validation accuracy"
        sure = f", with a chance of at least {percent(self.confidence)}" if self.uncertain else ""
        return f"{what} to {' and '.join(runs)}{''.join(f' {one}' for one in paid)}{sure}"


def percent(share: float) -> str:
    """Format a share as a percentage, rounded down so that it never overstates.

    >>> percent(0.8984), percent(0.9)
    ('89 %', '90 %')
    """
    return f"{floor(100.0 * share + 1e-9)} %"


HOUR: Final = "hour"
DAYS: Final = {"day": 1.0, "month": 365.0 / 12.0, "year": 365.0}
"""Days of a period: a month is a twelfth of a year, 730 hours, as cloud providers count."""

NAMES: Final = {
    **dict.fromkeys(("h", "hr", HOUR), HOUR),
    **dict.fromkeys(("d", "day"), "day"),
    **dict.fromkeys(("mo", "month"), "month"),
    **dict.fromkeys(("y", "yr", "year"), "year"),
}
USUAL_HOURS: Final = 24.0

_PATTERN: Final = re.compile(r"\s*([0-9.]+(?:[eE][+-]?\d{1,3})?\s*[A-Za-z]{3})\s*/\s*([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget of `amount` (in `currency`) per `period` (hour, day, month or year), with `hours_per_day` hours of use a
    day.
    """

    amount: float
    currency: str
    period: str
    hours_per_day: float = USUAL_HOURS

    @property
    def hours(self) -> float:
        """Hours of use in a period."""
        return 1.0 if self.period == HOUR else DAYS[self.period] * self.hours_per_day

    @property
    def per_hour(self) -> float:
        """The most that an hour of use may cost."""
        return self.amount / self.hours

    def text_of(self, per_hour: float) -> str:
        """Return the price of a machine over the period of the budget, in words."""
        return f"{money(per_hour * self.hours)} {self.currency} {self._rate}"

    @property
    def text(self) -> str:
        """Return the budget in words."""
        hour = "" if self.period == HOUR else f" ({money(self.per_hour)} {self.currency} an hour)"
        return f"{self.amount:,.10g} {self.currency} {self._rate}{hour}"

    @property
    def _rate(self) -> str:
        if self.period == HOUR:
            return "an hour"
        used = "" if self.hours_per_day == USUAL_HOURS else f" at {self.hours_per_day:g} hours a day"
        return f"a {self.period}{used}"


def read_budget(text: object, hours_per_day: object) -> Budget | None:
    """Parse a budget such as 500USD/month or 10USD/hour; None for None.

    hours_per_day: hours of use, None for 24. Raises ScenarioError or UnitError.
    """
    if text is None:
        if hours_per_day is not None:
            raise ScenarioError("--hours-per-day: says how far a budget goes; give --budget, e.g. 500USD/month")
        return None
    match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ScenarioError(f"--budget: {shown(text)} is not money over time; write e.g. 500USD/month, 2USD/hour")
    unit = match[2].lower()
    if unit not in NAMES:
        hint = nearest(unit, sorted(set(NAMES.values())))
        raise ScenarioError(f"--budget: {shown(text)}: unknown time {match[2]!r}; {hint}")
    try:
        amount = DOLLARS.parse(match[1])
    except UnitError as error:
        raise UnitError(f"--budget: {error}") from None
    if amount <= 0:
        raise ScenarioError(f"--budget: {shown(text)} is not allowed; an amount above 0")
    return Budget(amount, USD, NAMES[unit], _hours(hours_per_day, NAMES[unit]))


def _hours(value: object, period: str) -> float:
    if value is None:
        return USUAL_HOURS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= USUAL_HOURS:
        raise ScenarioError(f"--hours-per-day: {value!r} is not allowed; hours above 0 and at most 24")
    if period == HOUR:
        raise ScenarioError("--hours-per-day: has no effect on an hourly budget; give --budget per day, month or year")
    return float(value)


def money(value: float) -> str:
    """Format an amount, with two decimal places if it is small."""
    return f"{value:,.2f}" if value >= 0.0995 else format_number(value, 2)
