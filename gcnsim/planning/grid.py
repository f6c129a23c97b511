"""The values that a question asks for, and the settings that they make: a row for every combination."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from gcnsim.methods import NO_OVERLAP, OVERLAP, Method, create_method, method_type
from gcnsim.planning.rows import device_of
from gcnsim.results import LeftOutRow
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario, knob_text
from gcnsim.units import format_gbps


@dataclass(frozen=True, slots=True)
class Grid:
    """The values asked for; each combination is a row. Knobs a method lacks do not multiply its rows.

    devices, bandwidths: of the cluster, none where each server has its own. servers: clusters of several hosts or GPUs
    in a server; none where the question's own is the only one.
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
    devices: tuple[str, ...] = ()
    own: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    optional: frozenset[str] = frozenset()
    servers: tuple[ClusterSpec, ...] = ()

    def mapping(self) -> dict[str, list[Any]]:
        """The values as plain data."""
        told: dict[str, list[Any]] = {
            "methods": list(self.methods),
            "gpus": list(self.gpus),
            "bandwidths": [format_gbps(value) for value in self.bandwidths or _each(self.servers, "bandwidth")],
            "taus": list(self.taus),
            "epsilons": list(self.epsilons),
            "caches": [cache.describe() for cache in self.caches],
            "rates": list(self.rates),
        }
        for name, values in (
            ("devices", self.devices or _each(self.servers, "device")),
            ("hosts", _each(self.servers, "host")),
            ("gpus_per_server", _each(self.servers, "gpus_per_server")),
        ):
            if len(values) > 1:
                told[name] = list(values)
        return told | {name: [plain_knob(value) for value in values] for name, values in self.own}


def _each(servers: tuple[ClusterSpec, ...], name: str) -> tuple[Any, ...]:
    """The values that clusters have in a field, none twice."""
    return tuple(dict.fromkeys(getattr(each, name) for each in servers))


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

    def told(self) -> LeftOutRow:
        """As a result."""
        method, cluster = self.scenario.method, self.scenario.cluster
        machine = (cluster.gpus, cluster.bandwidth, device_of(cluster))
        return LeftOutRow(method.name, knob_text(method), self.reason, *machine)


def scenarios(base: Scenario, grid: Grid) -> list[Scenario]:
    """One scenario per row, machines outermost."""
    rows: list[Scenario] = []
    for cluster in machines(base, grid):
        for name in grid.methods:
            rows += [replace(base, cluster=cluster, method=method) for method in _methods(base, name, grid)]
    return rows


def machines(base: Scenario, grid: Grid) -> list[ClusterSpec]:
    """The clusters asked for, servers outermost, then devices, GPUs and bandwidths."""
    return [
        replace(each, device=device, gpus=gpus, bandwidth=bandwidth)
        for each in grid.servers or (base.cluster,)
        for device, gpus, bandwidth in product(
            grid.devices or (each.device,), grid.gpus, grid.bandwidths or (each.bandwidth,)
        )
    ]


def overlap_of(grid: Grid) -> str:
    """What runs beneath synchronous transfers, in every row that waits for some."""
    return str(dict(grid.own).get(OVERLAP, (NO_OVERLAP,))[0])


def _methods(base: Scenario, name: str, grid: Grid) -> list[Method]:
    """The rows of one method, with the overlap asked for where that has an effect."""
    return [each.overlapping(overlap_of(grid)) for each in _with_knobs(base, name, grid)]


def _with_knobs(base: Scenario, name: str, grid: Grid) -> list[Method]:
    kind = method_type(name)
    asked = base.method.name == name
    if kind.has("tau"):
        start = base.method if asked else kind()
        values = product(grid.taus, grid.epsilons, grid.caches)
        return [_with(start, tau=tau, epsilon=epsilon, cache=cache) for tau, epsilon, cache in values]
    started = [base.method] if asked and kind.has("rate") else _own_methods(kind, grid, base.method if asked else None)
    return [_with(each, rate=rate) for each in started for rate in (grid.rates if kind.has("rate") else (each.rate,))]


def _with(method: Method, **values: Any) -> Method:
    """The method with those of the values that are knobs of its own."""
    return replace(method, **{name: value for name, value in values.items() if method.has(name)})


def _own_methods(kind: type[Method], grid: Grid, start: Method | None = None) -> list[Method]:
    """A row for every combination of its own knobs' values, and for its variants in a comparison of all.

    start: the method whose other knobs stay, None: at their defaults.
    """
    kept = {} if start is None else dict(start.values())
    own = {knob: values for knob, values in grid.own if kind.has(knob)}
    given = [dict(zip(own, values, strict=True)) for values in product(*own.values())]
    variants = kind.variants if grid.optional else ({},)
    return list(
        dict.fromkeys(create_method(kind.name, **{**kept, **variant, **each}) for variant in variants for each in given)
    )
