"""The measured iterations of a simulated run, as each worker sees them: what it did at every instant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from gcnsim.breakdown import NEVER, SIMULATED, Breakdown, Spans, breakdown
from gcnsim.engine import Run, timeline
from gcnsim.ids import BoolArray, Rank
from gcnsim.schedule import COMPUTE_STREAM, all_waits
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
        """Picoseconds of what is neither computation nor communication."""
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
        self.is_sampling = self.of_phase(Phase.SAMPLING)
        pausing = np.array([name.startswith(PAUSE) for name in columns.names])
        self.stopped: BoolArray = pausing[columns.stream_name][columns.stream]
        self._splits: dict[Rank, Split] = {}

    def of_phase(self, *phases: Phase) -> BoolArray:
        """bool[ops]: which ops are of one of these phases."""
        return self.schedule.columns.is_kind(*(kind for kind, phase in PHASE.items() if phase in phases))

    @cached_property
    def waits(self) -> list[list[tuple[int, int]]]:
        """Per op, all (op, lag) pairs it waits for."""
        return all_waits(self.schedule)

    def edges(self, rank: Rank) -> tuple[int, int]:
        """Start and end of the window as this worker sees it: its end of the iteration before, and its last end."""
        ends = self.run.ends[:, self.schedule.ends[rank]]
        return int(ends[self.first - 1]), int(ends[-1])

    def spans(self, mask: BoolArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of the ops of `mask` is under way."""
        start, end = self.edges(rank)
        return Intervals.of(self.run.starts[:, mask].ravel(), self.run.ends[:, mask].ravel()).within(start, end)

    def computing(self, rank: Rank) -> Intervals:
        """When the worker's GPU computes."""
        return self.spans((self.worker == rank) & self.of_phase(Phase.COMPUTE), rank)

    @cached_property
    def _spans(self) -> Spans:
        return Spans(timeline(self.run, ordered=False), COMPUTE_STREAM)

    def split(self, rank: Rank) -> Split:
        """The parts of the worker's window, and what runs beneath them."""
        if rank not in self._splits:
            self._splits[rank] = self._split(rank)
        return self._splits[rank]

    def _split(self, rank: Rank) -> Split:
        start, end = self.edges(rank)
        window = Intervals.of(np.array([start], np.int64), np.array([end], np.int64))
        sampling = self.spans((self.worker == rank) & self.is_sampling, rank)
        paused = self.spans((self.worker == rank) & self.stopped, rank).difference(self.computing(rank))
        parts = breakdown(self._spans, rank, window, SIMULATED, self._for_sampler(rank, sampling).union(paused))
        return Split(parts, parts.exposed, paused.length, sampling.length)

    def _gpu_queue(self, rank: Rank) -> tuple[int, ...]:
        columns = self.schedule.columns
        streams = columns.streams_called(COMPUTE_STREAM)
        return tuple(columns.queue_of(int(streams[columns.stream_worker[streams] == rank][0])).tolist())

    def _for_sampler(self, rank: Rank, sampling: Intervals) -> Intervals:
        """Waits of the compute stream for this worker's own sampler, which are no communication."""
        if not self.is_sampling.any():
            return NEVER
        queue = list(self._gpu_queue(rank))
        starts, ends = self.run.starts[:, queue].ravel(), self.run.ends[:, queue].ravel()
        free = np.concatenate(([0], ends[:-1]))
        begin, _ = self.edges(rank)
        chains = [
            link
            for place in np.flatnonzero((starts > free) & (starts > begin))
            for link in self._sampled(int(place) // len(queue), queue[int(place) % len(queue)], int(free[place]))
        ]
        return Intervals.of(*np.array(chains, dtype=np.int64).T).intersection(sampling) if chains else NEVER

    def _sampled(self, iteration: int, op: int, since: int) -> Iterator[tuple[int, int]]:
        """When sampling was what an op waited for: sampling on the chain of ops that each ended as the next began."""
        starts, ends = self.run.starts, self.run.ends
        while iteration >= 0 and starts[iteration, op] > since:
            begun = int(starts[iteration, op])
            before = [(iteration - lag, dep) for dep, lag in self.waits[op] if iteration >= lag]
            held = [(int(ends[t, dep]), t, dep) for t, dep in before if ends[t, dep] <= begun]
            if not held:
                return
            ended, iteration, op = max(held)
            if self.is_sampling[op]:
                yield max(since, int(starts[iteration, op])), ended
