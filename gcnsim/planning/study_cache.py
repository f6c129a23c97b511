"""Many studies of one question: each asked once, slow inputs shared, what the assumptions leave open of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Final, TypeAlias

from gcnsim.alternatives import holds, least_gpus
from gcnsim.clock import TimeLeft
from gcnsim.diagnosis import EvenPartition
from gcnsim.engine import engine
from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.ids import FloatArray, Seconds
from gcnsim.machine import resolve_machine
from gcnsim.methods import BASELINE, create_method
from gcnsim.planning.candidate import Candidate, Estimate, central
from gcnsim.planning.drawn_times import Key, drawn_times
from gcnsim.planning.other_paths import on_other_paths
from gcnsim.planning.studied import Studied, effort_of, estimated_alike
from gcnsim.processes import parallel_map, parallel_map_counted
from gcnsim.results import MaxWait
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result, answering, study, write_schedule
from gcnsim.sources import RangeEnd, Source, open_source, resolve_model
from gcnsim.uncertainty import (
    Factors,
    Placed,
    Placement,
    best_lower_s,
    estimated_counts,
    estimated_s,
    factors,
    placements,
)

OnProgress: TypeAlias = Callable[[int, int], object]
"""Told how many simulations are done, and of how many."""


FEW_WORKERS: Final = 12
"""Up to so many workers, estimates of a few milliseconds each are made in one process."""


class StudyCache:
    """Answers studies of scenarios that share one workload; the same scenario is never simulated twice.

    processes: how many to use for independent studies; the results do not depend on it. graph: the scenario's graph,
    where it is at hand already.
    """

    def __init__(self, scenario: Scenario, processes: int = 1, graph: Graph | None = None) -> None:
        self.accesses = open_source(scenario, graph, processes)
        self.processes = processes
        self.max_wait: MaxWait | None = None
        """How many draws were simulated in a time that was limited."""
        self.seed = scenario.run.seed
        """Of the joint draws of the assumptions: one set for all settings, so that they are compared like with like."""
        self._results: dict[Key, Result] = {}
        self._factors: dict[Key, Factors] = {}
        self._drawn: dict[Key, FloatArray] = {}
        self._times: dict[tuple[Scenario, bool], FloatArray] = {}
        self._closer: dict[Scenario, FloatArray] = {}
        self._lower: dict[Scenario, Seconds] = {}
        self._least: dict[Scenario, int | None] = {}
        self._refused: set[Scenario] = set()

    def prepare(
        self,
        likely: Sequence[Scenario],
        whole: Sequence[Scenario] = (),
        on_progress: OnProgress = lambda done, total: None,
    ) -> None:
        """Study `likely`, and `whole` with all orders of the parts, side by side; asking later is then free.

        on_progress: is told of every few simulations that are done.
        """
        ends = [(asked, Placement.NUMBERED) for asked in likely]
        ends += [(asked, end) for asked in whole for end in placements(asked)]
        bounded = frozenset(map(canonical, whole))
        self._simulate([(asked, placement, False) for asked, placement in ends], on_progress, bounded)

    def explore(
        self,
        base: Scenario,
        moved: Sequence[Scenario],
        even: bool = False,
        on_progress: OnProgress = lambda done, total: None,
        useless: Sequence[Scenario] = (),
    ) -> None:
        """Study those of `moved` that may change the time of `base`.

        even: study `base` in even parts too. useless: those of `moved` that are proven to bring less than PRECISION;
        one of them is studied only where its estimate is not within PRECISION of that of `base` in nearly every draw,
        since it may still be slower. `matters` says which were studied, `refused` which the method or the machine does
        not allow.
        """
        keys = [(each, Placement.NUMBERED, False) for each in moved]
        keys += [(base, Placement.NUMBERED, True)] if even else []
        self._simulate(
            keys, on_progress, lenient=True, alike=self.factors(base), useless=frozenset(map(canonical, useless))
        )

    def matters(self, scenario: Scenario, even: bool = False) -> bool:
        """Whether `scenario` has been studied."""
        return (canonical(scenario), Placement.NUMBERED, even) in self._results

    def refused(self, scenario: Scenario) -> bool:
        """Whether `scenario` was explored, and the method or the machine does not allow it."""
        return canonical(scenario) in self._refused

    def _simulate(
        self,
        wanted: Sequence[Key],
        on_progress: OnProgress,
        rows: frozenset[Scenario] = frozenset(),
        *,
        lenient: bool = False,
        alike: Factors | None = None,
        useless: frozenset[Scenario] = frozenset(),
    ) -> None:
        """Study what is `wanted` and was not yet.

        rows: settings whose bound and limit will be asked for. lenient: what is refused is noted. alike, useless: those
        of `useless` that are estimated like `alike` are not studied.
        """
        keys = dict.fromkeys((canonical(asked), placement, even) for asked, placement, even in wanted)
        missing = [key for key in keys if key not in self._results]
        self._read(list(dict.fromkeys(asked for asked, _, _ in missing)), lenient=lenient)
        # The longest first, so that no process is left with one at the end.
        missing.sort(key=lambda key: -effort_of(key[0]))
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            if more:
                on_progress(done, len(missing))

        def one(key: Key, add: Callable[[int], object]) -> Studied:
            try:
                found = self._study_where(key, alike if key[0] in useless else None)
            except ScenarioError:
                if not lenient:
                    raise
                found = Studied(refused=True)
            if found.result is not None:
                found = found._replace(paths=tuple((each, self._study(each)) for each in on_other_paths(key).values()))
            if key[0] in rows and key[1] is Placement.NUMBERED and found.result and found.left_open:
                # Found here, on as many cores as there are, and kept with the result.
                _ = found.result.limit
                found = found._replace(lower=self._best_lower(key[0], found.left_open))
            add(1)
            return found

        if missing:
            engine()  # found before processes are forked, so once for all of them
        for key, found in zip(missing, parallel_map_counted(one, missing, self.processes, count), strict=True):
            self._results |= dict(found.paths)
            if found.lower is not None:
                self._lower[key[0]] = found.lower
            if found.result is not None:
                self._results[key] = found.result
            if found.left_open is not None:
                self._factors[key] = found.left_open
            if found.refused:
                self._refused.add(key[0])

    def _study_where(self, key: Key, alike: Factors | None) -> Studied:
        """The study of `key`, and what the assumptions leave open of it; no study where it is estimated as `alike`."""
        left_open = self._factors.get(key) or factors(key[0], self.accesses_of(key), self.seed)
        if alike is not None and estimated_alike(left_open, alike):
            return Studied(left_open=left_open)
        return Studied(self._study(key), left_open)

    def accesses_of(self, key: Key) -> Source:
        """What the study of `key` reads."""
        _, placement, even = key
        accesses: Source = EvenPartition(self.accesses) if even else self.accesses
        return accesses if placement is Placement.NUMBERED else Placed(accesses, placement)

    def result(self, scenario: Scenario, placement: Placement = Placement.NUMBERED, *, even: bool = False) -> Result:
        """The study of `scenario`, its parts in the order `placement`, or as even parts would have it."""
        key = (canonical(scenario), placement, even)
        if key not in self._results:
            self._results[key] = self._study(key)
        return self._results[key]

    def factors(self, scenario: Scenario, placement: Placement = Placement.NUMBERED, *, even: bool = False) -> Factors:
        """What the assumptions leave open of the time of `scenario`, its parts in the order `placement`."""
        key = (canonical(scenario), placement, even)
        if key not in self._factors:
            self._factors[key] = factors(key[0], self.accesses_of(key), self.seed)
        return self._factors[key]

    def prepare_factors(self, scenarios: Sequence[Scenario]) -> None:
        """Find what the assumptions leave open of `scenarios`, side by side; asking later is then free."""
        keys = dict.fromkeys((canonical(each), Placement.NUMBERED, False) for each in scenarios)
        missing = [key for key in keys if key not in self._factors]
        self._read([asked for asked, _, _ in missing])
        found = parallel_map(lambda key: factors(key[0], self.accesses_of(key), self.seed), missing, self.processes)
        self._factors |= dict(zip(missing, found, strict=True))

    def keep_drawn(self, found: Mapping[Key, FloatArray]) -> None:
        """Keep the simulated factors of joint draws, float64[draws] each (`gcnsim.planning.simulated_draws`)."""
        self._drawn |= found

    @property
    def drawn(self) -> tuple[Scenario, ...]:
        """The settings whose joint draws were simulated, in the order in which they were kept."""
        return tuple(dict.fromkeys(asked for asked, _, _ in self._drawn))

    def times(self, scenario: Scenario, *, even: bool = False) -> FloatArray:
        """Seconds per iteration of `scenario` under every joint draw of the assumptions, as estimated,
        float64[draws]."""
        asked = canonical(scenario)
        if (asked, even) not in self._times:
            self._times[asked, even] = self._drawn_times(asked, even, lambda key: None)
        return self._times[asked, even]

    def _drawn_times(self, scenario: Scenario, even: bool, drawn: Callable[[Key], FloatArray | None]) -> FloatArray:
        """drawn: the simulated factors of the draws; None where they are estimated."""
        return drawn_times(self, scenario, even, lambda key: self.factors(key[0], key[1], even=key[2]), drawn)

    def candidate(self, scenario: Scenario) -> Candidate:
        """The study of `scenario` under every joint draw."""
        asked = canonical(scenario)
        simulated = self._drawn_times(asked, False, self._drawn.__getitem__) if asked in self.drawn else None
        ranged = resolve_machine(asked.cluster).error_known
        return Candidate(scenario, self.result(scenario), self.times(scenario), simulated, ranged=ranged)

    def keep_closer(self, found: Mapping[Scenario, FloatArray]) -> None:
        """Keep seconds per iteration under more joint draws than others have (`gcnsim.planning.closer_draws`)."""
        self._closer |= {canonical(scenario): times for scenario, times in found.items()}

    def closest_times(self, scenario: Scenario) -> FloatArray:
        """Seconds per iteration under as many joint draws as are known, float64[draws]."""
        found = self._closer.get(canonical(scenario))
        return self.candidate(scenario).times if found is None else found

    def estimate(self, scenario: Scenario) -> Estimate:
        """The study of `scenario` with its interval."""
        found = self.candidate(scenario)
        result = found.result
        lower, upper = min(self.lower(scenario), result.bounds.lower_s), result.bounds.upper_s
        now = result.metrics.iteration_s
        if not found.ranged:
            ends = (min(lower, now), max(upper, now))
            return Estimate(scenario, result, found.estimated, None, None, None, *ends, ranged=False)
        low, high = central(self.closest_times(scenario))
        # The stated values are possible too, whatever the draws say.
        low, high = min(max(low, min(lower, result.low_s)), now), max(high, now)
        return Estimate(
            scenario, result, found.estimated, found.simulated, low, high, min(lower, low), max(upper, high)
        )

    def lower(self, scenario: Scenario) -> Seconds:
        """The analytic lower bound of the iteration with every assumption at its most favourable end."""
        asked = canonical(scenario)
        if asked not in self._lower:
            self._lower[asked] = self._best_lower(asked, self.factors(asked))
        return self._lower[asked]

    def _best_lower(self, scenario: Scenario, left_open: Factors) -> Seconds:
        ends = left_open.workload or (1.0, 1.0)
        corner = RangeEnd.LIKELY if min(ends) >= 1.0 else RangeEnd.LOW if ends[0] < ends[1] else RangeEnd.HIGH
        orders = [self.accesses_of((scenario, order, False)) for order in placements(scenario)]
        return min(best_lower_s(scenario, each, corner) for each in orders)

    def forget(self) -> None:
        """Keep no results: of thousands of settings each is asked once. What is read and counted stays."""
        for each in (self._results, self._factors, self._drawn, self._times, self._closer, self._lower):
            each.clear()

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
        if (compared := baseline_of(scenario)) is None:
            return None
        try:
            return self.result(compared).metrics.iteration_s
        except ScenarioError:
            if scenario.method.needs_boundary:
                raise
            return None

    def guesses(self, scenarios: Sequence[Scenario]) -> list[Seconds]:
        """Analytic estimates of `scenarios` from the mean of a few drawn graphs each, without simulating; infinite for
        those that the method or the machine does not allow.
        """
        for scenario in scenarios:
            with suppress(ScenarioError):
                counts = estimated_counts(scenario, self.accesses)
                if scenario is scenarios[-1]:
                    write_schedule(replace(scenario, faults=()), counts, self.accesses)
        # Of few workers an estimate takes less than a process; what is found out for it is there for all that follow.
        few = all(each.cluster.gpus <= FEW_WORKERS for each in scenarios)
        return parallel_map(self._guess, scenarios, 1 if few else self.processes)

    def _guess(self, scenario: Scenario) -> Seconds:
        try:
            return estimated_s(scenario, self.accesses)
        except ScenarioError:
            return inf

    def _read(self, scenarios: Sequence[Scenario], *, lenient: bool = False) -> None:
        """Read and record what `scenarios` need before processes part ways: what is slow is then shared.

        lenient: pass over what the method or the machine does not allow.
        """
        for scenario in scenarios:
            with suppress(*([ScenarioError] if lenient else [])):
                self._read_one(scenario, write=scenario is scenarios[-1])

    def _read_one(self, scenario: Scenario, *, write: bool) -> None:
        features = resolve_model(scenario.workload, self.accesses.declared).features
        counts = self.accesses.counts(scenario, features, RangeEnd.LIKELY)
        ends = [estimated_counts(scenario, self.accesses, corner) for corner in self.accesses.corners]
        if write:
            write_schedule(scenario, ends[0] if len(ends) > 1 else counts, self.accesses)

    def _study(self, key: Key) -> Result:
        return study(key[0], self.accesses_of(key))


def counted(progress: Callable[[str], object], told: str) -> OnProgress:
    """Says what is done next, and then how many of its simulations are done and how long the others will take."""
    progress(told)
    left = TimeLeft()
    return lambda done, total: progress(f"{told}: {done:,} of {total:,} runs{left.text(done, total)}")


def canonical(scenario: Scenario) -> Scenario:
    """The scenario under the simplest method that runs the same schedule, so that equal questions are asked once."""
    simplest = scenario.method.canonical()
    return scenario if simplest is scenario.method else replace(scenario, method=simplest)


def full_graph(scenario: Scenario, overlap: str | None = None) -> Scenario:
    """Full-graph training on the scenario's machine; overlap: None is the scenario's own."""
    overlap = scenario.method.overlap if overlap is None else overlap
    # Where mini-batches read their rows is nothing to it.
    machine = replace(scenario.cluster, features=None)
    return replace(scenario, cluster=machine, method=create_method(BASELINE, overlap=overlap))


def baseline_of(scenario: Scenario, overlap: str | None = None) -> Scenario | None:
    """As `full_graph`; None where compute is measured, and full-graph training was not."""
    found = full_graph(scenario, overlap)
    try:
        answering(found)
    except ScenarioError:
        return None
    return found
