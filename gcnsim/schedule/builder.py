"""Writing a schedule op by op: streams appear on first use, dependencies are named by the ops they wait for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from gcnsim.cluster import Cluster
from gcnsim.ids import FloatArray, Layer, Rank
from gcnsim.schedule.order import topological
from gcnsim.schedule.schedule import COMPUTE_STREAM, Op, Schedule, Stream
from gcnsim.timeline import Direction, OpKind

Dependency: TypeAlias = int | tuple[int, int]
"""An op of the same iteration, or (op, lag) for the one `lag` iterations ago."""

Work: TypeAlias = float | FloatArray
"""The same amount every iteration, or float64[T], one per iteration."""


class Builder:
    """Collects ops and closes them into a checked `Schedule`."""

    def __init__(self, method: str, cluster: Cluster, iterations: int) -> None:
        self.method = method
        self.cluster = cluster
        self.iterations = iterations
        self._streams: dict[tuple[Rank, str], int] = {}
        self._connections: dict[tuple[Rank, str, Rank], int] = {}
        self._threads: dict[tuple[Rank, str], int] = {}
        self._ops: list[Op] = []
        self._demand: list[Work] = []
        self._late: dict[int, list[tuple[int, int]]] = {}
        self._reuses: dict[int, list[int]] = {}
        self._known: dict[tuple[int, ...], tuple[float, float, float]] = {}

    def _stream(self, worker: Rank, name: str) -> int:
        return self._streams.setdefault((worker, name), len(self._streams))

    def _add(
        self,
        kind: OpKind,
        worker: Rank,
        stream: str,
        work: Work,
        after: Iterable[Dependency],
        *,
        route: tuple[int, ...] | None,
        cap: float | None,
        layer: Layer,
        direction: Direction,
        peer: Rank,
        thread: str | None = None,
        connection: str | None = None,
    ) -> int:
        index = len(self._ops)
        waits = tuple(dep if isinstance(dep, tuple) else (dep, 0) for dep in after)
        latency, startup, queue = self._delays(route) if route else (0.0, 0.0, 0.0)
        where = self._stream(worker, stream)
        turns = thread is not None and route is not None and self.cluster.links[route[0]].spec.cores > 0
        number = self._threads.setdefault((worker, str(thread)), len(self._threads)) if turns else -1
        self._ops.append(
            Op(
                index,
                kind,
                worker,
                where,
                waits,
                route,
                cap,
                latency,
                startup,
                queue,
                layer,
                direction,
                peer,
                number,
                self._connection(worker, connection, peer),
            )
        )
        self._demand.append(work)
        return index

    def _delays(self, route: tuple[int, ...]) -> tuple[float, float, float]:
        """Latency, start-up and queue of a route, found once for all ops on it."""
        if route not in self._known:
            cluster = self.cluster
            self._known[route] = cluster.latency(route), cluster.startup(route), cluster.queue(route)
        return self._known[route]

    def _connection(self, worker: Rank, name: str | None, peer: Rank) -> int:
        if name is None:
            return -1
        return self._connections.setdefault((worker, name, peer), len(self._connections))

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
            kind, worker, stream, seconds, after, route=None, cap=None, layer=layer, direction=direction, peer=-1
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
        """Add units (bytes; core-seconds on a CPU) in flight on a route; return its op id.

        thread: of the worker, whose work takes turns with other threads' on its route, where that is cores with turns.
        """
        return self._add(
            kind,
            worker,
            stream,
            units,
            after,
            route=route,
            cap=cap,
            layer=layer,
            direction=direction,
            peer=peer,
            thread=thread,
            connection=connection,
        )

    def wait_for(self, op: int, dependency: Dependency) -> None:
        """Let an op that is already written also wait for `dependency` (one written after it)."""
        wait = dependency if isinstance(dependency, tuple) else (dependency, 0)
        self._late.setdefault(op, []).append(wait)

    def reuse(self, op: int, reader: int) -> None:
        """Let `op` wait until `reader`, of the same iteration, has read the buffer that `op` starts to fill again."""
        self._reuses.setdefault(op, []).append(reader)

    def close(self, ends: Iterable[int], *, periodic: bool = False) -> Schedule:
        """The finished schedule; `ends` names, per worker in rank order, the op that closes its iteration.

        periodic: the iterations are a cycle, not draws.
        Raises ValueError when dependencies of one iteration form a cycle, or work is negative or not finite.
        """
        ops = tuple(
            replace(
                op,
                after=op.after + tuple(self._late.get(op.index, ())),
                reuses=tuple(self._reuses.get(op.index, ())),
            )
            if op.index in self._late or op.index in self._reuses
            else op
            for op in self._ops
        )
        demand = np.empty((self.iterations, len(ops)))
        for index, work in enumerate(self._demand):
            demand[:, index] = work
        if not np.isfinite(demand).all() or (demand < 0).any():
            raise ValueError(f"{self.method}: an op has negative or non-finite work")
        links = self.cluster.links
        schedule = Schedule(
            method=self.method,
            streams=tuple(Stream(worker, name) for worker, name in self._streams),
            ops=ops,
            demand=demand,
            capacity=tuple(link.spec.capacity for link in links),
            link_names=tuple(link.name for link in links),
            link_kinds=tuple(link.kind for link in links),
            ends=tuple(ends),
            cores={index: (link.spec.cores, link.spec.slice_s) for index, link in enumerate(links) if link.spec.cores},
            periodic=periodic,
        )
        topological(schedule)
        return schedule
