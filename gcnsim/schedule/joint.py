"""The analytic estimate of many variants of one schedule at once: same ops, other amounts, capacities and latencies.

It equals `estimate` (gcnsim.schedule.bounds) of each variant, computed in one pass over the ops. Flows on the same
route that share its links with equally many others are handled together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.schedule.bounds import concurrent_flows
from gcnsim.schedule.columns import Columns, rows_by
from gcnsim.schedule.schedule import Schedule, levels

AT_ONCE = 200_000
"""Amounts of ops that are handled at once, so that they fit in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Variants:
    """K variants of a schedule. demand: float64[ops, K], `Schedule.demand` transposed. capacity: float64[links, K].

    latency_s, startup_s, queue: of each of the columns' routes, float64[R, K], as in `Op`.
    """

    demand: FloatArray
    capacity: FloatArray
    latency_s: FloatArray
    startup_s: FloatArray
    queue: FloatArray

    def of(self, schedule: Schedule, place: int) -> Schedule:
        """Variant `place` of `schedule`; its structure and the derived results are shared."""
        delays = (np.ascontiguousarray(of_each[:, place]) for of_each in (self.latency_s, self.startup_s, self.queue))
        return replace(
            schedule,
            columns=schedule.columns.with_delays(*delays),
            demand=np.ascontiguousarray(self.demand[:, place])[None],
            capacity=tuple(self.capacity[:, place].tolist()),
        )


def estimates(schedule: Schedule, variants: Variants) -> FloatArray:
    """Estimated seconds per iteration of each variant, float64[K]: the largest load or the longest chain.

    Only for schedules without threads on cores.
    """
    total = variants.demand.shape[1]
    step = max(1, AT_ONCE // schedule.columns.size)
    return np.concatenate([_estimates(schedule, variants, slice(at, at + step)) for at in range(0, total, step)])


def _estimates(schedule: Schedule, variants: Variants, some: slice) -> FloatArray:
    """The estimates of some of the variants."""
    columns, capacity = schedule.columns, variants.capacity[:, some]
    alone = variants.demand[:, some].copy()
    seconds, carried = alone.copy(), np.zeros_like(capacity)
    if columns.is_flow.any():
        _let_flow(variants, some, _identical_ops(columns), alone, seconds, carried)
    at, order = columns.derived("by stream", lambda: rows_by(columns.stream, columns.streams))
    loads = np.add.reduceat(alone[order], at[:-1], axis=0)
    busiest = np.maximum(loads.max(axis=0), (carried / capacity).max(axis=0))
    chains = levels(schedule).longest(seconds)[list(schedule.ends)].max(axis=0)
    return np.asarray(np.maximum(busiest, chains))


def _let_flow(
    variants: Variants, some: slice, alike: _IdenticalOps, alone: FloatArray, seconds: FloatArray, carried: FloatArray
) -> None:
    """Write the seconds of flows to `alone` and (with other flows) to `seconds`, float64[ops, K].

    Their load on links goes to `carried`, float64[links, K].
    """
    capacity = variants.capacity[:, some]
    offered, counts, most = capacity[alike.links], alike.shares[:, None], alike.caps[:, None]
    rate = np.minimum(np.minimum.reduceat(offered, alike.at, axis=0), most)
    shared = np.minimum(np.minimum.reduceat(offered / counts, alike.at, axis=0), most)
    latency, queue = variants.latency_s[alike.ways, some], variants.queue[alike.ways, some]
    waited = latency + queue * np.maximum.reduceat((counts - 1.0) / offered, alike.at, axis=0)
    work = alone[alike.ops]
    sends = work > 0
    alone[alike.ops] = latency[alike.group] * sends + work / rate[alike.group]
    seconds[alike.ops] = waited[alike.group] * sends + work / shared[alike.group]
    summed = np.add.reduceat(work, np.flatnonzero(np.diff(alike.group, prepend=-1)), axis=0)
    np.add.at(carried, alike.links, np.repeat(summed, np.diff(alike.at, append=alike.links.size), axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _IdenticalOps:
    """The flows of a schedule in G groups of equal route and cap whose links are shared with equally many streams.

    ways: the route of each group, int64[G]. caps: float64[G]. at: int64[G], links, shares: rows of the links of each
    route and of the streams that share each link. ops: int64[k], the flows group by group; group: int64[k], the group
    of each.
    """

    ways: IntArray
    caps: FloatArray
    at: IntArray
    links: IntArray
    shares: FloatArray
    ops: IntArray
    group: IntArray


def _identical_ops(columns: Columns) -> _IdenticalOps:
    """The groups, in the order of their first flow."""

    def make() -> _IdenticalOps:
        crossing, links = columns.crossings
        shares = concurrent_flows(columns)
        flows, begins, lengths = np.unique(crossing, return_index=True, return_counts=True)
        _, cap = np.unique(columns.cap[flows], return_inverse=True)
        group = _numbered(columns.way[flows], cap)
        for place in range(int(lengths.max(initial=0))):
            # Flows on the same route have equally many links.
            group = _numbered(group, shares[begins + np.minimum(place, lengths - 1)])
        _, firsts, group = np.unique(group, return_index=True, return_inverse=True)
        rank = np.empty_like(firsts)
        order = np.argsort(firsts)
        rank[order] = np.arange(firsts.size)
        firsts, group = firsts[order], rank[group]
        ops, sizes = np.argsort(group, kind="stable"), lengths[firsts]
        at = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + np.repeat(begins[firsts] - at, sizes)
        return _IdenticalOps(
            ways=columns.way[flows[firsts]].astype(np.int64),
            caps=columns.cap[flows[firsts]],
            at=at.astype(np.int64),
            links=links[rows].astype(np.int64),
            shares=shares[rows].astype(np.float64),
            ops=flows[ops].astype(np.int64),
            group=group[ops].astype(np.int64),
        )

    return columns.derived("alike", make)


def _numbered(high: IntArray, low: IntArray) -> IntArray:
    """A number from 0 for each pair of values, the same for equal pairs, int64[k]."""
    keys = high.astype(np.int64) * (int(low.max(initial=0)) + 1) + low
    return np.asarray(np.unique(keys, return_inverse=True)[1], dtype=np.int64)
