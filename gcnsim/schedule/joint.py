"""The analytic estimate of many variants of one schedule at once: the same ops, other amounts, capacities, latencies.

What `estimate` (gcnsim.schedule.bounds) says of each variant alone, for all of them in one pass over the ops. Flows on
the same route that share its links with as many others are handled together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.ids import FloatArray, IntArray
from gcnsim.schedule.bounds import together
from gcnsim.schedule.columns import Columns, Route
from gcnsim.schedule.order import levels
from gcnsim.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Variants:
    """K variants of a schedule: demand: float64[ops, K], as `Schedule.demand` turned. capacity: float64[links, K].
    latency_s, queue: by route, float64[K], as those of `Op`."""

    demand: FloatArray
    capacity: FloatArray
    latency_s: dict[Route, FloatArray]
    queue: dict[Route, FloatArray]


def estimates(schedule: Schedule, variants: Variants) -> FloatArray:
    """Estimated seconds per iteration of each variant, float64[K]: the largest load or the longest chain.

    Of schedules without threads on cores.
    """
    columns, demand, capacity = schedule.columns, variants.demand, variants.capacity
    alone, seconds = demand.copy(), demand.copy()
    carried = np.zeros_like(capacity)
    for route, most, shares, members in _groups(columns):
        offered = capacity[list(route)]
        counts = np.array(shares, dtype=np.float64)[:, None]
        rate = np.minimum(offered.min(axis=0), most)
        shared = np.minimum((offered / counts).min(axis=0), most)
        latency = variants.latency_s[route]
        waited = latency + variants.queue[route] * ((counts - 1.0) / offered).max(axis=0)
        work = demand[members]
        carried[list(route)] += work.sum(axis=0)
        sends = work > 0
        alone[members] = latency * sends + work / rate
        seconds[members] = waited * sends + work / shared
    order = np.argsort(columns.stream, kind="stable")
    starts = np.flatnonzero(np.diff(columns.stream[order], prepend=-1))
    loads = np.add.reduceat(alone[order], starts, axis=0)
    busiest = np.maximum(loads.max(axis=0), (carried / capacity).max(axis=0))
    chains = levels(schedule).longest(seconds)[list(schedule.ends)].max(axis=0)
    return np.asarray(np.maximum(busiest, chains))


Group = tuple[Route, float, tuple[int, ...], IntArray]
"""A route, a cap, the streams that share each link of the route with an op, and the ops alike in these."""


def _groups(columns: Columns) -> list[Group]:
    """The flows that are alike, in the order of their first."""

    def make() -> list[Group]:
        ops, _ = columns.crossings
        shares: list[list[int]] = [[] for _ in range(columns.size)]
        for op, count in zip(ops.tolist(), together(columns).tolist(), strict=True):
            shares[op].append(count)
        groups: dict[tuple[Route, float, tuple[int, ...]], list[int]] = {}
        for op, (way, cap) in enumerate(zip(columns.way.tolist(), columns.cap.tolist(), strict=True)):
            if way >= 0 and columns.routes[way]:
                key = columns.routes[way], cap, tuple(shares[op])
                groups.setdefault(key, []).append(op)
        return [(*key, np.array(members)) for key, members in groups.items()]

    return columns.derived("groups", make)
