"""Turn the parts that a builder collected into columns, and cache known structures.

The settings of a question usually differ in bandwidths, rates or cache sizes and not in ops. The data derived from ops
alone (their order, the flows on each link) can then be reused.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from math import inf
from typing import ClassVar, Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.schedule.columns import LARGE, Columns, Route, narrow

MOST_KEPT: Final = 1_000_000
"""The most ops of all cached structures, about 200 bytes each."""


class WaitPairs:
    """Ops and the ops they wait for, in the order of insertion."""

    def __init__(self) -> None:
        self._one: list[tuple[int, int, int]] = []
        self._many: list[IntArray] = []

    def one(self, op: int, other: int, lag: int) -> None:
        """Let one op wait for another of `lag` iterations ago."""
        self._one.append((op, other, lag))

    def add(self, ops: IntArray, others: IntArray, lag: int) -> None:
        """Let ops wait for others of `lag` iterations ago: each for one, or for several (an extra dimension); -1 is
        none.
        """
        self._flush()
        if others.ndim > ops.ndim:
            ops = ops[..., None]
        many: IntArray = np.empty((3, *np.broadcast(ops, others).shape), np.int32)
        many[0], many[1], many[2] = ops, others, lag
        many = many.reshape(3, -1)
        real = many[1] >= 0
        self._many.append(many if real.all() else many[:, real])

    def _flush(self) -> None:
        if self._one:
            one: IntArray = np.asarray(self._one, np.int64).astype(np.int32)
            self._many.append(one.T)
            self._one = []

    def whole(self) -> IntArray:
        """Return all pairs, int32[3, k]: ops, others, lags, and forget them."""
        self._flush()
        many, self._many = self._many, []
        return np.concatenate(many, axis=1) if many else np.empty((3, 0), np.int32)


class BuilderParts:
    """The ops that a builder has collected, in the order in which they were added, with their numbers."""

    FACTS: ClassVar = ("kind", "worker", "name", "layer", "direction", "peer", "thread", "connection", "way")
    """Whole numbers of an op. Streams, threads and connections have the number of their name, -1 for none."""

    def __init__(self) -> None:
        self.size = 0
        self.after, self.late, self.reuses = WaitPairs(), WaitPairs(), WaitPairs()
        self._numbers: list[IntArray] = []
        self._facts: list[IntArray] = []
        self._caps: list[float] = []
        self._sizes: list[int] = []
        self._work: list[tuple[IntArray | int, float | FloatArray]] = []
        self._pending: list[tuple[int, ...]] = []
        self._pending_caps: list[float] = []

    def one(
        self,
        facts: tuple[int, ...],
        cap: float | None,
        work: float | FloatArray,
        after: Iterable[int | tuple[int, int]],
    ) -> int:
        """Add an op and return its number, the next one."""
        number = self.size
        self.size += 1
        self._pending.append((number, *facts))
        self._pending_caps.append(inf if cap is None else cap)
        self._work.append((number, work))
        for item in after:
            if isinstance(item, tuple):
                self.after.one(number, *item)
            else:
                self.after.one(number, item, 0)
        return number

    def many(self, numbers: IntArray, facts: IntArray, cap: float | None, work: float | FloatArray) -> None:
        """Add ops with these numbers, int64[*shape]. facts: int32[FACTS, *shape]; work: as in `Builder.block`."""
        self._flush()
        self._numbers.append(numbers.ravel())
        self._facts.append(facts.reshape(len(self.FACTS), -1))
        self._caps.append(inf if cap is None else cap)
        self._sizes.append(numbers.size)
        self._work.append((numbers, work))

    def _flush(self) -> None:
        if self._pending:
            table: IntArray = np.asarray(np.array(self._pending).T, dtype=np.int64).astype(np.int32)
            self._numbers.append(table[0])
            self._facts.append(table[1:])
            self._caps += self._pending_caps
            self._sizes += [1] * len(self._pending_caps)
            self._pending, self._pending_caps = [], []

    def demand(self, iterations: int) -> FloatArray:
        """Return the demand, float64[T, ops], and forget its parts."""
        demand = np.empty((iterations, self.size))
        every, self._work = self._work, []
        for numbers, work in every:
            demand[:, numbers] = work
        return demand

    def whole(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return numbers int32[n], facts int32[FACTS, n] and caps float64[n] in the order of insertion, and forget
        them.
        """
        self._flush()
        numbers, facts, caps, sizes = self._numbers, self._facts, self._caps, self._sizes
        self._numbers, self._facts, self._caps, self._sizes = [], [], [], []
        if not numbers:
            return np.empty(0, np.int32), np.empty((len(self.FACTS), 0), np.int32), np.empty(0)
        whole: IntArray = np.concatenate(numbers, dtype=np.int32, casting="same_kind")
        return whole, np.concatenate(facts, axis=1), np.repeat(np.array(caps), sizes)


