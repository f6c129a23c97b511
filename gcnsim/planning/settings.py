"""The settings of a question: one row for every combination of values (`Grid`), and the candidates that the rule
allows.

Candidates are ranked by their analytic estimate, and the most promising ones are simulated. What-if and recommend share
this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Seconds
from gcnsim.core.units import format_gbps
from gcnsim.methods import NO_OVERLAP, OVERLAP, Method, create_method, method_type
from gcnsim.planning.candidate import canonical
from gcnsim.planning.recommend import NEAR, Rule, approximation_key, rate_of
from gcnsim.planning.rows import device_of
from gcnsim.planning.study import Studies
from gcnsim.results import LeftOutRow
from gcnsim.scenario import ClusterSpec, Scenario, knob_text
from gcnsim.workload.caching import CacheSize

RATES: Final = (1.0, 0.5, 0.2, 0.1)
"""Sampling rates of candidates."""

SIMULATED: Final = 3
"""The number of candidates simulated for a method with staleness; other methods get one."""

MAX_RATIO: Final = 2.0
"""A method's best candidate is not simulated if its estimate exceeds the best by this factor."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The requested values; each combination is a row. Knobs that a method lacks do not multiply its rows.

    devices, bandwidths: values for the cluster; empty if each server has its own. servers: clusters with several hosts
    or GPUs per server; empty for the question's own cluster only. extra_knobs: values of method-specific knobs.
    optional: methods that a comparison leaves out if they are not supported.
    """

    methods: tuple[str, ...]
    gpus: tuple[int, ...]
    bandwidths: tuple[float, ...]
    taus: tuple[int, ...]
    epsilons: tuple[float, ...]
    caches: tuple[CacheSize, ...]
    rates: tuple[float, ...]
    devices: tuple[str, ...] = ()
    extra_knobs: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    optional: frozenset[str] = frozenset()
    servers: tuple[ClusterSpec, ...] = ()

    def mapping(self) -> dict[str, list[Any]]:
        """Return the values as plain data."""
        values: dict[str, list[Any]] = {
            "methods": list(self.methods),
            "gpus": list(self.gpus),
            "bandwidths": [format_gbps(value) for value in self.bandwidths or _values_of(self.servers, "bandwidth")],
            "taus": list(self.taus),
            "epsilons": list(self.epsilons),
            "caches": [cache.describe() for cache in self.caches],
            "rates": list(self.rates),
        }
        for name, several in (
            ("devices", self.devices or _values_of(self.servers, "device")),
            ("hosts", _values_of(self.servers, "host")),
            ("gpus_per_server", _values_of(self.servers, "gpus_per_server")),
        ):
            if len(several) > 1:
                values[name] = list(several)
        return values | {name: [plain_knob(value) for value in several] for name, several in self.extra_knobs}


def _values_of(servers: tuple[ClusterSpec, ...], name: str) -> tuple[Any, ...]:
    """Return the distinct values of a field over clusters."""
    return tuple(dict.fromkeys(getattr(server, name) for server in servers))


def plain_knob(value: Any) -> Any:
    """Return a knob's value as plain data."""
    if isinstance(value, CacheSize):
        return value.describe()
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A setting without a row, and the reason."""

    scenario: Scenario
    reason: str

    def as_row(self) -> LeftOutRow:
        """Return it as a result row."""
        method, cluster = self.scenario.method, self.scenario.cluster
        machine = (cluster.gpus, cluster.bandwidth, device_of(cluster))
        return LeftOutRow(method.name, knob_text(method), self.reason, *machine)


def scenarios(base: Scenario, grid: Grid) -> list[Scenario]:
    """Return one scenario per row, machines outermost."""
    rows: list[Scenario] = []
    for cluster in machines(base, grid):
        for name in grid.methods:
            rows += [replace(base, cluster=cluster, method=method) for method in _methods(base, name, grid)]
    return rows


def machines(base: Scenario, grid: Grid) -> list[ClusterSpec]:
    """Return the requested clusters: servers outermost, then devices, GPUs and bandwidths."""
    return [
        replace(server, device=device, gpus=gpus, bandwidth=bandwidth)
        for server in grid.servers or (base.cluster,)
        for device, gpus, bandwidth in product(
            grid.devices or (server.device,), grid.gpus, grid.bandwidths or (server.bandwidth,)
        )
    ]


def overlap_of(grid: Grid) -> str:
    """Return the work that overlaps synchronous transfers in every row that waits for some."""
    return str(dict(grid.extra_knobs).get(OVERLAP, (NO_OVERLAP,))[0])


def _methods(base: Scenario, name: str, grid: Grid) -> list[Method]:
    """Return the rows of one method, with the requested overlap if it has an effect."""
    kind = method_type(name)
    own = base.method if base.method.name == name else None
    general: dict[str, tuple[Any, ...]] = {"rate": grid.rates}
    if kind.has("tau"):
        general = {"tau": grid.taus, "epsilon": grid.epsilons, "cache": grid.caches}
    knobs = {knob: values for knob, values in general.items() if kind.has(knob)}
    alone = "tau" in knobs or ("rate" in knobs and own is not None)
    starts = [own or kind()] if alone else _variants(kind, grid, own)
    return [
        replace(start, **dict(zip(knobs, values, strict=True))).overlapping(overlap_of(grid))
        for start in starts
        for values in product(*knobs.values())
    ]


def _variants(kind: type[Method], grid: Grid, start: Method | None) -> list[Method]:
    """Return one row for every combination of the method's extra knobs, and its variants if all methods are compared.

    start: the method that gives the other knobs; None for defaults.
    """
    kept = {} if start is None else dict(start.values())
    extra = {knob: values for knob, values in grid.extra_knobs if kind.has(knob)}
    given = [dict(zip(extra, values, strict=True)) for values in product(*extra.values())]
    variants = kind.variants if grid.optional else ({},)
    return list(
        dict.fromkeys(
            create_method(kind.name, **{**kept, **variant, **values}) for variant in variants for values in given
        )
    )


def split_supported(
    studies: Studies, settings: Sequence[Scenario], optional: frozenset[str]
) -> tuple[list[Scenario], list[SkippedRow]]:
    """Split `settings` into the supported ones and the others with the reason. Raises GcnsimError if a named setting is
    unsupported.
    """
    kept, skipped = [], []
    for scenario in settings:
        try:
            if scenario.method.name in optional:
                studies.check(scenario)
            kept.append(scenario)
        except ScenarioError as error:
            skipped.append(SkippedRow(scenario, str(error)))
    if not kept:
        raise ScenarioError(skipped[0].reason)
    return kept, skipped


def usual_rows(scenario: Scenario, names: Sequence[str]) -> list[Scenario]:
    """Return the settings on the scenario's machine that are compared without named knobs: each method with its
    defaults.
    """
    base = scenario.method
    methods = [base if base.name == name else create_method(name) for name in names]
    return [replace(scenario, method=method.overlapping(base.overlap)) for method in methods]


def candidates(scenario: Scenario, rule: Rule) -> list[Scenario]:
    """Return the settings considered on the scenario's machine, least approximate first."""
    every = dict.fromkeys(one for name in rule.methods for one in _of_method(scenario, name, rule))
    return sorted(every, key=approximation_key)


