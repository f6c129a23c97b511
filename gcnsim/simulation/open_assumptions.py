"""Simulate joint draws of the assumptions: the pace of each draw over the pace at the stated values.

Both paces belong to the mean graph, simulated until steady, so their ratio contains only the effect of a draw. Unlike
the analytic estimate, it accounts for sharing of links and for the overlap in a pipeline.

Several draws may be the graphs of one schedule: the same ops, with the counts and figures of each draw. That is
possible for methods that exchange boundary rows between GPUs whose sockets cost no CPU time. There a draw changes only
amounts of ops, capacities of links and delays of routes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Seconds
from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import Link
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import Machine, resolve_machine
from gcnsim.scenario.machine_links import offered
from gcnsim.schedule import Schedule, Variants, estimate
from gcnsim.simulation.assumed import (
    DRAWS,
    Assumption,
    assumptions_of,
    normal_position,
    other_paths,
    path_by_draw,
    position,
)
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.part_orders import PLACEMENT, Orders, placed_counts, random_orders
from gcnsim.simulation.placement import PARTITION, scattered
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.steady import Steady
from gcnsim.simulation.templates import shared
from gcnsim.timeline import PS_PER_S
from gcnsim.trace.counts import AccessCounts

WORKLOAD: Final = "workload"
"""The name of the workload's uncertainty among the assumptions."""

PER_GRAPH: Final = ("rows", "hits", "inner_edges", "boundary_edges")
"""The counts that differ from graph to graph."""

Moved: TypeAlias = Mapping[str, IntArray]
"""Differences of counts, by the name of the count."""


def can_batch_draws(scenario: Scenario) -> bool:
    """Whether joint draws of the scenario can be graphs of one schedule."""
    gpus = resolve_machine(scenario.cluster).kind == "gpu"
    return scenario.method.exchanges_rows and gpus and scenario.cluster.sockets == "free"


def averaged(scenario: Scenario) -> bool:
    """Whether a graph's time depends on the other graphs of the schedule: node samplers use the mean over all."""
    sampling = scenario.method.sampling()
    return not (sampling.whole or sampling.by_edge)


def draw_positions(name: str, shared: str, seed: int, draws: int = DRAWS) -> FloatArray:
    """The positions of the assumption `name` in the draws. For other partitions a 90 % interval is known instead of a
    range.
    """
    return (normal_position if name == PARTITION else position)(shared, seed, draws)


@dataclass(frozen=True, slots=True)
class OpenAssumptions:
    """The open assumptions of a scenario's schedule. The scenario has no faults.

    counts: the mean of its graphs. figures: the assumed ones. workload_changes: by name, the change of the counts at
    the low and the high end of an assumption about the workload. orders: other orders of the parts, of which the counts
    have the median; None if the order is known.
    """

    scenario: Scenario
    accesses: Source
    counts: AccessCounts
    figures: tuple[Assumption, ...]
    workload_changes: Mapping[str, tuple[Moved, Moved]]
    orders: Orders | None

    @classmethod
    def of(cls, scenario: Scenario, accesses: Source) -> OpenAssumptions:
        """The open assumptions of `scenario`, whose draws are graphs of one schedule (`can_batch_draws`)."""
        counts = estimated_counts(scenario, accesses)
        figures = assumptions_of(resolve_machine(scenario.cluster), batches=scenario.method.mini_batches)
        changes = _moved_counts(scenario, accesses, counts)
        return cls(scenario, accesses, counts, figures, changes, other_orders(scenario, accesses))

    @property
    def names(self) -> list[tuple[str, str]]:
        """The name of each assumption, and the name of its positions."""
        return [
            *((figure.name, figure.shared) for figure in self.figures),
            *((name, of_parts(name, self.scenario)) for name in self.workload_changes),
            *(((PLACEMENT, of_parts(PLACEMENT, self.scenario)),) if self.orders is not None else ()),
        ]

    def places(self, seed: int, more: int, own: BoolArray) -> dict[str, FloatArray]:
        """By name, the positions in the joint draws `own`, bool[draws], followed by `more` positions at the stated
        value.
        """
        values, draws = np.zeros(more), own.size
        return {
            name: np.concatenate([draw_positions(name, shared, seed, draws)[own], values])
            for name, shared in self.names
        }

    def written(self, places: Mapping[str, FloatArray], size: int) -> tuple[Schedule, Variants]:
        """A schedule with one graph per position in `places`, float64[size] each."""
        key = b"".join(place.tobytes() for place in places.values())
        drawn = shared(
            "drawn", self.scenario, (self.counts, self.accesses), lambda: self._drawn(places, size), key, size
        )
        return drawn.schedule, drawn.at(resolve_machine(self.scenario.cluster))

    def _drawn(self, places: Mapping[str, FloatArray], size: int) -> Drawn:
        values = {figure.name: figure.at(places[figure.name]) for figure in self.figures}
        counts = _counts_at(self.counts, self.workload_changes, places, size)
        if self.orders is not None:
            counts = _reordered(counts, self.orders.ranks(places[PLACEMENT]))
        schedule = write_schedule(self.scenario, counts, self.accesses, values)
        machine = resolve_machine(self.scenario.cluster)
        shares = {one.name: values[one.name] / one.figure.value for one in self.figures if one.figure.value}
        return Drawn(machine, schedule, values, shares, _variants(machine, schedule, values, shares))


