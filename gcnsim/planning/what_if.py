"""The what-if question: the settings of a space, a recommendation, and the next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.clock import counted
from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import Seconds
from gcnsim.graph import Graph, graph_notes
from gcnsim.hardware import PriceBook
from gcnsim.planning.alternatives import SeedSpread, partition_seconds, seeds_of
from gcnsim.planning.answer import (
    RowEstimate,
    WhatIfResult,
    alternatives,
    by_machine,
    comparable,
    machine_key,
)
from gcnsim.planning.candidate import Candidate, Estimate
from gcnsim.planning.certainty import certainty, decisive
from gcnsim.planning.energy import Site, energy_report, refuse_power
from gcnsim.planning.measured import Measurement, beside_measured
from gcnsim.planning.provenance import provenance, too_large
from gcnsim.planning.recommend import Choice, Rule, choose, search, tried
from gcnsim.planning.rows import device_of, memory_report, prices_report
from gcnsim.planning.shortlist import shortlist
from gcnsim.planning.space import Space
from gcnsim.planning.steps import PARTS_PLACED, next_steps, one_server_more
from gcnsim.planning.study import Studies
from gcnsim.planning.time_to_accuracy import Target, target_report
from gcnsim.results import (
    EnergyReport,
    FaultFree,
    LeftOutRow,
    PartitionSeeds,
    Recommendation,
    Step,
    StragglerReport,
    TargetReport,
    WhatIf,
)
from gcnsim.scenario import BALANCED, ClusterSpec, Scenario, knob_text, to_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import answering, refuse_undrawn
from gcnsim.simulation.assumed import refuse_unused_figures
from gcnsim.simulation.diagnosis import straggler_of, utilization_of
from gcnsim.simulation.part_orders import PLACEMENT
from gcnsim.trace.stored_profile import is_profile

__all__ = ["Answer", "Progress", "recommended_setting", "sweep_bandwidth", "what_if"]

SLOW_S: Final = 0.2
"""The least seconds of partitioning for which separate processes pay off."""

Progress = Callable[[str], None]
"""A callback that is told of each step before it starts."""


class Answer(NamedTuple):
    """The answer to a what-if question. chosen: the recommended setting. studies: what it was computed with, for the
    same question on other machines.
    """

    result: WhatIf
    chosen: Candidate
    studies: Studies


def what_if(
    space: Space,
    progress: Progress = lambda _: None,
    processes: int = 1,
    graph: Graph | None = None,
    target: Target | None = None,
    rule: Rule | None = None,
    extras: Extras | None = None,
    notice: Progress = lambda _: None,
) -> Answer:
    """Answer every setting of the space, recommend one on the best machine, and try one change of each knob from there.

    target: an accuracy whose time and cost every row then shows. rule: what may be recommended. extras: optional
    requests. notice: a callback for warnings about the graph, and for what is not computed.
    """
    progress("reading the workload")
    rule, extras = rule or Rule(), extras or Extras()
    wanted, first = _settings(space, extras), space.base
    studies = Studies(first, processes, graph)
    if studies.accesses.graph is not None:
        for line in graph_notes(studies.accesses.graph):
            notice(line)
    settings, skipped = _supported(studies, wanted, space.optional)
    _partition_ahead(studies, settings)
    progress("ranking settings")
    shortlists = _shortlist_by_machine(studies, space, rule)
    rows, too_heavy = _rows(studies, settings, shortlists, space, progress)
    if_result = _found(studies, rows, shortlists, space, rule, extras.prices)
    chosen = (recommended := if_result.best.estimate).scenario
    steps, idle = next_steps(studies, chosen, rule, counted(progress, "trying the next step of each knob"))
    estimates = [row.estimate for row in if_result.rows]
    recommendation = _recommended(studies, if_result)
    other = studies.estimate(chosen) if recommendation.in_results is None else None
    reached = None if target is None else target_report(studies, first, target, estimates, extras.prices, other)
    if reached is not None and target is not None and target.failures and not reached.known:
        notice("failures not computed: the number of iterations is not known")
    question = {"asked": space.mapping(), "grid": [machine_key(row.scenario) for row in if_result.rows]}
    result = WhatIf(
        scenario=to_mapping(first) | question,
        provenance=provenance(studies, first, estimates, space.mapping(), chosen),
        results=if_result.results(),
        memory=tuple(memory_report(studies, row.scenario) for row in if_result.rows),
        recommendation=recommendation,
        next_steps=tuple(steps),
        no_effect=tuple(idle),
        straggler=_straggler(studies, chosen, steps),
        certainty=certainty(studies, recommended, decisive(studies, if_result.best)),
        utilization=utilization_of(studies.result(chosen)),
        left_out=(*skipped, *too_heavy) or None,
        fault_free=_fault_free(studies, chosen),
        measured=tuple(beside_measured(studies, extras.measured, estimates)) if extras.measured else None,
        partition_seeds=_partition_seeds(studies, chosen, extras.partition_seeds, progress),
        target=reached,
        prices=prices_report(extras.prices),
        energy=_energy(studies, extras, target, estimates, other, reached),
    )
    return Answer(result, recommended, studies)


@dataclass(frozen=True, slots=True)
class Extras:
    """Optional requests of a question.

    measured: measured iteration times. partition_seeds: partitioner seeds to try for the recommended setting; 0 for
    none. prices: the hourly prices.
    site: where the machine stands, None where no energy is asked for.
    """

    measured: tuple[Measurement, ...] = ()
    partition_seeds: int = 0
    prices: PriceBook = field(default_factory=PriceBook)
    site: Site | None = None


def _energy(
    studies: Studies,
    extras: Extras,
    target: Target | None,
    estimates: Sequence[Estimate],
    recommended: Estimate | None,
    reached: TargetReport | None,
) -> EnergyReport | None:
    """Return the energy of every row and of the recommended setting, if it is no row; None if not asked."""
    if extras.site is None:
        return None
    last = [] if recommended is None else [recommended]
    ends = [] if reached is None else [*reached.rows, *([] if reached.recommended is None else [reached.recommended])]
    apart = recommended is not None
    asked = ([*estimates, *last], extras.site, studies.seed, target, ends)
    return energy_report(*asked, last_apart=apart)


def _recommended(studies: Studies, found: WhatIfResult) -> Recommendation:
    """Return the recommendation; where nothing fits, what would hold it in place of a setting to use."""
    heavy, recommendation = too_large(studies, found.best.estimate), found.recommendation()
    if heavy is None:
        return recommendation
    return replace(recommendation, verdict=f"None of the settings fits. {heavy[:1].upper()}{heavy[1:]}.")


def _fault_free(studies: Studies, chosen: Scenario) -> FaultFree | None:
    """Return the setting without its faults, or None if it has none."""
    if not chosen.faults:
        return None
    faulted, calm = studies.result(chosen), studies.result(replace(chosen, faults=()))
    return FaultFree(calm.metrics.iteration_s, faulted.metrics.iteration_s / calm.metrics.iteration_s)


def _partition_seeds(studies: Studies, chosen: Scenario, count: int, progress: Progress) -> PartitionSeeds | None:
    """Return the results of the setting on the partitions of `count` seeds, or None for no seeds."""
    if not count:
        return None
    seeds = seeds_of(chosen, count)
    studies.prepare(seeds, on_progress=counted(progress, f"simulating {plural(len(seeds), 'partition')}"))
    seed_spread = SeedSpread.of(seeds, [studies.result(one).metrics.iteration_s for one in seeds])
    return PartitionSeeds(
        seed_spread.seeds,
        seed_spread.seconds,
        seed_spread.mean_s,
        seed_spread.low_s,
        seed_spread.high_s,
        seed_spread.best,
        *_numberings(studies, chosen),
    )


def _numberings(studies: Studies, chosen: Scenario) -> tuple[Seconds | None, Seconds | None, Seconds | None]:
    """Return the time with the fastest and the slowest numbering of the parts, and with them placed evenly."""
    left_open = studies.factors(chosen)
    ends = left_open.alone.get(PLACEMENT)
    if ends is None:
        return None, None, None
    low, high = left_open.scaled(studies.result(chosen).metrics.iteration_s, np.array(ends)).tolist()
    placed = replace(chosen, partition=replace(chosen.partition, placement=BALANCED))
    return low, high, studies.result(placed).metrics.iteration_s


def _partition_ahead(studies: Studies, settings: Sequence[Scenario]) -> None:
    """Partition the graph in parallel for the settings, and for one more server that is tried next, if partitioning is
    slow.
    """
    graph = studies.accesses.graph
    exchanging = {setting.cluster.gpus: setting for setting in settings if not setting.method.mini_batches}
    if graph is None or not exchanging:
        return
    more = one_server_more(next(iter(exchanging.values()))) if len(exchanging) == 1 else None
    every = [*exchanging.values(), *([more] if more is not None and studies.allows(more) else [])]
    if max(partition_seconds(graph.entries, setting.partition) for setting in every) >= SLOW_S:
        studies.accesses.cut_for(every)


def _settings(space: Space, extras: Extras) -> list[Scenario]:
    """Return the settings of the space. Raises ScenarioError for unsupported ones."""
    trace = space.base.workload.trace
    if trace is not None and is_profile(trace):
        raise ScenarioError(f"workload.trace: {trace} is a profile; give it as workload.profile")
    if trace is not None:
        raise ScenarioError(f"workload.trace: {trace} answers for one rate only; use gcnsim simulate")
    settings = space.settings()
    refuse_undrawn(settings)
    asked = [resolve_machine(cluster) for cluster in space.machines]
    refuse_unused_figures(asked, energy=extras.site is not None)
    if extras.site is not None:
        refuse_power(asked, extras.site)
    for setting in settings:
        if setting.method.name not in space.optional:
            answering(setting)
    if extras.partition_seeds:
        seeds_of(settings[0], extras.partition_seeds)
    return settings


def _supported(
    studies: Studies, settings: Sequence[Scenario], optional: frozenset[str]
) -> tuple[list[Scenario], list[LeftOutRow]]:
    """Split settings into the supported ones and the others with the reason. Raises GcnsimError if a named setting is
    unsupported.
    """
    kept, skipped = [], []
    for scenario in settings:
        try:
            if scenario.method.name in optional:
                studies.check(scenario)
            kept.append(scenario)
        except ScenarioError as error:
            skipped.append(_left_out(scenario, str(error)))
    if not kept:
        raise ScenarioError(skipped[0].reason)
    return kept, skipped


def _left_out(scenario: Scenario, reason: str) -> LeftOutRow:
    """Return a setting without a row as a result."""
    method, cluster = scenario.method, scenario.cluster
    return LeftOutRow(method.name, knob_text(method), reason, cluster.gpus, cluster.bandwidth, device_of(cluster))


def _shortlist_by_machine(studies: Studies, space: Space, rule: Rule) -> dict[ClusterSpec, list[Scenario]]:
    """Return, per machine, the candidates that are worth simulating."""
    # Stale settings have no overlap option, but candidates without staleness use the requested one.
    start = replace(space.base, method=space.base.method.at_tau(0).overlapping(space.overlap))
    return {cluster: shortlist(studies, replace(start, cluster=cluster), rule) for cluster in space.machines}


def _rows(
    studies: Studies,
    settings: Sequence[Scenario],
    shortlists: Mapping[ClusterSpec, Sequence[Scenario]],
    space: Space,
    progress: Progress,
) -> tuple[list[RowEstimate], list[LeftOutRow]]:
    """Return a row for every setting; candidates and baselines are simulated with them.

    Optional methods that fit on no GPU are left out.
    """
    others = [candidate for found in shortlists.values() for candidate in found]
    on_progress = counted(
        progress, f"simulating {plural(len(settings), 'setting')} and {plural(len(others), 'candidate')}"
    )
    baselines = filter(None, (comparable(studies, setting, space) for setting in (*settings, *others)))
    studies.prepare([*baselines, *others], settings, on_progress)
    kept, too_heavy = [], []
    for setting in settings:
        row = RowEstimate.of(studies, setting, space)
        reason = too_large(studies, row.estimate) if setting.method.name in space.optional else None
        if reason is None:
            kept.append(row)
        else:
            too_heavy.append(_left_out(setting, reason))
    return kept, too_heavy


def recommended_setting(studies: Studies, space: Space, rule: Rule) -> Scenario:
    """Return what `what_if` recommends for a question of one machine; only what can still win is simulated."""
    own, _ = _supported(studies, space.settings(), space.optional)
    (shortlisted,) = _shortlist_by_machine(studies, space, rule).values()
    pool = tried(own, shortlisted, rule)
    if not pool:
        raise _nothing_allowed(rule)
    return search(studies, pool, set(own))


def _nothing_allowed(rule: Rule) -> ScenarioError:
    return ScenarioError(f"--allow: no setting of {', '.join(rule.methods)} can be answered for")


def _choices(
    studies: Studies, rows: Sequence[RowEstimate], shortlists: Mapping[ClusterSpec, Sequence[Scenario]], rule: Rule
) -> tuple[dict[ClusterSpec, Choice], Choice]:
    """Return the chosen setting of each machine, and the best choice: the one on the fastest machine.

    Choices come from allowed rows and candidates, limited to those that fit in memory if any does.
    """
    choices = {}
    for cluster, found in shortlists.items():
        own = [row.scenario for row in rows if row.scenario.cluster == cluster]
        pool = tried(own, found, rule)
        if pool:
            choices[cluster] = choose(studies, pool, own, rule)
    if not choices:
        raise _nothing_allowed(rule)
    best = min(choices.values(), key=lambda choice: (choice.estimate.result.fits is False, choice.estimate.epoch_s))
    return choices, best


def _found(
    studies: Studies,
    rows: Sequence[RowEstimate],
    shortlists: Mapping[ClusterSpec, Sequence[Scenario]],
    space: Space,
    rule: Rule,
    book: PriceBook,
) -> WhatIfResult:
    """Return the rows and the best choice."""
    choices, best = _choices(studies, rows, shortlists, rule)
    return WhatIfResult(
        dataset=studies.accesses.name,
        rule=rule,
        book=book,
        rows=tuple(rows),
        choices=choices,
        best=best,
        chosen=RowEstimate.of(studies, best.estimate.scenario, space),
        alternatives=tuple(alternatives(studies, best, choices, space, book)),
        by_machine=tuple(by_machine(studies, best, choices, rows, space)),
    )


def _straggler(studies: Studies, scenario: Scenario, steps: Sequence[Step]) -> StragglerReport | None:
    """Return the worker whose part is the bottleneck, or None if none stands out."""
    result = studies.result(scenario)
    straggler = straggler_of(result, studies.counts(result.scenario))
    if straggler is None:
        return None
    return StragglerReport(
        worker=straggler.worker,
        boundary_nodes=straggler.boundary_nodes,
        boundary_nodes_mean=straggler.boundary_nodes_mean,
        share_of_mean=straggler.share_of_mean,
        even_s=next((step.iteration_s for step in steps if step.knob == "partition"), None),
        text=straggler.text,
        placed_s=next((step.iteration_s for step in steps if step.knob == PARTS_PLACED), None),
    )


def sweep_bandwidth(
    studies: Studies, rows: Sequence[Scenario], bandwidths: Sequence[float], progress: Progress = lambda _: None
) -> list[list[Estimate]]:
    """Return, per scenario, its estimates at each bandwidth (bytes/s), for the plot of time against bandwidth."""
    curves = []
    for row in rows:
        moved = [replace(row, cluster=replace(row.cluster, bandwidth=value)) for value in bandwidths]
        studies.prepare([], moved, counted(progress, f"{row.method.name} against bandwidth"))
        curves.append([studies.estimate(scenario) for scenario in moved])
    return curves
