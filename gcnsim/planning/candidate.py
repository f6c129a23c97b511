"""A simulated setting and its time under every joint draw of the assumptions.

A joint draw samples four things at once: the assumed figures, the order of the parts, the paths between GPUs
(`gcnsim.simulation`), and the variation between sampled graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.methods import BASELINE, create_method
from gcnsim.scenario import Scenario
from gcnsim.schedule import estimate, lower_bound
from gcnsim.simulation import Result, answering, write_schedule
from gcnsim.simulation.assumed import OtherPath, other_paths
from gcnsim.simulation.open_assumptions import estimated_counts
from gcnsim.simulation.propagation import TimeFactors
from gcnsim.simulation.source import Source

Key: TypeAlias = tuple[Scenario, bool]
"""The key of one simulation: the scenario, and whether its parts are perfectly balanced (`EvenPartition`)."""


INTERVAL: Final = (0.05, 0.95)
"""Quantiles of the draws that bound the 90 % interval."""


def central(values: FloatArray) -> tuple[float, float]:
    """Return the ends of the 90 % interval of one value per joint draw, float64[draws].

    Each draw represents the middle of its share of the distribution (Hazen's quantiles), because its position is the
    middle of its stratum.
    """
    low, high = (float(end) for end in np.quantile(values, INTERVAL, method="hazen"))
    return low, high


@dataclass(frozen=True, slots=True)
class Candidate:
    """A simulated result, and its time under every joint draw of the assumptions.

    scenario: the question as it was asked; the result's own may be its simpler equal (`canonical`). times: seconds per
    iteration, float64[draws].
    """

    scenario: Scenario
    result: Result
    times: FloatArray

    def over(self, other: Candidate) -> FloatArray:
        """Return the ratio of both times per iteration in each draw, float64[draws]."""
        return self.times / other.times

    def epochs_over(self, other: Candidate) -> FloatArray:
        """Return the same ratio as `over` for the time of an epoch."""
        return self.over(other) * (self.result.per_epoch / other.result.per_epoch)

    @property
    def iteration_s(self) -> float:
        """The mean seconds per iteration."""
        return self.result.metrics.iteration_s

    @property
    def epoch_s(self) -> float:
        """The seconds in which every training node is used once."""
        return self.iteration_s * self.result.per_epoch


@dataclass(frozen=True, slots=True)
class Estimate(Candidate):
    """A result with its interval.

    low_s, high_s: the 90 % interval of the joint draws, no lower than lower_s, the analytic bound with every assumption
    at its most favourable end; None where nobody asked. upper_s: the bound at the stated
    values, or the interval's end where that is higher.
    """

    low_s: float | None
    high_s: float | None
    lower_s: float
    upper_s: float

    @classmethod
    def without_interval(cls, scenario: Scenario, result: Result) -> Estimate:
        """Return a result whose interval is not needed."""
        seconds = result.metrics.iteration_s
        return cls(scenario, result, np.array([seconds]), None, None, seconds, seconds)


PRECISION: Final = 0.01
"""A simulation of a few iterations cannot resolve changes below 1 %."""


def estimated_alike(one: TimeFactors, other: TimeFactors) -> bool:
    """Whether two settings have the same estimate, at the stated values and in nearly every draw of the assumptions."""
    ratio = one.nominal_s * one.joint / (other.nominal_s * other.joint)
    apart = np.quantile(np.abs(ratio - 1.0), INTERVAL[1], method="hazen")
    return bool(max(apart, abs(one.nominal_s / other.nominal_s - 1.0)) < PRECISION)


def effort_of(scenario: Scenario) -> int:
    """Return the relative effort of a study: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = scenario.method
    return scenario.cluster.gpus**2 * (1 if method.sampling().whole else 4 + method.tau)


def on_other_paths(key: Key) -> dict[OtherPath, Key]:
    """Return the simulations of the same setting with other paths between its GPUs.

    Stale settings need none: nothing waits for a transfer there, so their estimates are as exact as a simulation.
    """
    scenario, even = key
    if scenario.method.tau:
        return {}
    return {path: (path.scenario, even) for path in other_paths(scenario)}


def canonical(scenario: Scenario) -> Scenario:
    """Return the scenario under the simplest method with the same schedule, so that equivalent questions are simulated
    once.
    """
    simplest = scenario.method.canonical()
    return scenario if simplest is scenario.method else replace(scenario, method=simplest)


def alike(scenario: Scenario) -> Scenario:
    """Return the canonical scenario whose estimates and lower bounds are the same, with a staleness of at most 1.

    More staleness changes only how many iterations back an op waits; both look at waits within an iteration. External
    methods may use it otherwise, and refusals of measured times name it: those scenarios stay.
    """
    simplest = canonical(scenario)
    method = simplest.method
    if method.tau < 2 or simplest.cluster.measured_compute or not type(method).__module__.startswith("gcnsim."):
        return simplest
    return replace(simplest, method=method.at_tau(1))


SAMPLED_SLACK: Final = 0.95
"""Of the bound of a sampled method, of the mean of a few drawn graphs: those measured have up to 1.5 % less load."""


class Analytic(NamedTuple):
    """What a schedule says unsimulated. least_s: the lower bound on an iteration in seconds, None if the setting is not
    allowed; per_epoch: iterations per epoch; estimate_s: the estimate of an iteration without faults.
    """

    least_s: Seconds | None
    per_epoch: int
    estimate_s: Seconds


def analytic(scenario: Scenario, accesses: Source) -> Analytic:
    """Return bound and estimate from the mean of a few sampled graphs. Raises ScenarioError."""
    counts = estimated_counts(scenario, accesses)
    schedule = write_schedule(scenario, counts, accesses)
    slack = 1.0 if scenario.method.sampling().whole and counts.batches is None else SAMPLED_SLACK
    calm = write_schedule(replace(scenario, faults=()), counts, accesses) if scenario.faults else schedule
    per_epoch = 1 if counts.batches is None else counts.batches.per_epoch
    return Analytic(lower_bound(schedule) * slack, per_epoch, estimate(calm))


def full_graph(scenario: Scenario, overlap: str | None = None) -> Scenario:
    """Return full-graph training on the scenario's machine. overlap: None keeps the scenario's own."""
    overlap = scenario.method.overlap if overlap is None else overlap
    # The place of the rows of mini-batches does not matter to full-graph training.
    machine = replace(scenario.cluster, features=None)
    return replace(scenario, cluster=machine, method=create_method(BASELINE, overlap=overlap))


def baseline_of(scenario: Scenario, overlap: str | None = None) -> Scenario | None:
    """The same as `full_graph`, or None if compute times are measured and full-graph training was not measured."""
    baseline = full_graph(scenario, overlap)
    try:
        answering(baseline)
    except ScenarioError:
        return None
    return baseline
