"""The settings that a recommendation considers: machines, and on each the candidates of the rule or a space.

Machines are the priced instances of the catalogue or the given lists. If a space is too large, a genetic search over
bounds samples it (Optuna's NSGA-II), minimising time and cost together. Its seed comes from a named stream, so the same
question samples the same settings.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest, plural
from gcnsim.core.processes import parallel_map
from gcnsim.core.spellings import known_name
from gcnsim.core.streams import stream
from gcnsim.core.units import format_gbps
from gcnsim.hardware import (
    DESCRIBED_HOST,
    GENERIC_LINK,
    NETWORK,
    PriceBook,
    hosts,
    instance_of,
    is_file,
    is_host,
    prices,
)
from gcnsim.planning.capacity_goal import Iterations
from gcnsim.planning.capacity_search import Setting
from gcnsim.planning.recommend import Rule, rate_of
from gcnsim.planning.shortlist import RATES, candidates, shortlist, usual_rows
from gcnsim.planning.space import ANY_OVERLAP, MACHINES, METHODS, Space
from gcnsim.planning.study import Studies
from gcnsim.scenario import ClusterSpec, Scenario, knob_text, setting_text
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import answering
from gcnsim.workload.caching import CacheSize

SERVERS: Final = (1, 2, 3, 4)
"""Numbers of instances per type that are tried if the number of GPUs is not given."""

MOST_GPUS: Final = 32
"""The most GPUs that are tried then: the bundled partition profiles reach this far."""


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines to choose from; an empty list means the priced instances of the catalogue.

    hosts: instance types by name. devices, bandwidths (bytes/s): for machines that are not instances. servers: those
    that the devices are in, one for each; empty: the base's.
    """

    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    servers: tuple[ClusterSpec, ...] = ()
    bandwidths: tuple[float, ...] = ()
    gpus: tuple[int, ...] = ()
    gpus_per_server: int | None = None

    def clusters(self, base: ClusterSpec, book: PriceBook, most_gpus: int) -> list[ClusterSpec]:
        """Return the distinct machines. Raises ScenarioError for an unknown name."""
        if base.measured_compute is not None:
            return self._measured(base, book)
        if self.devices or self.bandwidths:
            clusters = list(self._of_lists(base))
        else:
            names = self.hosts or priced_hosts(book)
            clusters = [one for name in names for one in self._of_instance(base, name)]
        kept = [one for one in dict.fromkeys(clusters) if one.gpus <= most_gpus]
        if not kept:
            raise ScenarioError(f"--gpus: no machine has them, or the workload is not known for more than {most_gpus}")
        return kept

    def _measured(self, base: ClusterSpec, book: PriceBook) -> list[ClusterSpec]:
        """Return the machines with the measured device and number of workers. Raises ScenarioError for others."""
        measured = resolve_machine(base).measured
        assert measured is not None
        source = f"{base.measured_compute} was measured on {measured.parts} x {base.device}"
        for option, values, own in (("gpus", self.gpus, measured.parts), ("device", self.devices, base.device)):
            other = next((value for value in values if value != own), None)
            if other is not None:
                raise ScenarioError(f"--{option}: {other} is not what was measured, {source}; allowed: {own}")
        here = replace(self, gpus=(measured.parts,))
        if self.devices or self.bandwidths:
            return list(dict.fromkeys(here._of_lists(base)))
        names = self.hosts or priced_hosts(book)
        every = dict.fromkeys(one for name in names for one in here._of_instance(base, name))
        kept = [cluster for cluster in every if cluster.device == base.device]
        wrong = next((cluster for cluster in every if cluster not in kept), None)
        if not kept or (self.hosts and wrong is not None):
            what = "none of these hosts has it" if wrong is None else f"{wrong.host} has {wrong.device}"
            raise ScenarioError(
                f"--host: {what}; {source}; "
                f"allowed: hosts with {base.device}, or --device {base.device} and --bandwidth"
            )
        return kept

    def _of_lists(self, base: ClusterSpec) -> Iterator[ClusterSpec]:
        for server in self.servers or [replace(base, device=name) for name in self.devices] or [base]:
            for bandwidth, gpus in product(self.bandwidths or (server.bandwidth,), self.gpus or (2, 4, 8, 16)):
                yield replace(server, bandwidth=bandwidth, gpus=gpus)

    def _of_instance(self, base: ClusterSpec, name: str) -> Iterator[ClusterSpec]:
        known = name if is_file(name) else known_name(name, hosts())
        if known is None:
            raise ScenarioError(f"--host: unknown host {name!r}; {nearest(name, hosts())}; {DESCRIBED_HOST}")
        instance = instance_of(known, self.gpus_per_server)
        if instance is None:
            raise ScenarioError(f"--host: {name} has no GPUs of its own; give --device, --gpus and --bandwidth instead")
        per_server = self.gpus_per_server or instance.gpus
        for gpus in self.gpus or usual_gpus(per_server):
            inside = min(per_server, gpus)
            with suppress(ScenarioError):
                yield replace(
                    base,
                    device=instance.device,
                    host=known,
                    bandwidth=min(instance.bandwidth, NETWORK.high),
                    # A requested link is kept.
                    link=instance.network if base.link == GENERIC_LINK else base.link,
                    gpus=gpus,
                    gpus_per_server=inside,
                )


