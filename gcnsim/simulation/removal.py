"""By how much an iteration shrinks without a resource: its work takes no time, everything else stays the same.

A resource is all of a kind (the GPUs' kernels, the NICs, the latency of messages) or one of them (the NIC of server 2).
The run is simulated again without it until it is steady, as if the resource were infinitely fast. An upper bound on the
gain is proven first: no mean iteration is shorter than the remaining load or the longest remaining chain.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Seconds
from gcnsim.engine import Run, simulate
from gcnsim.hardware.link_specs import LinkName
from gcnsim.schedule import COMPUTE_STREAM, Schedule, least_seconds, mean_loads
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PHASE, PS_PER_S, OpKind, Phase

COMPUTE, SAMPLING, PACKING, OPTIMIZER = "compute", "sampling", "packing", "other"
"""Kinds of a GPU's work: the layers, sampling of graphs, handling of messages, the optimizer."""

PAUSE, CPU, LATENCY, ALLREDUCE = "pause", "cpu", "latency", "allreduce"
"""Kinds of resources other than links."""

ENDLESS: Final = 1e6
"""The factor on the capacity of a removed link: a millionth of its time remains."""

NOTHING: Final = 0.01
"""The share of an iteration that is too small to examine more closely."""

SEVERAL: Final = 3
"""The fewest kinds of resources that are removed at once to see that none of them matters."""

LONG_RUN: Final = 10_000
"""From this number of simulated ops on, the longest chain is computed before simulating."""


@dataclass(frozen=True)
class Resource:
    """Something that takes time. kind: one of those above, or a kind of link. owner: its owner, None for all of the
    kind.

    ops: int64[k], the ops whose work takes no time without it. links: ids of the links that become unlimited.
    """

    kind: str
    owner: Hashable
    ops: IntArray
    links: tuple[int, ...] = ()

    def taken_from(self, schedule: Schedule) -> Schedule:
        """The schedule without it."""
        columns = schedule.columns
        if self.kind == LATENCY:
            none = np.zeros_like(columns.latency_s)
            return replace(schedule, columns=columns.with_delays(none, none, columns.queue))
        if self.links:
            capacity = np.array(schedule.capacity)
            capacity[list(self.links)] *= ENDLESS
            return replace(schedule, capacity=tuple(capacity.tolist()))
        demand = schedule.demand.copy()
        demand[:, self.ops] = 0.0
        return replace(schedule, demand=demand)


