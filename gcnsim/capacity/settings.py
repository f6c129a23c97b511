"""The settings that are considered on every machine: the candidates of the rule, as a what-if has them, or a grid; and
of a grid that is too large those that a genetic search over their bounds picks (Optuna).

Least time and least cost at the analytic bound are minimised together (NSGA-II), its seed drawn from a named stream, so
the same question looks at the same settings.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gcnsim.capacity.goal import Iterations
from gcnsim.capacity.machines import Machines, instance_name
from gcnsim.capacity.search import Setting
from gcnsim.errors import ScenarioError
from gcnsim.methods import OVERLAP
from gcnsim.planning import Grid, Rule, StudyCache, scenarios
from gcnsim.planning.recommend import rate_of
from gcnsim.planning.settings import RATES, candidates, shortlist, usual_rows
from gcnsim.processes import parallel_map
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario, knob_text
from gcnsim.simulation import answering
from gcnsim.streams import stream
from gcnsim.units import format_gbps

TAUS: Final = (0, 1, 2)
CACHES: Final = (0.0, 0.1, 0.3)

MANY: Final = 16
"""Settings of a machine whose iterations to the accuracy are known: of more, the most promising are looked at."""


@dataclass(frozen=True, slots=True)
class Considered:
    """settings: those that are looked at, of all machines. shown: of them, those that a what-if would show by
    themselves, than which nothing slower is recommended. slower: how many more were left out, since another one of
    their machine is faster by its analytic estimate."""

    settings: tuple[Scenario, ...]
    shown: frozenset[Scenario]
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
        every = [one for cluster in clusters for one in _grid(replace(base, cluster=cluster), machines, rule)]
        kept = tuple(filter(allowed, dict.fromkeys(every)))
        return Considered(kept, frozenset(kept))
    shown: list[Scenario] = []
    kept_all: list[Scenario] = []
    total = 0
    homes = [replace(base, cluster=cluster) for cluster in clusters]
    # What candidates read is counted once for every number of GPUs, before processes part ways.
    for home in {home.cluster.gpus: home for home in homes}.values():
        studies.read_counts(candidates(home, rule))

    def promising(home: Scenario) -> list[Scenario]:
        return _promising(studies, home, rule, training)

    for home, found in zip(homes, parallel_map(promising, homes, studies.processes), strict=True):
        usual = [one for one in usual_rows(home, rule.methods) if allowed(one)]
        pool = dict.fromkeys([*usual, *found])
        shown += usual
        kept_all += pool
        total += len(dict.fromkeys([*usual, *candidates(home, rule)]))
    return Considered(tuple(kept_all), frozenset(shown), max(0, total - len(kept_all)))


def measured_only(found: Considered) -> Considered:
    """Those of the settings whose compute was measured, where any is; all where none has to be.

    Raises ScenarioError, with the command that measures it, where none was.
    """
    kept, why = [], None
    for setting in found.settings:
        try:
            answering(setting)
            kept.append(setting)
        except ScenarioError as error:
            why = why or error
    if why is not None and not kept:
        raise why
    return replace(found, settings=tuple(kept), shown=found.shown & set(kept))


def _promising(studies: StudyCache, home: Scenario, rule: Rule, training: Iterations | None) -> list[Scenario]:
    """The candidates of a machine that are worth simulating. Where trainings differ in their iterations, those of every
    method."""
    if training is None:
        return shortlist(studies, home, rule)
    known = [candidate for candidate in candidates(home, rule) if training(candidate) is not None]
    if len(known) <= MANY:
        return known
    of_each = [shortlist(studies, home, replace(rule, methods=(name,), named=True)) for name in rule.methods]
    return [one for found in of_each for one in found if training(one) is not None]


def _grid(home: Scenario, machines: Machines, rule: Rule) -> list[Scenario]:
    """The methods with the knobs asked for on one machine; knobs that nobody named have the values of candidates."""
    rates = machines.rates or tuple(one for one in RATES if one >= rule.min_sampling_rate)
    grid = Grid(
        methods=rule.methods,
        gpus=(home.cluster.gpus,),
        bandwidths=(home.cluster.bandwidth,),
        taus=machines.taus or tuple(one for one in TAUS if one <= rule.max_staleness),
        epsilons=rates,
        caches=machines.caches or tuple(CacheSize(fraction=one) for one in CACHES),
        rates=rates,
        devices=(home.cluster.device,),
        extra_knobs=((OVERLAP, (home.method.overlap,)),),
    )
    return scenarios(home, grid)


LIMIT: Final = 2000
"""Settings of which bounds are computed, unless the question says otherwise."""

POPULATION: Final = 48
"""Settings of a generation, whose bounds are computed side by side."""

PATIENCE: Final = 8
"""Generations without a new setting after which the search ends."""

Bounded = Callable[[Sequence[Scenario]], list[Setting]]
"""The settings that are allowed, of some, with their bounds."""


def coordinates(scenario: Scenario) -> dict[str, str]:
    """Where a setting stands in each knob, as words."""
    cluster, method = scenario.cluster, scenario.method
    instance = instance_name(cluster)
    found = {"machine": instance or cluster.device, "GPUs": str(cluster.gpus)}
    if instance is None:
        found["bandwidth"] = format_gbps(cluster.bandwidth)
    cache = method.cache.describe()
    return found | {"method": method.name, "tau": str(method.tau), "rate": f"{rate_of(method):g}", "cache": cache}


def nsga2_sample(every: Sequence[Scenario], bounded: Bounded, limit: int, seed: int) -> list[Setting]:
    """At most `limit` of `every`, with their bounds. Raises ScenarioError without Optuna."""
    optuna = _optuna(len(every), limit)
    seed = int(stream(seed, "recommend").integers(2**31))
    sampler = optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed)
    search = optuna.create_study(directions=("minimize", "minimize"), sampler=sampler)
    places: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in every:
        places.setdefault(_place(scenario), []).append(scenario)
    axes = [sorted(set(values)) for values in zip(*places, strict=True)]
    known: dict[tuple[str, ...], list[Setting]] = {}
    idle = 0
    while idle < PATIENCE and sum(map(len, known.values())) < limit:
        trials = [search.ask() for _ in range(POPULATION)]
        suggested = [
            tuple(trial.suggest_categorical(str(number), list(values)) for number, values in enumerate(axes))
            for trial in trials
        ]
        new = [place for place in dict.fromkeys(suggested) if place in places and place not in known]
        idle = 0 if new else idle + 1
        found = {setting.scenario: setting for setting in bounded([one for place in new for one in places[place]])}
        known |= {place: [found[one] for one in places[place] if one in found] for place in new}
        for trial, place in zip(trials, suggested, strict=True):
            _tell(search, trial, known.get(place))
    return [setting for settings in known.values() for setting in settings][:limit]


def _tell(search: Any, trial: Any, settings: Sequence[Setting] | None) -> None:
    """The least of what stands at a place; a failure where nothing does, or nothing that is allowed."""
    if settings:
        search.tell(trial, min(setting.least for setting in settings))
    else:
        search.tell(trial, state=importlib.import_module("optuna.trial").TrialState.FAIL)


def _place(scenario: Scenario) -> tuple[str, ...]:
    """Where a setting stands in each knob, the same knobs for all."""
    found: Mapping[str, str] = coordinates(scenario)
    names = ("machine", "GPUs", "bandwidth", "method", "tau", "rate", "cache")
    return (*(found.get(name, "") for name in names), knob_text(scenario.method))


def _optuna(settings: int, limit: int) -> Any:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise ScenarioError(
            f"--limit: {settings:,} settings are more than {limit:,}; ask for fewer, give a larger --limit, or install "
            "Optuna, which picks some of them (pip install 'gcnsim[recommend]')"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
