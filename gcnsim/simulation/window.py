"""The measured iterations of a simulated run, as each worker sees them: what it did at every instant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from gcnsim.breakdown import NEVER, SIMULATED, Breakdown, Spans, breakdown
from gcnsim.engine import Run, timeline_near
from gcnsim.ids import BoolArray, IntArray, Rank
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.timeline import PHASE, Intervals, Phase

PAUSE: Final = "pause"
"""How streams begin whose spans are pauses of their worker."""


@dataclass(frozen=True, slots=True)
class Split:
    """One worker's window. parts: where each instant goes. exposed: its exposed communication, all together.

    paused: picoseconds in which the worker itself was stopped. sampling: in which its sampler is at work.
    """

    parts: Breakdown
    exposed: Intervals
    paused: int
    sampling: int

    @property
    def compute(self) -> int:
        """Picoseconds of computation."""
        return self.parts.compute.length

    @property
    def other(self) -> int:
        """Picoseconds that are neither computation nor communication."""
        return self.parts.other


class MeasurementWindow:
    """The measured iterations [first, T) of a run."""

    def __init__(self, run: Run, first: int) -> None:
        self.run = run
        self.schedule = run.schedule
        self.first = first
        self.count = run.iterations - first
        columns = run.schedule.columns
        self.worker, self.peer = columns.worker, columns.peer
        self.is_sampling, self.is_computing = self.of_phase(Phase.SAMPLING), self.of_phase(Phase.COMPUTE)
        pausing = np.array([name.startswith(PAUSE) for name in columns.names])
        self.stopped: BoolArray = pausing[columns.stream_name][columns.stream]
        self._splits: dict[Rank, Split] = {}

    def of_phase(self, *phases: Phase) -> BoolArray:
        """bool[ops]: which ops are of one of these phases."""
        return self.schedule.columns.is_kind(*(kind for kind, phase in PHASE.items() if phase in phases))

    def edges(self, rank: Rank) -> tuple[int, int]:
        """Start and end of the window as this worker sees it: its end of the iteration before, and its last end."""
        ends = self.run.ends[:, self.schedule.ends[rank]]
        return int(ends[self.first - 1]), int(ends[-1])

    def spans(self, chosen: BoolArray | IntArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of these ops is under way; a mask of all, or their numbers."""
        start, end = self.edges(rank)
        return Intervals.of(self.run.starts[:, chosen].ravel(), self.run.ends[:, chosen].ravel()).within(start, end)

    def own(self, mask: BoolArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of the ops of `mask` is under way that are the worker's."""
        ops = self.schedule.columns.of_worker(rank)
        return self.spans(ops[mask[ops]], rank)

    def computing(self, rank: Rank) -> Intervals:
        """When the worker's GPU computes."""
        return self.own(self.is_computing, rank)

    def split(self, rank: Rank) -> Split:
        """The parts of the worker's window, and what runs beneath them."""
        if rank not in self._splits:
            self._splits[rank] = self._split(rank)
        return self._splits[rank]

    def _split(self, rank: Rank) -> Split:
        start, end = self.edges(rank)
        window = Intervals.of(np.array([start], np.int64), np.array([end], np.int64))
        sampling = self.own(self.is_sampling, rank)
        paused = self.own(self.stopped, rank).difference(self.computing(rank))
        spans = Spans(timeline_near(self.run, rank, start), COMPUTE_STREAM)
        parts = breakdown(spans, rank, window, SIMULATED, self._for_sampler(rank, sampling).union(paused))
        return Split(parts, parts.exposed, paused.length, sampling.length)

    def main_queues(self, rank: Rank) -> list[IntArray]:
        """The ops of the worker's compute stream, in the order in which they run; of each where it has several."""
        columns = self.schedule.columns
        streams = columns.streams_called(COMPUTE_STREAM)
        return [columns.queue_of(int(each)) for each in streams[columns.stream_worker[streams] == rank]]

    def _for_sampler(self, rank: Rank, sampling: Intervals) -> Intervals:
        """Waits of the compute stream for this worker's own sampler, which are no communication."""
        if not self.is_sampling.any():
            return NEVER
        ops, since = self.late(rank)
        begins, stops, _ = self.sampled(ops, since, np.zeros_like(ops))
        return Intervals.of(begins, stops).intersection(sampling)

    def late(self, rank: Rank) -> tuple[IntArray, IntArray]:
        """The ops that the compute stream waited for and began in the window, as places in the run's rows, laid flat;
        since when it waited."""
        queue = self.main_queues(rank)[0]
        starts, ends = self.run.starts[:, queue].ravel(), self.run.ends[:, queue].ravel()
        free = np.concatenate(([0], ends[:-1]))
        begin, _ = self.edges(rank)
        late = np.flatnonzero((starts > free) & (starts > begin))
        row, place = np.divmod(late, queue.size)
        return row * self.schedule.columns.size + queue[place], free[late]

    def sampled(self, ops: IntArray, since: IntArray, whose: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """When sampling was what ops waited for, from `since` on: starts and ends of sampling on their chains.

        A chain leads from an op to the one that ended as it began, and on. ops: places in the run's rows, laid flat.
        whose: of each op, a number that comes back with what was found for it.
        """
        starts, ends, held = self.run.starts.ravel(), self.run.ends.ravel(), self._held
        found: list[tuple[IntArray, IntArray, IntArray]] = [(since[:0], since[:0], whose[:0])]
        while ops.size:
            before = held[ops]
            goes_on = (starts[ops] > since) & (before >= 0)
            ops, since, whose = before[goes_on], since[goes_on], whose[goes_on]
            samples = self.is_sampling[ops % self.is_sampling.size]
            found.append((np.maximum(since, starts[ops])[samples], ends[ops[samples]], whose[samples]))
        begins, stops, whom = zip(*found, strict=True)
        return np.concatenate(begins), np.concatenate(stops), np.concatenate(whom)

    @cached_property
    def _held(self) -> IntArray:
        """For each op of each iteration, laid flat, the last to end of those it waited for until it began; -1: none.

        Of several that ended at once, that of the latest iteration, then that of the highest number.
        """
        at, whom, lag = self.schedule.columns.every_wait()
        whom, lag = whom.astype(np.int64, copy=False), lag.astype(np.int64, copy=False)
        total, count = self.run.ends.shape
        found = np.empty((total, count), np.int64)
        who = np.repeat(np.arange(count, dtype=np.int64), np.diff(at))
        for row in range(total):
            past = row - lag
            ended = self.run.ends[np.maximum(past, 0), whom]
            ended[(past < 0) | (ended > self.run.starts[row, who])] = -1
            last = np.maximum.reduceat(ended, at[:-1])
            places = np.where((ended >= 0) & (ended == last[who]), past * count + whom, -1)
            found[row] = np.maximum.reduceat(places, at[:-1])
        return found.ravel()
