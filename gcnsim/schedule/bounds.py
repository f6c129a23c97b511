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

import numpy as np

from gcnsim.ids import FloatArray, Seconds
from gcnsim.schedule.order import topological
from gcnsim.schedule.schedule import Op, Schedule


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
    occupied = schedule.occupied.mean(axis=0)
    alone = _durations(schedule, occupied, Counter())
    loads = _loads(schedule, alone, occupied)
    busiest, kind = max(sorted(loads), key=lambda key: loads[key])
    load = loads[busiest, kind]
    streams = Counter(link for link, _ in {(link, op.stream) for op in schedule.ops for link in op.route or ()})
    sharers = Counter({(op.index, link): streams[link] for op in schedule.ops for link in op.route or ()})
    order, synchronous = topological(schedule), topological(schedule, collapse=True)
    return Bounds(
        lower_s=max(load, _longest_cycle(schedule, order, alone)),
        upper_s=max(load, _longest(schedule, synchronous, _durations(schedule, occupied, sharers))),
        busiest=busiest,
        busiest_kind=kind,
        busiest_s=load,
    )


def estimate(schedule: Schedule) -> Seconds:
    """A guess at the mean iteration that ranks candidates: no bound, no simulation.

    The largest load, or the longest chain to the end of an iteration when a link is divided among the flows of the same
    kind, layer and direction (those that a method starts together), whichever is longer.
    """
    occupied = schedule.occupied.mean(axis=0)
    stage = Counter((link, _stage(op)) for op in schedule.ops for link in op.route or ())
    sharers = Counter({(op.index, link): stage[link, _stage(op)] for op in schedule.ops for link in op.route or ()})
    chain = _longest(schedule, topological(schedule), _durations(schedule, occupied, sharers))
    return max(chain, *resource_loads(schedule, occupied).values())


def _stage(op: Op) -> tuple[str, int, int]:
    return op.kind, op.layer, op.direction


def resource_loads(schedule: Schedule, occupied: FloatArray) -> dict[tuple[str, str], Seconds]:
    """Seconds of work per stream and link for one iteration's `occupied`, float64[ops]; keys are (name, kind).

    The kind is `compute` for exclusive work, else that of the (first) link. Streams count their flows at the rate they
    would have alone.
    """
    return _loads(schedule, _durations(schedule, occupied, Counter()), occupied)


def _loads(schedule: Schedule, alone: list[float], occupied: FloatArray) -> dict[tuple[str, str], Seconds]:
    loads: dict[tuple[str, str], float] = {}
    for op, seconds, units in zip(schedule.ops, alone, occupied.tolist(), strict=True):
        stream = schedule.streams[op.stream]
        route = op.route or ()
        kind = schedule.link_kinds[route[0]] if route else "compute"
        busy = (f"{stream.name} of worker {stream.worker}", kind)
        loads[busy] = loads.get(busy, 0.0) + seconds
        for link in route:
            busy = (schedule.link_names[link], schedule.link_kinds[link])
            loads[busy] = loads.get(busy, 0.0) + units / schedule.capacity[link]
    return loads


def _durations(schedule: Schedule, occupied: FloatArray, sharers: Counter[tuple[int, int]]) -> list[float]:
    """Seconds of each op when `sharers[op, link]` flows (at least itself) divide each of its links equally."""
    seconds = []
    for op, work in zip(schedule.ops, occupied.tolist(), strict=True):
        if op.route is None or work == 0:
            seconds.append(work)
            continue
        rate = min(schedule.capacity[link] / max(1, sharers[op.index, link]) for link in op.route)
        seconds.append(op.latency_s + work / (rate if op.cap is None else min(rate, op.cap)))
    return seconds


def _longest(schedule: Schedule, order: tuple[list[int], list[list[int]]], seconds: list[float]) -> Seconds:
    """Length of the longest chain that ends an iteration; transfers that outlive it are not part of it."""
    sequence, before = order
    end = [0.0] * len(sequence)
    for op in sequence:
        end[op] = seconds[op] + max((end[dep] for dep in before[op]), default=0.0)
    return max(end[op] for op in schedule.ends)


def _longest_cycle(schedule: Schedule, order: tuple[list[int], list[list[int]]], seconds: list[float]) -> Seconds:
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
