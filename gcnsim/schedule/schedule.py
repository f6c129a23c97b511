"""One method's iteration as operations on streams with dependencies, some of them tau iterations back; it contains no
times.

A stream runs its ops in the order given, iteration after iteration. An op starts when its stream is free and all its
dependencies have ended. Every stream is in order, and the sharing of links depends only on the active flows. The end of
every op is therefore independent of the order in which simultaneous events are handled.

`levels` gives an order in which one iteration can run. It proves that a schedule cannot deadlock, and is the base of
the analytic bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import isinf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer, Rank, Seconds
from gcnsim.hardware.link_specs import LinkSpec
from gcnsim.schedule.columns import KIND_OF, Columns, narrow, rows_by, stream_waits
from gcnsim.timeline import Direction, OpKind

T = TypeVar("T")

COMPUTE_STREAM = "gpu"
"""The stream of a worker's kernels: it is blocked when the worker is."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An in-order queue of one worker: the GPU's compute stream, a copy stream, a sending thread, ..."""

    worker: Rank
    name: str


@dataclass(frozen=True, slots=True)
class Op:
    """One step of the iteration.

    route: ids of the links that a flow uses, None for exclusive work on its stream. cap: the most that a single flow
    can use of its links (units per second), None for no limit. after: (op, lag) pairs; lag k means the op of k
    iterations ago. reuses: ops of the same iteration that must have read the buffer that this op overwrites. latency_s:
    delay before a flow moves its first byte. startup_s: the part of that delay that also applies to a message behind
    another one on its connection, counted from the other's last byte. thread: the thread whose work shares the cores of
    a machine, -1 for none. queue: the most units that each flow (or connection) may have ahead in the links' queues; it
    waits for these. connection: its messages follow one another in the order in which they are ready.
    """

    index: int
    kind: OpKind
    worker: Rank
    stream: int
    after: tuple[tuple[int, int], ...]
    route: tuple[int, ...] | None = None
    cap: float | None = None
    latency_s: Seconds = 0.0
    startup_s: Seconds = 0.0
    queue: float = 0.0
    layer: Layer = -1
    direction: Direction = Direction.NONE
    peer: Rank = -1
    thread: int = -1
    connection: int = -1
    reuses: tuple[int, ...] = ()

    @property
    def waits(self) -> tuple[tuple[int, int], ...]:
        """All (op, lag) pairs that must have ended before this op starts."""
        return self.after + tuple((op, 0) for op in self.reuses)


class CoreTurns(NamedTuple):
    """Threads that share the cores of a machine in turns of slice_s.

    A thread with new work and less core time may preempt another after wake_s <= slice_s.
    """

    cores: int
    slice_s: Seconds
    wake_s: Seconds

    @classmethod
    def of(cls, spec: LinkSpec) -> CoreTurns:
        """As the link `spec` has them."""
        return cls(spec.cores, spec.slice_s, spec.slice_s if spec.wake_s is None else spec.wake_s)


@dataclass(frozen=True)
class Schedule:
    """Ops, their streams, and the work of each op in each iteration.

    columns: the ops, a column for each fact. demand: float64[T, ops]: seconds for exclusive ops, link units (bytes;
    core-seconds on a CPU) for flows; an empty flow sends nothing and costs nothing. capacity: units per second of each
    link. ends: per worker, the op that ends its iteration. Iterations beyond T repeat from the start. cores: per link
    that is a machine's cores, how its threads take turns. periodic: whether the T iterations are a cycle whose mean is
    the pace, and not samples of one distribution. grain_s: seconds for which an engine may keep the sharing of large
    groups of links; 0: they are shared exactly.
    """

    method: str
    columns: Columns
    demand: FloatArray
    capacity: tuple[float, ...]
    link_names: tuple[str, ...]
    link_kinds: tuple[str, ...]
    ends: tuple[int, ...]
    cores: Mapping[int, CoreTurns] = field(default_factory=dict)
    periodic: bool = False
    grain_s: Seconds = 0.0
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results derived from it."""

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make()`, computed once."""
        if name not in self._found:
            self._found[name] = make()
        found: T = self._found[name]
        return found

    def of_graphs(self, graphs: IntArray) -> Schedule:
        """The same ops with the demand of only these graphs, int64: positions in `demand`."""
        return replace(self, demand=self.demand[graphs])

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.ends)

    @property
    def depth(self) -> int:
        """The longest lag, in iterations: 1 for synchronous methods, tau or more otherwise.

        Never 0: a stream's first op follows its last op of the iteration before.
        """
        return max(1, int(self.columns.lag.max(initial=0)))

    @property
    def is_flow(self) -> BoolArray:
        """bool[ops]: whether each op is a flow."""
        return self.columns.is_flow

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops one by one, built from the columns: for inspection, and for the reference engine."""
        columns = self.columns
        at, pairs = columns.wait_at.tolist(), list(zip(columns.wait.tolist(), columns.lag.tolist(), strict=True))
        latency, startup, queue = (
            columns.of_route(delays).tolist() for delays in (columns.latency_s, columns.startup_s, columns.queue)
        )
        found = []
        for op in range(columns.size):
            waits, after, way = tuple(pairs[at[op] : at[op + 1]]), int(columns.after[op]), int(columns.way[op])
            cap = float(columns.cap[op])
            found.append(
                Op(
                    index=op,
                    kind=KIND_OF[int(columns.kind[op])],
                    worker=int(columns.worker[op]),
                    stream=int(columns.stream[op]),
                    after=waits[:after],
                    route=columns.routes[way] if way >= 0 else None,
                    cap=None if isinf(cap) else cap,
                    latency_s=latency[op],
                    startup_s=startup[op],
                    queue=queue[op],
                    layer=int(columns.layer[op]),
                    direction=Direction(int(columns.direction[op])),
                    peer=int(columns.peer[op]),
                    thread=int(columns.thread[op]),
                    connection=int(columns.connection[op]),
                    reuses=tuple(other for other, _ in waits[after:]),
                )
            )
        return tuple(found)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams one by one."""
        columns = self.columns
        pairs = zip(columns.stream_worker.tolist(), columns.stream_name.tolist(), strict=True)
        return tuple(Stream(worker, columns.names[name]) for worker, name in pairs)

    @property
    def order(self) -> tuple[tuple[int, ...], ...]:
        """Per stream, its ops in the order they run within an iteration."""
        return self.columns.derived("order", self._order)

    def _order(self) -> tuple[tuple[int, ...], ...]:
        at, ops = rows_by(self.columns.stream, self.columns.streams)
        bounds, every = at.tolist(), ops.tolist()
        return tuple(tuple(every[bounds[i] : bounds[i + 1]]) for i in range(len(bounds) - 1))


class Level(NamedTuple):
    """The ops at the places [first, end) of an order. at, before: rows of the places of the ops that each follows, one
    or more; none at the first level.
    """

    first: int
    end: int
    at: IntArray
    before: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """n ops of one iteration in levels: each op follows only ops of earlier levels, at least one of the level just
    before.

    order: int64[n], the ops level by level.
    """

    order: IntArray
    levels: tuple[Level, ...]

    def longest(self, seconds: FloatArray, begin: FloatArray | None = None) -> FloatArray:
        """Per op, the length of the longest chain that ends with it, float64[n] or float64[n, K].

        seconds: float64[n], or float64[n, K] for K variants. begin: of the same shape, the length before a chain that
        begins with an op, -inf if none begins there; by default chains begin anywhere with length 0.
        """
        work = seconds[self.order]
        end = np.zeros_like(work) if begin is None else begin[self.order]
        for first, last, at, before in self.levels:
            here = end[first:last]
            if before.size:
                np.maximum(here, np.maximum.reduceat(end[before], at, axis=0), out=here)
            here += work[first:last]
        found = np.empty_like(end)
        found[self.order] = end
        return found

    def remaining(self, seconds: FloatArray, last: FloatArray) -> FloatArray:
        """Per op, the length of the longest chain that begins with it, float64[n]: the reverse of `longest`.

        seconds: float64[n]. last: float64[n], the length after a chain that ends with an op, -inf if none ends there.
        """
        work, behind = seconds[self.order], last[self.order]
        for first, end, at, before in reversed(self.levels):
            behind[first:end] += work[first:end]
            if before.size:
                often = np.diff(at, append=before.size)
                np.maximum.at(behind, before, np.repeat(behind[first:end], often))
        found = np.empty_like(behind)
        found[self.order] = behind
        return found


def predecessors(schedule: Schedule, *, collapse: bool = False) -> tuple[IntArray, IntArray]:
    """Pairs (op, an op of the same iteration that it must follow): its stream's previous op, and waits of lag 0.

    `collapse` gives the synchronous reading of the schedule: dependencies of any lag count, except a worker's wait for
    the end of its previous iteration, and buffers are not reused early.
    """
    columns = schedule.columns
    if collapse:
        counts = ~columns.is_reuse() & ((columns.lag == 0) | ~np.isin(columns.wait, schedule.ends))
    else:
        counts = columns.lag == 0
    streams = stream_waits(columns)
    own = np.flatnonzero(streams.lag == 0)
    ops = np.concatenate([columns.rows_of_waits()[counts], own])
    return ops, np.concatenate([columns.wait[counts], streams.before[own]])


def levels(schedule: Schedule, *, collapse: bool = False) -> Levels:
    """The levels of the schedule's ops by `predecessors`.

    Computed once per structure. Raises ValueError naming an op on a cycle: such a schedule would wait for itself.
    """
    if collapse:
        return schedule.columns.shortly(
            f"levels {schedule.ends}", lambda: _levels(schedule, *predecessors(schedule, collapse=True))
        )
    return schedule.columns.derived("levels", lambda: _levels(schedule, *predecessors(schedule)))


def _levels(schedule: Schedule, ops: IntArray, before: IntArray) -> Levels:
    count = schedule.columns.size
    missing = np.bincount(ops, minlength=count)
    follower_at, places = rows_by(before, count)
    follower = ops[places]
    at, every = [0], []
    ready = np.flatnonzero(missing == 0)
    while ready.size:
        every.append(ready)
        at.append(at[-1] + ready.size)
        fewer = np.bincount(follower[_rows(follower_at, ready)], minlength=count)
        missing -= fewer
        ready = np.flatnonzero((missing == 0) & (fewer > 0))
    if at[-1] < count:
        stuck = int(np.flatnonzero(missing)[0])
        kind, worker = KIND_OF[int(schedule.columns.kind[stuck])], int(schedule.columns.worker[stuck])
        raise ValueError(f"{schedule.method}: op {stuck} ({kind}, worker {worker}) waits for itself")
    order = np.concatenate(every) if every else np.empty(0, np.int64)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    before_at, rows = rows_by(place[ops], count)
    found = narrow(place, count)[before[rows]]
    steps = []
    for first, end in pairwise(at):
        low, high = before_at[first], before_at[end]
        steps.append(Level(first, end, narrow(before_at[first:end] - low, count), found[low:high]))
    return Levels(narrow(order, count), tuple(steps))


def _rows(at: IntArray, rows: IntArray) -> IntArray:
    """The places of the values of these rows, one row after another."""
    sizes = at[rows + 1] - at[rows]
    ends = np.cumsum(sizes)
    places: IntArray = np.arange(int(ends[-1])) + np.repeat(at[rows] - (ends - sizes), sizes)
    return places
