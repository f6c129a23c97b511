"""Steady state: when a run has reached it, and which of its iterations are measured.

A pipelined run starts empty. While its queues fill it is faster than it will ever be again, and while they settle it is
slower. Saturated runs alternate between a few iteration times for ever. So neither equal iteration times nor a small
spread shows a steady state.

The state does: the lateness of every op relative to the end of its iteration. When the state of an earlier iteration
has returned, the iterations in between are whole periods of the pipeline. Their mean is its steady pace. An op that
falls behind by a share x of an iteration per iteration sets the pace eventually. The mean is then wrong by at most x.
An op that gets ahead by y only shows that a queue is still settling (measured: up to 0.6 y in the mean).

A pipeline that starts with all workers in step may stay so for some 20 iterations, up to 17 % slower than later: two
links take turns in waiting for each other, until sampled graphs have moved the workers apart. Its state returns
meanwhile. So a pipeline is only believed early where its pace is near the analytic lower bound, or where its graphs are
the same and its state returns exactly: it then repeats for ever. Smaller movements than `BEHIND` add up until flows
meet otherwise, up to 5 % faster or slower.

`MeasurementWindow` holds the measured iterations of each worker: its activity at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank, Seconds
from gcnsim.engine import Run, timeline_near
from gcnsim.schedule import COMPUTE_STREAM, Schedule, lower_bound, resource_loads
from gcnsim.timeline import PHASE, PS_PER_S, Intervals, Phase
from gcnsim.timeline.breakdown import NEVER, SIMULATED, Breakdown, Spans, breakdown

PAUSE: Final = "pause"
"""The prefix of streams whose spans are pauses of their worker."""


@dataclass(frozen=True, slots=True)
class Split:
    """One worker's window. parts: the instants of each part. exposed: its exposed communication in total.

    paused: picoseconds in which the worker was stopped. sampling: picoseconds in which its sampler is active.
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
        """bool[ops]: whether each op belongs to one of these phases."""
        return self.schedule.columns.is_kind(*(kind for kind, phase in PHASE.items() if phase in phases))

    def edges(self, rank: Rank) -> tuple[int, int]:
        """Start and end of this worker's window: its end of the iteration before, and its last end."""
        ends = self.run.ends[:, self.schedule.ends[rank]]
        return int(ends[self.first - 1]), int(ends[-1])

    def spans(self, chosen: BoolArray | IntArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of these ops is active.

        `chosen` is a mask of all ops, or their numbers.
        """
        start, end = self.edges(rank)
        return Intervals.of(self.run.starts[:, chosen].ravel(), self.run.ends[:, chosen].ravel()).within(start, end)

    def own(self, mask: BoolArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of the worker's ops in `mask` is active."""
        ops = self.schedule.columns.of_worker(rank)
        return self.spans(ops[mask[ops]], rank)

    def computing(self, rank: Rank) -> Intervals:
        """Instants at which the worker's GPU computes."""
        return self.own(self.is_computing, rank)

    def split(self, rank: Rank) -> Split:
        """The parts of the worker's window, and the work that overlaps them."""
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
        """The ops of the worker's compute streams, in the order in which they run."""
        columns = self.schedule.columns
        streams = columns.streams_called(COMPUTE_STREAM)
        return [columns.queue_of(int(item)) for item in streams[columns.stream_worker[streams] == rank]]

    def _for_sampler(self, rank: Rank, sampling: Intervals) -> Intervals:
        """Waits of the compute stream for this worker's sampler, which are not communication."""
        if not self.is_sampling.any():
            return NEVER
        ops, since = self.late(rank)
        begins, stops, _ = self.sampled(ops, since, np.zeros_like(ops))
        return Intervals.of(begins, stops).intersection(sampling)

    def late(self, rank: Rank) -> tuple[IntArray, IntArray]:
        """The ops that the compute stream waited for and began in the window, as flat indices; and when each wait
        began.
        """
        queue = self.main_queues(rank)[0]
        starts, ends = self.run.starts[:, queue].ravel(), self.run.ends[:, queue].ravel()
        free = np.concatenate(([0], ends[:-1]))
        begin, _ = self.edges(rank)
        late = np.flatnonzero((starts > free) & (starts > begin))
        row, place = np.divmod(late, queue.size)
        return row * self.schedule.columns.size + queue[place], free[late]

    def sampled(self, ops: IntArray, since: IntArray, whose: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """When sampling was on the chain that ops waited for, from `since` on: starts and ends.

        A chain leads from an op to the one that ended as it began, and on. ops: flat indices of the run's rows. whose:
        a number per op that is returned with its result.
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
        """For each op of each iteration (flat), the last of its dependencies to end; -1: none.

        Ties go to the latest iteration, then to the highest number.
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


BEHIND = 0.01
"""The most an op may fall behind per iteration in a state that counts as returned: 1 % of an iteration."""

AHEAD = 0.04
"""The most an op may get ahead per iteration in a state that counts as returned: 4 % of an iteration."""

HEAVY = 0.5
"""Resources with at least this share of the largest load decide how much the iteration time varies between draws."""

SETTLING = 0.6
"""The share of `ahead` that may affect the mean: the most seen in near-critical runs against runs of 400 iterations."""

WIDEST = 30
"""Iterations that a run may settle over, however few are requested.

A few graphs in turn, or an alternating pipeline, may take several rounds until a state returns.
"""

NEAR_BOUND = 1.02
"""A pace of at most so many lower bounds is at most 2 % too slow, whatever follows: the run may end early."""

EXACTLY = 1e-6
"""The most an op may move per iteration in a state that has returned exactly: a millionth of an iteration."""

STUDENT_90 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75)
"""Two-sided 90 % quantiles of Student's t for 1, 2, ... degrees of freedom; 1.75 beyond the last."""


def quantile_90(count: int) -> float:
    """Two-sided 90 % quantile of Student's t for the mean of `count` values."""
    return STUDENT_90[min(max(count - 1, 1), len(STUDENT_90)) - 1]


UNLIKE = 0.015
"""The most by which the mean load of the measured graphs may differ from that of all sampled graphs: 1.5 %."""


class Window(NamedTuple):
    """Measured iterations [first, T). behind, ahead: movement of the worst op, in iterations per iteration.

    unlike: relative difference between the mean load of the measured graphs and that of all.
    """

    first: int
    behind: float
    ahead: float
    unlike: float = 0.0

    @property
    def off(self) -> float:
        """The change of the state since before `first`, over the allowed change: at most 1 if settled."""
        return max(self.behind / BEHIND, self.ahead / AHEAD, self.unlike / UNLIKE)

    @property
    def settled(self) -> bool:
        """Whether the state at the end equals that before `first`."""
        return self.behind <= BEHIND and self.ahead <= AHEAD and self.unlike <= UNLIKE


class Steady:
    """Decides when a run of one schedule is steady.

    measured: the most iterations that are measured. least: the fewest (constant schedules repeat exactly, sampled ones
    are averaged). settling: the most measured iterations if no state returns earlier: whole rounds of the sampled
    graphs. warm_up: iterations that are never measured, the first and those that fill the pipeline. moved_apart:
    iterations after which the state of a pipeline is believed, however slow. most: iterations after which a run ends
    even if it has not settled.
    """

    def __init__(self, schedule: Schedule, measured: int) -> None:
        self.cycle = schedule.demand.shape[0] if schedule.periodic else 1
        self.measured = measured = -(-measured // self.cycle) * self.cycle
        constant = bool((schedule.demand == schedule.demand[0]).all())
        # If work is random, a state may return by chance: the mean over all iterations is the pace.
        varies = bool((schedule.columns.thread >= 0).any()) and not constant
        self.least = measured if varies else min(measured, 2 if constant else 6)
        if self.cycle > 1:
            self.least = self.cycle
        self.settling = measured if varies else max(measured, WIDEST)
        self._round = 1 if constant else schedule.demand.shape[0]
        self.warm_up = 1 + schedule.depth
        columns = schedule.columns
        pipelined = bool((np.diff(columns.wait_at) > columns.after).any())
        waits = pipelined and not (varies or self.cycle > 1)
        self._constant = constant
        self.moved_apart = self.warm_up + (2 * self.settling if waits else 0)
        self.most = self.warm_up + 2 * self.settling + 20 * schedule.depth
        self._schedule = schedule
        self._load = self._loads(schedule) if not (constant or varies or self.cycle > 1) else None
        self._closing = np.array(schedule.ends)
        self._ops = schedule.columns.size

    def _loads(self, schedule: Schedule) -> FloatArray:
        """Load of the busiest resource over its mean, summed up to each iteration, float64[most + 1]."""
        loads = resource_loads(schedule)
        busiest = loads[:, int(np.argmax(loads.mean(axis=0)))]
        each = busiest[np.arange(self.most) % busiest.size] / busiest.mean()
        return np.concatenate([[0.0], np.cumsum(each)])

    def enough(self, ends: IntArray) -> bool:
        """Whether the state of an earlier iteration has returned, and is believed not to be left again."""
        count = ends.shape[0]
        if count < self.warm_up + self.least:
            return False
        window = self.window(ends)
        if not window.settled or count >= self.moved_apart:
            return window.settled
        repeats = self._constant and max(window.behind, window.ahead) <= EXACTLY
        return repeats or self._near_bound(ends, window.first)

    @cached_property
    def _bound_s(self) -> Seconds:
        return lower_bound(self._schedule)

    def _near_bound(self, ends: IntArray, first: int) -> bool:
        """Whether the mean of the iterations from `first` on is near the lower bound."""
        closing, count = ends[[first - 1, -1]][:, self._closing].max(axis=1), int(ends.shape[0]) - first
        return float(closing[1] - closing[0]) / PS_PER_S <= NEAR_BOUND * self._bound_s * count

    def window(self, ends: IntArray) -> Window:
        """The iterations to measure: in the later half of the run, those whose state returns best.

        More than requested only if the state returns over them and over no fewer, or comes nearer by half.
        """
        last = int(ends.shape[0]) - 1
        first = self._earliest(last, self.measured)
        window = self._best(ends, first, self.cycle)
        if window.settled or self.settling == self.measured or last < self.warm_up + self._round:
            return window
        wide = self._earliest(last, self.settling)
        if wide == first and self._round == self.cycle:
            return window
        wider = self._best(ends, wide, self._round)
        return wider if wider.settled or wider.off < window.off / 2 else window

    def _best(self, ends: IntArray, earliest: int, whole: int) -> Window:
        """Of the iterations after `earliest` or later, a multiple of `whole`, those whose state returns best."""
        last = int(ends.shape[0]) - 1
        latest = max(0, last - self.least)
        closing = np.maximum.reduce(ends[earliest:, self._closing], axis=1)
        passed = closing[-1] - closing[: latest + 1 - earliest]
        # Division keeps the order: of the differences only the extremes are divided.
        moved = ends[last] - ends[earliest : latest + 1]
        most, fewest = np.maximum.reduce(moved, axis=1), np.minimum.reduce(moved, axis=1)
        # Nothing passes where the machine does nothing.
        least = np.maximum(passed, 1)
        behind, ahead = (most - passed) / least, -((fewest - passed) / least)
        returned = np.maximum(behind / BEHIND, ahead / AHEAD)
        unlike: FloatArray | None = None
        if self._load is not None and last < self.most:
            first = np.arange(earliest, latest + 1) + 1
            unlike = np.abs((self._load[last + 1] - self._load[first]) / (last + 1 - first) - 1.0)
            returned = np.maximum(returned, unlike / UNLIKE)
        if whole > 1:
            returned[(last - earliest - np.arange(returned.size)) % whole != 0] = np.inf
        best = int(returned.argmin())
        if not isfinite(returned[best]):
            return Window(earliest + best + 1, np.inf, np.inf)
        other = 0.0 if unlike is None else float(unlike[best])
        return Window(earliest + best + 1, float(behind[best]), float(ahead[best]), other)

    def _earliest(self, last: int, measured: int) -> int:
        """The first iteration that the later half of a run of at most `measured` may begin after."""
        return min(max(self.warm_up, (last + 1) // 2, last - measured), max(0, last - self.least))

    def moved(self, ends: IntArray, since: int) -> tuple[float, float]:
        """How far the worst op fell behind, and got ahead, per iteration, from iteration `since` to the last."""
        pair = ends[[since, -1]]
        closing = pair[:, self._closing].max(axis=1)
        state = pair[:, : self._ops] - closing[:, None]
        moved = (state[1] - state[0]) / (closing[1] - closing[0])
        return float(moved.max()), float(-moved.min())

    def spread(self, window: Window, measured: Schedule) -> float:
        """Half-width of the 90 % interval of the mean iteration, as a share of it.

        Two parts: the variation of the mean load between samples of the graphs, and the error from a state that did not
        return exactly (`Window`).
        """
        if self.cycle > 1:
            return max(window.behind, SETTLING * window.ahead, 0.0)
        loads = resource_loads(measured)
        mean = loads.mean(axis=0)
        heavy = mean >= HEAVY * mean.max()
        varies = float((loads[:, heavy].std(axis=0, ddof=1) / mean[heavy]).max()) if loads.shape[0] > 1 else 0.0
        chance = quantile_90(loads.shape[0]) * varies / float(np.sqrt(loads.shape[0]))
        return chance + max(window.behind, SETTLING * window.ahead, 0.0)