def usual_gpus(per_server: int) -> list[int]:
    """Return the numbers of GPUs that are tried for an instance type: two, four, ... of one instance, and one to four
    whole ones.
    """
    part = [2**power for power in range(1, per_server.bit_length()) if 2**power < per_server]
    return part + ([count * per_server for count in SERVERS if count * per_server <= MOST_GPUS] or [per_server])


def space_text(clusters: Sequence[ClusterSpec]) -> str:
    """Return the machines in a few words: families of instance types, or devices and networks, and how many GPUs."""
    gpus = sorted({cluster.gpus for cluster in clusters})
    count = f"{gpus[0]} to {gpus[-1]} GPUs" if len(gpus) > 1 else plural(gpus[0], "GPU")
    named = {instance_name(cluster) for cluster in clusters}
    if None not in named:
        names = dict.fromkeys(str(name).partition(".")[0] for name in sorted(map(str, named)))
        types = plural(len(named), "instance type")
        what = ", ".join(names) if len(named) > 1 else str(next(iter(named)))
        return f"{what} ({types}), {count}" if len(named) > 1 else f"{what}, {count}"
    devices = dict.fromkeys(cluster.device for cluster in clusters)
    networks = dict.fromkeys(format_gbps(cluster.bandwidth) for cluster in clusters)
    return f"{', '.join(devices)} at {', '.join(networks)}, {count}"


def instance_name(cluster: ClusterSpec) -> str | None:
    """Return the instance type of a machine's servers, or None if they have none."""
    instance = instance_of(cluster.host) if is_host(cluster.host) else None
    return cluster.host if instance is not None and instance.device == cluster.device else None


def priced_hosts(book: PriceBook) -> tuple[str, ...]:
    """Return the hosts that `book` has a price for: catalogue hosts by name, and host files."""
    listed = {price.instance for price in prices() if price.pricing == book.pricing}
    listed |= {price.instance for price in book.given}
    own = sorted(name for name in listed if is_file(name))
    names = (*(name for name in hosts() if name in listed), *own)
    if not names:
        raise ScenarioError(f"--pricing: no host of the catalogue has a {book.pricing} price; give --device and --gpus")
    return names


def machine_text(cluster: ClusterSpec) -> str:
    """Return a machine in a few words: `2 x g4dn.12xlarge (8 x t4)`, or `6 x t4 at 15Gbps`."""
    gpus = f"{cluster.gpus} x {cluster.device}"
    if instance_name(cluster) is None:
        return f"{gpus} at {format_gbps(cluster.bandwidth)}"
    return f"{cluster.servers} x {cluster.host} ({gpus})"


def name_of(scenario: Scenario) -> str:
    """Return setting and machine in words."""
    return f"{setting_text(scenario.method)} on {machine_text(scenario.cluster)}"


TAUS: Final = (0, 1, 2)
CACHES: Final = (0.0, 0.1, 0.3)

MANY: Final = 16
"""The most settings per machine with known iterations to the accuracy; of more, the most promising are kept."""


@dataclass(frozen=True, slots=True)
class Considered:
    """The considered settings of all machines.

    shown: those that what-if shows by default; the choice is no slower than them. slower: the number excluded because
    another one on the same machine has a faster estimate.
    """

    settings: tuple[Scenario, ...]
    shown: frozenset[Scenario]
    slower: int = 0


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
