"""The what-if question: a grid of machines and methods, a recommendation, and the next steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.knobs import OVERLAPPING, VARIANTS, has_knob
from gcnsim.planning.accuracy import Subject, Target, to_target
from gcnsim.planning.payload import in_gbps, knobs_told, machine_of, memory_told, row_of, setting_of
from gcnsim.planning.provenance import graph_name, provenance, too_large
from gcnsim.planning.recommend import finalists, recommend, recommendable
from gcnsim.planning.steps import Step, next_steps
from gcnsim.planning.workshop import Estimate, Workshop, counted
from gcnsim.scenario import CacheSize, MethodSpec, Scenario, to_mapping
from gcnsim.study import Result, refuse_undrawn, resolve_model
from gcnsim.trace import is_profile

SCHEMA = "gcnsim.what-if/1"

OVERLAP = "overlap"
"""The one of a grid's own values that is no method's knob."""

Progress = Callable[[str], None]
"""Told what is being done, before it is done."""


Told: TypeAlias = tuple[Estimate, float | None]
"""A row with the full-graph iteration time of the same machine, None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values asked for; each combination is a row. Knobs a method lacks do not multiply its rows.

    own: values of knobs that few methods have. optional: methods that are left out where they cannot be answered for,
    in a comparison of all, where methods have a row per variant.
    """

    methods: tuple[str, ...]
    gpus: tuple[int, ...]
    bandwidths: tuple[float, ...]
    taus: tuple[int, ...]
    epsilons: tuple[float, ...]
    caches: tuple[CacheSize, ...]
    rates: tuple[float, ...]
    own: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    optional: frozenset[str] = frozenset()

    def mapping(self) -> dict[str, list[Any]]:
        """The values as plain data."""
        told: dict[str, list[Any]] = {
            "methods": list(self.methods),
            "gpus": list(self.gpus),
            "bandwidths": [in_gbps(value) for value in self.bandwidths],
            "taus": list(self.taus),
            "epsilons": list(self.epsilons),
            "caches": [cache.describe() for cache in self.caches],
            "rates": list(self.rates),
        }
        return told | {name: [plain_knob(value) for value in values] for name, values in self.own}


def plain_knob(value: Any) -> Any:
    """A knob's value as plain data."""
    if isinstance(value, CacheSize):
        return value.describe()
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A setting that has no row, and why."""

    scenario: Scenario
    reason: str

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        method = self.scenario.method
        told = {"method": method.name, "setting": knobs_told(method), "reason": self.reason}
        return told | machine_of(self.scenario)


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything a what-if found.

    rows: with the full-graph iteration time of the same machine beside each. memory: of each row, what its GPUs hold.
    """

    base: Scenario
    grid: Grid
    rows: tuple[Told, ...]
    recommended: Result
    why: str
    steps: tuple[Step, ...]
    origin: dict[str, Any]
    memory: tuple[dict[str, Any] | None, ...]
    target: dict[str, Any] | None = None
    """Per row, iterations, time and cost until an accuracy is reached, where that was asked."""
    left_out: tuple[LeftOut, ...] = ()
    """What was not asked for by name and cannot be answered for."""

    def payload(self) -> dict[str, Any]:
        """The answer as plain data, in the shape of the shipped JSON schema `gcnsim.what-if/1`."""
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "scenario": to_mapping(self.base)
            | {"asked": self.grid.mapping(), "grid": [machine_of(each.scenario) for each, _ in self.rows]},
            "provenance": self.origin,
            "results": [row_of(each, baseline) for each, baseline in self.rows],
            "memory": list(self.memory),
            "recommendation": setting_of(self.recommended.scenario, self.recommended)
            | {
                "iteration_s": self.recommended.metrics.iteration_s,
                "setting": knobs_told(self.recommended.scenario.method),
                "fits": self.recommended.fits,
                "why": self.why,
            },
            "next_steps": [
                {
                    "knob": step.knob,
                    "from": step.start,
                    "to": step.end,
                    "iteration_s": step.iteration_s,
                    "gain": step.gain,
                    "fits": step.fits,
                }
                for step in self.steps
            ],
        }
        if self.left_out:
            told["left_out"] = [each.payload() for each in self.left_out]
        return told if self.target is None else told | {"target": self.target}


def scenarios(base: Scenario, grid: Grid) -> list[Scenario]:
    """One scenario per row, machines outermost."""
    rows: list[Scenario] = []
    for gpus, bandwidth in product(grid.gpus, grid.bandwidths):
        cluster = replace(base.cluster, gpus=gpus, bandwidth=bandwidth)
        for name in grid.methods:
            rows += [replace(base, cluster=cluster, method=method) for method in _methods(base, name, grid)]
    return rows


def overlap_of(grid: Grid) -> str:
    """What runs beneath synchronous transfers, in every row that waits for some."""
    return str(dict(grid.own).get(OVERLAP, ("none",))[0])


def _methods(base: Scenario, name: str, grid: Grid) -> list[MethodSpec]:
    """The rows of one method, with the overlap asked for where that has an effect."""
    return [each.overlapping(overlap_of(grid)) for each in _with_knobs(base, name, grid)]


