"""One method's iteration as operations on streams with dependencies, some reaching back tau iterations; no clock in it.

A stream runs its ops in the order given, iteration after iteration. An op starts when its stream is free and all its
dependencies have ended. Because every stream is in order and flows share links by a rule that depends only on which
flows are in flight, the end of every op is independent of the order in which simultaneous events are handled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isinf
from typing import NamedTuple

from gcnsim.cluster import LinkSpec
from gcnsim.ids import BoolArray, FloatArray, IntArray, Layer, Rank, Seconds
from gcnsim.schedule.columns import KIND_OF, Columns, rows_by
from gcnsim.timeline import Direction, OpKind

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

    route: ids of the links a flow occupies, None for exclusive work on its stream. cap: the most a single flow can
    use of its links (units per second), None for no limit of its own. after: (op, lag) pairs; lag k means the op of k
    iterations ago. reuses: ops of the same iteration that must have read the buffer this op fills again. latency_s:
    delay before a flow moves its first byte. startup_s: the part of it that one which follows another on its connection
    has too, counted from that one's last byte. thread: of the machine whose cores the work takes turns on, -1 for none.
    queue: units that each flow (each connection, where it has one) may have ahead of it in the links' queues; it
    waits until they are through. connection: whose messages follow one another, in the order in which they are ready.
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
    """Threads that take turns on the cores of a machine: for slice_s each while others wait, wake_s where one has just
    been given work and has had less. wake_s <= slice_s."""

    cores: int
    slice_s: Seconds
    wake_s: Seconds

    @classmethod
    def of(cls, spec: LinkSpec) -> CoreTurns:
        """As the link `spec` has them."""
        return cls(spec.cores, spec.slice_s, spec.slice_s if spec.wake_s is None else spec.wake_s)


@dataclass(frozen=True)
class Schedule:
    """Ops, their streams, and how much work each is in each iteration.

    columns: the ops, a column for each fact. demand: float64[T, ops]: seconds for exclusive ops, link units (bytes;
    core-seconds on a CPU) for flows; an empty flow sends nothing and costs nothing. capacity: units per second of each
    link. ends: per worker, the op whose end closes its iteration. Iterations beyond T repeat from the start.
    cores: per link that is a machine's cores, how its threads take turns.
    periodic: whether the T iterations are a cycle whose mean is the pace, and not draws of one distribution.
    grain_s: seconds for which an engine may share large groups of links at once; 0: they are shared exactly.
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

    def of_graphs(self, graphs: IntArray) -> Schedule:
        """The same ops with the demand of these graphs alone, int64: positions in `demand`."""
        return replace(self, demand=self.demand[graphs])

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.ends)

    @property
    def depth(self) -> int:
        """The longest reach back, in iterations: 1 for synchronous methods, tau or more otherwise.

        Never 0: a stream's first op follows its last op of the iteration before.
        """
        return max(1, int(self.columns.lag.max(initial=0)))

    @property
    def is_flow(self) -> BoolArray:
        """bool[ops]: which ops are flows."""
        return self.columns.is_flow

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops one by one, made of the columns: to look at, and for the reference engine."""
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
