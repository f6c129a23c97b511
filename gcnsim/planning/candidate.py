"""A setting that was simulated, and its time under every joint draw of what is assumed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gcnsim.ids import FloatArray
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result

INTERVAL: Final = (0.05, 0.95)
"""Quantiles of the draws between which the 90 % interval lies."""


def central(drawn: FloatArray) -> tuple[float, float]:
    """The ends of the 90 % interval of a value of every joint draw, float64[draws]: each draw stands for the middle of
    its share of them (Hazen's quantiles), as its positions are the middles of their strata."""
    low, high = (float(end) for end in np.quantile(drawn, INTERVAL, method="hazen"))
    return low, high


@dataclass(frozen=True, slots=True)
class Candidate:
    """A simulated result, and its time under every joint draw of the assumptions.

    scenario: the question as it was asked; the result's own may be its simpler equal (`canonical`). estimated, and
    simulated where draws were (after a longest wait the first of them): seconds per iteration, float64[draws]: of the
    assumed figures, of what the workload leaves open, of other drawn graphs, and where GPUs are unequal of the order of
    the parts among them. ranged: whether
    the draws say how far its time may be off (`gcnsim.machine.Machine.error_known`).
    """

    scenario: Scenario
    result: Result
    estimated: FloatArray
    simulated: FloatArray | None
    ranged: bool = field(default=True, kw_only=True)

    @property
    def times(self) -> FloatArray:
        """Seconds per iteration under every joint draw, float64[draws]: simulated where they were, else estimated."""
        return self.estimated if self.simulated is None else self.simulated

    def over(self, other: Candidate) -> FloatArray:
        """Its time per iteration over that of `other`, draw by draw, float64[draws]: both simulated, or neither."""
        if self.simulated is not None and other.simulated is not None:
            return self.simulated / other.simulated
        return self.estimated / other.estimated

    def epochs_over(self, other: Candidate) -> FloatArray:
        """As `over`, of the times of an epoch."""
        return self.over(other) * (self.result.per_epoch / other.result.per_epoch)

    @property
    def iteration_s(self) -> float:
        """Mean seconds per iteration."""
        return self.result.metrics.iteration_s

    @property
    def epoch_s(self) -> float:
        """Seconds in which every training node is trained once."""
        return self.iteration_s * self.result.per_epoch


@dataclass(frozen=True, slots=True)
class Estimate(Candidate):
    """A result with its interval.

    low_s, high_s: the 90 % interval of the joint draws, no lower than lower_s, the analytic bound with every assumption
    at its most favourable end; None where they say nothing of its error (`ranged`). upper_s: the bound at the stated
    values, or the interval's end where that is higher.
    """

    low_s: float | None
    high_s: float | None
    lower_s: float
    upper_s: float
