"""The what-if question: a grid of machines and methods, a recommendation, and the next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from gcnsim.alternatives import SeedSpread, partition_seconds, seeds_of
from gcnsim.boundary import is_profile
from gcnsim.diagnosis import straggler_of, utilization_of
from gcnsim.errors import ScenarioError, plural
from gcnsim.graph import Graph, graph_warnings
from gcnsim.hardware import PriceBook
from gcnsim.ids import Seconds
from gcnsim.machine import resolve_machine
from gcnsim.planning.answer import Findings, Told, place_of
from gcnsim.planning.candidate import Candidate, Estimate
from gcnsim.planning.certainty import certainty
from gcnsim.planning.grid import Grid, LeftOut, machines, overlap_of, scenarios
from gcnsim.planning.max_wait import Deadline
from gcnsim.planning.measured import Measurement, beside_measured
from gcnsim.planning.other_machines import alternatives, by_machine, told_of
from gcnsim.planning.provenance import provenance, too_large
from gcnsim.planning.recommend import Choice, Rule, choose, shortlist
from gcnsim.planning.rows import memory_report, prices_report
from gcnsim.planning.simulated_draws import simulate_draws
from gcnsim.planning.steps import next_steps, one_server_more
from gcnsim.planning.study_cache import StudyCache, baseline_of, counted
from gcnsim.planning.time_to_accuracy import Subject, Target, to_target
from gcnsim.results import (
    FaultFree,
    PartitionSeeds,
    Step,
    StragglerReport,
    TargetReport,
    WhatIf,
)
from gcnsim.scenario import ClusterSpec, Scenario, to_mapping
from gcnsim.simulation import answering, refuse_undrawn
from gcnsim.sources import RangeEnd, resolve_model
from gcnsim.uncertainty import refuse_unused_figures

__all__ = ["Answer", "Grid", "Progress", "scenarios", "sweep_bandwidth", "what_if"]

SLOW_S: Final = 0.2
"""Seconds from which on cutting a graph is worth processes of its own."""

Progress = Callable[[str], None]
"""Told what is being done, before it is done."""


def answerable(
    studies: StudyCache, asked: Sequence[Scenario], optional: frozenset[str]
) -> tuple[list[Scenario], list[LeftOut]]:
    """Those of `asked` that can be answered for, and the others with the reason. Raises GcnsimError for what was asked
    for by name.
    """
    kept, left = [], []
    for scenario in asked:
        try:
            if scenario.method.name in optional:
                studies.check(scenario)
            kept.append(scenario)
        except ScenarioError as error:
            left.append(LeftOut(scenario, str(error)))
    if not kept:
        raise ScenarioError(left[0].reason)
    return kept, left


def _holding(studies: StudyCache, rows: Sequence[Told], optional: frozenset[str]) -> tuple[list[Told], list[LeftOut]]:
    """The rows without those of optional methods that no GPU of theirs holds, and these with the reason."""
    reasons = [too_large(studies, each) if each.scenario.method.name in optional else None for each, _ in rows]
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    heavy = [LeftOut(row[0].scenario, reason) for row, reason in zip(rows, reasons, strict=True) if reason]
    return kept, heavy


class Answer(NamedTuple):
    """What a what-if found. base: the question on the first machine asked for. chosen: the recommended setting.
    studies: with which the same question can be asked of other machines."""

    result: WhatIf
    base: Scenario
    chosen: Candidate
    studies: StudyCache


def what_if(
    base: Scenario,
    grid: Grid,
    progress: Progress = lambda _: None,
    processes: int = 1,
    graph: Graph | None = None,
    target: Target | None = None,
    rule: Rule | None = None,
    extras: Extras | None = None,
    notice: Progress = lambda _: None,
) -> Answer:
    """Answer the grid, recommend a setting on the best of its machines, and try the next step of each knob from there.

    target: an accuracy to be reached, whose time and cost are then told of every row. rule: what may be recommended.
    extras: what else is asked. notice: told what is odd about a graph.
    """
    progress("reading the workload")
    rule, extras = rule or Rule(), extras or Extras()
    deadline = None if extras.max_wait_s is None else Deadline.after(extras.max_wait_s)
    every = _settings(base, grid, extras)
    first = replace(base, cluster=every[0].cluster)
    studies = _opened(first, processes, graph, notice)
    asked, left = answerable(studies, every, grid.optional)
    clusters = list(dict.fromkeys(machines(base, grid)))
    _cut(studies, asked)
    progress("ranking settings")
    promising = {cluster: _promising(studies, replace(first, cluster=cluster), grid, rule) for cluster in clusters}
    rows, heavy = _rows(studies, asked, promising, grid, progress)
    found = _found(studies, rows, promising, grid, rule, extras.prices, progress, deadline)
    recommended = found.choice.estimate
    chosen = recommended.scenario
    steps, idle = next_steps(studies, chosen, rule, counted(progress, "trying the next step of each knob"))
    estimates = [each for each, _ in found.rows]
    asked_for = {"asked": grid.mapping(), "grid": [place_of(each.scenario) for each in estimates]}
    result = WhatIf(
        scenario=to_mapping(first) | asked_for,
        provenance=provenance(studies, first, estimates, grid.mapping(), chosen),
        results=found.results(),
        memory=tuple(memory_report(studies, each.scenario) for each in estimates),
        recommendation=found.recommendation(),
        next_steps=tuple(steps),
        no_effect=tuple(idle),
        straggler=_straggler(studies, chosen, steps),
        certainty=certainty(studies, recommended),
        utilization=utilization_of(studies.result(chosen)),
        left_out=tuple(each.told() for each in (*left, *heavy)) or None,
        fault_free=_fault_free(studies, chosen),
        measured=tuple(beside_measured(studies, extras.measured, estimates)) if extras.measured else None,
        partition_seeds=_partition_seeds(studies, chosen, extras.partition_seeds, progress),
        target=None if target is None else _reached(studies, first, target, estimates, extras.prices),
        prices=prices_report(extras.prices),
    )
    return Answer(result, first, recommended, studies)


@dataclass(frozen=True, slots=True)
class Extras:
    """What only some questions ask. measured: times of iterations that somebody measured. partition_seeds: how many
    seeds of the partitioner the recommended setting is tried with; 0 for none besides the question's own. prices: what
    an hour costs. max_wait_s: when it is over, no further draw is simulated; None for no limit."""

    measured: tuple[Measurement, ...] = ()
    partition_seeds: int = 0
    prices: PriceBook = field(default_factory=PriceBook)
    max_wait_s: Seconds | None = None


def _fault_free(studies: StudyCache, chosen: Scenario) -> FaultFree | None:
    """The setting without its faults; None where it has none."""
    if not chosen.faults:
        return None
    faulted, calm = studies.result(chosen), studies.result(replace(chosen, faults=()))
    return FaultFree(calm.metrics.iteration_s, faulted.metrics.iteration_s / calm.metrics.iteration_s)


def _partition_seeds(studies: StudyCache, chosen: Scenario, count: int, progress: Progress) -> PartitionSeeds | None:
    """The setting on the partitions of `count` seeds; None for no seeds."""
    if not count:
        return None
    seeds = seeds_of(chosen, count)
    studies.prepare(seeds, on_progress=counted(progress, f"simulating {plural(len(seeds), 'partition')}"))
    found = SeedSpread.of(seeds, [studies.result(each).metrics.iteration_s for each in seeds])
    return PartitionSeeds(found.seeds, found.seconds, found.mean_s, found.low_s, found.high_s, found.best)


def _opened(first: Scenario, processes: int, graph: Graph | None, notice: Progress) -> StudyCache:
    """The studies of the question's workload; what is odd about a graph is said before long work on it."""
    studies = StudyCache(first, processes, graph)
    if studies.accesses.graph is not None:
        for line in graph_warnings(studies.accesses.graph):
            notice(line)
    return studies