def _with_knobs(base: Scenario, name: str, grid: Grid) -> list[MethodSpec]:
    start = base.method if base.method.name == name else MethodSpec.of(name)
    if has_knob(name, "rate"):
        started = _own_methods(name, grid) if start is not base.method else [start]
        return [replace(each, rate=rate) for each in started for rate in grid.rates]
    if not has_knob(name, "tau"):
        return _own_methods(name, grid)
    return [
        replace(start, tau=tau, epsilon=epsilon, cache=cache)
        for tau, epsilon, cache in product(grid.taus, grid.epsilons, grid.caches)
    ]


def _own_methods(name: str, grid: Grid) -> list[MethodSpec]:
    """A row for every combination of its own knobs' values, and for its variants in a comparison of all."""
    own = {knob: values for knob, values in grid.own if has_knob(name, knob)}
    given = [dict(zip(own, values, strict=True)) for values in product(*own.values())]
    variants = VARIANTS.get(name, ({},)) if grid.optional else ({},)
    return list(dict.fromkeys(MethodSpec.of(name, **{**variant, **each}) for variant in variants for each in given))


def answerable(
    workshop: Workshop, asked: Sequence[Scenario], optional: frozenset[str]
) -> tuple[list[Scenario], list[LeftOut]]:
    """Those of `asked` that can be answered for, and the others with the reason. Raises GcnsimError for what was asked
    for by name.
    """
    kept, left = [], []
    for scenario in asked:
        try:
            if scenario.method.name in optional:
                workshop.check(scenario)
            kept.append(scenario)
        except ScenarioError as error:
            left.append(LeftOut(scenario, str(error)))
    return kept, left


def _holding(workshop: Workshop, rows: Sequence[Told], optional: frozenset[str]) -> tuple[list[Told], list[LeftOut]]:
    """The rows without those of optional methods that no GPU of theirs holds, and these with the reason."""
    reasons = [too_large(workshop, each) if each.scenario.method.name in optional else None for each, _ in rows]
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    heavy = [LeftOut(row[0].scenario, reason) for row, reason in zip(rows, reasons, strict=True) if reason]
    return kept, heavy


def what_if(
    base: Scenario,
    grid: Grid,
    progress: Progress = lambda _: None,
    processes: int = 1,
    graph: Graph | None = None,
    target: Target | None = None,
) -> tuple[Answer, Workshop]:
    """Answer the grid; the recommendation and next steps are for the first machine of it.

    target: an accuracy to be reached, whose time and cost are then told of every row.

    Returns the answer and the workshop, with which the same question can be asked of other machines.
    """
    progress("reading the workload")
    if base.workload.trace is not None and is_profile(base.workload.trace):
        raise ScenarioError(f"workload.trace: {base.workload.trace} is a profile; give it as workload.profile")
    if base.workload.trace is not None:
        raise ScenarioError(f"workload.trace: {base.workload.trace} answers for one rate only; use gcnsim simulate")
    every = scenarios(base, grid)
    refuse_undrawn(every)
    first = replace(base, cluster=every[0].cluster)
    workshop = Workshop(first, processes, graph)
    asked, left = answerable(workshop, every, grid.optional)
    if not asked:
        raise ScenarioError(left[0].reason)
    progress("ranking settings")
    # Of stale settings none has an overlap, but candidates without staleness have what was asked for.
    awaiting = replace(first.method, tau=0) if first.method.name in OVERLAPPING else first.method
    promising = finalists(workshop, replace(first, method=awaiting.overlapping(overlap_of(grid))))
    heard = counted(progress, f"simulating {len(asked)} settings and {len(promising)} candidates")
    full = MethodSpec.of("full-graph", overlap=overlap_of(grid))
    baselines = [replace(each, method=full) for each in asked]
    workshop.prepare([*baselines, *promising], asked, heard)
    rows: list[Told] = [
        (workshop.estimate(each), workshop.result(baseline).metrics.iteration_s)
        for each, baseline in zip(asked, baselines, strict=True)
    ]
    rows, heavy = _holding(workshop, rows, grid.optional)
    own = [each for each in asked if each.cluster == first.cluster and recommendable(each)]
    chosen, why = recommend(workshop, [*promising, *own])
    steps = next_steps(workshop, chosen.scenario, counted(progress, "trying the next step of each knob"))
    origin = provenance(workshop, first, [each for each, _ in rows], grid.mapping())
    reached = None
    if target is not None:
        accesses = workshop.accesses
        model = resolve_model(first.workload, accesses.declared)
        subject = Subject(accesses.graph_hash if target.curves else None, graph_name(accesses), model)
        reached = {
            "accuracy": target.accuracy,
            "runs": [curve.path.name for curve in target.curves],
            "rows": [to_target(target, each, subject) for each, _ in rows],
        }
    memory = tuple(memory_told(workshop, each.scenario) for each, _ in rows)
    return (
        Answer(first, grid, tuple(rows), chosen, why, tuple(steps), origin, memory, reached, (*left, *heavy)),
        workshop,
    )


def sweep_bandwidth(
    workshop: Workshop, rows: Sequence[Scenario], bandwidths: Sequence[float], progress: Progress = lambda _: None
) -> list[list[Estimate]]:
    """Per scenario, its estimates at each bandwidth (bytes/s), for the figure of time against bandwidth."""
    curves = []
    for each in rows:
        progress(f"{each.method.name} against bandwidth")
        moved = [replace(each, cluster=replace(each.cluster, bandwidth=value)) for value in bandwidths]
        workshop.prepare([], moved)
        curves.append([workshop.estimate(scenario) for scenario in moved])
    return curves
