"""The analytic estimate of many variants of one schedule at once: the same ops, other amounts, capacities, latencies.

What `estimate` (gcnsim.schedule.bounds) says of each variant alone, for all of them in one pass over the ops.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gcnsim.ids import FloatArray
from gcnsim.schedule.bounds import stage_of
from gcnsim.schedule.order import topological
from gcnsim.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Variants:
    """K variants of a schedule. demand: float64[K, ops], as `Schedule.demand`. capacity: float64[K, links]. latency_s,
    queue: float64[K, ops], as those of `Op`."""

    demand: FloatArray
    capacity: FloatArray
    latency_s: FloatArray
    queue: FloatArray


def estimates(schedule: Schedule, variants: Variants) -> FloatArray:
    """Estimated seconds per iteration of each variant, float64[K]: the largest load or the longest chain.

    Of schedules without threads on cores.
    """
    demand = variants.demand.T
    capacity = variants.capacity.T
    latency = variants.latency_s.T * (demand > 0)
    queue = variants.queue.T * (demand > 0)
    queues = np.asarray(queue.any(axis=1))
    together = {(link, op.stream, stage_of(op)) for op in schedule.ops for link in op.route or ()}
    stage = Counter((link, kind) for link, _, kind in together)
    alone, seconds = demand.copy(), demand.copy()
    carried = np.zeros_like(capacity)
    for op in schedule.ops:
        if op.route is None:
            continue
        at = op.index
        work = demand[at]
        rate = shared = capacity[op.route[0]]
        queued: FloatArray | float = 0.0
        for place, link in enumerate(op.route):
            offered = capacity[link]
            carried[link] += work / offered
            share = offered / max(1, stage[link, stage_of(op)])
            rate = offered if place == 0 else np.minimum(rate, offered)
            shared = share if place == 0 else np.minimum(shared, share)
            if queues[at]:
                ahead = queue[at] * (max(1, stage[link, stage_of(op)]) - 1)
                queued = np.maximum(queued, ahead / offered)
        if op.cap is not None:
            rate, shared = np.minimum(rate, op.cap), np.minimum(shared, op.cap)
        alone[at] = latency[at] + work / rate
        seconds[at] = latency[at] + queued + work / shared
    streams = np.array([op.stream for op in schedule.ops])
    order = np.argsort(streams, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(streams[order]) > 0])
    busiest = np.maximum(np.add.reduceat(alone[order], starts, axis=0).max(axis=0), carried.max(axis=0))
    return np.asarray(np.maximum(busiest, _longest(schedule, seconds)))


def _longest(schedule: Schedule, seconds: FloatArray) -> FloatArray:
    """Length of the longest chain that ends an iteration, float64[K]; seconds: float64[ops, K]."""
    sequence, before = topological(schedule)
    end = np.zeros_like(seconds)
    for op in sequence:
        first = before[op]
        if len(first) == 1:
            end[op] = end[first[0]] + seconds[op]
        elif first:
            end[op] = end[first].max(axis=0) + seconds[op]
        else:
            end[op] = seconds[op]
    return np.asarray(end[list(schedule.ends)].max(axis=0))