def _cut(studies: StudyCache, asked: Sequence[Scenario]) -> None:
    """Cut the graph for what is asked, and for the server more that will be tried next, where cutting takes a while."""
    graph = studies.accesses.graph
    exchanged = {each.cluster.gpus: each for each in asked if not each.method.mini_batches}
    if graph is None or not exchanged:
        return
    more = one_server_more(next(iter(exchanged.values()))) if len(exchanged) == 1 else None
    every = [*exchanged.values(), *([more] if more is not None and studies.allows(more) else [])]
    if max(partition_seconds(graph.entries, each.partition) for each in every) >= SLOW_S:
        studies.accesses.cut_for(every)


def _settings(base: Scenario, grid: Grid, extras: Extras) -> list[Scenario]:
    """The settings asked for. Raises ScenarioError for what no answer can be given to."""
    _refuse_recorded(base)
    every = scenarios(base, grid)
    refuse_undrawn(every)
    refuse_unused_figures([resolve_machine(each.cluster) for each in every])
    for each in every:
        if each.method.name not in grid.optional:
            answering(each)
    if extras.partition_seeds:
        seeds_of(every[0], extras.partition_seeds)
    return every


def _rows(
    studies: StudyCache,
    asked: Sequence[Scenario],
    promising: Mapping[ClusterSpec, Sequence[Scenario]],
    grid: Grid,
    progress: Progress,
) -> tuple[list[Told], list[LeftOut]]:
    """A row for every setting asked for, candidates and baselines simulated with them; and what fits no GPU."""
    others = [each for found in promising.values() for each in found]
    on_progress = counted(
        progress, f"simulating {plural(len(asked), 'setting')} and {plural(len(others), 'candidate')}"
    )
    baselines = filter(None, (baseline_of(each, overlap_of(grid)) for each in (*asked, *others)))
    studies.prepare([*baselines, *others], asked, on_progress)
    return _holding(studies, [told_of(studies, each, grid) for each in asked], grid.optional)


