"""The settings that a recommendation considers: machines, and on each the candidates of the rule or a space.

Machines are the priced instances of the catalogue or the given lists. If a space is too large, a genetic search over
bounds samples it (Optuna's NSGA-II), minimising time and cost together. Its seed comes from a named stream, so the same
question samples the same settings.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.processes import parallel_map
from gcnsim.core.streams import stream
from gcnsim.core.units import format_gbps
from gcnsim.hardware import Rent
from gcnsim.planning.capacity_goal import Goal, Iterations
from gcnsim.planning.capacity_search import (
    Option,
    Setting,
    may_meet,
    needs_price,
    promising,
    simulated,
    unbeaten,
    with_bounds,
)
from gcnsim.planning.machines import instance_name
from gcnsim.planning.recommend import Rule, rate_of
from gcnsim.planning.shortlist import RATES, candidates, extremes, shortlist, usual_rows
from gcnsim.planning.space import ANY_OVERLAP, MACHINES, METHODS, Space
from gcnsim.planning.study import Studies
from gcnsim.scenario import ClusterSpec, Scenario, knob_text
from gcnsim.simulation import answering
from gcnsim.workload.caching import CacheSize

TAUS: Final = (0, 1, 2)
CACHES: Final = (0.0, 0.1, 0.3)

MANY: Final = 16
"""The most settings per machine with known iterations to the accuracy; of more, the most promising are kept."""


@dataclass(frozen=True, slots=True)
class Considered:
    """The considered settings of all machines.

    shown: those that what-if shows by default; the choice is no slower than them. slower: the number excluded because
    another one on the same machine has a faster estimate. unlisted: machines of which no setting can be best;
    beaten, missed: the number of their settings, by whether their bounds meet the goal.
    """

    settings: tuple[Scenario, ...]
    shown: frozenset[Scenario]
    slower: int = 0
    unlisted: tuple[ClusterSpec, ...] = ()
    beaten: int = 0
    missed: int = 0


def considered(
    studies: Studies,
    base: Scenario,
    clusters: Sequence[ClusterSpec],
    knobs: Mapping[str, tuple[Any, ...]],
    rule: Rule,
    training: Iterations | None = None,
    *,
    on_record: bool = False,
) -> Considered:
    """Return the settings that may be recommended on every machine.

    knobs: the values to choose from, by the path of the field; if none is given, the candidates of the rule. training:
    iterations to the target accuracy. on_record: whether settings beyond the rule are included if their iterations are
    known.
    """

    def allowed(scenario: Scenario) -> bool:
        known = on_record and training is not None and training(scenario) is not None
        return rule.too_approximate(scenario) is None or known

    if knobs:
        kept = tuple(filter(allowed, dict.fromkeys(_space(base, clusters, knobs, rule).settings())))
        return Considered(kept, frozenset(kept))
    shown: list[Scenario] = []
    kept_all: list[Scenario] = []
    total = 0
    homes = [replace(base, cluster=cluster) for cluster in clusters]
    # Count what candidates read once for every number of GPUs, before processes fork.
    for home in {home.cluster.gpus: home for home in homes}.values():
        studies.read_counts(candidates(home, rule))
    shortlists = parallel_map(lambda home: _shortlist(studies, home, rule, training), homes, studies.processes)
    for home, found in zip(homes, shortlists, strict=True):
        usual = [one for one in usual_rows(home, rule.methods) if allowed(one)]
        pool = dict.fromkeys([*usual, *found])
        shown += usual
        kept_all += pool
        total += len(dict.fromkeys([*usual, *candidates(home, rule)]))
    return Considered(tuple(kept_all), frozenset(shown), max(0, total - len(kept_all)))


def _all_of(home: Scenario, rule: Rule) -> list[Scenario]:
    """Return the settings of a machine that the rule allows, before any is left out."""
    usual = [one for one in usual_rows(home, rule.methods) if rule.too_approximate(one) is None]
    return list(dict.fromkeys([*usual, *candidates(home, rule)]))


FIRST: Final = 8
"""The number of machines whose settings are listed before the next comparison; it does not depend on the cores."""


def worth_listing(
    studies: Studies,
    base: Scenario,
    clusters: Sequence[ClusterSpec],
    rule: Rule,
    goal: Goal,
    rents: Mapping[ClusterSpec, Rent | None],
) -> Considered:
    """Return the settings of the machines that may have the best one, or a point of the Pareto front.

    A machine is excluded by the bounds of its `extremes`, as a setting is by its own: its other settings need no
    estimate. If nothing meets the goal, the settings of all machines are returned.
    """
    of_machine = {cluster: _all_of(replace(base, cluster=cluster), rule) for cluster in clusters}
    every = [setting for found in of_machine.values() for setting in extremes(found)]
    bounds = [
        setting for setting in with_bounds(studies, every, rents) if not needs_price(goal) or setting.work.per_hour
    ]
    left = promising([setting for setting in bounds if may_meet(studies, setting, goal)])
    within = {setting.scenario.cluster for setting in left}
    listed: list[ClusterSpec] = []
    kept: list[Considered] = []
    options: list[Option] = []
    while left:
        some = [*dict.fromkeys(setting.scenario.cluster for setting in left)][:FIRST]
        listed += some
        kept.append(considered(studies, base, some, {}, rule))
        settings = with_bounds(studies, kept[-1].settings, rents)
        held = [one for one in settings if studies.fits(one.scenario) and may_meet(studies, one, goal)]
        options += simulated(studies, unbeaten(held, options, goal), goal)
        left = [one for one in unbeaten(left, options, goal) if one.scenario.cluster not in listed]
    if not any(option.meets(goal) for option in options):
        return considered(studies, base, clusters, {}, rule)
    others = tuple(cluster for cluster in clusters if cluster not in listed)
    beaten = sum(len(of_machine[cluster]) for cluster in others if cluster in within)
    settings_kept = [one for found in kept for one in found.settings]
    return Considered(
        tuple(sorted(settings_kept, key=lambda one: clusters.index(one.cluster))),
        frozenset(one for found in kept for one in found.shown),
        sum(found.slower for found in kept),
        others,
        beaten,
        sum(len(of_machine[cluster]) for cluster in others) - beaten,
    )


def measured_only(every: Considered) -> Considered:
    """Return the settings with measured compute times, or all if no compute times are measured.

    Raises ScenarioError with the command that measures them if none is measured.
    """
    kept, why = [], None
    for setting in every.settings:
        try:
            answering(setting)
            kept.append(setting)
        except ScenarioError as error:
            why = why or error
    if why is not None and not kept:
        raise why
    return replace(every, settings=tuple(kept), shown=every.shown & set(kept))


def _shortlist(studies: Studies, home: Scenario, rule: Rule, training: Iterations | None) -> list[Scenario]:
    """The candidates of a machine that are worth simulating. If iterations differ by method, keep every method."""
    if training is None:
        return shortlist(studies, home, rule)
    known = [candidate for candidate in candidates(home, rule) if training(candidate) is not None]
    if len(known) <= MANY:
        return known
    of_each = [shortlist(studies, home, replace(rule, methods=(name,), named=True)) for name in rule.methods]
    return [one for found in of_each for one in found if training(one) is not None]


def _space(base: Scenario, clusters: Sequence[ClusterSpec], knobs: Mapping[str, tuple[Any, ...]], rule: Rule) -> Space:
    """Return the methods with the requested knobs on every machine; other knobs take the values of candidates."""
    rates = tuple(one for one in RATES if one >= rule.min_sampling_rate)
    axes: dict[str, tuple[Any, ...]] = {
        MACHINES: tuple(clusters),
        METHODS: rule.methods,
        ANY_OVERLAP: (base.method.overlap,),
        "method.tau": tuple(one for one in TAUS if one <= rule.max_staleness),
        "method.epsilon": rates,
        "method.cache": tuple(CacheSize(fraction=one) for one in CACHES),
        "method.rate": rates,
    }
    return Space(base, {**axes, **knobs})


LIMIT: Final = 5000
"""The default number of settings whose bounds are computed."""

POPULATION: Final = 48
"""The settings of a generation, whose bounds are computed in parallel."""

PATIENCE: Final = 8
"""The search ends after this many generations without a new setting."""

Bounded = Callable[[Sequence[Scenario]], list[Setting]]
"""A function that returns the allowed settings of some, with their bounds."""


def coordinates(scenario: Scenario) -> dict[str, str]:
    """Return the coordinates of a setting in each knob, as words."""
    cluster, method = scenario.cluster, scenario.method
    instance = instance_name(cluster)
    place = {"machine": instance or cluster.device, "GPUs": str(cluster.gpus)}
    if instance is None:
        place["bandwidth"] = format_gbps(cluster.bandwidth)
    cache = method.cache.describe()
    return place | {"method": method.name, "tau": str(method.tau), "rate": f"{rate_of(method):g}", "cache": cache}


def nsga2_sample(every: Sequence[Scenario], bounded: Bounded, limit: int, seed: int) -> list[Setting]:
    """Return at most `limit` of `every`, with their bounds. Raises ScenarioError without Optuna."""
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
        settings = {setting.scenario: setting for setting in bounded([one for place in new for one in places[place]])}
        known |= {place: [settings[one] for one in places[place] if one in settings] for place in new}
        for trial, place in zip(trials, suggested, strict=True):
            _tell(search, trial, known.get(place))
    return [setting for settings in known.values() for setting in settings][:limit]


def _tell(search: Any, trial: Any, settings: Sequence[Setting] | None) -> None:
    """Report the lowest bound at a point to Optuna, or a failure if no allowed setting is there."""
    if settings:
        search.tell(trial, min(setting.least for setting in settings))
    else:
        search.tell(trial, state=importlib.import_module("optuna.trial").TrialState.FAIL)


def _place(scenario: Scenario) -> tuple[str, ...]:
    """Return the coordinates of a setting in the knobs that all settings share."""
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