class Removals:
    """The resources of a measured run, and by what share its iterations shrink without each of them.

    run: the simulated run. first: its first measured iteration. iteration_s: their mean, at least the schedule's bound.
    measured: the most iterations to measure, by default those of the run. 0 means that iterations differ (transient
    faults), so no others may be measured.
    """

    def __init__(self, run: Run, first: int, iteration_s: Seconds, measured: int | None = None) -> None:
        self.run, self.schedule, self.first = run, run.schedule, first
        self.iteration_s = iteration_s
        self.measured = run.iterations - first if measured is None else measured
        self._rows = np.arange(first, run.iterations) % self.schedule.demand.shape[0]
        # If all graphs are samples of one kind, their mean is the pace; otherwise use the mean of these iterations.
        self._every = self.schedule if self.measured else self.schedule.of_graphs(self._rows)
        self._saved: dict[tuple[str, Hashable], float] = {}
        self._minor: tuple[frozenset[str], float] | None = None
        self._at_most: dict[tuple[tuple[str, Hashable], bool], float] = {}

    @cached_property
    def work(self) -> FloatArray:
        """Mean work of each op per measured iteration, float64[ops]: seconds, or units of its links."""
        return np.asarray(self.schedule.demand[self._rows].mean(axis=0), dtype=np.float64)

    @cached_property
    def link_loads(self) -> FloatArray:
        """The share of the iteration in which each link is busy at its capacity, float64[links]."""
        ops, links = self.schedule.columns.crossings
        capacity = np.array(self.schedule.capacity)
        carried = np.bincount(links, weights=self.work[ops], minlength=capacity.size)
        return np.asarray(carried / capacity / self.iteration_s, dtype=np.float64)

    @cached_property
    def kinds(self) -> Mapping[str, Resource]:
        """By kind, all resources of it that have work."""
        columns, schedule = self.schedule.columns, self.schedule
        busy, nothing = self.work > 0, np.zeros(0, np.int64)
        resources = {kind: Resource(kind, None, np.flatnonzero(ops & busy)) for kind, ops in self._by_kind().items()}
        for kind in dict.fromkeys(schedule.link_kinds):
            if kind != CPU:
                own = [link for link, link_kind in enumerate(schedule.link_kinds) if link_kind == kind]
                resources[kind] = Resource(
                    kind, None, nothing, tuple(link for link in own if self.link_loads[link] > 0)
                )
        delayed = columns.is_flow & busy & (columns.of_route(columns.latency_s) > 0)
        resources[LATENCY] = Resource(LATENCY, None, np.flatnonzero(delayed))
        return {kind: value for kind, value in resources.items() if value.ops.size or value.links}

    def _by_kind(self) -> dict[str, BoolArray]:
        """The ops whose work belongs to each kind of resource, bool[ops] each."""
        columns = self.schedule.columns
        alone = ~columns.is_flow
        names = np.array([name == COMPUTE_STREAM for name in columns.names])
        phases = {
            phase: columns.is_kind(*(kind for kind, value in PHASE.items() if value is phase)) & alone
            for phase in Phase
        }
        sampling = phases[Phase.SAMPLING]
        apart = sampling & ~names[columns.stream_name][columns.stream]
        return {
            COMPUTE: phases[Phase.COMPUTE],
            SAMPLING: sampling & ~apart,
            PACKING: phases[Phase.TRANSFER],
            OPTIMIZER: phases[Phase.OPTIMIZER],
            PAUSE: phases[Phase.WAIT],
            CPU: self.on_cores | apart,
            ALLREDUCE: columns.is_kind(OpKind.ALLREDUCE) & ~self.on_cores,
        }

    @cached_property
    def on_cores(self) -> BoolArray:
        """bool[ops]: whether each op is work on the cores of hosts."""
        kinds = self.schedule.link_kinds
        on = np.array([bool(way) and all(kinds[link] == CPU for link in way) for way in (*self.routes, ())])
        return np.asarray(on[self.schedule.columns.way])

    @property
    def routes(self) -> tuple[tuple[int, ...], ...]:
        """The routes of the schedule's flows."""
        return self.schedule.columns.routes

    def single(self, whole: Resource, by_server: bool) -> dict[Hashable, tuple[Resource, float]]:
        """The resources of a kind by owner, with the share of the iteration in which each is busy.

        Owners of links are the links' names in words (also for cores if `by_server`), otherwise workers. The latency of
        messages and an all-reduce have no owner.
        """
        columns = self.schedule.columns
        if whole.kind in (LATENCY, ALLREDUCE):
            return {}
        if whole.links:
            groups: dict[Hashable, list[int]] = {}
            for link in whole.links:
                groups.setdefault(self.owner_of(link), []).append(link)
            return {
                owner: (Resource(whole.kind, owner, whole.ops, tuple(own)), float(self.link_loads[own].max()))
                for owner, own in groups.items()
            }
        first = columns.first_link()
        cores = by_server and whole.kind == CPU
        rate = np.where(columns.is_flow, columns.cap, 1.0)
        if columns.is_flow[whole.ops].any():
            offered = np.append(np.array(self.schedule.capacity), np.inf)[first]
            rate = np.where(columns.is_flow, offered if cores else np.minimum(rate, offered), 1.0)
        seconds = self.work[whole.ops] / rate[whole.ops] / self.iteration_s
        found: dict[Hashable, tuple[Resource, float]] = {}
        owners = first[whole.ops] if cores else columns.worker[whole.ops]
        for number in np.unique(owners).tolist():
            mine = owners == number
            owner = self.owner_of(number) if cores else number
            found[owner] = Resource(whole.kind, owner, whole.ops[mine]), float(seconds[mine].sum())
        return found

    def owner_of(self, link: int) -> str:
        """The owner of a link in words; the link's name if the cluster has no owner for it."""
        name = self.schedule.link_names[link]
        found = LinkName.of(name)
        return name if found is None else found.text

    def at_most(self, resource: Resource, *, chains: bool = False) -> float:
        """An upper bound on the reduction of the iteration without the resource. Proven, not simulated.

        chains: also use the longest chain, if that takes less time than simulating.
        """
        key = resource.kind, resource.owner
        chained = chains and self.run.first_ends.size >= LONG_RUN
        if (key, chained) not in self._at_most:
            left = self._untouched(resource)
            if chained or 1.0 - left > NOTHING:
                left = least_seconds(resource.taken_from(self._every), chains=chained) / self.iteration_s
            self._at_most[key, chained] = 1.0 - left
        return self._at_most[key, chained]

    def _untouched(self, resource: Resource) -> float:
        """The largest load of a stream or link outside the resource, as a share of the iteration."""
        columns = self.schedule.columns
        crossing, links = columns.crossings
        touched = np.zeros(self._loads.size, np.bool_)
        ops = resource.ops
        if resource.links:
            ops = crossing[np.isin(links, resource.links)]
            touched[columns.streams + np.array(resource.links)] = True
        elif resource.kind != LATENCY:
            own = np.zeros(columns.size, np.bool_)
            own[ops] = True
            touched[columns.streams + links[own[crossing]]] = True
        touched[columns.stream[ops]] = True
        return float(self._loads[~touched].max(initial=0.0))

    @cached_property
    def _loads(self) -> FloatArray:
        """The load of every stream and link as a share of the iteration, float64[R]."""
        return np.asarray(mean_loads(self._every) / self.iteration_s, dtype=np.float64)

    def at_most_without(self, resources: Sequence[Resource]) -> float:
        """The same as `at_most`, without all of `resources` at once."""
        left = self._every
        for resource in resources:
            left = resource.taken_from(left)
        return 1.0 - least_seconds(left) / self.iteration_s

    def saved(self, resource: Resource) -> float:
        """The reduction of the iteration without the resource, simulated; negative if it becomes longer."""
        key = resource.kind, resource.owner
        if key not in self._saved:
            left = self._pace(resource.taken_from(self.schedule)) / self.iteration_s
            self._saved[key] = min(1.0 - left, self.at_most(resource))
        return self._saved[key]

    def minor(self, share: float) -> frozenset[str]:
        """Kinds without which the iteration shrinks by at most `share`, even without all of them at once.

        Simulated once for the kinds that together take less time than `share`, if there are at least `SEVERAL`. Then
        no single one of them gains more, unless links are shared in another order without the others. That changed 1 of
        143 answers, to what long runs give.
        """
        if self._minor is None:
            unsure = [kind for kind, value in self.kinds.items() if self.at_most(value, chains=True) > share]
            takes = sorted((self._takes(self.kinds[kind]), kind) for kind in unsure)
            total = np.cumsum([seconds for seconds, _ in takes]) / self.iteration_s
            some = [kind for (_, kind), until in zip(takes, total.tolist(), strict=True) if until <= share]
            if len(some) < SEVERAL:
                return frozenset()
            left = self.schedule
            for kind in some:
                left = self.kinds[kind].taken_from(left)
            self._minor = frozenset(some), 1.0 - self._pace(left) / self.iteration_s
        kinds, saved = self._minor
        return kinds if saved <= share else frozenset()

    def _takes(self, resource: Resource) -> Seconds:
        """Seconds of an iteration in which the resource's busiest owner may work."""
        if resource.links:
            return float(self.link_loads[list(resource.links)].max()) * self.iteration_s
        columns, ops = self.schedule.columns, resource.ops
        if resource.kind == LATENCY:
            return float(np.bincount(columns.stream[ops], weights=columns.of_route(columns.latency_s)[ops]).max())
        lasted = (self.run.ends[self.first :, ops] - self.run.starts[self.first :, ops]).mean(axis=0) / PS_PER_S
        return float(np.bincount(columns.worker[ops], weights=lasted).max())

    def _pace(self, schedule: Schedule) -> Seconds:
        """Mean seconds of an iteration of a variant of the run's schedule."""
        if not self.measured:
            return _mean_s(simulate(schedule, self.run.iterations, endless=True), self.first)
        judge = Steady(schedule, self.measured)
        run = simulate(schedule, judge.most, judge.enough, endless=True)
        return _mean_s(run, judge.window(run.ends).first)


def _mean_s(run: Run, first: int) -> Seconds:
    """Mean seconds of the iterations from `first` on, to the end of the last worker."""
    ends = run.ends_of(list(run.schedule.ends)).max(axis=1)
    return float(ends[-1] - ends[first - 1]) / (run.iterations - first) / PS_PER_S
