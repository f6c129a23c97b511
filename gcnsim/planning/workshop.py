"""Many studies of one question: each asked once, slow inputs shared, both ends of the assumptions covered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gcnsim.scenario import CacheSize, MethodSpec, Scenario
from gcnsim.schedule import Bounds, bounds
from gcnsim.study import Corner, Result, open_accesses, resolve_model, study, write_schedule
from gcnsim.trace import AccessCounts


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated result with its 90 % interval over iterations and, for published datasets, over the assumptions."""

    result: Result
    low_s: float
    high_s: float

    @property
    def iteration_s(self) -> float:
        """Mean seconds per iteration."""
        return self.result.metrics.iteration_s


class Workshop:
    """Answers studies of scenarios that share one workload; the same scenario is never simulated twice."""

    def __init__(self, scenario: Scenario) -> None:
        self.accesses = open_accesses(scenario)
        self._results: dict[tuple[Scenario, Corner], Result] = {}

    def result(self, scenario: Scenario, corner: Corner = Corner.LIKELY) -> Result:
        """The study of `scenario` at `corner`."""
        key = (canonical(scenario), corner)
        if key not in self._results:
            self._results[key] = study(key[0], self.accesses, corner)
        return self._results[key]

    def estimate(self, scenario: Scenario) -> Estimate:
        """The study of `scenario` with its interval, the ends of the assumptions included."""
        likely = self.result(scenario)
        corners = [] if self.accesses.graph is not None else [Corner.LOW, Corner.HIGH]
        results = [likely, *(self.result(scenario, corner) for corner in corners)]
        return Estimate(likely, min(each.low_s for each in results), max(each.high_s for each in results))

    def bound(self, scenario: Scenario) -> Bounds:
        """The analytic bounds of `scenario` from its mean access counts, without simulating."""
        features = resolve_model(scenario.workload, self.accesses.graph).features
        counts = self.accesses.counts(scenario, features, Corner.LIKELY)
        return bounds(write_schedule(scenario, mean_counts(counts), self.accesses))


def mean_counts(counts: AccessCounts) -> AccessCounts:
    """One graph with the mean of all of `counts`, rounded to whole rows and edges."""
    if counts.iterations == 1:
        return counts
    mean = {
        name: getattr(counts, name).mean(axis=0, keepdims=True).round().astype("int64")
        for name in ("rows", "hits", "inner_edges", "boundary_edges")
    }
    return replace(counts, **mean)


def canonical(scenario: Scenario) -> Scenario:
    """The scenario under the simplest method that runs the same schedule, so that equal questions are asked once.

    PSC-GCN at epsilon 1 without a cache is PipeGCN at tau 1 and full-graph training at tau 0.
    """
    method = scenario.method
    if method.name != "psc-gcn" or method.epsilon < 1.0 or not method.cache.empty:
        return scenario
    if method.tau == 0:
        return replace(scenario, method=MethodSpec.of("full-graph"))
    if method.tau == 1:
        return replace(scenario, method=MethodSpec.of("pipegcn"))
    return scenario


def with_knobs(scenario: Scenario, tau: int, epsilon: float, cache: CacheSize) -> Scenario:
    """The scenario with these knobs, under the simplest method that has them."""
    base = scenario.method
    if base.name == "psc-gcn":
        method = replace(base, tau=tau, epsilon=epsilon, cache=cache)
    else:
        method = MethodSpec.of("psc-gcn", tau=tau, epsilon=epsilon, cache=cache)
    return canonical(replace(scenario, method=method))