def _refuse_recorded(base: Scenario) -> None:
    """Raises ScenarioError for a recorded trace, which has the draws of one rate alone."""
    trace = base.workload.trace
    if trace is not None and is_profile(trace):
        raise ScenarioError(f"workload.trace: {trace} is a profile; give it as workload.profile")
    if trace is not None:
        raise ScenarioError(f"workload.trace: {trace} answers for one rate only; use gcnsim simulate")


def _promising(studies: StudyCache, scenario: Scenario, grid: Grid, rule: Rule) -> list[Scenario]:
    """The candidates on the scenario's machine that are worth simulating."""
    # Of stale settings none has an overlap, but candidates without staleness have what was asked for.
    awaiting = scenario.method.at_tau(0)
    return shortlist(studies, replace(scenario, method=awaiting.overlapping(overlap_of(grid))), rule)


def _choices(
    studies: StudyCache,
    rows: Sequence[Told],
    promising: Mapping[ClusterSpec, Sequence[Scenario]],
    rule: Rule,
) -> dict[ClusterSpec, Choice]:
    """By machine, the setting chosen on it, of the rows and the candidates that may be recommended."""
    found = {}
    for cluster in promising:
        own = [each.scenario for each, _ in rows if each.scenario.cluster == cluster]
        allowed = [each for each in own if rule.excludes(each) is None]
        # Nothing is searched of mini-batches: where they are asked for, their rows are what was asked.
        named = {each.method.name for each in own if each.method.mini_batches}
        searched = [each for each in promising[cluster] if each.method.name not in named]
        pool = dict.fromkeys([*allowed, *searched])
        if pool:
            found[cluster] = choose([studies.candidate(each) for each in pool], own, rule)
    if not found:
        raise ScenarioError(f"--allow: no setting of {', '.join(rule.methods)} can be answered for")
    return found


