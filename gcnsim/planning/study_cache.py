"""The evaluator of a question's settings: bounds, estimates, simulations and joint draws, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, TypeVar

from gcnsim.core.clock import OnProgress, running_total
from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.core.processes import parallel_map, parallel_map_counted
from gcnsim.engine import engine
from gcnsim.graph import Graph
from gcnsim.planning.alternatives import holds, least_gpus
from gcnsim.planning.candidate import (
    Candidate,
    Estimate,
    Key,
    Study,
    alike,
    baseline_of,
    canonical,
    central,
    effort_of,
    estimated_alike,
    least_time,
    on_other_paths,
    times_by_draw,
)
from gcnsim.results import MaxWait
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result, simulate_scenario, write_schedule
from gcnsim.simulation.diagnosis import EvenPartition
from gcnsim.simulation.model import Model, resolve_model
from gcnsim.simulation.open_assumptions import estimated_counts, estimated_s
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.part_orders import placed_counts
from gcnsim.simulation.placement import PartOrder, Placed, placements
from gcnsim.simulation.propagation import TimeFactors, best_lower_s, factors, with_ends
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts

T = TypeVar("T")

FEW_WORKERS: Final = 12
"""Up to this many workers, estimates of a few milliseconds each run in one process."""

ALONE: Final = 4_000
"""Most effort (`effort_of`) of studies for one process: others take a while to begin and find out the same again."""


class StudyCache:
    """Studies scenarios that share one workload; the same scenario is never simulated twice.

    processes: processes for independent studies; results do not depend on it. graph: the scenario's graph, if already
    read.
    """

    def __init__(self, scenario: Scenario, processes: int = 1, graph: Graph | None = None) -> None:
        self.accesses = open_source(scenario, graph, processes)
        self.processes = processes
        self.max_wait: MaxWait | None = None
        """The number of simulated draws under a time limit."""
        self.seed = scenario.run.seed
        """The seed of the joint draws of the assumptions; all settings share it, so they are comparable."""
        self._results: dict[Key, Result] = {}
        self._factors: dict[Key, TimeFactors] = {}
        self._joint: dict[Key, TimeFactors] = {}
        self._draws: dict[Key, FloatArray] = {}
        self._times: dict[tuple[Scenario, bool], FloatArray] = {}
        self._closer: dict[Scenario, FloatArray] = {}
        self._lower: dict[Scenario, Seconds] = {}
        self._least: dict[Scenario, int | None] = {}
        self._refused: set[Scenario] = set()

    def model(self, scenario: Scenario) -> Model:
        """Return the scenario's model, with the widths that the workload declares."""
        return resolve_model(scenario.workload, self.accesses.declared)

    def counts(self, scenario: Scenario, end: RangeEnd = RangeEnd.LIKELY) -> AccessCounts:
        """Return the counts of feature rows that an iteration reads, at one end of the workload's uncertainty."""
        return placed_counts(self.accesses, scenario, self.model(scenario).features, end)

    def allows(self, scenario: Scenario) -> bool:
        """Whether the workload can be partitioned for the scenario's workers."""
        return scenario.cluster.gpus <= self.accesses.most_gpus

    def check(self, scenario: Scenario) -> None:
        """Raise ScenarioError for a setting that the workload or the cluster does not allow."""
        self._read([scenario])

    def supports(self, scenario: Scenario) -> bool:
        """Whether the workload and the cluster allow the setting."""
        with suppress(ScenarioError):
            self.check(scenario)
            return True
        return False

    def fits(self, scenario: Scenario) -> bool:
        """Whether the GPUs have enough memory for the scenario, as far as is known without simulating it."""
        return holds(scenario, self.accesses) is not False

    def least_gpus(self, scenario: Scenario) -> int | None:
        """Return the fewest GPUs with enough memory for the scenario; None if unknown."""
        key = canonical(scenario)
        if key not in self._least:
            self._least[key] = least_gpus(key, self.accesses)
        return self._least[key]

    def least_times(self, scenarios: Sequence[Scenario]) -> list[tuple[Seconds, int] | None]:
        """Return, per scenario, the lower bound on its iteration in seconds and its iterations per epoch; None if not
        allowed.
        """
        return self._analytic(lambda scenario: least_time(scenario, self.accesses), scenarios, None, self.processes)

    def estimates(self, scenarios: Sequence[Scenario]) -> list[Seconds]:
        """Return analytic estimates of `scenarios` from a mean sampled graph; infinite for scenarios that are not
        allowed.
        """
        # Of few workers an estimate takes less than a process; what is found out for it is there for all that follow.
        processes = 1 if all(one.cluster.gpus <= FEW_WORKERS for one in scenarios) else self.processes
        with suppress(ScenarioError):
            for last in scenarios[-1:] if processes > 1 else ():
                write_schedule(replace(last, faults=()), estimated_counts(last, self.accesses), self.accesses)
        return self._analytic(lambda scenario: estimated_s(scenario, self.accesses), scenarios, inf, processes)

    def _analytic(
        self, function: Callable[[Scenario], T], scenarios: Sequence[Scenario], refused: T, processes: int
    ) -> list[T]:
        """Apply `function` in parallel, once to scenarios that are alike; `refused` replaces unsupported results."""

        def one(scenario: Scenario) -> T:
            try:
                return function(scenario)
            except ScenarioError:
                return refused

        distinct = list(dict.fromkeys(map(alike, scenarios)))
        self.read_counts(distinct)
        known = dict(zip(distinct, parallel_map(one, distinct, processes), strict=True))
        return [known[alike(scenario)] for scenario in scenarios]

    def read_counts(self, scenarios: Sequence[Scenario]) -> None:
        """Count the rows that the scenarios read before processes fork, so that all of them share the counts."""
        for scenario in scenarios:
            with suppress(ScenarioError):
                estimated_counts(scenario, self.accesses)

    def prepare(
        self,
        likely: Sequence[Scenario],
        whole: Sequence[Scenario] = (),
        on_progress: OnProgress = lambda done, total: None,
    ) -> None:
        """Study `likely`, and `whole` with all orders of the parts, in parallel; later calls return at once."""
        keys = [(scenario, PartOrder.NUMBERED, False) for scenario in likely]
        keys += [(scenario, order, False) for scenario in whole for order in placements(scenario)]
        self._simulate(keys, on_progress, frozenset(map(canonical, whole)))

    def explore(
        self,
        base: Scenario,
        changed: Sequence[Scenario],
        even: bool = False,
        on_progress: OnProgress = lambda done, total: None,
        useless: Sequence[Scenario] = (),
    ) -> None:
        """Study those of `changed` that may change the time of `base`, and `base` with balanced parts if `even`.

        useless: changes proven to gain less than PRECISION; studied only if their estimate differs in some draws.
        """
        keys = [(scenario, PartOrder.NUMBERED, False) for scenario in changed]
        keys += [(base, PartOrder.NUMBERED, True)] if even else []
        similar = self.factors(base), frozenset(map(canonical, useless))
        self._simulate(keys, on_progress, lenient=True, similar=similar)

    def known(self, scenario: Scenario, even: bool = False) -> bool:
        """Whether `scenario` has been studied."""
        return (canonical(scenario), PartOrder.NUMBERED, even) in self._results

    def refused(self, scenario: Scenario) -> bool:
        """Whether `scenario` was explored and the method or the machine does not allow it."""
        return canonical(scenario) in self._refused

    def _simulate(
        self,
        wanted: Sequence[Key],
        on_progress: OnProgress,
        rows: frozenset[Scenario] = frozenset(),
        *,
        lenient: bool = False,
        similar: tuple[TimeFactors, frozenset[Scenario]] | None = None,
    ) -> None:
        """Study the keys of `wanted` that were not studied yet.

        rows: settings whose bound and bottleneck are shown. lenient: refused settings are noted, not raised. similar:
        settings with the same estimate as these are not studied.
        """
        keys = dict.fromkeys((canonical(scenario), order, even) for scenario, order, even in wanted)
        missing = [key for key in keys if key not in self._results]
        self._read(list(dict.fromkeys(scenario for scenario, _, _ in missing)), lenient=lenient)
        # The longest first, so that no process still works on one at the end.
        missing.sort(key=lambda key: -effort_of(key[0]))

        def one(key: Key, add: Callable[[int], object]) -> Study:
            try:
                found = self._study(key, similar[0] if similar is not None and key[0] in similar[1] else None)
            except ScenarioError:
                if not lenient:
                    raise
                found = Study(refused=True)
            if key[0] in rows and key[1] is PartOrder.NUMBERED and found.result and found.left_open:
                # Computed here on all cores, and kept with the result.
                _ = found.result.limit
                found = found._replace(lower=self.lower(key[0]))
            add(1)
            return found

        engine()  # found before processes are forked, so once for all of them
        processes = self.processes if sum(effort_of(key[0]) for key in missing) > ALONE else 1
        studied = parallel_map_counted(one, missing, processes, running_total(on_progress, len(missing)))
        for key, found in zip(missing, studied, strict=True):
            self._results |= dict(found.paths)
            if found.lower is not None:
                self._lower[alike(key[0])] = found.lower
            if found.result is not None:
                self._results[key] = found.result
            if found.left_open is not None:
                self._factors[_alike(key)] = found.left_open
            if found.refused:
                self._refused.add(key[0])

    def _study(self, key: Key, similar: TimeFactors | None) -> Study:
        """Return the study of `key` and the effect of its assumptions. No result if its estimate equals one of
        `similar`.
        """
        left_open = self._factors_of(key)
        if similar is not None and estimated_alike(left_open, similar):
            return Study(left_open=left_open)
        paths = tuple(
            (other, simulate_scenario(other[0], self.accesses_of(other))) for other in on_other_paths(key).values()
        )
        return Study(simulate_scenario(key[0], self.accesses_of(key)), left_open, paths=paths)

    def accesses_of(self, key: Key) -> Source:
        """Return the accesses that the study of `key` reads."""
        _, order, even = key
        accesses: Source = EvenPartition(self.accesses) if even else self.accesses
        return accesses if order is PartOrder.NUMBERED else Placed(accesses, order)

    def result(self, scenario: Scenario, order: PartOrder = PartOrder.NUMBERED, *, even: bool = False) -> Result:
        """Return the result of `scenario` with its parts in the order `order`, or perfectly balanced."""
        key = (canonical(scenario), order, even)
        if key not in self._results:
            self._results[key] = simulate_scenario(key[0], self.accesses_of(key))
        return self._results[key]

    def factors(self, scenario: Scenario, order: PartOrder = PartOrder.NUMBERED, *, even: bool = False) -> TimeFactors:
        """Return the effect of the assumptions on the time of `scenario`, with its parts in the order `order`."""
        key = (alike(scenario), order, even)
        if key not in self._factors:
            self._factors[key] = self._new_factors(key)
        return self._factors[key]

    def _new_factors(self, key: Key, *, ends: bool = True) -> TimeFactors:
        if key in self._joint:
            return with_ends(self._joint[key], key[0], self.accesses_of(key), self.seed)
        return factors(key[0], self.accesses_of(key), self.seed, ends=ends)

    def joint(self, scenario: Scenario) -> TimeFactors:
        """Return the same as `factors` of a scenario of `prepare_joint`, perhaps without the ends of assumptions."""
        key = (alike(scenario), PartOrder.NUMBERED, False)
        return self._factors.get(key) or self._joint[key]

    def prepare_joint(self, scenarios: Sequence[Scenario], now: int) -> None:
        """Compute `joint` of the scenarios in parallel, unless it is known of the first `now`."""
        keys = dict.fromkeys((alike(scenario), PartOrder.NUMBERED, False) for scenario in scenarios)
        missing = [key for key in keys if key not in self._factors and key not in self._joint]
        needed = {alike(scenario) for scenario in scenarios[:now]}
        if not any(scenario in needed for scenario, _, _ in missing):
            return
        self._read([scenario for scenario, _, _ in missing])
        made = parallel_map(partial(self._new_factors, ends=False), missing, self.processes)
        self._joint |= dict(zip(missing, made, strict=True))

    def keep_draws(self, draws: Mapping[Key, FloatArray]) -> None:
        """Keep the simulated factors of joint draws, float64[draws] each (`gcnsim.planning.simulated_draws`)."""
        self._draws |= draws

    def keep_closer(self, draws: Mapping[Scenario, FloatArray]) -> None:
        """Keep seconds per iteration under extra joint draws (`gcnsim.planning.simulated_draws`)."""
        self._closer |= {canonical(scenario): times for scenario, times in draws.items()}

    @property
    def with_draws(self) -> tuple[Scenario, ...]:
        """Return the settings with simulated joint draws, in the order in which they were kept."""
        return tuple(dict.fromkeys(scenario for scenario, _, _ in self._draws))

    def times(self, scenario: Scenario, *, even: bool = False) -> FloatArray:
        """Return estimated seconds per iteration of `scenario` under every joint draw of the assumptions,
        float64[draws].
        """
        key = (canonical(scenario), even)
        if key not in self._times:
            self._times[key] = times_by_draw(self, *key, self._factors_of, lambda _: None)
        return self._times[key]

    def _factors_of(self, key: Key) -> TimeFactors:
        return self.factors(key[0], key[1], even=key[2])

    def candidate(self, scenario: Scenario) -> Candidate:
        """Return the study of `scenario` under every joint draw."""
        simplest, simulated = canonical(scenario), None
        if simplest in self.with_draws:
            simulated = times_by_draw(self, simplest, False, self._factors_of, self._draws.__getitem__)
        result, times, closer = self.result(scenario), self.times(scenario), self._closer.get(simplest)
        return Candidate(scenario, result, times, simulated, closer=closer)

    def estimate(self, scenario: Scenario, *, bounded: bool = True) -> Estimate:
        """Return the study of `scenario` with its interval.

        bounded: whether the lower bound in the best case is wanted too; it is found anyway where it limits the
        interval, which nothing above the bound at the stated values does.
        """
        candidate = self.candidate(scenario)
        result = candidate.result
        lower, upper = result.bounds.lower_s, result.bounds.upper_s
        now = result.metrics.iteration_s
        low, high = central(candidate.closest)
        if bounded or low < min(lower, result.low_s):
            lower = min(lower, self.lower(scenario))
        # The stated values are possible too, even if no draw reaches them.
        low, high = min(max(low, min(lower, result.low_s)), now), max(high, now)
        times = (candidate.estimated, candidate.simulated)
        return Estimate(scenario, result, *times, low, high, min(lower, low), max(upper, high))

    def lower(self, scenario: Scenario) -> Seconds:
        """Return the analytic lower bound of the iteration with every assumption at its most favourable end."""
        key = alike(scenario)
        if key not in self._lower:
            ends = self.factors(key).workload or (1.0, 1.0)
            bound = RangeEnd.LIKELY if min(ends) >= 1.0 else RangeEnd.LOW if ends[0] < ends[1] else RangeEnd.HIGH
            sources = [self.accesses_of((key, order, False)) for order in placements(key)]
            self._lower[key] = min(best_lower_s(key, source, bound) for source in sources)
        return self._lower[key]

    def baseline(self, scenario: Scenario) -> Seconds | None:
        """Return seconds per iteration of full-graph training on the scenario's machine, or None if unknown."""
        if (compared := baseline_of(scenario)) is None:
            return None
        try:
            return self.result(compared).metrics.iteration_s
        except ScenarioError:
            if scenario.method.needs_boundary:
                raise
            return None

    def forget(self) -> None:
        """Drop all results but keep the inputs, for callers that study thousands of settings once each."""
        for kept in (self._results, self._factors, self._joint, self._draws, self._times, self._closer, self._lower):
            kept.clear()

    def unsettled(self) -> list[Result]:
        """Return the results whose run ended before it reached a steady state."""
        return [result for result in self._results.values() if not result.settled]

    def _read(self, scenarios: Sequence[Scenario], *, lenient: bool = False) -> None:
        """Read and record the inputs of `scenarios` before processes fork, so that slow ones are shared.

        lenient: skip scenarios that the method or the machine does not allow.
        """
        for scenario in scenarios:
            with suppress(*([ScenarioError] if lenient else [])):
                counts = self.counts(scenario)
                ends = [estimated_counts(scenario, self.accesses, bound) for bound in self.accesses.assumption_bounds]
                if scenario is scenarios[-1]:
                    write_schedule(scenario, ends[0] if len(ends) > 1 else counts, self.accesses)


def _alike(key: Key) -> Key:
    """Return the key with the same estimates (`alike`)."""
    return alike(key[0]), *key[1:]
