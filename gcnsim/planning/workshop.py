"""Many studies of one question: each asked once, slow inputs shared, both ends of the assumptions covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.ids import Seconds
from gcnsim.knobs import MINI_BATCH, WHOLE_BLOCKS
from gcnsim.processes import each
from gcnsim.scenario import CacheSize, MethodSpec, Scenario
from gcnsim.schedule import estimate
from gcnsim.study import Corner, Result, keeps_all, open_accesses, resolve_model, study, write_schedule
from gcnsim.trace import AccessCounts

DRAWN_TO_RANK = 3
"""Graphs drawn to rank a candidate: counts of whole partitions differ little between draws."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated result with its 90 % interval over iterations and, for published datasets, over the assumptions.

    scenario: the question as it was asked; the result's own may be its simpler equal (`canonical`).
    """

    scenario: Scenario
    result: Result
    low_s: float
    high_s: float

    @property
    def iteration_s(self) -> float:
        """Mean seconds per iteration."""
        return self.result.metrics.iteration_s


class Workshop:
    """Answers studies of scenarios that share one workload; the same scenario is never simulated twice.

    processes: how many to use for independent studies; the results do not depend on it. graph: the scenario's graph,
    where it is at hand already.
    """

    def __init__(self, scenario: Scenario, processes: int = 1, graph: Graph | None = None) -> None:
        self.accesses = open_accesses(scenario, graph, processes)
        self.processes = processes
        self._results: dict[tuple[Scenario, Corner], Result] = {}

    @property
    def corners(self) -> tuple[Corner, ...]:
        """The ends of the assumptions that an interval covers."""
        return self.accesses.corners

    def prepare(self, likely: Sequence[Scenario], whole: Sequence[Scenario] = ()) -> None:
        """Study `likely`, and `whole` with both ends of the assumptions, side by side; asking later is then free."""
        pairs = [(asked, Corner.LIKELY) for asked in likely]
        pairs += [(asked, corner) for asked in whole for corner in self.corners]
        keys = dict.fromkeys((canonical(asked), corner) for asked, corner in pairs)
        missing = [key for key in keys if key not in self._results]
        self._read(missing)
        # The longest first, so that no process is left with one at the end.
        missing.sort(key=lambda key: -_effort(key[0]))
        for key, result in zip(missing, each(self._study, missing, self.processes), strict=True):
            self._results[key] = result

    def result(self, scenario: Scenario, corner: Corner = Corner.LIKELY) -> Result:
        """The study of `scenario` at `corner`."""
        key = (canonical(scenario), corner)
        if key not in self._results:
            self._results[key] = self._study(key)
        return self._results[key]

    def estimate(self, scenario: Scenario) -> Estimate:
        """The study of `scenario` with its interval, the ends of the assumptions included."""
        results = [self.result(scenario, corner) for corner in self.corners]
        return Estimate(
            scenario, self.result(scenario), min(one.low_s for one in results), max(one.high_s for one in results)
        )

    def unsettled(self) -> list[Result]:
        """The results so far whose run ended before it settled."""
        return [result for result in self._results.values() if not result.settled]

    def allows(self, scenario: Scenario) -> bool:
        """Whether the workload can be cut for the scenario's workers."""
        return scenario.cluster.gpus <= self.accesses.most_gpus

    def check(self, scenario: Scenario) -> None:
        """Raises ScenarioError for a setting that the workload or the cluster does not allow."""
        self._read([(scenario, Corner.LIKELY)])

    def baseline(self, scenario: Scenario) -> Seconds | None:
        """Seconds per iteration of full-graph training on the scenario's machine; None where it cannot be told."""
        try:
            return self.result(replace(scenario, method=MethodSpec.of("full-graph"))).metrics.iteration_s
        except ScenarioError:
            if scenario.method.name in (*MINI_BATCH, *WHOLE_BLOCKS):
                return None
            raise

    def guesses(self, scenarios: Sequence[Scenario]) -> list[Seconds]:
        """Analytic estimates of `scenarios` from the mean of a few drawn graphs each, without simulating."""
        few = [
            replace(asked, run=replace(asked.run, iterations=min(asked.run.iterations, DRAWN_TO_RANK)), faults=())
            for asked in scenarios
        ]
        self._read([(scenario, Corner.LIKELY) for scenario in few])
        return each(self._guess, few, self.processes)

    def _read(self, keys: Sequence[tuple[Scenario, Corner]]) -> None:
        """Read and record what `keys` need before processes part ways: what is slow is then shared."""
        for scenario, corner in keys:
            counts = self._counts(scenario, corner)
        if keys:
            write_schedule(scenario, mean_counts(counts), self.accesses)

    def _study(self, key: tuple[Scenario, Corner]) -> Result:
        return study(key[0], self.accesses, key[1])

    def _guess(self, scenario: Scenario) -> Seconds:
        counts = mean_counts(self._counts(scenario, Corner.LIKELY))
        return estimate(write_schedule(scenario, counts, self.accesses))

    def _counts(self, scenario: Scenario, corner: Corner) -> AccessCounts:
        features = resolve_model(scenario.workload, self.accesses.declared).features
        return self.accesses.counts(scenario, features, corner)


def _effort(scenario: Scenario) -> int:
    """How long a study takes, in no unit: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = scenario.method
    return scenario.cluster.gpus**2 * (1 if keeps_all(method) else 4 + method.tau)


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

    PSC-GCN at epsilon 1 without a cache is PipeGCN at tau 1 and full-graph training at tau 0, as BNS-GCN is at rate 1.
    """
    method = scenario.method
    if method.name not in ("psc-gcn", "bns-gcn") or not keeps_all(method) or not method.cache.empty:
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