def other_orders(scenario: Scenario, accesses: Source) -> Orders | None:
    """Orders of the parts that the answer might have; None if the order is known."""
    return random_orders(accesses, scenario, resolve_model(scenario.workload, accesses.declared).features)


def of_parts(name: str, scenario: Scenario) -> str:
    """The name of an assumption's positions: other cuts and orders of other numbers of parts are drawn on their own."""
    cluster = scenario.cluster
    return f"{name} {cluster.gpus} x {cluster.gpus_per_server}" if name in (PARTITION, PLACEMENT) else name


def _reordered(counts: AccessCounts, ranks: IntArray) -> AccessCounts:
    """The counts with, in each graph, the part of rank ranks[t, n] on worker n. ranks: int64[T, P]."""
    graph = np.arange(len(ranks))[:, None]
    pairs = graph[:, :, None], ranks[:, :, None], ranks[:, None, :]
    sample: dict[str, Any] = {name: getattr(counts, name)[graph, ranks] for name in ("inner_edges", "boundary_edges")}
    return replace(counts, rows=counts.rows[pairs], hits=counts.hits[pairs], **sample)


def _same_parts(one: AccessCounts, other: AccessCounts) -> bool:
    """Whether both use the same partitions, with different sampled graphs."""
    names = ("inner_nodes", "boundary_nodes", "entries", "cached_rows")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _moved_counts(scenario: Scenario, accesses: Source, counts: AccessCounts) -> dict[str, tuple[Moved, Moved]]:
    """By name, the change of `counts` at the low and the high end of each assumption about the workload."""
    moved = {}
    if len(accesses.assumption_bounds) > 1:
        ends = [estimated_counts(scenario, accesses, bound) for bound in (RangeEnd.LOW, RangeEnd.HIGH)]
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


def _counts_at(
    counts: AccessCounts, moved: Mapping[str, tuple[Moved, Moved]], places: Mapping[str, FloatArray], size: int
) -> AccessCounts:
    """`size` graphs, each with the counts at its position in the ranges of the workload."""
    sample: dict[str, Any] = {}
    for name in PER_GRAPH:
        amounts = np.repeat(getattr(counts, name), size, axis=0).astype(np.float64)
        for what, (low, high) in moved.items():
            place = places[what].reshape(-1, *([1] * (amounts.ndim - 1)))
            amounts += np.abs(place) * np.where(place < 0, low[name], high[name])
        sample[name] = np.rint(np.maximum(amounts, 0.0)).astype(np.int64)
    sample["hits"] = np.minimum(sample["hits"], sample["rows"])
    return replace(counts, **sample)


class Drawn(NamedTuple):
    """A schedule whose graphs are draws on a machine. values: of each assumed figure, float64[draws]; shares: the same
    over the stated value.
    """

    machine: Machine
    schedule: Schedule
    values: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]
    variants: Variants

    def at(self, machine: Machine) -> Variants:
        """The variants on `machine`, the same but for the bandwidth of its network."""
        capacity = self.variants.capacity.copy()
        for index, (link, before) in enumerate(zip(machine.topology.links, self.machine.topology.links, strict=True)):
            if link.spec.capacity != before.spec.capacity:
                capacity[index] = _capacity(machine, link, self.shares)
        return replace(self.variants, capacity=capacity)


