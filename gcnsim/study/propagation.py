"""What the assumptions leave open of an iteration time: the analytic estimate under joint draws of all of them.

The estimate of a draw over the estimate at the stated values is a factor on the simulated time. Methods that exchange
boundary rows on GPUs are estimated at every draw; of the others, each assumption's two ends are, and their factors
multiply (first order in the logarithms). What the workload leaves open (`Corner`) is one assumption more, its ends
estimated from the counts of both corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gcnsim.cluster import Link
from gcnsim.ids import FloatArray, Seconds
from gcnsim.profile import device
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.schedule import Schedule, Variants, bounds, estimate, estimates
from gcnsim.study.accesses import Accesses
from gcnsim.study.assumed import DRAWS, Assumption, assumptions_of, position, used_figures
from gcnsim.study.batches import mini_batch
from gcnsim.study.corners import Corner
from gcnsim.study.estimated import estimated_counts
from gcnsim.study.machine import HOST_MEMORY, device_link, machine
from gcnsim.study.other_partition import PARTITION, partition_factors, scatter_of, scattered
from gcnsim.study.paths import NVLINK, ROWS, devices_of
from gcnsim.study.study import write_schedule
from gcnsim.trace import AccessCounts

WORKLOAD: Final = "workload"
"""The name of what the workload leaves open, among the assumptions."""


MOST_AMOUNTS: Final = 4_000_000
"""Amounts of ops in one schedule: 32 MB, of which an estimate makes some copies."""

OPS_PER_PAIR: Final = 16
"""Ops for each pair of workers, at least, of four layers: decides only how many draws are estimated at a time."""


@dataclass(frozen=True, slots=True)
class Factors:
    """Of one scenario, times over the time at the stated values.

    joint: float64[draws], under every joint draw. alone: by assumption, at its low and its high end alone; `workload`
    where the workload leaves anything open. nominal_s: the estimate at the stated values.
    """

    joint: FloatArray
    alone: Mapping[str, tuple[float, float]]
    nominal_s: Seconds

    @property
    def workload(self) -> tuple[float, float] | None:
        """The factors at both ends of what the workload leaves open; None where it leaves nothing open."""
        return self.alone.get(WORKLOAD)


def factors(scenario: Scenario, accesses: Accesses, seed: int) -> Factors:
    """What the assumptions leave open of the scenario's time, under the joint draws of `seed`."""
    scenario = replace(scenario, faults=())
    found = assumptions_of(scenario.cluster, batches=mini_batch(scenario.method))
    ends = [estimated_counts(scenario, accesses, corner) for corner in accesses.corners]
    counts = estimated_counts(scenario, accesses)
    cluster = scenario.cluster
    exchanged = scenario.method.name in ROWS and device(cluster.device).kind == "gpu" and cluster.sockets == "free"
    if exchanged and all(_same_parts(counts, end) for end in ends):
        open_ends = {WORKLOAD: (ends[0], ends[-1])} if len(ends) > 1 else {}
        scatter = scatter_of(scenario, accesses)
        if scatter is not None:
            per_server = cluster.gpus_per_server
            fewer, more = (scattered(counts, scatter, end, per_server) for end in (Corner.LOW, Corner.HIGH))
            open_ends[PARTITION] = fewer, more
        return _at_every_draw(scenario, accesses, counts, open_ends, found, seed)
    at_values = estimate(write_schedule(scenario, counts, accesses))
    by_end = {each.name: _ends(scenario, accesses, counts, each, at_values) for each in found}
    shared = {each.name: each.shared for each in found}
    if len(ends) > 1:
        low, high = (estimate(write_schedule(scenario, end, accesses)) / at_values for end in (ends[0], ends[-1]))
        by_end[WORKLOAD], shared[WORKLOAD] = (low, high), WORKLOAD
    others = partition_factors(scenario, accesses)
    if others is not None:
        by_end[PARTITION], shared[PARTITION] = others, PARTITION
    joint = np.ones(DRAWS)
    for name, pair in by_end.items():
        joint = joint * _between(pair, position(shared[name], seed))
    return Factors(joint, by_end, at_values)


