"""The settings that are considered on every machine: the candidates of the rule, as a what-if has them, or a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.capacity.machines import Machines
from gcnsim.errors import ScenarioError
from gcnsim.methods import OVERLAP
from gcnsim.planning import Grid, Rule, StudyCache, scenarios
from gcnsim.planning.recommend import RATES, candidates, shortlist, usual_rows
from gcnsim.processes import parallel_map
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario
from gcnsim.simulation import answering
from gcnsim.uncertainty import estimated_counts

TAUS: Final = (0, 1, 2)
CACHES: Final = (0.0, 0.1, 0.3)

MANY: Final = 16
"""Settings of a machine whose iterations to the accuracy are known: of more, the most promising are looked at."""

Iterations = Callable[[Scenario], int | None]
"""Iterations of a training; None where nobody knows."""


@dataclass(frozen=True, slots=True)
class Considered:
    """settings: those that are looked at, of all machines. asked: of them, those that a what-if would show by
    themselves, than which nothing slower is recommended. slower: how many more were left out, since another one of
    their machine is faster by its analytic estimate."""

    settings: tuple[Scenario, ...]
    asked: frozenset[Scenario]
    slower: int = 0


def considered(
    studies: StudyCache,
    base: Scenario,
    clusters: Sequence[ClusterSpec],
    machines: Machines,
    rule: Rule,
    training: Iterations | None = None,
    *,
    on_record: bool = False,
) -> Considered:
    """The settings that may be recommended, on every machine. training: iterations to the accuracy asked for.
    on_record: whether more approximate settings may be too, where their iterations are known."""

    def allowed(scenario: Scenario) -> bool:
        known = on_record and training is not None and training(scenario) is not None
        return rule.too_approximate(scenario) is None or known

    if machines.knobs_named:
        every = [each for cluster in clusters for each in _grid(replace(base, cluster=cluster), machines, rule)]
        kept = tuple(filter(allowed, dict.fromkeys(every)))
        return Considered(kept, frozenset(kept))
    kept_of: dict[str, list[Scenario]] = {"asked": [], "all": []}
    total = 0
    homes = [replace(base, cluster=cluster) for cluster in clusters]
    _read(studies, homes, rule)

    def promising(home: Scenario) -> list[Scenario]:
        return _promising(studies, home, rule, training)

    for home, found in zip(homes, parallel_map(promising, homes, studies.processes), strict=True):
        usual = [each for each in usual_rows(home, rule.methods) if allowed(each)]
        pool = dict.fromkeys([*usual, *found])
        kept_of["asked"] += usual
        kept_of["all"] += pool
        total += len(dict.fromkeys([*usual, *candidates(home, rule)]))
    return Considered(tuple(kept_of["all"]), frozenset(kept_of["asked"]), max(0, total - len(kept_of["all"])))


def measured_only(found: Considered) -> Considered:
    """Those of the settings whose compute was measured, where any is; all where none has to be.

    Raises ScenarioError, with the command that measures it, where none was.
    """
    kept, why = [], None
    for each in found.settings:
        try:
            answering(each)
            kept.append(each)
        except ScenarioError as error:
            why = why or error
    if why is not None and not kept:
        raise why
    return replace(found, settings=tuple(kept), asked=found.asked & set(kept))


def _read(studies: StudyCache, homes: Sequence[Scenario], rule: Rule) -> None:
    """Count what the candidates read, once for every number of GPUs, before processes part ways."""
    firsts = {home.cluster.gpus: home for home in homes}
    for home in firsts.values():
        for each in candidates(home, rule):
            with suppress(ScenarioError):
                estimated_counts(each, studies.accesses)


def _promising(studies: StudyCache, home: Scenario, rule: Rule, training: Iterations | None) -> list[Scenario]:
    """The candidates of a machine that are worth simulating. Where trainings differ in their iterations, those of every
    method."""
    start = replace(home, method=home.method.at_tau(0))
    if training is None:
        return shortlist(studies, start, rule)
    known = [each for each in candidates(start, rule) if training(each) is not None]
    if len(known) <= MANY:
        return known
    of_each = [shortlist(studies, start, replace(rule, methods=(name,), named=True)) for name in rule.methods]
    return [each for found in of_each for each in found if training(each) is not None]


def _grid(home: Scenario, machines: Machines, rule: Rule) -> list[Scenario]:
    """The methods with the knobs asked for on one machine; knobs that nobody named have the values of candidates."""
    rates = machines.rates or tuple(each for each in RATES if each >= rule.min_sampling_rate)
    grid = Grid(
        methods=rule.methods,
        gpus=(home.cluster.gpus,),
        bandwidths=(home.cluster.bandwidth,),
        taus=machines.taus or tuple(each for each in TAUS if each <= rule.max_staleness),
        epsilons=rates,
        caches=machines.caches or tuple(CacheSize(fraction=each) for each in CACHES),
        rates=rates,
        devices=(home.cluster.device,),
        own=((OVERLAP, (home.method.overlap,)),),
    )
    return scenarios(home, grid)
