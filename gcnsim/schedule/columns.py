"""A schedule's ops as flat columns, one array per fact: what compiled code and whole-array arithmetic read.

Rows of different lengths (an op's waits, its route) are kept as (offsets, values): row i is values[at[i]:at[i + 1]].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from gcnsim.ids import FloatArray, IntArray
from gcnsim.timeline import KIND_CODE

if TYPE_CHECKING:
    from gcnsim.schedule.schedule import Op

Rows = tuple[IntArray, IntArray]
"""Rows of different lengths: offsets int64[rows + 1], values int64[offsets[-1]]."""


@dataclass(frozen=True, slots=True)
class Columns:
    """n ops as arrays, in the order of their ids.

    kind: code of `OpKind` (`KIND_CODE`). worker, stream, layer, direction, peer, thread, connection: int64[n], as in
    `Op`, -1 for none. latency_s, startup_s: float64[n], seconds. queue: float64[n], link units. cap: float64[n], units
    per second, infinite for no limit. is_flow: int64[n], 1 for ops with a route. route_at: int64[n + 1] and route: ids
    of links. wait_at: int64[n + 1], wait and lag: ops that an op waits for, `lag` iterations back each, in the order of
    `Op.waits` (not those that its stream makes it wait for). after: int64[n], how many of an op's waits are `Op.after`;
    those behind them are reuses of buffers.
    """

    kind: IntArray
    worker: IntArray
    stream: IntArray
    layer: IntArray
    direction: IntArray
    peer: IntArray
    thread: IntArray
    connection: IntArray
    latency_s: FloatArray
    startup_s: FloatArray
    queue: FloatArray
    cap: FloatArray
    is_flow: IntArray
    route_at: IntArray
    route: IntArray
    wait_at: IntArray
    wait: IntArray
    lag: IntArray
    after: IntArray

    @property
    def size(self) -> int:
        """n, the number of ops."""
        return int(self.kind.size)

    def rows_of_routes(self) -> IntArray:
        """The op of every value of `route`, int64[route_at[-1]]."""
        return np.repeat(np.arange(self.size, dtype=np.int64), np.diff(self.route_at))

    def rows_of_waits(self) -> IntArray:
        """The op of every value of `wait`, int64[wait_at[-1]]."""
        return np.repeat(np.arange(self.size, dtype=np.int64), np.diff(self.wait_at))


def columns_of(ops: Sequence[Op]) -> Columns:
    """The columns of `ops`, whose ids are 0, 1, ..."""
    waits = [op.waits for op in ops]
    pairs = np.array(list(chain.from_iterable(chain.from_iterable(waits))), dtype=np.int64).reshape(-1, 2)
    routes = [op.route or () for op in ops]
    return Columns(
        kind=_ints(KIND_CODE[op.kind] for op in ops),
        worker=_ints(op.worker for op in ops),
        stream=_ints(op.stream for op in ops),
        layer=_ints(op.layer for op in ops),
        direction=_ints(op.direction for op in ops),
        peer=_ints(op.peer for op in ops),
        thread=_ints(op.thread for op in ops),
        connection=_ints(op.connection for op in ops),
        latency_s=_floats(op.latency_s for op in ops),
        startup_s=_floats(op.startup_s for op in ops),
        queue=_floats(op.queue for op in ops),
        cap=_floats(inf if op.cap is None else op.cap for op in ops),
        is_flow=_ints(op.route is not None for op in ops),
        route_at=_offsets(routes),
        route=_ints(chain.from_iterable(routes)),
        wait_at=_offsets(waits),
        wait=np.ascontiguousarray(pairs[:, 0]),
        lag=np.ascontiguousarray(pairs[:, 1]),
        after=_ints(len(op.after) for op in ops),
    )


def stream_waits(columns: Columns) -> tuple[IntArray, IntArray, IntArray]:
    """What in-order streams add to the waits: (ops, the op before each on its stream, lag), int64[n] each, by op.

    A stream's first op waits for its last of the iteration before (lag 1), every other for the one before it (lag 0).
    """
    ops = np.arange(columns.size, dtype=np.int64)
    order = np.argsort(columns.stream, kind="stable")
    first = np.flatnonzero(np.diff(columns.stream[order], prepend=-1))
    before = np.empty_like(order)
    before[1:] = order[:-1]
    before[first] = order[np.append(first[1:], order.size) - 1]
    lag = np.zeros(columns.size, np.int64)
    lag[order[first]] = 1
    found = np.empty_like(before)
    found[order] = before
    return ops, found, lag


def rows_by(keys: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Entries grouped by key: (offsets int64[count + 1], places of the entries, those of a key in their order)."""
    at = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=at[1:])
    return at, np.argsort(keys, kind="stable").astype(np.int64)


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _floats(values: Iterable[float]) -> FloatArray:
    return np.fromiter(values, dtype=np.float64)


def _offsets(rows: Sequence[Sequence[object]]) -> IntArray:
    at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), dtype=np.int64), out=at[1:])
    return at
