"""What is known of the time of each setting of a question: one record each, filled tier by tier, every tier once.

The tiers, cheapest first: bound and estimate, estimated draws of the assumptions, the run, and the draws corrected by
runs at both ends of their range. A range depends on its setting and the seed alone: never on the other settings of a
question, on who asks, or on a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

import numpy as np

from gcnsim.core.clock import OnProgress, running_total
from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.core.processes import parallel_map, parallel_map_counted
from gcnsim.engine import engine
from gcnsim.graph import Graph
from gcnsim.planning.alternatives import holds, least_gpus
from gcnsim.planning.candidate import (
    Analytic,
    Candidate,
    Estimate,
    Key,
    alike,
    analytic,
    canonical,
    central,
    effort_of,
    estimated_alike,
    on_other_paths,
)
from gcnsim.planning.draws import corrected_draws, over_graphs
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result, simulate_scenario, write_schedule
from gcnsim.simulation.assumed import path_by_draw
from gcnsim.simulation.diagnosis import EvenPartition
from gcnsim.simulation.model import Model, resolve_model
from gcnsim.simulation.open_assumptions import can_batch_draws, estimated_counts
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.part_orders import placed_counts
from gcnsim.simulation.propagation import TimeFactors, best_lower_s, factors
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts

FEW_WORKERS: Final = 12
"""Up to this many workers, estimates of a few milliseconds each run in one process."""

ALONE: Final = 4_000
"""Most effort (`effort_of`) of studies for one process: others take a while to begin and find out the same again."""

CORRECTED: Final = 400_000
"""Most ops times iterations of the runs that correct the draws of a setting: a fifth of a second of a core. The draws
of larger settings stay estimated."""

NOTHING: Final = Analytic(None, 1, inf)
"""Of a setting that method or workload does not allow."""


@dataclass(frozen=True, slots=True)
class Study:
    """What is known of one setting; None: not computed yet.

    Of settings that are alike, one record has bound and estimate (`Studies`). analytic: bound and estimate at the
    stated values. lower_s: the bound with every assumption at its most favourable end. factors: the estimated draws.
    run: the simulated setting. drawn: seconds per iteration under every joint draw, float64[draws]; times: the same
    over sampled graphs. fits, least_gpus: of memory, before a run (0: no number is enough). refused: a change that
    method or machine does not allow.
    """

    analytic: Analytic | None = None
    lower_s: Seconds | None = None
    factors: TimeFactors | None = None
    run: Result | None = None
    drawn: FloatArray | None = None
    times: FloatArray | None = None
    fits: bool | None = None
    least_gpus: int | None = None
    refused: bool = False


UNKNOWN: Final = Study()


class Studies:
    """The studies of settings that share one workload.

    processes: processes for independent studies; results do not depend on it. graph: the scenario's graph, if already
    read. seed: of the joint draws of the assumptions; all settings share it, so they are comparable.
    """

    def __init__(self, scenario: Scenario, processes: int = 1, graph: Graph | None = None) -> None:
        self.accesses = open_source(scenario, graph, processes)
        self.processes = processes
        self.seed = scenario.run.seed
        self._known: dict[Key, Study] = {}

    def _add(self, key: Key, **tiers: Any) -> None:
        self._known[key] = replace(self._known.get(key, UNKNOWN), **tiers)

    def _of(self, key: Key) -> Study:
        return self._known.get(key, UNKNOWN)

    def forget(self) -> None:
        """Drop all results but keep the inputs, for callers that study thousands of settings once each."""
        self._known.clear()

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
        key = key_of(scenario)
        known = self._of(key).fits
        if known is None:
            known = holds(key[0], self.accesses) is not False
            self._add(key, fits=known)
        return known

    def least_gpus(self, scenario: Scenario) -> int | None:
        """Return the fewest GPUs with enough memory for the scenario; None if unknown."""
        key = key_of(scenario)
        if self._of(key).least_gpus is None:
            self._add(key, least_gpus=least_gpus(key[0], self.accesses) or 0)
        return self._of(key).least_gpus or None

    def analytic(self, scenarios: Sequence[Scenario]) -> list[Analytic]:
        """Return bound and estimate of each scenario, in parallel; NOTHING of those that are not allowed."""
        keys = [key_of(alike(scenario)) for scenario in scenarios]
        missing = [key for key in dict.fromkeys(keys) if self._of(key).analytic is None]
        wanted = [scenario for scenario, _ in missing]
        # Of few workers an estimate takes less than a process; what is found out for it is there for all that follow.
        processes = 1 if all(one.cluster.gpus <= FEW_WORKERS for one in wanted) else self.processes
        with suppress(ScenarioError):
            for last in wanted[-1:] if processes > 1 else ():
                write_schedule(replace(last, faults=()), estimated_counts(last, self.accesses), self.accesses)
        self.read_counts(wanted)

        def one(scenario: Scenario) -> Analytic:
            try:
                return analytic(scenario, self.accesses)
            except ScenarioError:
                return NOTHING

        for key, found in zip(missing, parallel_map(one, wanted, processes), strict=True):
            self._add(key, analytic=found)
        return [self._of(key).analytic or NOTHING for key in keys]

    def estimates(self, scenarios: Sequence[Scenario]) -> list[Seconds]:
        """Return analytic estimates of the scenarios in seconds, infinite where they are not allowed."""
        return [found.estimate_s for found in self.analytic(scenarios)]

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
        *,
        draws: bool = True,
    ) -> None:
        """Study `likely`, and `whole` with bound and bottleneck, in parallel; later calls return at once. draws:
        whether the time under every draw is wanted too.
        """
        keys = [key_of(scenario) for scenario in (*likely, *whole)]
        self._simulate(keys, on_progress, frozenset(map(canonical, whole)), draws=draws)

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
        keys = [*map(key_of, changed), *([key_of(base, even=True)] if even else [])]
        similar = self.factors(base), frozenset(map(canonical, useless))
        self._simulate(keys, on_progress, lenient=True, similar=similar)

    def known(self, scenario: Scenario, even: bool = False) -> bool:
        """Whether `scenario` has been simulated."""
        return self._of(key_of(scenario, even=even)).run is not None

    def refused(self, scenario: Scenario) -> bool:
        """Whether `scenario` was explored and the method or the machine does not allow it."""
        return self._of(key_of(scenario)).refused

    def _simulate(
        self,
        wanted: Sequence[Key],
        on_progress: OnProgress,
        rows: frozenset[Scenario] = frozenset(),
        *,
        draws: bool = True,
        lenient: bool = False,
        similar: tuple[TimeFactors, frozenset[Scenario]] | None = None,
    ) -> None:
        """Study the keys of `wanted` that were not simulated yet.

        rows: settings whose bound and bottleneck are shown. draws: as in `prepare`. lenient: refused settings are
        noted, not raised. similar: settings with the same estimate as these are not simulated.
        """
        missing = [key for key in dict.fromkeys(wanted) if self._of(key).run is None]
        self._read(list(dict.fromkeys(scenario for scenario, _ in missing)), lenient=lenient)
        # The longest first, so that no process still works on one at the end.
        missing.sort(key=lambda key: -effort_of(key[0]))

        def one(key: Key, add: Callable[[int], object]) -> dict[Key, Study]:
            before = dict(self._known)
            try:
                useless = similar is not None and key[0] in similar[1]
                if similar is None or not useless or not estimated_alike(self.factors(*key), similar[0]):
                    found = self.result(*key)
                    if draws:
                        self.drawn(key)
                    if key[0] in rows and not key[1]:
                        # Computed here on all cores, and kept with the result.
                        _ = found.limit
                        self.lower(key[0])
            except ScenarioError:
                if not lenient:
                    raise
                self._add(key, refused=True)
            add(1)
            return {name: study for name, study in self._known.items() if before.get(name) is not study}

        engine()  # found before processes are forked, so once for all of them
        processes = self.processes if sum(effort_of(key[0]) for key in missing) > ALONE else 1
        for found in parallel_map_counted(one, missing, processes, running_total(on_progress, len(missing))):
            for key, study in found.items():
                # Two processes may have found the same; what one of them did not need is kept from the other.
                tiers = {name: value for name in study.__slots__ if (value := getattr(study, name)) is not None}
                tiers["refused"] = study.refused or self._of(key).refused
                self._add(key, **tiers)

    def accesses_of(self, key: Key) -> Source:
        """Return the accesses that the study of `key` reads."""
        return EvenPartition(self.accesses) if key[1] else self.accesses

    def result(self, scenario: Scenario, even: bool = False) -> Result:
        """Return the run of `scenario`. even: with its parts perfectly balanced."""
        key = key_of(scenario, even=even)
        found = self._of(key).run
        if found is None:
            found = simulate_scenario(key[0], self.accesses_of(key))
            self._add(key, run=found)
        return found

    def factors(self, scenario: Scenario, even: bool = False) -> TimeFactors:
        """Return the effect of the assumptions on the time of `scenario`. even: with its parts perfectly balanced."""
        key = (alike(scenario), even)
        found = self._of(key).factors
        if found is None:
            found = factors(key[0], self.accesses_of(key), self.seed)
            self._add(key, factors=found)
        return found

    def times(self, scenario: Scenario, even: bool = False) -> FloatArray:
        """Return seconds per iteration of `scenario` under every joint draw of the assumptions, float64[draws]."""
        key = key_of(scenario, even=even)
        found = self._of(key).times
        if found is None:
            found = over_graphs(self.drawn(key), self.result(*key), *key, self.seed)
            self._add(key, times=found)
        return found

    def drawn(self, key: Key) -> FloatArray:
        """Return the time under every draw, estimated and corrected by runs at both ends."""
        found = self._of(key).drawn
        if found is None:
            found = self.estimated(key)
            if self.corrected(*key):
                seconds = self.result(*key).metrics.iteration_s
                found = corrected_draws(found, key[0], self.accesses_of(key), self.seed, seconds, self.factors(*key))
            self._add(key, drawn=found)
        return found

    def estimated(self, key: Key) -> FloatArray:
        """Return the estimated time under every draw, float64[draws]: that of the run, scaled by estimates.

        Estimates of synchronous schedules reach 2.6 times the simulated time, with a different factor on each path. A
        draw with another path therefore starts from the run on that path.
        """
        left_open, seconds = self.factors(*key), self.result(*key).metrics.iteration_s
        times, others = left_open.scaled(seconds, left_open.joint), on_other_paths(key)
        if not others:
            return times
        chosen = path_by_draw(list(others), self.seed, left_open.joint.size)
        for index, (other, moved) in enumerate(zip(others.values(), left_open.others, strict=True)):
            there = moved.scaled(self.result(*other).metrics.iteration_s, moved.joint)
            times = np.where(chosen == index, there, times)
        return times

    def corrected(self, scenario: Scenario, even: bool = False) -> bool:
        """Whether runs correct the draws of a setting: it is small enough, and its draws are graphs of one schedule."""
        run = self.result(scenario, even).run
        effort = run.schedule.columns.size * run.iterations * (1 + 2 * 2)
        return effort <= CORRECTED and can_batch_draws(scenario)

    def candidate(self, scenario: Scenario) -> Candidate:
        """Return the run of `scenario` with its time under every joint draw."""
        return Candidate(scenario, self.result(scenario), self.times(scenario))

    def estimate(self, scenario: Scenario, *, bounded: bool = True) -> Estimate:
        """Return the run of `scenario` with its interval.

        bounded: whether the lower bound in the best case is wanted too; it is found anyway where it limits the
        interval, which nothing above the bound at the stated values does.
        """
        candidate = self.candidate(scenario)
        result = candidate.result
        lower, upper = result.bounds.lower_s, result.bounds.upper_s
        now = result.metrics.iteration_s
        low, high = central(candidate.times)
        if bounded or low < min(lower, result.low_s):
            lower = min(lower, self.lower(scenario))
        # The stated values are possible too, even if no draw reaches them.
        low, high = min(max(low, min(lower, result.low_s)), now), max(high, now)
        return Estimate(scenario, result, candidate.times, low, high, min(lower, low), max(upper, high))

    def lower(self, scenario: Scenario) -> Seconds:
        """Return the analytic lower bound of the iteration with every assumption at its most favourable end."""
        key = key_of(alike(scenario))
        found = self._of(key).lower_s
        if found is None:
            ends = self.factors(key[0]).workload or (1.0, 1.0)
            bound = RangeEnd.LIKELY if min(ends) >= 1.0 else RangeEnd.LOW if ends[0] < ends[1] else RangeEnd.HIGH
            found = best_lower_s(key[0], self.accesses, bound)
            self._add(key, lower_s=found)
        return found

    def unsettled(self) -> list[Result]:
        """Return the results whose run ended before it reached a steady state."""
        return [study.run for study in self._known.values() if study.run is not None and not study.run.settled]

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


def key_of(scenario: Scenario, *, even: bool = False) -> Key:
    """Return the key of a setting: its simplest equal, and whether its parts are balanced."""
    return canonical(scenario), even
