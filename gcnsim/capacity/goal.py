"""What is to be met, and what is to be least of all that meets it."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf
from typing import Final, TypeVar

import numpy as np

from gcnsim.capacity.spending import Budget
from gcnsim.ids import FloatArray, Iteration, Seconds
from gcnsim.units import format_seconds

COST, GPUS, TIME = "cost", "gpus", "time"
MINIMISED: Final = (COST, GPUS, TIME)

CONFIDENCE: Final = 0.9
"""The chance of meeting a target that is asked for unless the question says another."""

Amount = TypeVar("Amount", float, FloatArray)


@dataclass(frozen=True, slots=True)
class Work:
    """How much is done, in iterations of a setting, and what an hour costs.

    per_epoch: iterations in which every training node is trained once. training: until the accuracy that was asked
    for; None where none was, or where nobody knows. per_hour: in the currency of costs; None where no price is known.
    """

    per_epoch: Iteration = 1
    training: Iteration | None = None
    per_hour: float | None = None

    @property
    def compared(self) -> Iteration:
        """Iterations whose time and cost settings are compared by: a training where its length is known, else an
        epoch."""
        return self.per_epoch if self.training is None else self.training


@dataclass(frozen=True, slots=True)
class Goal:
    """Upper limits, None where there is none, and what is minimised.

    iteration_s, epoch_s, training_s: seconds. per_hour, most_cost: in the currency of costs; the latter of a training.
    confidence: the chance of meeting the limits that a setting must have at least. budget: what per_hour is of.
    """

    minimise: str = COST
    iteration_s: Seconds | None = None
    epoch_s: Seconds | None = None
    training_s: Seconds | None = None
    per_hour: float | None = None
    most_cost: float | None = None
    currency: str = "USD"
    confidence: float = CONFIDENCE
    budget: Budget | None = None

    @property
    def of_training(self) -> bool:
        """Whether a limit is of a whole training."""
        return self.training_s is not None or self.most_cost is not None

    def excess(self, iteration_s: Amount, work: Work) -> Amount:
        """The largest of the limited amounts over its limit, of a time or of each of several: met where at most 1.

        Infinite where a limit is of what is not known.
        """
        shares = [iteration_s * 0.0]
        if self.iteration_s is not None:
            shares.append(iteration_s / self.iteration_s)
        if self.epoch_s is not None:
            shares.append(iteration_s * work.per_epoch / self.epoch_s)
        if self.training_s is not None:
            shares.append(iteration_s * (inf if work.training is None else work.training) / self.training_s)
        if self.per_hour is not None:
            shares.append(iteration_s * 0.0 + (inf if work.per_hour is None else work.per_hour) / self.per_hour)
        if self.most_cost is not None:
            known = work.training is not None and work.per_hour is not None
            of_one = work.training * work.per_hour / 3600.0 if known else inf  # type: ignore[operator]
            shares.append(iteration_s * of_one / self.most_cost)
        found = shares[0]
        for each in shares[1:]:
            found = np.maximum(found, each)
        return found

    def chance(self, times: FloatArray, work: Work) -> float:
        """The chance of meeting every limit: the share of the joint draws in which it is met.

        times: seconds per iteration under every draw, float64[draws].
        """
        return float((self.excess(times, work) <= 1.0).mean())

    @property
    def uncertain(self) -> bool:
        """Whether a limit is of a time, or of what depends on one: then the draws decide whether it is met."""
        return any(each is not None for each in (self.iteration_s, self.epoch_s, self.training_s, self.most_cost))

    @property
    def targets(self) -> str:
        """The limits that draws decide about, as what is met: `the 1.50 s target`."""
        whole = self.epoch_s is not None or self.training_s is not None or self.most_cost is not None
        if not whole and self.iteration_s is not None:
            return f"the {time_text(self.iteration_s)} target"
        found = self._times
        if self.most_cost is not None:
            found.append(f"{self.most_cost:g} {self.currency} for the training")
        return f"the target{'s' if len(found) > 1 else ''} ({', '.join(found)})"

    @property
    def words(self) -> list[str]:
        """All limits in words."""
        found = self._times
        if self.budget is not None:
            found.append(self.budget.text)
        elif self.per_hour is not None:
            found.append(f"{self.per_hour:g} {self.currency} an hour")
        if self.most_cost is not None:
            found.append(f"{self.most_cost:g} {self.currency} for the training")
        return found

    @property
    def _times(self) -> list[str]:
        told = [
            ("an iteration in", self.iteration_s),
            ("an epoch in", self.epoch_s),
            ("the training in", self.training_s),
        ]
        return [f"{what} {time_text(value)}" for what, value in told if value is not None]

    @property
    def text(self) -> str:
        """The question in a clause."""
        what = {COST: "cheapest way", GPUS: "fewest GPUs", TIME: "fastest way"}[self.minimise]
        runs = [f"run {each} or less" for each in self._times] or ["train"]
        paid = [f"for {each} or less" for each in self.words[len(self._times) :]]
        sure = f", with a chance of at least {percent(self.confidence)}" if self.uncertain else ""
        return f"{what} to {' and '.join(runs)}{''.join(f' {each}' for each in paid)}{sure}"


def percent(share: float) -> str:
    """A share as per cent, rounded down: what is not reached is not said to be.

    >>> percent(0.8984), percent(0.9)
    ('89 %', '90 %')
    """
    return f"{floor(100.0 * share + 1e-9)} %"


def time_text(value: Seconds) -> str:
    """Seconds for people, hours of what is long."""
    return f"{value / 3600.0:.3g} h" if value >= 3600.0 else format_seconds(value)
