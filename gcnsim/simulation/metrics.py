"""Metrics of a run's spans, per iteration, for the slowest worker (docs/glossary.md, "What the numbers mean").

The parts of an iteration are those of `gcnsim.timeline.breakdown`; each worker's parts add up to its iteration. A wait
of the compute stream is traced back along ops that each ended as the next began (`MeasurementWindow`). If this worker's
sampler is active on that chain, the wait is for sampling. Otherwise it is for a transfer, a peer or the all-reduce,
i.e. communication.

One pass over all workers computes how long each computes and how long it waits for communication. Each worker's window
is shifted to a separate stretch of time, so the instants of all workers form one set. This gives the lengths of
`MeasurementWindow.split`. They identify the slowest worker, and only that one needs its waits by cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank, Seconds
from gcnsim.engine import Run
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.simulation.steady import MeasurementWindow
from gcnsim.timeline import PS_PER_S, Intervals, IntervalSweep, Phase
from gcnsim.timeline.breakdown import SIMULATED, Parts, iteration_s

AT_ONCE: Final = 2_000_000
"""Spans that are handled together; with many workers, some workers at a time."""

LATEST: Final = 2**62
"""The latest instant that workers are shifted to, in picoseconds."""


def computing_and_exposed(window: MeasurementWindow) -> tuple[list[int], list[int]]:
    """By rank, picoseconds of the window in which its GPU computes, and picoseconds of exposed communication."""
    computing: list[int] = []
    exposed: list[int] = []
    for ranks in _together(window):
        found = _Stretches(window, ranks)
        computing += found.lengths(found.computing)
        exposed += found.lengths(found.exposed())
    return computing, exposed


def _together(window: MeasurementWindow) -> Iterator[range]:
    """All ranks, in groups."""
    workers = window.schedule.workers
    longest = max(end - start for start, end in map(window.edges, range(workers))) + 1
    step = max(1, min(AT_ONCE * workers // max(1, window.run.ends.size), LATEST // longest))
    for first in range(0, workers, step):
        yield range(first, min(first + step, workers))


class _Stretches:
    """The windows of some workers, one behind the other."""

    def __init__(self, window: MeasurementWindow, ranks: range) -> None:
        self._window, self._ranks = window, ranks
        edges = np.array([window.edges(rank) for rank in ranks], np.int64)
        self._begin, self._length = edges[:, 0], edges[:, 1] - edges[:, 0]
        # There is a gap between windows, so instants of two workers never merge.
        self._stretch = int(self._length.max()) + 1
        columns = window.schedule.columns
        own = [columns.of_worker(rank) for rank in ranks]
        self._ops = np.concatenate(own)
        self._place = np.repeat(np.arange(len(ranks)), [array.size for array in own])
        self.computing = self._under_way(window.is_computing[self._ops])

    def lengths(self, instants: Intervals) -> list[int]:
        """Picoseconds of `instants` in the window of each worker."""
        found = np.zeros(len(self._ranks), np.int64)
        np.add.at(found, instants.starts // self._stretch, instants.ends - instants.starts)
        return [int(item) for item in found]

    def exposed(self) -> Intervals:
        """Exposed communication: the main stream handles messages, or waits for neither a sampler nor a pause.

        Computation has priority over both, and the optimizer over a wait (`gcnsim.timeline.breakdown`).
        """
        window, columns = self._window, self._window.schedule.columns
        main = columns.stream_name == columns.stream_name[columns.streams_called(COMPUTE_STREAM)[0]]
        on_main: BoolArray = main[columns.stream[self._ops]]
        handled = self._under_way(on_main & columns.is_kind(*SIMULATED.handling)[self._ops])
        optimizer = self._under_way(window.of_phase(Phase.OPTIMIZER)[self._ops])
        waits = self._waits(on_main & window.of_phase(Phase.WAIT)[self._ops])
        if window.stopped.any():
            paused = self._under_way(window.stopped[self._ops])
            waits = waits.difference(paused.difference(self.computing))
        if window.is_sampling.any():
            sampling = self._under_way(window.is_sampling[self._ops])
            waits = waits.difference(self._for_samplers().intersection(sampling))
        sweep = IntervalSweep(self.computing, handled, optimizer, waits)
        found = sweep.has(handled) | (sweep.has(waits) & ~sweep.has(optimizer))
        return sweep.instants(found & ~sweep.has(self.computing))

    def _moved(self, starts: IntArray, ends: IntArray, place: IntArray) -> Intervals:
        """The part of [starts, ends) in the window of the worker at `place`, shifted to its stretch."""
        begin, length, behind = self._begin[place], self._length[place], place * self._stretch
        starts, ends = np.clip(starts - begin, 0, length) + behind, np.clip(ends - begin, 0, length) + behind
        return Intervals.of(starts.ravel(), ends.ravel())

    def _under_way(self, chosen: BoolArray) -> Intervals:
        """Instants at which one of these ops is active; chosen: indices among the workers' ops."""
        run, ops = self._window.run, self._ops[chosen]
        return self._moved(run.starts[:, ops], run.ends[:, ops], self._place[chosen])

    def _waits(self, itself: BoolArray) -> Intervals:
        """Instants at which a main stream is idle or runs an op that counts as a wait (`itself`)."""
        run, found = self._window.run, []
        for index, rank in enumerate(self._ranks):
            for queue in self._window.main_queues(rank):
                ends = run.ends[:, queue].ravel()
                free = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
                found.append((free, run.starts[:, queue].ravel(), np.full(free.size, index)))
        gaps = self._moved(*map(np.concatenate, zip(*found, strict=True)))
        return gaps.union(self._under_way(itself)) if itself.any() else gaps

    def _for_samplers(self) -> Intervals:
        """The instants at which main streams wait for a sampler."""
        late = [self._window.late(rank) for rank in self._ranks]
        places = np.repeat(np.arange(len(late)), [ops.size for ops, _ in late])
        ops, since = (np.concatenate(item) for item in zip(*late, strict=True))
        return self._moved(*self._window.sampled(ops, since, places))