def _variants(
    machine: Machine, schedule: Schedule, values: Mapping[str, FloatArray], shares: Mapping[str, FloatArray]
) -> Variants:
    """The schedule's amounts with the capacities, latencies and queues of every draw; values, shares: as in `Drawn`."""
    links, demand = machine.topology.links, np.ascontiguousarray(schedule.demand.T)
    capacity, after, startup, queued = (
        np.repeat(np.array([getattr(link.spec, name) for link in links])[:, None], demand.shape[1], axis=1)
        for name in ("capacity", "latency_s", "startup_s", "queue")
    )
    for index, link in enumerate(links):
        capacity[index] = _capacity(machine, link, shares)
        name = _profile_of(machine, link)
        if name is not None:
            queued[index] = values.get(f"{name}.queue", link.spec.queue)
            # The receiving side of a link has no delay: its sending side includes both.
            if link.spec.latency_s:
                after[index], startup[index] = _delays(values, machine, link, name)
    at, crossed = schedule.columns.route_links
    latency, first, queue = np.zeros((3, at.size - 1, demand.shape[1]))
    lengths = np.diff(at)
    # As in `Cluster.latency`: one call starts all links of a way in parallel.
    for place in range(int(lengths.max(initial=0))):
        some = np.flatnonzero(lengths > place)
        on = crossed[at[some] + place]
        latency[some] += after[on] - startup[on]
        first[some], queue[some] = np.maximum(first[some], startup[on]), np.maximum(queue[some], queued[on])
    return Variants(demand, capacity, latency + first, first, queue)


def _profile_of(machine: Machine, link: Link) -> str | None:
    """The catalogue name of a link of the cluster; None if its figures come from the scenario."""
    if link.kind == "pcie" and machine.own_copies:
        # An uplink of a switch is as fast as the links below it, which belong to one server.
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


def _capacity(machine: Machine, link: Link, shares: Mapping[str, FloatArray]) -> FloatArray | float:
    """The capacity of a link by draw, as in `gcnsim.scenario.machine_links`."""
    host, name = machine.host.name, _profile_of(machine, link)
    if machine.kind == "gpu" and link.kind == "memory":
        fields = {"memory": "memory_bandwidth", "staging": "staging_bandwidth"}
        field = next((value for start, value in fields.items() if link.name.startswith(start)), None)
        return link.spec.capacity if field is None else link.spec.capacity * _factor(shares, host, field)
    capacity = link.spec.capacity if name is None else link.spec.capacity * _factor(shares, name)
    if link.kind != "pcie" or not machine.topology.staging:
        return capacity
    staging = machine.topology.links[machine.topology.staging[0]].spec.capacity
    half = staging / 2 * _factor(shares, host, "staging_bandwidth")
    (whole, *_) = (copy for copy in (*machine.own_copies, machine.copies) if copy.name == name)
    unlimited = offered(whole).capacity * _factor(shares, whole.name)
    return np.asarray(np.minimum(unlimited, half), dtype=np.float64)


def _factor(shares: Mapping[str, FloatArray], name: str, *fields: str) -> FloatArray | float:
    """The product of the figures `fields` of the profile `name`, relative to the stated values, by draw."""
    own = [shares[f"{name}.{field}"] for field in fields or ("efficiency", "bandwidth") if f"{name}.{field}" in shares]
    return np.asarray(np.prod(own, axis=0) if own else 1.0)


def _delays(
    values: Mapping[str, FloatArray], machine: Machine, link: Link, name: str
) -> tuple[FloatArray | float, FloatArray | float]:
    """The latency of a link, and the start-up part of it, by draw."""
    own = values.get(f"{name}.latency_s")
    if link.kind != "nic":
        return (link.spec.latency_s, link.spec.startup_s) if own is None else (own, own)
    message = values.get(f"{machine.host.name}.message_s", link.spec.startup_s) if link.spec.startup_s else 0.0
    wire = link.spec.latency_s - 2 * link.spec.startup_s if own is None else own
    return wire + 2 * message, message


