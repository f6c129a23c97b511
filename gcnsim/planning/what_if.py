"""The what-if question: a grid of machines and methods, a recommendation, and the next steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.knobs import has_knob
from gcnsim.planning.accuracy import Subject, Target, to_target
from gcnsim.planning.payload import in_gbps, machine_of, row_of, setting_of
from gcnsim.planning.provenance import graph_name, provenance
from gcnsim.planning.recommend import finalists, recommend, recommendable
from gcnsim.planning.steps import Step, next_steps
from gcnsim.planning.workshop import Estimate, Workshop
from gcnsim.scenario import CacheSize, MethodSpec, Scenario, to_mapping
from gcnsim.study import Result, resolve_model

SCHEMA = "gcnsim.what-if/1"

Progress = Callable[[str], None]
"""Told what is being done, before it is done."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values asked for; each combination is a row. Knobs a method lacks do not multiply its rows."""

    methods: tuple[str, ...]
    gpus: tuple[int, ...]
    bandwidths: tuple[float, ...]
    taus: tuple[int, ...]
    epsilons: tuple[float, ...]
    caches: tuple[CacheSize, ...]
    rates: tuple[float, ...]

    def mapping(self) -> dict[str, list[Any]]:
        """The values as plain data."""
        return {
            "methods": list(self.methods),
            "gpus": list(self.gpus),
            "bandwidths": [in_gbps(value) for value in self.bandwidths],
            "taus": list(self.taus),
            "epsilons": list(self.epsilons),
            "caches": [cache.describe() for cache in self.caches],
            "rates": list(self.rates),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything a what-if found. rows: with the full-graph iteration time of the same machine beside each."""

    base: Scenario
    grid: Grid
    rows: tuple[tuple[Estimate, float], ...]
    recommended: Result
    why: str
    steps: tuple[Step, ...]
    origin: dict[str, Any]
    target: dict[str, Any] | None = None
    """Per row, iterations, time and cost until an accuracy is reached, where that was asked."""

    def payload(self) -> dict[str, Any]:
        """The answer as plain data, in the shape of the shipped JSON schema `gcnsim.what-if/1`."""
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "scenario": to_mapping(self.base)
            | {"asked": self.grid.mapping(), "grid": [machine_of(each.scenario) for each, _ in self.rows]},
            "provenance": self.origin,
            "results": [row_of(each, baseline) for each, baseline in self.rows],
            "recommendation": setting_of(self.recommended.scenario, self.recommended)
            | {"iteration_s": self.recommended.metrics.iteration_s, "why": self.why},
            "next_steps": [
                {
                    "knob": step.knob,
                    "from": step.start,
                    "to": step.end,
                    "iteration_s": step.iteration_s,
                    "gain": step.gain,
                }
                for step in self.steps
            ],
        }
        return told if self.target is None else told | {"target": self.target}


def scenarios(base: Scenario, grid: Grid) -> list[Scenario]:
    """One scenario per row, machines outermost."""
    rows: list[Scenario] = []
    for gpus, bandwidth in product(grid.gpus, grid.bandwidths):
        cluster = replace(base.cluster, gpus=gpus, bandwidth=bandwidth)
        for name in grid.methods:
            rows += [replace(base, cluster=cluster, method=method) for method in _methods(base, name, grid)]
    return rows


def _methods(base: Scenario, name: str, grid: Grid) -> list[MethodSpec]:
    start = base.method if base.method.name == name else MethodSpec.of(name)
    if has_knob(name, "rate"):
        return [replace(start, rate=rate) for rate in grid.rates]
    if not has_knob(name, "tau"):
        return [MethodSpec.of(name)]
    return [
        replace(start, tau=tau, epsilon=epsilon, cache=cache)
        for tau, epsilon, cache in product(grid.taus, grid.epsilons, grid.caches)
    ]


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
    if base.workload.trace is not None:
        raise ScenarioError(f"workload.trace: {base.workload.trace} answers for one rate only; use gcnsim simulate")
    asked = scenarios(base, grid)
    first = replace(base, cluster=asked[0].cluster)
    workshop = Workshop(first, processes, graph)
    progress("ranking settings")
    promising = finalists(workshop, first)
    progress(f"simulating {len(asked)} settings and {len(promising)} candidates")
    baselines = [replace(each, method=MethodSpec.of("full-graph")) for each in asked]
    workshop.prepare([*baselines, *promising], asked)
    rows = [
        (workshop.estimate(each), workshop.result(baseline).metrics.iteration_s)
        for each, baseline in zip(asked, baselines, strict=True)
    ]
    own = [each for each in asked if each.cluster == first.cluster and recommendable(each)]
    chosen, why = recommend(workshop, [*promising, *own])
    progress("trying the next step of each knob")
    steps = next_steps(workshop, chosen.scenario)
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
    return Answer(first, grid, tuple(rows), chosen, why, tuple(steps), origin, reached), workshop


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
