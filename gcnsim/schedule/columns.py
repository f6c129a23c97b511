"""A schedule's ops as flat columns, one array per fact, for engines, bounds and metrics.

Rows of different lengths (an op's dependencies, its route) are stored as (offsets, values): row i is values[at[i]:at[i
+ 1]].
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank
from gcnsim.timeline import KIND_CODE, OpKind, of_kinds

T = TypeVar("T")

LARGE: Final = 1_000_000
"""From this number of ops on, integers have 32 bits and cheap results are not cached; about 300 GPUs."""

FEW: Final = 8
"""Keys of a result that are kept where each is large (`Columns.lately`)."""

EVERY: Final = slice(None)

Route = tuple[int, ...]
"""Ids of the links that a flow occupies, in order."""

KIND_OF: Final = {code: kind for kind, code in KIND_CODE.items()}


def narrow(values: IntArray, size: int) -> IntArray:
    """`values` of a structure of `size` ops, in 32 bits if it is large; their products are computed in 64.

    The largest cluster has about 30 million ops, dependencies and streams.
    """
    found: IntArray = values.astype(np.int32) if size >= LARGE else values
    return found


@dataclass(frozen=True, eq=False)
class Columns:
    """n ops as arrays in the order of their ids, on S streams and R distinct routes; int64 is int32 from `LARGE` on.

    kind: code of `OpKind` (`KIND_CODE`). worker, stream, layer, direction, peer, thread, connection: int64[n], as in
    `Op`, -1 for none. way: int64[n], index of the route in `routes`, -1 for exclusive work. cap: float64[n], units per
    second, infinite for no limit. wait_at: int64[n + 1], wait and lag: the ops that an op waits for, each `lag`
    iterations back, in the order of `Op.waits` (without those implied by its stream). after: int64[n], the number of an
    op's waits that are `Op.after`; the others are reuses of buffers. stream_worker: int64[S]; stream_name: int64[S],
    indices in `names`. latency_s, startup_s: float64[R], seconds; queue: float64[R], link units.
    """

    kind: IntArray
    worker: IntArray
    stream: IntArray
    layer: IntArray
    direction: IntArray
    peer: IntArray
    thread: IntArray
    connection: IntArray
    way: IntArray
    cap: FloatArray
    wait_at: IntArray
    wait: IntArray
    lag: IntArray
    after: IntArray
    stream_worker: IntArray
    stream_name: IntArray
    names: tuple[str, ...]
    routes: tuple[Route, ...]
    latency_s: FloatArray
    startup_s: FloatArray
    queue: FloatArray
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Results derived from the structure; columns that differ only in delays share them."""

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make()`, computed once per structure; it must not depend on delays."""
        if name not in self._found:
            self._found[name] = make()
        found: T = self._found[name]
        return found

    def shortly(self, name: str, make: Callable[[], T]) -> T:
        """The same as `derived` for results that need more memory than time: large structures recompute them."""
        return self.derived(name, make) if self.size < LARGE else make()

    def latest(self, name: str, key: Hashable, make: Callable[[], T]) -> T:
        """The same as `derived` for the last `key` alone, which threads replace together with its result."""
        found: tuple[Hashable, T] | None = self._found.get(name)
        if found is None or found[0] != key:
            found = self._found[name] = key, make()
        return found[1]

    def lately(self, name: str, key: Hashable, make: Callable[[], T]) -> T:
        """The same as `derived` for the last `FEW` keys."""
        kept: dict[Hashable, T] = self.derived(name, dict)
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
            for old in list(kept)[:-FEW]:
                # Threads share the dictionary: another one may have dropped it.
                kept.pop(old, None)
        return found

    def with_delays(self, latency_s: FloatArray, startup_s: FloatArray, queue: FloatArray) -> Columns:
        """The same ops with other delays of routes, float64[R] each."""
        other = copy(self)
        other.__dict__.update(latency_s=latency_s, startup_s=startup_s, queue=queue)
        return other

    @property
    def size(self) -> int:
        """n, the number of ops."""
        return int(self.kind.size)

    @property
    def streams(self) -> int:
        """S, the number of streams."""
        return int(self.stream_worker.size)

    @property
    def is_flow(self) -> BoolArray:
        """bool[n]: whether each op is a flow."""
        return self.derived("is_flow", lambda: self.way >= 0)

    def is_kind(self, *kinds: OpKind) -> BoolArray:
        """bool[n]: whether each op is of one of these kinds."""
        return of_kinds(self.kind, kinds)

    def of_route(self, values: FloatArray, none: float = 0.0) -> FloatArray:
        """By op, float64[n], the value of its route in `values`, float64[R]; `none` for exclusive work."""
        return np.concatenate((values, (none,)))[self.way]

    @property
    def route_links(self) -> tuple[IntArray, IntArray]:
        """The routes as rows: (offsets int64[R + 1], ids of links)."""

        def make() -> tuple[IntArray, IntArray]:
            at = np.zeros(len(self.routes) + 1, np.int64)
            np.cumsum(np.fromiter(map(len, self.routes), np.int64, len(self.routes)), out=at[1:])
            return at, np.fromiter(chain.from_iterable(self.routes), np.int64, int(at[-1]))

        return self.derived("route_links", make)

    def least_on_route(self, values: FloatArray) -> FloatArray:
        """By route, float64[R], the least of its links in `values`, float64[links]; infinite for an empty route."""
        at, links = self.route_links
        found, some = np.full(len(self.routes), inf), np.flatnonzero(np.diff(at))
        if some.size:
            found[some] = np.minimum.reduceat(values[links], at[some])
        return found

    @property
    def crossings(self) -> tuple[IntArray, IntArray]:
        """Every link on every flow's route, by op: (ops, ids of links), int64 each."""

        def make() -> tuple[IntArray, IntArray]:
            at, links = self.route_links
            flows = np.flatnonzero(self.way >= 0)
            way = self.way[flows]
            lengths = at[way + 1] - at[way]
            ends = np.cumsum(lengths)
            places = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(at[way] - (ends - lengths), lengths)
            return np.repeat(narrow(flows, self.size), lengths), narrow(links, self.size)[places]

        return self.derived("crossings", make)

    def first_link(self, ops: IntArray | slice = EVERY) -> IntArray:
        """The first link of the route of each of `ops`, int64[k], by default all; -1 for exclusive work and empty
        routes.
        """

        def make() -> IntArray:
            at, links = self.route_links
            first = np.full(len(self.routes) + 1, -1, np.int64)
            some = np.flatnonzero(at[1:] > at[:-1])
            first[some] = links[at[some]]
            return first

        found: IntArray = self.derived("first links", make)[self.way[ops]]
        return found

    def rows_of_waits(self) -> IntArray:
        """The op of every value of `wait`, int64[wait_at[-1]]."""
        return np.repeat(np.arange(self.size, dtype=self.worker.dtype), np.diff(self.wait_at))

    def is_reuse(self) -> BoolArray:
        """For every value of `wait`, whether it is a reuse of a buffer, bool[wait_at[-1]]."""
        place = np.arange(self.wait.size) - np.repeat(self.wait_at[:-1], np.diff(self.wait_at))
        return np.asarray(place >= np.repeat(self.after, np.diff(self.wait_at)))

    def streams_called(self, name: str) -> IntArray:
        """The streams of this name, one of each worker that has it, int64[k]."""
        return np.flatnonzero(self.stream_name == (self.names.index(name) if name in self.names else -1))

    def of_worker(self, rank: Rank) -> IntArray:
        """The ops of a worker, int64[k]."""
        at, ops = self.derived("of_worker", lambda: rows_by(self.worker, int(self.worker.max(initial=0)) + 1))
        return ops[at[rank] : at[rank + 1]]

    def near(self, rank: Rank) -> IntArray:
        """The ops of a worker, and those of others with this worker as peer, ascending, int64[k]."""
        at, ops = self.derived("of_peer", lambda: rows_by(self.peer + 1, int(self.peer.max(initial=-1)) + 2))
        others = ops[at[rank + 1] : at[rank + 2]] if rank + 2 < at.size else ops[:0]
        # Both ascend: a stable sort merges them.
        both = np.concatenate([self.of_worker(rank), others[self.worker[others] != rank]])
        return np.asarray(np.sort(both, kind="stable"), dtype=np.int64)

    def every_wait(self) -> tuple[IntArray, IntArray, IntArray]:
        """All dependencies as rows, with the previous op of the stream last: (offsets int64[n + 1], ops, lags)."""

        def make() -> tuple[IntArray, IntArray, IntArray]:
            streams, every = stream_waits(self), np.arange(self.size, dtype=self.worker.dtype)
            who = np.concatenate([self.rows_of_waits(), every])
            at, places = rows_by(who, self.size)
            whom = np.concatenate([self.wait, streams.before])[places]
            return at, whom, np.concatenate([self.lag, streams.lag])[places]

        return self.shortly("every_wait", make)

    def queue_of(self, stream: int) -> IntArray:
        """The ops of a stream in the order in which they run within an iteration, int64[k]."""
        own: IntArray = self.of_worker(int(self.stream_worker[stream]))
        return np.asarray(own[self.stream[own] == stream])


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """The dependencies that in-order streams add, int64[n] each: the previous op on the stream, and the lag.

    A stream's first op waits for its last op of the previous iteration (lag 1), every other for the one before it (lag
    0).
    """

    before: IntArray
    lag: IntArray


def stream_waits(columns: Columns) -> StreamWaits:
    """The dependency of each op on its stream."""

    def make() -> StreamWaits:
        order = np.argsort(columns.stream, kind="stable")
        first = np.flatnonzero(np.diff(columns.stream[order], prepend=-1))
        before = np.empty_like(order)
        before[1:] = order[:-1]
        before[first] = order[np.append(first[1:], order.size) - 1]
        lag = np.zeros(columns.size, np.int64)
        lag[order[first]] = 1
        found = np.empty_like(before)
        found[order] = before
        return StreamWaits(narrow(found, columns.size), narrow(lag, columns.size))

    return columns.shortly("stream_waits", make)


def rows_by(keys: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Entries grouped by key: (offsets int64[count + 1], indices of the entries, in their order within a key)."""
    at = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=at[1:])
    return at, narrow(np.argsort(keys, kind="stable").astype(np.int64, copy=False), keys.size)


def distinct_within(groups: IntArray, values: IntArray) -> IntArray:
    """For each place, the number of distinct values in its group, int64[k]."""
    if not groups.size:
        return groups
    _, group = np.unique(groups, return_inverse=True)
    _, value = np.unique(values, return_inverse=True)
    pairs = np.unique(group * (int(value.max()) + 1) + value)
    return np.bincount(pairs // (int(value.max()) + 1))[group]


def with_op(
    columns: Columns, kind: OpKind, worker: Rank, stream: str, after: tuple[int, int], followers: Sequence[int]
) -> Columns:
    """The columns with one more op of exclusive work, on a separate stream.

    after: the op it waits for, and the lag. followers: the ops that wait for it, in the same iteration.
    """
    new = columns.size
    facts = {"kind": KIND_CODE[kind], "worker": worker, "stream": columns.streams, "cap": inf, "direction": 0}
    none = dict.fromkeys(("layer", "peer", "thread", "connection", "way"), -1)
    whole: dict[str, Any] = {name: np.append(getattr(columns, name), value) for name, value in (facts | none).items()}
    behind = columns.wait_at[:-1] + columns.after
    places = np.append(behind[list(followers)], columns.wait.size)
    counts = np.append(np.diff(columns.wait_at), 0)
    counts[[*followers, new]] += 1
    return replace(
        columns,
        **whole,
        wait_at=np.concatenate([[0], np.cumsum(counts)]),
        wait=np.insert(columns.wait, places, [*[new] * len(followers), after[0]]),
        lag=np.insert(columns.lag, places, [*[0] * len(followers), after[1]]),
        after=np.append(columns.after, 1) + np.isin(np.arange(new + 1), followers),
        stream_worker=np.append(columns.stream_worker, worker),
        stream_name=np.append(columns.stream_name, len(columns.names)),
        names=(*columns.names, stream),
    )
