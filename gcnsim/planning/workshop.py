"""Many studies of one question: each asked once, slow inputs shared, both ends of the assumptions covered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.ids import Seconds
from gcnsim.knobs import MINI_BATCH, WHOLE_BLOCKS
from gcnsim.processes import each, each_counted
from gcnsim.scenario import CacheSize, MethodSpec, Scenario
from gcnsim.schedule import estimate
from gcnsim.study import (
    Corner,
    Placed,
    Placement,
    Result,
    holds,
    keeps_all,
    least_gpus,
    open_accesses,
    placements,
    resolve_model,
    study,
    write_schedule,
)
from gcnsim.trace import AccessCounts

Heard: TypeAlias = Callable[[int, int], object]
"""Told how many simulations are done, and of how many."""

Key: TypeAlias = tuple[Scenario, Corner, Placement]
"""One simulation."""

DRAWN_TO_RANK = 3
"""Graphs drawn to rank a candidate: counts of whole partitions differ little between draws."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated result with its 90 % interval over iterations and, for published datasets, over the assumptions;
    where GPUs are unequal, over the order of the parts among them.

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
        self._results: dict[Key, Result] = {}
        self._least: dict[Scenario, int | None] = {}

    @property
    def corners(self) -> tuple[Corner, ...]:
        """The ends of the assumptions that an interval covers."""
        return self.accesses.corners

    def prepare(
        self, likely: Sequence[Scenario], whole: Sequence[Scenario] = (), heard: Heard = lambda done, total: None
    ) -> None:
        """Study `likely`, and `whole` with both ends of the assumptions, side by side; asking later is then free.

        heard: is told of every few simulations that are done.
        """
        ends = [(asked, Corner.LIKELY, Placement.NUMBERED) for asked in likely]
        ends += [(asked, *end) for asked in whole for end in self._ends(asked)]
        keys = dict.fromkeys((canonical(asked), corner, placement) for asked, corner, placement in ends)
        missing = [key for key in keys if key not in self._results]
        self._read(list(dict.fromkeys((asked, corner) for asked, corner, _ in missing)))
        # The longest first, so that no process is left with one at the end.
        missing.sort(key=lambda key: -_effort(key[0]))
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            if more:
                heard(done, len(missing))

        for key, result in zip(missing, each_counted(self._study_counted, missing, self.processes, count), strict=True):
            self._results[key] = result

    def _study_counted(self, key: Key, add: Callable[[int], object]) -> Result:
        result = self._study(key)
        add(1)
        return result

    def result(
        self, scenario: Scenario, corner: Corner = Corner.LIKELY, placement: Placement = Placement.NUMBERED
    ) -> Result:
        """The study of `scenario` at `corner`, its parts in the order `placement`."""
        key = (canonical(scenario), corner, placement)
        if key not in self._results:
            self._results[key] = self._study(key)
        return self._results[key]

    def estimate(self, scenario: Scenario) -> Estimate:
        """The study of `scenario` with its interval, the ends of the assumptions included."""
        results = [self.result(scenario, *end) for end in self._ends(scenario)]
        return Estimate(
            scenario, self.result(scenario), min(one.low_s for one in results), max(one.high_s for one in results)
        )

    def _ends(self, scenario: Scenario) -> list[tuple[Corner, Placement]]:
        """The studies of `scenario` that its interval covers."""
        return [(corner, placement) for corner in self.corners for placement in placements(scenario)]

    def unsettled(self) -> list[Result]:
        """The results so far whose run ended before it settled."""
        return [result for result in self._results.values() if not result.settled]

    def allows(self, scenario: Scenario) -> bool:
        """Whether the workload can be cut for the scenario's workers."""
        return scenario.cluster.gpus <= self.accesses.most_gpus

    def check(self, scenario: Scenario) -> None:
        """Raises ScenarioError for a setting that the workload or the cluster does not allow."""
        self._read([(scenario, Corner.LIKELY)])

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
        """Seconds per iteration of full-graph training on the scenario's machine; None where it cannot be told."""
        try:
            return self.result(full_graph(scenario)).metrics.iteration_s
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

    def _study(self, key: Key) -> Result:
        scenario, corner, placement = key
        accesses = self.accesses if placement is Placement.NUMBERED else Placed(self.accesses, placement)
        return study(scenario, accesses, corner)

    def _guess(self, scenario: Scenario) -> Seconds:
        counts = mean_counts(self._counts(scenario, Corner.LIKELY))
        return estimate(write_schedule(scenario, counts, self.accesses))

    def _counts(self, scenario: Scenario, corner: Corner) -> AccessCounts:
        features = resolve_model(scenario.workload, self.accesses.declared).features
        return self.accesses.counts(scenario, features, corner)


def counted(progress: Callable[[str], object], told: str) -> Heard:
    """Says what is done next, and then how many of its simulations are done."""
    progress(told)
    return lambda done, total: progress(f"{told}: {done} of {total} runs done")


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
