"""What the assumptions leave open of an iteration time: the analytic estimate under joint draws of all of them.

The estimate of a draw over the estimate at the stated values is a factor on the simulated time. Methods that exchange
boundary rows on GPUs are estimated at every draw; of the others, each assumption's two ends are, and their factors
multiply (first order in the logarithms). What the workload leaves open (`RangeEnd`) is one assumption more, its ends
estimated from the counts of both corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.cluster import Link
from gcnsim.hardware import Figure
from gcnsim.ids import FloatArray, IntArray, Seconds
from gcnsim.machine import Machine, resolve_machine
from gcnsim.scenario import Scenario
from gcnsim.schedule import Schedule, Variants, bounds, estimate, estimates
from gcnsim.simulation.run import write_schedule
from gcnsim.sources import Source
from gcnsim.sources.range_end import RangeEnd
from gcnsim.uncertainty.assumed import DRAWS, Assumption, assumptions_of, normal_position, position, used_figures
from gcnsim.uncertainty.estimated import estimated_counts, estimated_s
from gcnsim.uncertainty.other_partition import PARTITION, partition_factors, scattered

WORKLOAD: Final = "workload"
"""The name of what the workload leaves open, among the assumptions."""

MOST_AMOUNTS: Final = 4_000_000
"""Amounts of ops in one schedule: 32 MB, of which an estimate makes some copies."""

OPS_PER_PAIR: Final = 16
"""Ops for each pair of workers, at least, of four layers: decides only how many draws are estimated at a time."""

BESIDE: Final = 3.0
"""How sharply the longer of two decides: between a sum (1) and a maximum; simulated corners lie between 2 and 4."""

PER_GRAPH: Final = ("rows", "hits", "inner_edges", "boundary_edges")
"""What of the counts differs from graph to graph."""

Moved: TypeAlias = Mapping[str, IntArray]
"""Differences of counts, by the name of the count."""


@dataclass(frozen=True, slots=True)
class Factors:
    """Of one scenario, times over the time at the stated values.

    joint: float64[draws], under every joint draw. alone: by assumption, at its low and its high end alone; `workload`
    where the workload leaves anything open. nominal_s: the estimate at the stated values.
    """

    joint: FloatArray
    alone: Mapping[str, tuple[float, float]]
    nominal_s: Seconds

    def scaled(self, simulated_s: Seconds, factor: FloatArray | float) -> FloatArray:
        """The simulated time where the estimate is `factor` times that at the stated values, of the factor's shape.

        What the estimate leaves out of the simulated time (its links shared otherwise, its pipeline not ideal) stays as
        it is beside it: a third resource, so to say, and the longest mostly decides (powers of `BESIDE` add up). Where
        the estimate is the longer of the two, it and the time grow alike.
        """
        if self.nominal_s >= simulated_s:
            return np.asarray(simulated_s * np.asarray(factor))
        share = (self.nominal_s / simulated_s) ** BESIDE
        return np.asarray(simulated_s * (1.0 - share + share * np.asarray(factor) ** BESIDE) ** (1.0 / BESIDE))

    @property
    def workload(self) -> tuple[float, float] | None:
        """The factors at both ends of what the workload leaves open; None where it leaves nothing open."""
        return self.alone.get(WORKLOAD)


def factors(scenario: Scenario, accesses: Source, seed: int) -> Factors:
    """What the assumptions leave open of the scenario's time, under the joint draws of `seed`."""
    scenario = replace(scenario, faults=())
    machine = resolve_machine(scenario.cluster)
    found = assumptions_of(machine, batches=scenario.method.mini_batches)
    counts = estimated_counts(scenario, accesses)
    exchanged = scenario.method.exchanges_rows and machine.kind == "gpu"
    if exchanged and scenario.cluster.sockets == "free":
        return _at_every_draw(scenario, accesses, counts, found, seed)
    at_values = estimate(write_schedule(scenario, counts, accesses))
    by_end = {each.name: _ends(scenario, accesses, counts, each, at_values) for each in found}
    shared = {each.name: each.shared for each in found}
    if len(accesses.corners) > 1:
        by_end[WORKLOAD], shared[WORKLOAD] = _of_workload(scenario, accesses, at_values), WORKLOAD
    others = partition_factors(scenario, accesses, counts, at_values)
    if others is not None:
        by_end[PARTITION], shared[PARTITION] = others, PARTITION
    joint = np.ones(DRAWS)
    for name, pair in by_end.items():
        joint = joint * _between(pair, _place(name, shared[name], seed))
    return Factors(joint, by_end, at_values)


def _place(name: str, shared: str, seed: int) -> FloatArray:
    """Where the draws put what is assumed under this name; of other partitions a 90 % interval is known, no range."""
    return normal_position(shared, seed) if name == PARTITION else position(shared, seed)


def _of_workload(scenario: Scenario, accesses: Source, likely_s: Seconds) -> tuple[float, float]:
    """The factors at both ends of what the workload leaves open, each estimated for itself."""
    low, high = (estimated_s(scenario, accesses, corner) / likely_s for corner in (RangeEnd.LOW, RangeEnd.HIGH))
    return low, high