def _of_method(scenario: Scenario, name: str, rule: Rule) -> Iterator[Scenario]:
    least = rule.min_sampling_rate
    rates = [rate for rate in dict.fromkeys((*RATES, least)) if rate >= least]
    kind, base = method_type(name), scenario.method
    start = base if isinstance(base, kind) else kind()
    for method in start.at_tau(0).overlapping(base.overlap).candidates(rates):
        if method.tau > rule.max_staleness:
            continue
        simplest = method.canonical()
        yield replace(scenario, method=simplest if simplest.name in rule.methods else method)


def shortlist(studies: Studies, scenario: Scenario, rule: Rule) -> list[Scenario]:
    """Return the candidates that are worth simulating: every one whose estimate is within NEAR of the best.

    It adds the best of three taus of psc-gcn and the best candidate of every other method. The estimate ignores the
    gain from a second iteration of slack, so tau above 1 uses the estimate of tau 1.
    """
    known = _estimated(studies, candidates(scenario, rule))
    settings = [setting for setting, seconds in known.items() if seconds < inf]
    if not settings:
        return []
    held = {setting: studies.fits(setting) for setting in settings}
    order = [
        one for holds in (True, False) for one in sort_by_estimate([s for s in settings if held[s] is holds], known)
    ]
    kinds = [method_type(name) for name in rule.methods]
    chosen = [one for kind in kinds if kind.has("tau") for one in _best_by_tau(order, kind)]
    least = min(known[setting] for setting in settings)
    for kind in kinds:
        own = next((setting for setting in order if setting.method.name == kind.name), None)
        if own is not None and not kind.has("tau") and known[own] <= MAX_RATIO * least:
            chosen.append(own)
    near = [setting for setting in order if held[setting] and known[setting] <= least * (1 + NEAR)]
    return list(dict.fromkeys([*chosen, *near]))


def _best_by_tau(order: Sequence[Scenario], kind: type[Method]) -> list[Scenario]:
    """Return the most promising setting of a method with staleness for each tau."""
    firsts: dict[int, Scenario] = {}
    for setting in order:
        if kind.as_this_method(setting.method) is not None:
            firsts.setdefault(setting.method.tau, setting)
    return list(firsts.values())[:SIMULATED]


def _estimated(studies: Studies, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    """Return the estimates of the settings that may be among the best, in order.

    A cache slows nothing down, so smaller caches are estimated only if the largest that fits is near the best.
    """

    def twin(setting: Scenario) -> Scenario:
        return canonical(replace(setting, method=setting.method.at_tau(min(setting.method.tau, 1))))

    twins = {setting: twin(setting) for setting in settings}
    alike: dict[tuple[str, int, float], list[Scenario]] = {}
    for setting in sorted(settings, key=lambda setting: -(setting.method.cache.fraction or 0.0)):
        alike.setdefault((setting.method.name, min(setting.method.tau, 1), rate_of(setting.method)), []).append(setting)
    largest = [next((setting for setting in group if studies.fits(setting)), group[0]) for group in alike.values()]
    known = _estimates_of(studies, [twins[setting] for setting in largest])
    limit = min(known.values(), default=0.0) * (1 + NEAR)
    near = [group for group, first in zip(alike.values(), largest, strict=True) if known[twins[first]] <= limit]
    more = dict.fromkeys(twins[setting] for group in near for setting in group)
    known |= _estimates_of(studies, [setting for setting in more if setting not in known])
    return {setting: known[twins[setting]] for setting in settings if twins[setting] in known}


def _estimates_of(studies: Studies, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    distinct = list(dict.fromkeys(settings))
    return dict(zip(distinct, studies.estimates(distinct), strict=True))


def sort_by_estimate(settings: Sequence[Scenario], known: Mapping[Scenario, Seconds]) -> list[Scenario]:
    """Sort settings: those near the best estimate by approximation_key, then the rest by time."""
    limit = min((known[setting] for setting in settings), default=0.0) * (1 + NEAR)
    near = [setting for setting in settings if known[setting] <= limit]
    far = [setting for setting in settings if known[setting] > limit]
    return sorted(near, key=approximation_key) + sorted(far, key=lambda one: known[one])