FEW: Final = 3
"""Graphs sampled for an estimate; counts of whole partitions differ little between samples."""


def mean_counts(counts: AccessCounts) -> AccessCounts:
    """One graph with the mean of `counts`, rounded to whole rows and edges."""
    if counts.iterations == 1:
        return counts
    mean = {
        name: getattr(counts, name).mean(axis=0, keepdims=True).round().astype("int64")
        for name in ("rows", "hits", "inner_edges", "boundary_edges")
    }
    return replace(counts, **mean)


def estimated_counts(scenario: Scenario, accesses: Source, bound: RangeEnd = RangeEnd.LIKELY) -> AccessCounts:
    """The mean of a few sampled graphs of the scenario."""
    return shared("estimated", scenario, (accesses,), lambda: _estimated_counts(scenario, accesses, bound), bound)


def _estimated_counts(scenario: Scenario, accesses: Source, bound: RangeEnd) -> AccessCounts:
    few = replace(scenario, run=replace(scenario.run, iterations=min(scenario.run.iterations, FEW)), faults=())
    features = resolve_model(scenario.workload, accesses.declared).features
    return mean_counts(placed_counts(accesses, few, features, bound))


def estimated_s(scenario: Scenario, accesses: Source, bound: RangeEnd = RangeEnd.LIKELY) -> Seconds:
    """The analytic estimate of the scenario without its faults, in seconds per iteration."""
    calm = replace(scenario, faults=())
    return estimate(write_schedule(calm, estimated_counts(scenario, accesses, bound), accesses))


@dataclass(frozen=True, slots=True)
class DrawnRuns:
    """The joint draws of a scenario, ready for simulation, followed by the stated values.

    written: by path between its GPUs (-1: the assumed one), a schedule whose graphs are the draws with that path.
    path: of each draw, int64[draws + 1], -1 for the assumed one. graph: its index in the schedule of its path.
    measured: the most iterations that a pace averages.
    """

    written: Mapping[int, tuple[Schedule, Variants]]
    path: IntArray
    graph: IntArray
    measured: int

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        accesses: Source,
        seed: int,
        draws: int = DRAWS,
        wanted: Collection[int] | None = None,
    ) -> DrawnRuns:
        """The joint draws of `seed` for a scenario whose draws are graphs of one schedule (`can_batch_draws`).

        wanted: the draws whose pace is asked for; None for all. The scenario's faults are left out.
        """
        calm = replace(scenario, faults=())
        paths = other_paths(calm)
        # The stated values follow the draws, with the assumed path.
        path = np.append(path_by_draw(paths, seed, draws), -1)
        asked = np.ones(draws + 1, np.bool_) if wanted is None else np.isin(np.arange(draws + 1), [*wanted, draws])
        graph, written = np.zeros_like(path), {}
        for index, item in enumerate((calm, *(other.scenario for other in paths)), start=-1):
            own = (path == index) & asked
            if not own.any():
                continue
            kept = own[:draws] | averaged(item)
            graph[own] = (np.cumsum(np.append(kept, True)) - 1)[own]
            left_open = OpenAssumptions.of(item, accesses)
            written[index] = left_open.written(left_open.places(seed, 1, kept), int(kept.sum()) + 1)
        return cls(written, path, graph, scenario.run.iterations)

    def pace(self, place: int) -> Seconds:
        """Seconds per iteration of the steady state under draw `place`; the last place has the stated values."""
        written, variants = self.written[int(self.path[place])]
        return pace_of(variants.of(written, int(self.graph[place])), self.measured)


def pace_of(schedule: Schedule, measured: int) -> Seconds:
    """Seconds per iteration of the schedule's steady state, a mean over at most `measured` iterations."""
    judge = Steady(schedule, measured)
    run = simulate(schedule, judge.most, judge.enough, endless=True)
    first = judge.window(run.ends).first
    closing = run.ends[:, list(schedule.ends)].max(axis=1)
    return float(closing[-1] - closing[first - 1]) / ((run.iterations - first) * PS_PER_S)


def paces_to_factors(paces: list[Seconds]) -> FloatArray:
    """The times of all draws over the time at the stated values, which is last in `paces`: float64[draws]; empty for no
    paces.
    """
    return np.array(paces[:-1]) / paces[-1] if paces else np.zeros(0)