def slowest_of(window: MeasurementWindow, exposed: list[int]) -> Rank:
    """The worker with the least exposed communication in its window, the first of several: it has most work."""
    own = [end - start - exposed[rank] for rank, (start, end) in enumerate(map(window.edges, range(len(exposed))))]
    return max(range(len(own)), key=lambda rank: (own[rank], -rank))


ROUNDING = 1e-9
"""The share of an iteration that its parts may miss by rounding."""


def worker_parts(run: Run, first: int) -> tuple[Parts, ...]:
    """The parts of each worker's iterations from `first` (at least 1) to the end of `run`."""
    window = MeasurementWindow(run, first)
    scale = 1.0 / (window.count * PS_PER_S)
    ranks = range(run.schedule.workers)
    return tuple(window.split(rank).parts.parts(rank, lambda ps: ps * scale) for rank in ranks)


def balanced_parts(workers: Sequence[Parts], slowest: Rank, lasts_s: Seconds) -> tuple[Parts, ...]:
    """The workers' parts of an iteration of `lasts_s` seconds, if queues grew during the run.

    Queues that must still be emptied (`gcnsim.simulation.metrics.at_least`) are feature rows in transit, on every
    worker.
    """
    owed = lasts_s - iteration_s(workers[slowest])
    if owed <= ROUNDING * lasts_s:
        return tuple(workers)
    return tuple(replace(worker, network_s=worker.network_s + owed) for worker in workers)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Means per iteration over the measured window: seconds, bytes, shares of one.

    iteration = compute + exposed comm + exposed other. exposed_comm + hidden_comm is the worker's communication: one of
    its transfers is active, or it waits exposed. nic_bytes: sent by the busiest server NIC. gpu_busy: by worker, the
    share of the time in which it computes; gpu_utilization: their mean.
    """

    worker: Rank
    iteration_s: float
    compute_s: float
    exposed_comm_s: float
    exposed_other_s: float
    hidden_comm_s: float
    sampling_s: float
    gpu_utilization: float
    nic_utilization: float
    nic_bytes: float
    gpu_busy: tuple[float, ...]


def measure(run: Run, first: int) -> Metrics:
    """The metrics of the iterations from `first` (at least 1) to the end of `run`."""
    window = MeasurementWindow(run, first)
    ranks = range(run.schedule.workers)
    computing, exposed = computing_and_exposed(window)
    # All workers end together (all-reduce); the slowest is the one that waits least. Training runs use the same rule.
    slowest = slowest_of(window, exposed)
    split = window.split(slowest)
    start, end = window.edges(slowest)
    scale = 1.0 / (window.count * PS_PER_S)
    length = (end - start) * scale
    nic_bytes, nic_share = _nic(window, length)
    busy = [busy / max(1, e - s) for busy, (s, e) in zip(computing, map(window.edges, ranks), strict=True)]
    return Metrics(
        worker=slowest,
        iteration_s=length,
        compute_s=split.compute * scale,
        exposed_comm_s=split.exposed.length * scale,
        exposed_other_s=split.other * scale,
        hidden_comm_s=split.parts.hidden_comm.length * scale,
        sampling_s=split.sampling * scale,
        gpu_utilization=float(np.mean(busy)),
        nic_utilization=nic_share,
        nic_bytes=nic_bytes,
        gpu_busy=tuple(busy),
    )


def at_least(metrics: Metrics, iteration_s: float) -> Metrics:
    """`metrics` of an iteration of at least `iteration_s` seconds, a bound that no run can beat for long.

    Queues that grew over the measured iterations (the state returned within a percent) must still be emptied; that time
    is exposed communication.
    """
    owed = iteration_s - metrics.iteration_s
    if owed <= 0:
        return metrics
    share = metrics.iteration_s / iteration_s
    # Rounding to whole picoseconds may give less than the bound; that is not communication.
    waited = owed if owed > ROUNDING * iteration_s else 0.0
    return replace(
        metrics,
        iteration_s=iteration_s,
        exposed_comm_s=metrics.exposed_comm_s + waited,
        gpu_utilization=metrics.gpu_utilization * share,
        nic_utilization=_at_most_full(metrics.nic_utilization * share),
        gpu_busy=tuple(busy * share for busy in metrics.gpu_busy),
    )


def units_moved(window: MeasurementWindow) -> FloatArray:
    """Mean units (bytes; core-seconds for a CPU) per measured iteration over each link, float64[links]."""
    schedule = window.schedule
    ops, links = schedule.columns.crossings
    rows = np.arange(window.first, window.run.iterations) % schedule.demand.shape[0]
    moved = schedule.demand[rows].mean(axis=0)
    return np.bincount(links, weights=moved[ops], minlength=len(schedule.capacity)).astype(np.float64)


def link_units(run: Run, first: int) -> dict[str, float]:
    """Mean units per iteration (bytes; core-seconds for a CPU) carried by each link, by name."""
    window = MeasurementWindow(run, first)
    return dict(zip(window.schedule.link_names, units_moved(window).tolist(), strict=True))


def _nic(window: MeasurementWindow, iteration_s: float) -> tuple[float, float]:
    """Bytes sent per iteration by the busiest NIC, and the utilization of the busiest NIC direction."""
    schedule = window.schedule
    units = link_units(window.run, window.first)
    nics = [
        (name, capacity)
        for name, kind, capacity in zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
        if kind == "nic"
    ]
    sent = max((units[name] for name, _ in nics if name.endswith(".tx")), default=0.0)
    share = max((units[name] / capacity / iteration_s for name, capacity in nics), default=0.0)
    return sent, _at_most_full(share)


def _at_most_full(share: float) -> float:
    """The utilization of a link. A full one is busy all the time, except for the rounding of its bytes."""
    return min(1.0, share) if share <= 1.0 + ROUNDING else share