def _best(choices: Mapping[ClusterSpec, Choice]) -> Choice:
    """The choice of the machine on which it is the fastest, of those that fit where any does."""
    return min(choices.values(), key=lambda each: (each.estimate.result.fits is False, each.estimate.epoch_s))


def _found(
    studies: StudyCache,
    rows: Sequence[Told],
    promising: Mapping[ClusterSpec, Sequence[Scenario]],
    grid: Grid,
    rule: Rule,
    book: PriceBook,
    progress: Progress,
    deadline: Deadline | None,
) -> Findings:
    """The rows and the best choice, once the draws of that and of what competes with it are simulated."""
    choices = _choices(studies, rows, promising, rule)
    choice = _best(choices)
    others = [*(each for each, _ in rows), *choice.pool, *_rivals(choice, choices)]
    on_progress = counted(progress, "simulating draws of the assumptions")
    if simulate_draws(studies, choice.estimate, others, on_progress, deadline):
        rows = [told_of(studies, each.scenario, grid) for each, _ in rows]
        choices = _choices(studies, rows, promising, rule)
        choice = _best(choices)
    return Findings(
        dataset=studies.accesses.name,
        rule=rule,
        rows=tuple(rows),
        choice=choice,
        chosen=told_of(studies, choice.estimate.scenario, grid),
        rivals=_rivals(choice, choices),
        alternatives=tuple(alternatives(studies, choice, choices, grid, book)),
        book=book,
        by_machine=tuple(by_machine(studies, choice, choices, rows, grid)),
    )


def _rivals(best: Choice, choices: Mapping[ClusterSpec, Choice]) -> tuple[Candidate, ...]:
    """The choices of the other machines, of those that fit where any does."""
    others = [each.estimate for each in choices.values() if each is not best]
    return tuple(each for each in others if each.result.fits is not False or best.estimate.result.fits is False)


def _straggler(studies: StudyCache, scenario: Scenario, steps: Sequence[Step]) -> StragglerReport | None:
    """The worker whose part makes the limit what it is; None where none stands out."""
    result = studies.result(scenario)
    features = resolve_model(scenario.workload, studies.accesses.declared).features
    counts = studies.accesses.counts(result.scenario, features, RangeEnd.LIKELY)
    found = straggler_of(result, counts)
    if found is None:
        return None
    return StragglerReport(
        worker=found.worker,
        boundary_nodes=found.boundary_nodes,
        boundary_nodes_mean=found.boundary_nodes_mean,
        share_of_mean=found.share_of_mean,
        even_s=next((step.iteration_s for step in steps if step.knob == "partition"), None),
        text=found.text,
    )


def _reached(
    studies: StudyCache, first: Scenario, target: Target, rows: Sequence[Estimate], book: PriceBook
) -> TargetReport:
    """Time and cost until the accuracy asked for, of every row."""
    accesses = studies.accesses
    model = resolve_model(first.workload, accesses.declared)
    subject = Subject(accesses.graph_hash if target.curves else None, accesses.name, model)
    runs = tuple(curve.path.name for curve in target.curves)
    return TargetReport(target.accuracy, runs, tuple(to_target(target, each, subject, book) for each in rows))


def sweep_bandwidth(
    studies: StudyCache, rows: Sequence[Scenario], bandwidths: Sequence[float], progress: Progress = lambda _: None
) -> list[list[Estimate]]:
    """Per scenario, its estimates at each bandwidth (bytes/s), for the figure of time against bandwidth."""
    curves = []
    for each in rows:
        moved = [replace(each, cluster=replace(each.cluster, bandwidth=value)) for value in bandwidths]
        studies.prepare([], moved, counted(progress, f"{each.method.name} against bandwidth"))
        curves.append([studies.estimate(scenario) for scenario in moved])
    return curves
