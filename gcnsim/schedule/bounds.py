"""Analytic bounds of a schedule's iteration time, without simulating it: max(resources, critical path) <= T <= sum.

A schedule is a max-plus system once the durations of its flows are fixed: its period is the largest mean over cycles
of (work / iterations reached back). Hence, with durations that no run can undercut, the period is at least the
longest chain from the start of a worker's iteration to its end and at least what each stream and link must do; with
durations that no run can exceed, it is at most the longest chain of the synchronous reading (every dependency of
lag >= 1 taken as lag 0). A chain that ends at another worker than it started at is no cycle and bounds nothing:
workers may run the same iteration at different times for ever.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gcnsim.ids import FloatArray, IntArray, Seconds
from gcnsim.schedule.order import topological
from gcnsim.schedule.schedule import Op, Schedule, SortedOps
from gcnsim.timeline import OpKind

AT_ONCE = 1_000_000
"""Durations that are handled at once: 8 MB."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds per iteration: lower <= T <= upper.

    busiest: the stream or link whose load is largest; busiest_kind: `compute` or the kind of link; busiest_s: that
    load.
    """

    lower_s: Seconds
    upper_s: Seconds
    busiest: str
    busiest_kind: str
    busiest_s: Seconds


def bounds(schedule: Schedule) -> Bounds:
    """Bounds of the mean iteration, from the mean demand of each op."""
    demand = schedule.demand.mean(axis=0)
    loads = resource_loads(schedule)
    mean = loads.seconds.mean(axis=0)
    top = int(np.argmax(mean))
    (busiest, kind), load = loads.resources[top], float(mean[top])
    senders = Counter(link for link, _ in {(link, _sender(op)) for op in schedule.ops for link in op.route or ()})
    sharers = Counter({(op.index, link): senders[link] for op in schedule.ops for link in op.route or ()})
    order, synchronous = topological(schedule), topological(schedule, collapse=True)
    return Bounds(
        lower_s=max(load, _longest_cycle(schedule, order, _durations(schedule, demand, Counter()).tolist())),
        upper_s=max(load, _longest_serial(schedule, synchronous, sharers)),
        busiest=busiest,
        busiest_kind=kind,
        busiest_s=load,
    )


def _sender(op: Op) -> tuple[bool, int]:
    """What has one flow under way at most: a connection, or where an op has none its stream."""
    return (True, op.connection) if op.connection >= 0 else (False, op.stream)


def estimate(schedule: Schedule) -> Seconds:
    """A guess at the mean iteration that ranks candidates: no bound, no simulation.

    The largest load, or the longest chain to the end of an iteration when a link is divided among the flows of the same
    kind, layer and direction (those that a method starts together; of a stream one), whichever is longer.
    """
    demand = schedule.demand.mean(axis=0)
    together = {(link, op.stream, stage_of(op)) for op in schedule.ops for link in op.route or ()}
    stage = Counter((link, kind) for link, _, kind in together)
    sharers = Counter({(op.index, link): stage[link, stage_of(op)] for op in schedule.ops for link in op.route or ()})
    chain = _chain(schedule, topological(schedule), _durations(schedule, demand, sharers).tolist())
    return max(chain, float(resource_loads(schedule).seconds.mean(axis=0).max()))


def stage_of(op: Op) -> tuple[str, int, int]:
    """What flows have in common that a method starts together."""
    return op.kind, op.layer, op.direction


class Loads(NamedTuple):
    """Seconds of work per graph and resource, float64[T, R].

    resources: R pairs (name, kind), streams first, then links; the kind is `compute` for a stream of exclusive work,
    `pause` for one that holds a worker up, else that of its flows' first link, of the kind they take most time on.
    """

    resources: tuple[tuple[str, str], ...]
    seconds: FloatArray


def resource_loads(schedule: Schedule) -> Loads:
    """What each stream and link must do in each iteration; streams count their flows at the rate they have alone."""
    demand = schedule.demand
    kinds = ["compute"] * len(schedule.streams)
    for op in schedule.ops:
        if op.kind is OpKind.WAIT:
            kinds[op.stream] = "pause"
    rate, latency = np.ones(len(schedule.ops)), np.zeros(len(schedule.ops))
    crossing: list[tuple[int, int]] = []
    for op in schedule.ops:
        if op.route is not None:
            rate[op.index] = _rate_alone(schedule, op)
            latency[op.index] = op.latency_s
            crossing += [(op.index, link) for link in op.route]
    streams = np.array([op.stream for op in schedule.ops])
    ops, links = np.array(crossing, dtype=np.int64).reshape(-1, 2).T
    alone = latency * (demand > 0) + demand / rate
    spent: Counter[tuple[int, str]] = Counter()
    for op, seconds in zip(schedule.ops, alone.mean(axis=0).tolist(), strict=True):
        if op.route is not None:
            spent[op.stream, schedule.link_kinds[op.route[0]]] += seconds
    for (stream, kind), _ in sorted(spent.items(), key=lambda item: item[1]):
        kinds[stream] = kind
    carried = demand[:, ops] / np.array(schedule.capacity)[links]
    names = [f"{stream.name} of worker {stream.worker}" for stream in schedule.streams]
    resources = (*zip(names, kinds, strict=True), *zip(schedule.link_names, schedule.link_kinds, strict=True))
    loads = np.concatenate([_sums(alone, streams, len(names)), _sums(carried, links, len(schedule.capacity))], axis=1)
    return Loads(tuple(resources), loads)


def _sums(values: FloatArray, groups: IntArray, count: int) -> FloatArray:
    """Row by row, the sum of each group's columns, float64[T, count]."""
    return np.array([np.bincount(groups, weights=row, minlength=count) for row in values])


