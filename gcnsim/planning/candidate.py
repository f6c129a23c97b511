"""A simulated setting and its time under every joint draw of the assumptions.

A joint draw samples four things at once: the assumed figures, the order of the parts, the paths between GPUs
(`gcnsim.simulation`), and the variation between sampled graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.methods import BASELINE, create_method
from gcnsim.scenario import Scenario
from gcnsim.schedule import lower_bound
from gcnsim.simulation import Result, answering, write_schedule
from gcnsim.simulation.assumed import DRAWS, OtherPath, normal_position, other_paths, path_by_draw, position
from gcnsim.simulation.open_assumptions import estimated_counts
from gcnsim.simulation.placement import PartOrder, placements
from gcnsim.simulation.propagation import TimeFactors
from gcnsim.simulation.source import Source

Key: TypeAlias = tuple[Scenario, PartOrder, bool]
"""The key of one simulation: the scenario, the order of its parts, and whether the parts are perfectly balanced
(`EvenPartition`).
"""


INTERVAL: Final = (0.05, 0.95)
"""Quantiles of the draws that bound the 90 % interval."""


class Studies(Protocol):
    """Simulations and estimates of settings (`study_cache.StudyCache`). seed: of the joint draws."""

    seed: int

    def result(self, scenario: Scenario, order: PartOrder = PartOrder.NUMBERED, *, even: bool = False) -> Result:
        """Return the simulated setting."""

    def factors(self, scenario: Scenario, order: PartOrder = PartOrder.NUMBERED, *, even: bool = False) -> TimeFactors:
        """Return the effect of the assumptions on the setting's time."""


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

    scenario: the question as it was asked; the result's own may be its simpler equal (`canonical`). estimated, and
    simulated where draws were (after a longest wait the first of them): seconds per iteration, float64[draws]; closer:
    under more draws than others have, if any.
    """

    scenario: Scenario
    result: Result
    estimated: FloatArray
    simulated: FloatArray | None
    closer: FloatArray | None = field(default=None, kw_only=True)

    @property
    def closest(self) -> FloatArray:
        """Return seconds per iteration under as many joint draws as are known, float64[draws]."""
        return self.times if self.closer is None else self.closer

    @property
    def times(self) -> FloatArray:
        """Return seconds per iteration under every joint draw, float64[draws]: simulated if available, otherwise
        estimated.
        """
        return self.estimated if self.simulated is None else self.simulated

    def paired(self, other: Candidate) -> tuple[FloatArray, FloatArray]:
        """Return this time per iteration and that of `other` in each draw, float64[draws]. Both are simulated or both
        estimated.
        """
        if self.simulated is not None and other.simulated is not None:
            return self.simulated, other.simulated
        return self.estimated, other.estimated

    def over(self, other: Candidate) -> FloatArray:
        """Return the ratio of both times per iteration in each draw, float64[draws]."""
        mine, theirs = self.paired(other)
        return mine / theirs

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
        return cls(scenario, result, np.array([seconds]), None, None, None, seconds, seconds)


PRECISION: Final = 0.01
"""A simulation of a few iterations cannot resolve changes below 1 %."""


class Study(NamedTuple):
    """One study. lower: the lower bound on seconds per iteration, if requested. paths: studies of the same setting with
    other paths between its GPUs.
    """

    result: Result | None = None
    left_open: TimeFactors | None = None
    lower: Seconds | None = None
    refused: bool = False
    paths: tuple[tuple[Key, Result], ...] = ()


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
    scenario, order, even = key
    if scenario.method.tau:
        return {}
    return {path: (path.scenario, order, even) for path in other_paths(scenario)}


def estimated_times(studies: Studies, key: Key, left_open: TimeFactors, seconds: Seconds) -> FloatArray:
    """Return estimated seconds per iteration under every joint draw, float64[draws], from the simulated time `seconds`.

    Estimates of synchronous schedules reach 2.6 times the simulated time, with a different factor on each path. A draw
    with another path therefore starts from the simulation of that path.
    """
    times, others = left_open.scaled(seconds, left_open.joint), on_other_paths(key)
    if not others:
        return times
    chosen = path_by_draw(list(others), studies.seed, left_open.joint.size)
    for index, (other, moved) in enumerate(zip(others.values(), left_open.others, strict=True)):
        scenario, order, even = other
        there = moved.scaled(studies.result(scenario, order, even=even).metrics.iteration_s, moved.joint)
        times = np.where(chosen == index, there, times)
    return times


def seconds_on(studies: Studies, scenario: Scenario, path: OtherPath) -> Seconds:
    """Return seconds per iteration of the canonical `scenario` at the stated values, with another path between its
    GPUs.
    """
    if path in on_other_paths((scenario, PartOrder.NUMBERED, False)):
        return studies.result(path.scenario).metrics.iteration_s
    left_open = studies.factors(scenario)
    return float(left_open.scaled(studies.result(scenario).metrics.iteration_s, left_open.alone[path.name][0]))


def times_by_draw(
    studies: Studies,
    scenario: Scenario,
    even: bool,
    factors: Callable[[Key], TimeFactors],
    simulated: Callable[[Key], FloatArray | None],
    draws: int = DRAWS,
) -> FloatArray:
    """Return seconds per iteration of the canonical `scenario` under joint draws, float64[draws].

    factors: the effect of the assumptions in each draw. simulated: the simulated factors of the first draws, or None if
    all are estimated.
    """

    def placed(key: Key) -> tuple[float, FloatArray]:
        seconds = studies.result(scenario, key[1], even=even).metrics.iteration_s
        left_open, found = factors(key), simulated(key)
        if found is None:
            return seconds, estimated_times(studies, key, left_open, seconds)
        times = found * left_open.scaled(seconds, left_open.apart)[: found.size]
        if found.size < draws:
            times = np.append(times, estimated_times(studies, key, left_open, seconds)[found.size :])
        return seconds, times

    result = studies.result(scenario, even=even)
    seconds = result.metrics.iteration_s
    in_order = sorted((placed(key) for key in placements_of(scenario, even)), key=lambda one: one[0])
    # The numbered order of the parts is arbitrary, so it is no likelier than another order.
    share = (1.0 + position("placement", studies.seed, draws)) / 2.0
    times = in_order[0][1] ** (1.0 - share) * in_order[-1][1] ** share if len(in_order) > 1 else in_order[0][1]
    # The variation between sampled graphs is drawn per setting: how settings share it is unknown. The error of cost
    # laws is drawn per method, because it is the same at another bandwidth.
    graphs = normal_position(_graphs_of(scenario, even), studies.seed, draws)
    laws = normal_position(f"laws of {scenario.method.name}", studies.seed, draws)
    spread = np.sqrt(1.0 - result.law_share**2) * graphs + result.law_share * laws
    reach = np.where(spread < 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)
    return np.asarray(times * reach**spread)


def placements_of(scenario: Scenario, even: bool = False) -> list[Key]:
    """The simulations that give the times of a canonical setting under joint draws: one per order of its parts."""
    orders = () if even else placements(scenario)
    return [(scenario, order, even) for order in (orders if len(orders) > 1 else (PartOrder.NUMBERED,))]


def _graphs_of(scenario: Scenario, even: bool) -> str:
    """Return the name of the random stream for the variation between sampled graphs.

    It depends on the sampled graph and on the method, not on file names.
    """
    method, cluster, cut = scenario.method, scenario.cluster, scenario.partition
    parts = "even" if even else f"{cut.method} {cut.objective} {cut.algorithm} {cut.balance} {cut.imbalance} {cut.seed}"
    return (
        f"graphs of {method.name} {method.tau} {method.epsilon} {method.rate} {method.cache.describe()}, "
        f"{cluster.gpus} x {cluster.gpus_per_server} at {cluster.bandwidth}, {parts}"
    )


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


def least_time(scenario: Scenario, accesses: Source) -> tuple[Seconds, int]:
    """Return the lower bound on an iteration in seconds and the iterations per epoch. Raises ScenarioError."""
    counts = estimated_counts(scenario, accesses)
    lower = lower_bound(write_schedule(scenario, counts, accesses))
    slack = 1.0 if scenario.method.sampling().whole and counts.batches is None else SAMPLED_SLACK
    return lower * slack, 1 if counts.batches is None else counts.batches.per_epoch


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
