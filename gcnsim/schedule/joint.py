"""The analytic estimate of many variants of one schedule at once: the same ops, other amounts, capacities, latencies.

What `estimate` (gcnsim.schedule.bounds) says of each variant alone, for all of them in one pass over the ops. Flows on
the same route that share its links with as many others are handled together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf

import numpy as np

from gcnsim.ids import FloatArray
from gcnsim.schedule.bounds import stage_of
from gcnsim.schedule.order import topological
from gcnsim.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Variants:
    """K variants of a schedule: demand: float64[ops, K], as `Schedule.demand` turned. capacity: float64[links, K].
    latency_s, queue: by route, float64[K], as those of `Op`."""

    demand: FloatArray
    capacity: FloatArray
    latency_s: dict[tuple[int, ...], FloatArray]
    queue: dict[tuple[int, ...], FloatArray]


def estimates(schedule: Schedule, variants: Variants) -> FloatArray:
    """Estimated seconds per iteration of each variant, float64[K]: the largest load or the longest chain.

    Of schedules without threads on cores.
    """
    demand, capacity = variants.demand, variants.capacity
    stages = [stage_of(op) if op.route else None for op in schedule.ops]
    together = {(link, op.stream, stages[op.index]) for op in schedule.ops for link in op.route or ()}
    sharing = Counter((link, stage) for link, _, stage in together)
    groups: dict[tuple[tuple[int, ...], float, tuple[int, ...]], list[int]] = {}
    for op in schedule.ops:
        if op.route:
            shares = tuple(sharing[link, stages[op.index]] for link in op.route)
            most = inf if op.cap is None else op.cap
            groups.setdefault((op.route, most, shares), []).append(op.index)
    alone, seconds = demand.copy(), demand.copy()
    carried = np.zeros_like(capacity)
    for (route, most, shares), members in groups.items():
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
    streams = np.array([op.stream for op in schedule.ops])
    order = np.argsort(streams, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(streams[order]) > 0])
    loads = np.add.reduceat(alone[order], starts, axis=0)
    busiest = np.maximum(loads.max(axis=0), (carried / capacity).max(axis=0))
    return np.asarray(np.maximum(busiest, _longest(schedule, seconds)))


def _longest(schedule: Schedule, seconds: FloatArray) -> FloatArray:
    """Length of the longest chain that ends an iteration, float64[K]; seconds: float64[ops, K]."""
    sequence, before = topological(schedule)
    end = seconds.copy()
    for op in sequence:
        first = before[op]
        if len(first) == 1:
            end[op] += end[first[0]]
        elif first:
            end[op] += end[first].max(axis=0)
    return np.asarray(end[list(schedule.ends)].max(axis=0))
