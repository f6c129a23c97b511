"""How long each worker of a run computes and how long it waits for communication, of all workers in one pass.

The window of every worker is moved to a stretch of time of its own, one behind the other, so that sets of instants of
all workers are one set. What `MeasurementWindow.split` says of a worker alone, in its lengths alone: only the slowest
worker, which is found by them, needs to know what else its waits are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from gcnsim.breakdown import SIMULATED
from gcnsim.ids import BoolArray, IntArray, Rank
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.simulation.window import MeasurementWindow
from gcnsim.timeline import Intervals, Phase, Sweep

AT_ONCE: Final = 2_000_000
"""Spans that are looked at together: of many workers, some workers at a time."""

LATEST: Final = 2**62
"""Picoseconds, the latest instant that workers are moved to."""


def computing_and_exposed(window: MeasurementWindow) -> tuple[list[int], list[int]]:
    """By rank, picoseconds of the window in which its GPU computes, and of its exposed communication."""
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
        # No two stretches touch, so no instants of two workers are one interval.
        self._stretch = int(self._length.max()) + 1
        columns = window.schedule.columns
        own = [columns.of_worker(rank) for rank in ranks]
        self._ops = np.concatenate(own)
        self._place = np.repeat(np.arange(len(ranks)), [each.size for each in own])
        self.computing = self._under_way(window.is_computing[self._ops])

    def lengths(self, instants: Intervals) -> list[int]:
        """Picoseconds of `instants` in the stretch of each worker."""
        found = np.zeros(len(self._ranks), np.int64)
        np.add.at(found, instants.starts // self._stretch, instants.ends - instants.starts)
        return [int(each) for each in found]

    def exposed(self) -> Intervals:
        """Exposed communication: the main stream handles what was sent, or waits and for no sampler and no pause;
        computation comes before both, and the optimizer before a wait (`gcnsim.breakdown`)."""
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
        sweep = Sweep(self.computing, handled, optimizer, waits)
        found = sweep.has(handled) | (sweep.has(waits) & ~sweep.has(optimizer))
        return sweep.instants(found & ~sweep.has(self.computing))

    def _moved(self, starts: IntArray, ends: IntArray, place: IntArray) -> Intervals:
        """The part of [starts, ends) in the window of the worker at `place`, in its stretch."""
        begin, length, behind = self._begin[place], self._length[place], place * self._stretch
        starts, ends = np.clip(starts - begin, 0, length) + behind, np.clip(ends - begin, 0, length) + behind
        return Intervals.of(starts.ravel(), ends.ravel())

    def _under_way(self, chosen: BoolArray) -> Intervals:
        """Instants at which one of these ops is under way; chosen: by place among the workers' own."""
        run, ops = self._window.run, self._ops[chosen]
        return self._moved(run.starts[:, ops], run.ends[:, ops], self._place[chosen])

    def _waits(self, itself: BoolArray) -> Intervals:
        """Instants at which a main stream has nothing to do, or does what is a wait `itself`."""
        run, found = self._window.run, []
        for place, rank in enumerate(self._ranks):
            for queue in self._window.main_queues(rank):
                ends = run.ends[:, queue].ravel()
                free = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
                found.append((free, run.starts[:, queue].ravel(), np.full(free.size, place)))
        gaps = self._moved(*map(np.concatenate, zip(*found, strict=True)))
        return gaps.union(self._under_way(itself)) if itself.any() else gaps

    def _for_samplers(self) -> Intervals:
        """What the waits of main streams are for where the chain of what they wait for samples."""
        late = [self._window.late(rank) for rank in self._ranks]
        places = np.repeat(np.arange(len(late)), [ops.size for ops, _ in late])
        ops, since = (np.concatenate(each) for each in zip(*late, strict=True))
        return self._moved(*self._window.sampled(ops, since, places))


def slowest_of(window: MeasurementWindow, exposed: list[int]) -> Rank:
    """The worker with the least exposed communication in its window, the first of several: it has most to do itself."""
    own = [end - start - exposed[rank] for rank, (start, end) in enumerate(map(window.edges, range(len(exposed))))]
    return max(range(len(own)), key=lambda rank: (own[rank], -rank))