def _between(ends: tuple[float, float], place: FloatArray) -> FloatArray:
    """The factor at each position, geometrically between 1 and that of the end on its side."""
    low, high = ends
    return np.asarray(np.where(place < 0, low, high) ** np.abs(place))


def _same_parts(one: AccessCounts, other: AccessCounts) -> bool:
    """Whether both are of the same partitions, of which different graphs are drawn."""
    names = ("inner_nodes", "boundary_nodes", "entries", "cached_rows")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _ends(
    scenario: Scenario, accesses: Source, counts: AccessCounts, each: Assumption, likely_s: Seconds
) -> tuple[float, float]:
    found = []
    for place in (-1.0, 1.0):
        moved = with_figures(scenario, {each.name: float(each.at(np.array(place)))})
        found.append(estimate(write_schedule(moved, counts, accesses)) / likely_s)
    return found[0], found[1]


def with_figures(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """The scenario with these figures of the catalogue replaced, by `NAME.FIGURE`."""
    figures = tuple(sorted((dict(scenario.cluster.figures) | dict(values)).items()))
    return replace(scenario, cluster=replace(scenario.cluster, figures=figures))


def _at_every_draw(
    scenario: Scenario, accesses: Source, counts: AccessCounts, found: Sequence[Assumption], seed: int
) -> Factors:
    """All draws as the graphs of one schedule, behind them the stated values and both ends of each assumption.

    Of other partitions, what a worker's sampler looks at stays. Where the ends of the workload are other parts, and not
    other graphs of the same parts, their factors multiply what the figures alone do.
    """
    moved = _moved_counts(scenario, accesses, counts)
    names = [*((each.name, each.shared) for each in found), *((name, name) for name in moved)]
    places = {name: np.zeros(DRAWS + 1 + 2 * len(names)) for name, _ in names}
    for index, (name, shared) in enumerate(names):
        places[name][:DRAWS] = _place(name, shared, seed)
        places[name][DRAWS + 1 + 2 * index : DRAWS + 3 + 2 * index] = -1.0, 1.0
    every = _estimated(scenario, accesses, counts, moved, found, places)
    nominal_s = float(every[DRAWS])
    pairs = every[DRAWS + 1 :].reshape(-1, 2) / nominal_s
    by_end = {name: (float(low), float(high)) for (name, _), (low, high) in zip(names, pairs, strict=True)}
    joint = every[:DRAWS] / nominal_s
    if len(accesses.corners) > 1 and WORKLOAD not in moved:
        by_end[WORKLOAD] = _of_workload(scenario, accesses, nominal_s)
        joint = joint * _between(by_end[WORKLOAD], position(WORKLOAD, seed))
    return Factors(joint, by_end, nominal_s)


def _moved_counts(scenario: Scenario, accesses: Source, counts: AccessCounts) -> dict[str, tuple[Moved, Moved]]:
    """By name of what the workload leaves open, how the counts at its low and its high end differ from `counts`."""
    moved = {}
    if len(accesses.corners) > 1:
        ends = [estimated_counts(scenario, accesses, corner) for corner in (RangeEnd.LOW, RangeEnd.HIGH)]
        if all(_same_parts(counts, end) for end in ends):
            moved[WORKLOAD] = _differences(counts, ends)
    scatter = accesses.scatter(scenario)
    if scatter is not None:
        per_server = scenario.cluster.gpus_per_server
        others = [scattered(counts, scatter, end, per_server) for end in (RangeEnd.LOW, RangeEnd.HIGH)]
        moved[PARTITION] = _differences(counts, others)
    return moved


def _differences(counts: AccessCounts, ends: Sequence[AccessCounts]) -> tuple[Moved, Moved]:
    low, high = ({name: getattr(end, name) - getattr(counts, name) for name in PER_GRAPH} for end in ends)
    return low, high


def _estimated(
    scenario: Scenario,
    accesses: Source,
    counts: AccessCounts,
    moved: Mapping[str, tuple[Moved, Moved]],
    found: Sequence[Assumption],
    places: Mapping[str, FloatArray],
) -> FloatArray:
    """Estimates with all that is assumed at each of `places`.

    Some places at a time: schedules of many workers have many ops, and each place is a graph of a schedule.
    """
    total = len(next(iter(places.values()), np.zeros(1 + DRAWS)))
    step = max(1, MOST_AMOUNTS // (OPS_PER_PAIR * scenario.cluster.gpus**2))
    every: list[FloatArray] = []
    for start in range(0, total, step):
        some = {name: place[start : start + step] for name, place in places.items()}
        values = {each.name: each.at(some[each.name]) for each in found}
        drawn = _counts_at(counts, moved, some, min(step, total - start))
        schedule = write_schedule(scenario, drawn, accesses, values)
        every.append(estimates(schedule, _variants(resolve_machine(scenario.cluster), schedule, values)))
    return np.concatenate(every)


def _counts_at(
    counts: AccessCounts, moved: Mapping[str, tuple[Moved, Moved]], places: Mapping[str, FloatArray], size: int
) -> AccessCounts:
    """`size` graphs, each with the counts at its place between the ends of what the workload leaves open."""
    drawn: dict[str, Any] = {}
    for name in PER_GRAPH:
        amounts = np.repeat(getattr(counts, name), size, axis=0).astype(np.float64)
        for what, (low, high) in moved.items():
            place = places[what].reshape(-1, *([1] * (amounts.ndim - 1)))
            amounts += np.abs(place) * np.where(place < 0, low[name], high[name])
        drawn[name] = np.rint(np.maximum(amounts, 0.0)).astype(np.int64)
    drawn["hits"] = np.minimum(drawn["hits"], drawn["rows"])
    return replace(counts, **drawn)


def _variants(machine: Machine, schedule: Schedule, values: Mapping[str, FloatArray]) -> Variants:
    """The schedule's amounts with the capacities, latencies and queues of every draw."""
    links, draws = machine.topology.links, schedule.demand.shape[0]
    used = used_figures(machine)
    capacity, after, startup, queued = (
        np.repeat(np.array([getattr(link.spec, name) for link in links])[:, None], draws, axis=1)
        for name in ("capacity", "latency_s", "startup_s", "queue")
    )
    for index, link in enumerate(links):
        name = _profile_of(machine, link)
        if name is not None:
            capacity[index] *= _factor(values, used, name)
            queued[index] = values.get(f"{name}.queue", link.spec.queue)
            # The receiving side of a link has no delay: its sending side carries that of both.
            if link.spec.latency_s:
                after[index], startup[index] = _delays(values, machine, link, name)
    latency, queue = {}, {}
    for route in schedule.columns.routes:
        way = list(route)
        # As `Cluster.latency`: one call starts all links of a way, side by side.
        latency[route] = (after[way] - startup[way]).sum(axis=0) + startup[way].max(axis=0)
        queue[route] = queued[way].max(axis=0)
    return Variants(np.ascontiguousarray(schedule.demand.T), capacity, latency, queue)


def _profile_of(machine: Machine, link: Link) -> str | None:
    """The name in the catalogue of a link of the cluster; None for one whose figures are the scenario's own."""
    if link.kind == "pcie" and machine.own_copies:
        # An uplink of a switch is as fast as the links below it, which are of one server.
        server = link.target if link.target.startswith("host") else link.source
        number = int(server.removeprefix("host")) if server.startswith("host") else 0
        return machine.copies_of(min(number * machine.spec.gpus_per_server, machine.spec.gpus - 1)).name
    if link.kind == "pcie":
        return machine.copies.name
    if link.kind in ("nic", "rack"):
        return machine.network.name
    if link.kind == "nvlink":
        return machine.nvlink.name
    return machine.host_memory.name if link.kind == "memory" and link.source == link.target else None


def _factor(values: Mapping[str, FloatArray], used: Mapping[str, Figure], name: str) -> FloatArray:
    """Capacity of a link of the profile `name` over that at the stated values, by draw."""
    shares = [
        values[f"{name}.{field}"] / used[f"{name}.{field}"].value
        for field in ("efficiency", "bandwidth")
        if f"{name}.{field}" in values
    ]
    return np.asarray(np.prod(shares, axis=0) if shares else 1.0)


def _delays(
    values: Mapping[str, FloatArray], machine: Machine, link: Link, name: str
) -> tuple[FloatArray | float, FloatArray | float]:
    """Latency of a link, and the start-up that is part of it, by draw."""
    own = values.get(f"{name}.latency_s")
    if link.kind != "nic":
        return (link.spec.latency_s, link.spec.startup_s) if own is None else (own, own)
    message = values.get(f"{machine.host.name}.message_s", link.spec.startup_s) if link.spec.startup_s else 0.0
    wire = link.spec.latency_s - 2 * link.spec.startup_s if own is None else own
    return wire + 2 * message, message


def favourable(scenario: Scenario) -> Scenario:
    """The scenario with every assumed figure at its most favourable end."""
    found = assumptions_of(resolve_machine(scenario.cluster), batches=scenario.method.mini_batches)
    ends = {each.name: each.at(np.array(1.0 if higher_is_better(each.name) else -1.0)) for each in found}
    return with_figures(scenario, {name: float(value) for name, value in ends.items()})


def higher_is_better(name: str) -> bool:
    """Whether more of a figure makes iterations shorter: rates and shares do, times and queues do not."""
    field = name.rpartition(".")[2]
    return field.endswith("_per_s") or not (field.endswith("_s") or field in ("queue", "work_spread"))


def best_lower_s(scenario: Scenario, accesses: Source, corner: RangeEnd) -> Seconds:
    """The lower bound with every assumed figure, and the partition, at its most favourable end, at a corner of the
    workload."""
    calm = replace(scenario, faults=())
    counts = estimated_counts(calm, accesses, corner)
    scatter = accesses.scatter(calm)
    if scatter is not None:
        counts = scattered(counts, scatter, RangeEnd.LOW, calm.cluster.gpus_per_server)
    return bounds(write_schedule(favourable(calm), counts, accesses)).lower_s