_KEPT: OrderedDict[bytes, Columns] = OrderedDict()


def assembled(
    parts: BuilderParts,
    names: tuple[str, ...],
    routes: tuple[Route, ...],
    latency_s: FloatArray,
    startup_s: FloatArray,
    queue: FloatArray,
) -> Columns:
    """The columns of `parts`. names: of streams, threads and connections; delays by route, float64[R]."""
    numbers, facts, caps = parts.whole()
    waits = [pairs.whole() for pairs in (parts.after, parts.late, parts.reuses)]
    key = _key(names, routes, numbers, facts, caps, *waits) if parts.size <= MOST_KEPT else None
    if key is not None and key in _KEPT:
        _KEPT.move_to_end(key)
        known = _KEPT[key]
        delays, had = (latency_s, startup_s, queue), (known.latency_s, known.startup_s, known.queue)
        same = all(np.array_equal(one, other) for one, other in zip(delays, had, strict=True))
        return known if same else known.with_delays(*delays)
    found = _sorted(numbers, facts, caps, waits, names, routes, (latency_s, startup_s, queue))
    if key is not None:
        _KEPT[key] = found
        while sum(columns.size for columns in _KEPT.values()) > MOST_KEPT:
            _KEPT.popitem(last=False)
    return found


def _key(names: tuple[str, ...], routes: tuple[Route, ...], *arrays: IntArray | FloatArray) -> bytes:
    """The key that identifies a structure."""
    digest = hashlib.blake2b(repr((names, routes, [array.shape for array in arrays])).encode())
    for array in arrays:
        digest.update(array.tobytes())
    return digest.digest()


def _sorted(
    numbers: IntArray,
    facts: IntArray,
    caps: FloatArray,
    waits: list[IntArray],
    names: tuple[str, ...],
    routes: tuple[Route, ...],
    delays: tuple[FloatArray, FloatArray, FloatArray],
) -> Columns:
    """The columns in the order of the ops' numbers."""
    count = numbers.size
    exact = np.int32 if count >= LARGE else np.int64
    table, cap = np.empty(facts.shape, exact), np.empty_like(caps)
    table[:, numbers], cap[numbers] = facts, caps
    kind, worker, name, layer, direction, peer, thread, connection, way = table
    wide, peers = int(worker.max(initial=0)) + 1, int(peer.max(initial=0)) + 2
    stream, first = _numbered(_key_of(name, wide, worker))
    called = np.where(connection >= 0, _key_of(_key_of(connection, wide, worker), peers, peer) + 1, -1)
    pairs = np.concatenate(waits, axis=1)
    order = np.argsort(pairs[0], kind="stable")
    at = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(pairs[0], minlength=count), out=at[1:])
    reuses = np.bincount(waits[2][0], minlength=count)
    return Columns(
        kind=kind,
        worker=worker,
        stream=narrow(stream, count),
        layer=layer,
        direction=direction,
        peer=peer,
        thread=narrow(_numbered(np.where(thread >= 0, _key_of(thread, wide, worker), -1))[0], count),
        connection=narrow(_numbered(called)[0], count),
        way=way,
        cap=cap,
        wait_at=narrow(at, count),
        wait=pairs[1][order].astype(exact, copy=False),
        lag=pairs[2][order].astype(exact, copy=False),
        after=narrow(np.diff(at) - reuses, count),
        stream_worker=worker[first].astype(np.int64, copy=False),
        stream_name=name[first].astype(np.int64, copy=False),
        names=names,
        routes=routes,
        latency_s=delays[0],
        startup_s=delays[1],
        queue=delays[2],
    )


def _key_of(high: IntArray, width: int, low: IntArray) -> IntArray:
    """Two columns combined into one, int64[n]; low: below `width`."""
    found = high.astype(np.int64)
    found *= width
    found += low
    return found


def _numbered(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Keys renumbered 0, 1, ... in the order of first use, -1 for negative ones; and the places of first uses."""
    own = np.flatnonzero(keys >= 0)
    _, first, inverse = np.unique(keys[own], return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    order = np.argsort(first, kind="stable")
    rank[order] = np.arange(first.size)
    found = np.full(keys.size, -1, np.int64)
    found[own] = rank[inverse]
    return found, own[first[order]]