def _between(ends: tuple[float, float], place: FloatArray) -> FloatArray:
    """The factor at each position, geometrically between 1 and that of the end on its side."""
    low, high = ends
    return np.asarray(np.where(place < 0, low, high) ** np.abs(place))


def _same_parts(one: AccessCounts, other: AccessCounts) -> bool:
    """Whether both are of the same partitions, of which different graphs are drawn."""
    names = ("inner_nodes", "boundary_nodes", "entries", "cached_rows")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _ends(
    scenario: Scenario, accesses: Accesses, counts: AccessCounts, each: Assumption, likely_s: Seconds
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
    scenario: Scenario,
    accesses: Accesses,
    counts: AccessCounts,
    open_ends: Mapping[str, tuple[AccessCounts, AccessCounts]],
    found: Sequence[Assumption],
    seed: int,
) -> Factors:
    """All draws as the graphs of one schedule, behind them the stated values, each assumption's ends, and both ends of
    what the workload leaves open (open_ends), by name.

    What is sent ahead in graph t is of graph t + tau: every stretch of like counts is tau graphs longer than is read.
    Of other partitions, what a worker's sampler looks at stays.
    """
    plain = DRAWS + 1 + 2 * len(found)
    places = {each.name: np.zeros(plain) for each in found}
    for index, each in enumerate(found):
        places[each.name][:DRAWS] = position(each.shared, seed)
        places[each.name][DRAWS + 1 + 2 * index : DRAWS + 3 + 2 * index] = -1.0, 1.0
    counted = [end for pair in open_ends.values() for end in pair]
    every, corners = _estimated(scenario, accesses, counts, counted, found, places)
    nominal_s = float(every[DRAWS])
    pairs = every[DRAWS + 1 :].reshape(-1, 2) / nominal_s
    by_end = {each.name: (float(low), float(high)) for each, (low, high) in zip(found, pairs, strict=True)}
    joint = every[:DRAWS] / nominal_s
    for name, (low, high) in zip(open_ends, corners.reshape(-1, 2) / nominal_s, strict=True):
        by_end[name] = (float(low), float(high))
        joint = joint * _between(by_end[name], position(name, seed))
    return Factors(joint, by_end, nominal_s)


