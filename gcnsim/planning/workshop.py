"""Many studies of one question: each asked once, slow inputs shared, what the assumptions leave open of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.ids import FloatArray, Seconds
from gcnsim.knobs import MINI_BATCH, WHOLE_BLOCKS
from gcnsim.processes import each, each_counted
from gcnsim.scenario import CacheSize, MethodSpec, Scenario
from gcnsim.study import (
    Corner,
    Factors,
    Placed,
    Placement,
    Result,
    estimated_counts,
    estimated_s,
    factors,
    holds,
    keeps_all,
    least_gpus,
    open_accesses,
    placements,
    position,
    resolve_model,
    study,
    widest_bounds,
    write_schedule,
)

Heard: TypeAlias = Callable[[int, int], object]
"""Told how many simulations are done, and of how many."""

Key: TypeAlias = tuple[Scenario, Placement]
"""One simulation."""

INTERVAL: Final = (0.05, 0.95)
"""Quantiles of the draws between which the 90 % interval lies."""

NORMAL_90: Final = NormalDist().inv_cdf(0.95)
"""Standard deviations of a normal distribution on either side of its mean that hold 90 % of it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated result, and its time under every joint draw of the assumptions (`gcnsim.study.propagation`).

    scenario: the question as it was asked; the result's own may be its simpler equal (`canonical`). times: seconds per
    iteration, float64[draws]: of the assumed figures, of what the workload leaves open, of other drawn graphs, and where
    GPUs are unequal of the order of the parts among them. low_s, high_s: the 90 % interval of these; no lower than
    `lower_s`, the analytic bound with every assumption at its most favourable end, upper_s at its least favourable one.
    """

    scenario: Scenario
    result: Result
    times: FloatArray
    low_s: float
    high_s: float
    lower_s: float
    upper_s: float

    @property
    def iteration_s(self) -> float:
        """Mean seconds per iteration."""
        return self.result.metrics.iteration_s

    @property
    def epoch_s(self) -> float:
        """Seconds in which every training node is trained once."""
        return self.iteration_s * self.result.per_epoch

    @property
    def epoch_times(self) -> FloatArray:
        """Seconds of an epoch under every joint draw, float64[draws]."""
        return self.times * self.result.per_epoch


class Workshop:
    """Answers studies of scenarios that share one workload; the same scenario is never simulated twice.

    processes: how many to use for independent studies; the results do not depend on it. graph: the scenario's graph,
    where it is at hand already.
    """

    def __init__(self, scenario: Scenario, processes: int = 1, graph: Graph | None = None) -> None:
        self.accesses = open_accesses(scenario, graph, processes)
        self.processes = processes
        self.seed = scenario.run.seed
        """Of the joint draws of the assumptions: one set for all settings, so that they are compared like with like."""
        self._results: dict[Key, Result] = {}
        self._factors: dict[Scenario, Factors] = {}
        self._times: dict[Scenario, FloatArray] = {}
        self._bounds: dict[Scenario, tuple[Seconds, Seconds]] = {}
        self._least: dict[Scenario, int | None] = {}

    def prepare(
        self, likely: Sequence[Scenario], whole: Sequence[Scenario] = (), heard: Heard = lambda done, total: None
    ) -> None:
        """Study `likely`, and `whole` with all orders of the parts, side by side; asking later is then free.

        heard: is told of every few simulations that are done.
        """
        ends = [(asked, Placement.NUMBERED) for asked in likely]
        ends += [(asked, end) for asked in whole for end in placements(asked)]
        keys = dict.fromkeys((canonical(asked), placement) for asked, placement in ends)
        missing = [key for key in keys if key not in self._results]
        self._read(list(dict.fromkeys(asked for asked, _ in missing)))
        # The longest first, so that no process is left with one at the end.
        missing.sort(key=lambda key: -_effort(key[0]))
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            if more:
                heard(done, len(missing))

        found = each_counted(self._study_counted, missing, self.processes, count)
        for (scenario, placement), (result, left_open) in zip(missing, found, strict=True):
            self._results[scenario, placement] = result
            if left_open is not None:
                self._factors[scenario] = left_open

    def _study_counted(self, key: Key, add: Callable[[int], object]) -> tuple[Result, Factors | None]:
        scenario, placement = key
        result = self._study(key)
        known = placement is not Placement.NUMBERED or scenario in self._factors
        left_open = None if known else factors(scenario, self.accesses, self.seed)
        add(1)
        return result, left_open

    def result(self, scenario: Scenario, placement: Placement = Placement.NUMBERED) -> Result:
        """The study of `scenario`, its parts in the order `placement`."""
        key = (canonical(scenario), placement)
        if key not in self._results:
            self._results[key] = self._study(key)
        return self._results[key]

    def factors(self, scenario: Scenario) -> Factors:
        """What the assumptions leave open of the time of `scenario`."""
        asked = canonical(scenario)
        if asked not in self._factors:
            self._factors[asked] = factors(asked, self.accesses, self.seed)
        return self._factors[asked]

    def times(self, scenario: Scenario) -> FloatArray:
        """Seconds per iteration of `scenario` under every joint draw of the assumptions, float64[draws]."""
        asked = canonical(scenario)
        if asked not in self._times:
            self._times[asked] = self._drawn_times(asked)
        return self._times[asked]

    def _drawn_times(self, scenario: Scenario) -> FloatArray:
        result = self.result(scenario)
        seconds = result.metrics.iteration_s
        times = seconds * self.factors(scenario).joint
        others = [self.result(scenario, order).metrics.iteration_s for order in placements(scenario)]
        if len(others) > 1:
            place = position("placement", self.seed)
            times = times * np.where(place < 0, min(others) / seconds, max(others) / seconds) ** np.abs(place)
        # What other drawn graphs would change is each setting's own: nobody knows how settings share it.
        chance = position(f"graphs of {scenario.cluster}, {scenario.method}", self.seed)
        spread = np.array([NormalDist().inv_cdf((1.0 + each) / 2.0) for each in chance]) / NORMAL_90
        reach = np.where(spread < 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)
        return np.asarray(times * reach**spread)

    def estimate(self, scenario: Scenario) -> Estimate:
        """The study of `scenario` with its interval."""
        times = self.times(scenario)
        low, high = (float(end) for end in np.quantile(times, INTERVAL))
        lower, upper = self.bounds(scenario)
        result = self.result(scenario)
        now = result.metrics.iteration_s
        # The stated values are possible too, whatever the draws say.
        low, high = min(max(low, lower), now), max(high, now)
        return Estimate(scenario, result, times, low, high, min(lower, low), max(upper, high))

    def bounds(self, scenario: Scenario) -> tuple[Seconds, Seconds]:
        """Analytic bounds of the iteration with every assumption at its most, and at its least favourable end."""
        asked = canonical(scenario)
        if asked not in self._bounds:
            ends = self.factors(asked).workload
            corners = {True: Corner.LIKELY, False: Corner.LIKELY}
            if ends is not None:
                corners = {best: Corner.LOW if (ends[0] < ends[1]) == best else Corner.HIGH for best in corners}
            best, worst = widest_bounds(asked, self.accesses, corners)
            stated = self.result(asked).bounds
            self._bounds[asked] = min(best.lower_s, stated.lower_s), max(worst.upper_s, stated.upper_s)
        return self._bounds[asked]

    def unsettled(self) -> list[Result]:
        """The results so far whose run ended before it settled."""
        return [result for result in self._results.values() if not result.settled]

    def allows(self, scenario: Scenario) -> bool:
        """Whether the workload can be cut for the scenario's workers."""
        return scenario.cluster.gpus <= self.accesses.most_gpus

    def check(self, scenario: Scenario) -> None:
        """Raises ScenarioError for a setting that the workload or the cluster does not allow."""
        self._read([scenario])

    def least_gpus(self, scenario: Scenario) -> int | None:
        """The fewest GPUs that hold the scenario; None where that is not known."""
        key = canonical(scenario)
        if key not in self._least:
            self._least[key] = least_gpus(key, self.accesses)
        return self._least[key]

    def holds(self, scenario: Scenario) -> bool:
        """Whether the GPUs hold the scenario, or may, for all that is known without simulating it."""
        return holds(scenario, self.accesses) is not False

    def baseline(self, scenario: Scenario) -> Seconds | None:
        """Seconds per iteration of full-graph training on the scenario's machine; None where it cannot be known."""
        try:
            return self.result(full_graph(scenario)).metrics.iteration_s
        except ScenarioError:
            if scenario.method.name in (*MINI_BATCH, *WHOLE_BLOCKS):
                return None
            raise

    def guesses(self, scenarios: Sequence[Scenario]) -> list[Seconds]:
        """Analytic estimates of `scenarios` from the mean of a few drawn graphs each, without simulating."""
        for scenario in scenarios:
            counts = estimated_counts(scenario, self.accesses)
        if scenarios:
            write_schedule(replace(scenario, faults=()), counts, self.accesses)
        return each(self._guess, scenarios, self.processes)

    def _guess(self, scenario: Scenario) -> Seconds:
        return estimated_s(scenario, self.accesses)

    def _read(self, scenarios: Sequence[Scenario]) -> None:
        """Read and record what `scenarios` need before processes part ways: what is slow is then shared."""
        for scenario in scenarios:
            features = resolve_model(scenario.workload, self.accesses.declared).features
            counts = self.accesses.counts(scenario, features, Corner.LIKELY)
            ends = [estimated_counts(scenario, self.accesses, corner) for corner in self.accesses.corners]
        if scenarios:
            write_schedule(scenario, ends[0] if len(ends) > 1 else counts, self.accesses)

    def _study(self, key: Key) -> Result:
        scenario, placement = key
        accesses = self.accesses if placement is Placement.NUMBERED else Placed(self.accesses, placement)
        return study(scenario, accesses)


