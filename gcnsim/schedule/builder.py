"""Build a schedule, op by op or in blocks of many ops; streams are created on first use.

An op is identified by its number. Ops added one after another have consecutive numbers. A block may use numbers that
were reserved before (`Builder.numbers`), so ops that are added together need not be adjacent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule.assembly import BuilderParts, assembled
from gcnsim.schedule.columns import Columns, Route
from gcnsim.schedule.schedule import COMPUTE_STREAM, CoreTurns, Schedule, levels
from gcnsim.timeline import KIND_CODE, Direction, OpKind

Dependency: TypeAlias = int | tuple[int, int]
"""An op of the same iteration, or (op, lag) for the op of `lag` iterations ago."""

Work: TypeAlias = float | FloatArray
"""The same amount every iteration, or float64[T], one per iteration."""

Ops: TypeAlias = int | IntArray
"""Numbers of ops: one, or an array of them."""

Waits: TypeAlias = Ops | tuple[Ops, int]
"""Dependencies of a block: one per op, [*shape], or several, [*shape, k], -1 for none; with a lag if it is not 0."""


class Builder:
    """Collects ops and closes them into a checked `Schedule`."""

    def __init__(self, method: str, cluster: Cluster, iterations: int) -> None:
        self.method = method
        self.cluster = cluster
        self.iterations = iterations
        self._names: dict[str, int] = {}
        self._routes: dict[Route, int] = {}
        self._parts = BuilderParts()
        self._takes_turns: dict[Route, bool] = {}

    @property
    def size(self) -> int:
        """The number of ops, including reserved numbers."""
        return self._parts.size

    def name(self, name: str) -> int:
        """The number of a stream's name."""
        return self._names.setdefault(name, len(self._names))

    def names(self, names: Iterable[str]) -> IntArray:
        """The numbers of streams' names, one for each op of a block."""
        return np.array([self.name(name) for name in names], dtype=np.int64)

    def names_of(self, numbers: IntArray) -> Iterator[str]:
        """The names with these numbers."""
        every = list(self._names)
        return (every[number] for number in numbers.ravel().tolist())

    @cached_property
    def between(self) -> IntArray:
        """The ways from the host memory of each worker to that of each other worker, int64[P, P]."""
        cluster = self.cluster
        if cluster.staging:
            routes = (cluster.between(*pair) for pair in product(range(cluster.gpus), repeat=2))
            return self.ways(routes).reshape(cluster.gpus, cluster.gpus)
        # If workers have no links of their own, only the servers matter.
        server = np.array(cluster.server_of)
        first = np.flatnonzero(np.diff(server, prepend=-1)).tolist()
        ways = self.ways(cluster.between(*pair) for pair in product(first, repeat=2)).reshape(len(first), -1)
        return np.asarray(ways[server[:, None], server])

    def way(self, route: Route | None) -> int:
        """The number of a route; -1 for none."""
        return -1 if route is None else self._routes.setdefault(route, len(self._routes))

    def ways(self, routes: Iterable[Route]) -> IntArray:
        """The numbers of routes, one for each op of a block."""
        return np.array([self.way(route) for route in routes], dtype=np.int64)

    def numbers(self, sizes: IntArray) -> IntArray:
        """Reserve numbers, `sizes` of them per place in order; returns the first number of each place."""
        ends = np.cumsum(sizes.ravel())
        first = self._parts.size + ends - sizes.ravel()
        self._parts.size += int(ends[-1]) if ends.size else 0
        return np.asarray(first.reshape(sizes.shape), dtype=np.int64)

    def _next(self, shape: tuple[int, ...]) -> IntArray:
        """As `numbers`, one for each place of this shape."""
        first = self._parts.size
        self._parts.size += prod(shape)
        return np.arange(first, self._parts.size, dtype=np.int64).reshape(shape)

    def _add(
        self,
        kind: OpKind,
        worker: Rank,
        stream: str,
        work: Work,
        after: Iterable[Dependency],
        *,
        way: int,
        cap: float | None,
        layer: Layer,
        direction: Direction,
        peer: Rank,
        thread: int = -1,
        connection: str | None = None,
    ) -> int:
        facts = (
            KIND_CODE[kind],
            worker,
            self.name(stream),
            layer,
            int(direction),
            peer,
            thread,
            -1 if connection is None else self.name(connection),
            way,
        )
        return self._parts.one(facts, cap, work, after)

    def compute(
        self,
        kind: OpKind,
        worker: Rank,
        seconds: Work,
        *,
        after: Iterable[Dependency] = (),
        stream: str = COMPUTE_STREAM,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
    ) -> int:
        """Add exclusive work on one of the worker's streams; return its op id."""
        return self._add(
            kind, worker, stream, seconds, after, way=-1, cap=None, layer=layer, direction=direction, peer=-1
        )

    def flow(
        self,
        kind: OpKind,
        worker: Rank,
        units: Work,
        route: tuple[int, ...],
        *,
        stream: str,
        after: Iterable[Dependency] = (),
        cap: float | None = None,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        peer: Rank = -1,
        thread: str | None = None,
        connection: str | None = None,
    ) -> int:
        """Add a transfer of units (bytes; core-seconds on a CPU) on a route; return its op id.

        thread: the worker's thread, if its work shares cores with other threads on its route.
        """
        return self._add(
            kind,
            worker,
            stream,
            units,
            after,
            way=self.way(route),
            cap=cap,
            layer=layer,
            direction=direction,
            peer=peer,
            thread=-1 if thread is None or not self._turns(route) else self.name(thread),
            connection=connection,
        )

    def _turns(self, route: Route) -> bool:
        if route not in self._takes_turns:
            self._takes_turns[route] = self.cluster.links[route[0]].spec.cores > 0
        return self._takes_turns[route]

    def block(
        self,
        kind: OpKind,
        workers: Ops,
        work: Work,
        *,
        at: IntArray | None = None,
        after: Sequence[Waits] = (),
        stream: str | IntArray = COMPUTE_STREAM,
        ways: Ops = -1,
        cap: float | None = None,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        peers: Ops = -1,
        connection: str | None = None,
    ) -> IntArray:
        """Add an op for each of `workers`, an array of any shape to which all facts broadcast; return their numbers.

        work: float64[*shape], or float64[T, *shape] with one value per iteration: seconds of exclusive work, units of
        flows. at: the numbers to use, by default the next ones. stream: a name, or `names`. ways: `ways` of flows.
        after: the dependencies, in order. cap, layer, direction, connection: as in `flow`.
        """
        shape = np.shape(workers)
        numbers = self._next(shape) if at is None else at
        facts = np.empty((len(BuilderParts.FACTS), *shape), np.int32)
        name = self.name(stream) if isinstance(stream, str) else stream
        link = -1 if connection is None else self.name(connection)
        each: tuple[Ops, ...] = (KIND_CODE[kind], workers, name, layer, int(direction), peers, -1, link, ways)
        for index, values in enumerate(each):
            facts[index] = values
        self._parts.many(numbers, facts, cap, work)
        for each_wait in after:
            whom, lag = each_wait if isinstance(each_wait, tuple) else (each_wait, 0)
            self._parts.after.add(numbers, np.asarray(whom), lag)
        return numbers

    def wait_for(self, op: Ops, dependency: Waits) -> None:
        """Let existing ops also wait for `dependency` (added after them)."""
        whom, lag = dependency if isinstance(dependency, tuple) else (dependency, 0)
        self._parts.late.add(np.asarray(op), np.asarray(whom), lag)

    def reuse(self, op: Ops, reader: Ops) -> None:
        """Let `op` wait until `reader`, of the same iteration, has read the buffer that `op` overwrites."""
        self._parts.reuses.add(np.asarray(op), np.asarray(reader), 0)

    def close(self, ends: Iterable[int] | IntArray, *, periodic: bool = False) -> Schedule:
        """The finished schedule; `ends` names, per worker in rank order, the op that ends its iteration.

        periodic: the iterations are a cycle, not random samples. Raises ValueError if dependencies of one iteration
        form a cycle, or work is negative or not finite.
        """
        demand = self._parts.demand(self.iterations)
        if not np.isfinite(demand).all() or (demand < 0).any():
            raise ValueError(f"{self.method}: an op has negative or non-finite work")
        links = self.cluster.links
        schedule = Schedule(
            method=self.method,
            columns=self._columns(),
            demand=demand,
            capacity=tuple(link.spec.capacity for link in links),
            link_names=tuple(link.name for link in links),
            link_kinds=tuple(link.kind for link in links),
            ends=tuple(np.asarray(list(ends), dtype=np.int64).tolist()),
            cores={index: CoreTurns.of(link.spec) for index, link in enumerate(links) if link.spec.cores},
            periodic=periodic,
        )
        levels(schedule)
        return schedule

    def _columns(self) -> Columns:
        routes = tuple(self._routes)
        return assembled(self._parts, tuple(self._names), routes, *self.cluster.delays(routes))


def waits_of(after: Sequence[Sequence[Dependency]]) -> list[Waits]:
    """The dependencies of each op of a block, in the form that a block takes."""
    found: list[Waits] = []
    for index in range(max(map(len, after), default=0)):
        some = [item[index] if index < len(item) else -1 for item in after]
        pairs = [dep if isinstance(dep, tuple) else (dep, 0) for dep in some]
        for lag in sorted({lag for _, lag in pairs}):
            found.append((np.array([op if own == lag else -1 for op, own in pairs], dtype=np.int64), lag))
    return found