def _rate_alone(schedule: Schedule, op: Op) -> float:
    rate = min(schedule.capacity[link] for link in op.route or ())
    return rate if op.cap is None else min(rate, op.cap)


def _durations(
    schedule: Schedule, demand: FloatArray, sharers: Counter[tuple[int, int]], sends: FloatArray | None = None
) -> FloatArray:
    """Seconds of each op when `sharers[op, link]` flows (at least itself) divide each of its links equally.

    demand: float64[T, ops], as is what is returned; float64[ops] of one iteration. sends: share of the iterations in
    which an op has work, alike: it has its latency in these alone.
    """
    rate, delay = _divided(schedule, sharers)
    often = _sends(schedule) if sends is None else sends
    seconds: FloatArray = np.where((demand == 0) | ~schedule.is_flow, demand, delay * often + demand / rate)
    taking_turns = [op for op in schedule.ops if op.thread >= 0 and op.route and sharers[op.index, op.route[0]] > 1]
    if taking_turns:
        for work, row in zip(np.atleast_2d(demand), np.atleast_2d(seconds), strict=True):
            turns = _turns(schedule, work)
            for op in taking_turns:
                if work[op.index] != 0:
                    row[op.index] = turns[op.thread]
    return seconds


def _divided(schedule: Schedule, sharers: Counter[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    """Rate and delay of each op, float64[ops], where `sharers[op, link]` flows divide its links; else 1 and 0."""
    rates, delays = np.ones(len(schedule.ops)), np.zeros(len(schedule.ops))
    capacity = schedule.capacity
    known: dict[tuple[object, ...], tuple[float, float]] = {}
    for op in schedule.ops:
        if not op.route:
            continue
        counts = tuple([max(1, sharers[op.index, link]) for link in op.route])
        key = op.route, op.cap, op.latency_s, op.queue, counts
        if key not in known:
            rate = min(capacity[link] / count for link, count in zip(op.route, counts, strict=True))
            # Where others may be under way, the worst is that they fill the links.
            others = max(op.queue * (count - 1) / capacity[link] for link, count in zip(op.route, counts, strict=True))
            known[key] = rate if op.cap is None else min(rate, op.cap), op.latency_s + others
        rates[op.index], delays[op.index] = known[key]
    return rates, delays


def _sends(schedule: Schedule) -> FloatArray:
    return np.asarray((schedule.demand > 0).mean(axis=0), dtype=np.float64)


def _turns(schedule: Schedule, demand: FloatArray) -> dict[int, Seconds]:
    """Per thread, seconds from when it gets a task until it is done, at most.

    Tasks wait for those of their thread before them, one of each stream at most, and every other thread may meanwhile
    have as much core time, and two slices besides: one under way, one by which it was behind.
    """
    largest: dict[int, dict[int, float]] = {}
    machine: dict[int, int] = {}
    for op in schedule.ops:
        if op.thread >= 0 and op.route is not None:
            mine = largest.setdefault(op.thread, {})
            mine[op.stream] = max(mine.get(op.stream, 0.0), float(demand[op.index]))
            machine[op.thread] = op.route[0]
    threads = Counter(machine.values())
    found = {}
    for thread, link in machine.items():
        own, others = sum(largest[thread].values()), threads[link] - 1
        _, slice_s = schedule.cores[link]
        found[thread] = max(own, (own + others * (own + 2 * slice_s)) / schedule.capacity[link])
    return found


def _longest_serial(schedule: Schedule, order: SortedOps, sharers: Counter[tuple[int, int]]) -> Seconds:
    """The longest chain of an iteration in which nothing overlaps with another one, in the mean.

    Where ops send in some iterations and nothing in others, now one chain is the longest and now another, and the mean
    of them is more than the chain of the means: it is taken iteration by iteration.
    """
    demand, sends = schedule.demand, _sends(schedule)
    if not ((sends > 0.0) & (sends < 1.0)).any():
        rows = _behind(schedule, _durations(schedule, demand.mean(axis=0)[None], sharers))
        return _chain(schedule, order, rows[0].tolist())
    several = max(1, AT_ONCE // len(schedule.ops))
    found = []
    for first in range(0, demand.shape[0], several):
        some = demand[first : first + several]
        rows = _behind(schedule, _durations(schedule, some, sharers, (some > 0).astype(np.float64)))
        found += _longest(schedule, order, rows).tolist()
    return float(np.mean(found))


def _chain(schedule: Schedule, order: SortedOps, seconds: list[float]) -> Seconds:
    """`_longest` of one iteration, without arrays."""
    sequence, before = order
    end = [0.0] * len(sequence)
    for op in sequence:
        end[op] = seconds[op] + max((end[dep] for dep in before[op]), default=0.0)
    return max(end[op] for op in schedule.ends)


def _behind(schedule: Schedule, seconds: FloatArray) -> FloatArray:
    """`seconds`, float64[T, ops], with what a message may wait for others of its connection.

    Of each other stream it is one, the longest.
    """
    longest: dict[int, dict[int, FloatArray]] = {}
    for op in schedule.ops:
        if op.connection >= 0:
            mine, own = longest.setdefault(op.connection, {}), seconds[:, op.index]
            mine[op.stream] = np.maximum(mine[op.stream], own) if op.stream in mine else own
    together = {connection: sum(each.values()) for connection, each in longest.items()}
    found = seconds.copy()
    for op in schedule.ops:
        if op.connection >= 0:
            waited = together[op.connection] - longest[op.connection][op.stream]
            found[:, op.index] += np.where(seconds[:, op.index] != 0, waited, 0.0)
    return found


def _longest(schedule: Schedule, order: SortedOps, seconds: FloatArray) -> FloatArray:
    """Length of the longest chain that ends an iteration, float64[T]; seconds: float64[T, ops].

    Transfers that outlive it are not part of it.
    """
    sequence, before = order
    end = np.ascontiguousarray(seconds.T)
    for op in sequence:
        first = before[op]
        if len(first) == 1:
            end[op] += end[first[0]]
        elif first:
            end[op] += end[first].max(axis=0)
    return np.asarray(end[list(schedule.ends)].max(axis=0))


def _longest_cycle(schedule: Schedule, order: SortedOps, seconds: list[float]) -> Seconds:
    """Length of the longest chain from an op that waits for a worker's previous end to that worker's next end."""
    sequence, before = order
    reached = np.full((len(sequence), schedule.workers), -np.inf)
    worker_of = {last: worker for worker, last in enumerate(schedule.ends)}
    for last, worker in worker_of.items():
        queue = schedule.order[schedule.ops[last].stream]
        if queue[-1] == last:
            reached[queue[0], worker] = 0.0
    for waiting in schedule.ops:
        for dep, lag in waiting.after:
            if lag == 1 and dep in worker_of:
                reached[waiting.index, worker_of[dep]] = 0.0
    for op in sequence:
        if before[op]:
            np.maximum(reached[op], reached[before[op]].max(axis=0), out=reached[op])
        reached[op] += seconds[op]
    return max(float(reached[last, worker]) for last, worker in worker_of.items())