def counted(progress: Callable[[str], object], told: str) -> Heard:
    """Says what is done next, and then how many of its simulations are done."""
    progress(told)
    return lambda done, total: progress(f"{told}: {done} of {total} runs done")


def _effort(scenario: Scenario) -> int:
    """How long a study takes, in no unit: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = scenario.method
    return scenario.cluster.gpus**2 * (1 if keeps_all(method) else 4 + method.tau)


def canonical(scenario: Scenario) -> Scenario:
    """The scenario under the simplest method that runs the same schedule, so that equal questions are asked once.

    PSC-GCN at epsilon 1 without a cache is PipeGCN at tau 1 and full-graph training at tau 0, as BNS-GCN is at rate 1.
    """
    method = scenario.method
    if method.name not in ("psc-gcn", "bns-gcn") or not keeps_all(method) or not method.cache.empty:
        return scenario
    if method.tau == 0:
        return full_graph(scenario)
    if method.tau == 1:
        return replace(scenario, method=MethodSpec.of("pipegcn"))
    return scenario


def full_graph(scenario: Scenario) -> Scenario:
    """Full-graph training on the scenario's machine, with its overlap."""
    return replace(scenario, method=MethodSpec.of("full-graph", overlap=scenario.method.overlap))


def with_knobs(scenario: Scenario, tau: int, epsilon: float, cache: CacheSize) -> Scenario:
    """The scenario with these knobs, under the simplest method that has them."""
    base = scenario.method
    if base.name == "psc-gcn":
        method = replace(base, overlap="none", tau=tau, epsilon=epsilon, cache=cache)
    else:
        method = MethodSpec.of("psc-gcn", tau=tau, epsilon=epsilon, cache=cache)
    return canonical(replace(scenario, method=method.overlapping(base.overlap)))