def _estimated(
    scenario: Scenario,
    accesses: Accesses,
    counts: AccessCounts,
    ends: Sequence[AccessCounts],
    found: Sequence[Assumption],
    places: Mapping[str, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Estimates with the assumptions at each of `places`, and at their values with the counts of each of `ends`.

    Some places at a time: schedules of many workers have many ops, and each place is a graph of a schedule.
    """
    spare = scenario.method.tau
    total = len(next(iter(places.values()), np.zeros(1)))
    step = max(1, MOST_AMOUNTS // (OPS_PER_PAIR * scenario.cluster.gpus**2))
    every: list[FloatArray] = []
    for start in range(0, total, step):
        size = min(step, total - start)
        last = start + size == total
        blocks = [(counts, size + spare), *((end, 1 + spare) for end in ends if last)]
        values = {}
        for each in found:
            place = np.zeros(sum(times for _, times in blocks))
            place[:size] = places[each.name][start : start + size]
            values[each.name] = each.at(place)
        schedule = write_schedule(scenario, _stacked(blocks), accesses, values)
        some = estimates(schedule, _variants(scenario.cluster, schedule, values))
        every.append(some[:size])
    return np.concatenate(every), some[size + spare :: 1 + spare]


def _stacked(blocks: Sequence[tuple[AccessCounts, int]]) -> AccessCounts:
    """One after the other, each of these single graphs so many times."""
    names = ("rows", "hits", "inner_edges", "boundary_edges")
    stacked: dict[str, Any] = {
        name: np.concatenate([np.repeat(getattr(each, name), n, 0) for each, n in blocks]) for name in names
    }
    return replace(blocks[0][0], **stacked)


def _variants(cluster: ClusterSpec, schedule: Schedule, values: Mapping[str, FloatArray]) -> Variants:
    """The schedule's amounts with the capacities and latencies of every draw."""
    links, draws = machine(cluster)[0].links, schedule.demand.shape[0]
    capacity = np.tile(np.array(schedule.capacity), (draws, 1))
    after, startup, queued = (
        np.tile(np.array([getattr(link.spec, name) for link in links]), (draws, 1))
        for name in ("latency_s", "startup_s", "queue")
    )
    for index, link in enumerate(links):
        name = _profile_of(cluster, link)
        if name is not None:
            capacity[:, index] *= _factor(values, cluster, name)
            queued[:, index] = values.get(f"{name}.queue", link.spec.queue)
            # The receiving side of a link has no delay: its sending side carries that of both.
            if link.spec.latency_s:
                after[:, index], startup[:, index] = _delays(values, cluster, link, name)
    latency, queue = np.empty((draws, len(schedule.ops))), np.zeros((draws, len(schedule.ops)))
    known: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {(): (np.zeros(draws), np.zeros(draws))}
    for op in schedule.ops:
        route = op.route or ()
        if route not in known:
            way = list(route)
            # As `Cluster.latency`: one call starts all links of a way, side by side.
            delay = (after[:, way] - startup[:, way]).sum(axis=1) + startup[:, way].max(axis=1)
            known[route] = delay, queued[:, way].max(axis=1)
        latency[:, op.index], queue[:, op.index] = known[route]
    return Variants(schedule.demand, capacity, latency, queue)


def _profile_of(cluster: ClusterSpec, link: Link) -> str | None:
    """The name in the catalogue of a link of the cluster; None for one whose figures are the scenario's own."""
    if link.kind == "pcie" and cluster.pcie is None and devices_of(cluster):
        # An uplink of a switch is as fast as the links below it, which are of one server.
        server = link.target if link.target.startswith("host") else link.source
        number = int(server.removeprefix("host")) if server.startswith("host") else 0
        unequal = devices_of(cluster)
        return unequal[min(number * cluster.gpus_per_server, len(unequal) - 1)].link
    if link.kind == "pcie":
        return device_link(cluster).name
    if link.kind in ("nic", "rack"):
        return cluster.link
    if link.kind == "nvlink":
        return NVLINK
    return HOST_MEMORY if link.kind == "memory" and link.source == link.target else None


def _factor(values: Mapping[str, FloatArray], cluster: ClusterSpec, name: str) -> FloatArray:
    """Capacity of a link of the profile `name` over that at the stated values, by draw."""
    used = used_figures(cluster)
    shares = [
        values[f"{name}.{field}"] / used[f"{name}.{field}"].value
        for field in ("efficiency", "bandwidth")
        if f"{name}.{field}" in values
    ]
    return np.asarray(np.prod(shares, axis=0) if shares else 1.0)


def _delays(
    values: Mapping[str, FloatArray], cluster: ClusterSpec, link: Link, name: str
) -> tuple[FloatArray | float, FloatArray | float]:
    """Latency of a link, and the start-up that is part of it, by draw."""
    own = values.get(f"{name}.latency_s")
    if link.kind != "nic":
        return (link.spec.latency_s, link.spec.startup_s) if own is None else (own, own)
    message = values.get(f"{cluster.host}.message_s", link.spec.startup_s) if link.spec.startup_s else 0.0
    wire = link.spec.latency_s - 2 * link.spec.startup_s if own is None else own
    return wire + 2 * message, message


def favourable(scenario: Scenario) -> Scenario:
    """The scenario with every assumed figure at its most favourable end."""
    found = assumptions_of(scenario.cluster, batches=mini_batch(scenario.method))
    ends = {each.name: each.at(np.array(1.0 if higher_is_better(each.name) else -1.0)) for each in found}
    return with_figures(scenario, {name: float(value) for name, value in ends.items()})


def higher_is_better(name: str) -> bool:
    """Whether more of a figure makes iterations shorter: rates and shares do, times and queues do not."""
    field = name.rpartition(".")[2]
    return field.endswith("_per_s") or not (field.endswith("_s") or field in ("queue", "work_spread"))


def best_lower_s(scenario: Scenario, accesses: Accesses, corner: Corner) -> Seconds:
    """The lower bound with every assumed figure at its most favourable end, at a corner of the workload."""
    calm = replace(scenario, faults=())
    counts = estimated_counts(calm, accesses, corner)
    return bounds(write_schedule(favourable(calm), counts, accesses)).lower_s
