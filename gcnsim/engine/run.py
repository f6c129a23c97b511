"""The result of a run: every start and end; the last iterations may be stored as repetitions of a period.

In its timeline every op is a span, and every wait of a compute stream is a separate span.

The rate on every link at every instant is reconstructed from starts and ends by sharing the links again. It is exact
without queues: from its first byte to its last a flow has the max-min fair rate. A run does not store queues. With
queues, or with links shared once per grain, rates are scaled to the transferred bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gcnsim.core.ids import AnyArray, FloatArray, IntArray, Iteration, Rank, frozen
from gcnsim.engine.fairness import Sharing, connected
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.timeline import KIND_CODE, PS_PER_S, Direction, OpKind, Timeline


class Period(NamedTuple):
    """Iterations after which a run repeats itself, and the picoseconds of one repetition."""

    iterations: int
    lasts_ps: int


@dataclass(frozen=True)
class Run:
    """Starts and ends of every op, int64[T, ops] picoseconds, for T whole iterations of all workers.

    first_starts, first_ends: int64[simulated, ops], the simulated iterations. iterations: T. period: the repetition
    that gives the later iterations, exact to the picosecond; None if all were simulated.
    """

    schedule: Schedule
    first_starts: IntArray
    first_ends: IntArray
    iterations: int
    period: Period | None = None

    @property
    def simulated(self) -> int:
        """The number of simulated iterations; later ones repeat the last of these."""
        return int(self.first_ends.shape[0])

    @property
    def by_period(self) -> int:
        """The number of iterations that were not simulated."""
        return self.iterations - self.simulated

    @property
    def finished_ops(self) -> int:
        """Compute ops and flows that ended, in all iterations."""
        return self.iterations * int(self.first_ends.shape[1])

    @cached_property
    def starts(self) -> IntArray:
        """The start of each op of each iteration, int64[T, ops], computed on first use."""
        return self._repeated(self.first_starts)

    @cached_property
    def ends(self) -> IntArray:
        """The end of each op of each iteration, int64[T, ops], computed on first use."""
        return self._repeated(self.first_ends)

    def ends_of(self, ops: list[int]) -> IntArray:
        """`ends` of these ops only, int64[T, len(ops)]."""
        return self._repeated(self.first_ends[:, ops])

    def _repeated(self, times: IntArray) -> IntArray:
        """Instants of the simulated iterations, int64[simulated, n], extended to all iterations, int64[T, n]."""
        if self.period is None:
            return times
        beyond = np.arange(self.by_period, dtype=np.int64)
        rounds, index = np.divmod(beyond, self.period.iterations)
        later = times[self.simulated - self.period.iterations + index]
        later += ((rounds + 1) * self.period.lasts_ps)[:, None]
        return np.concatenate([times, later])


Parts = dict[str, AnyArray]
"""Columns of a timeline, by name."""


def timeline(run: Run) -> Timeline:
    """All spans of `run`, ordered by (start, worker, stream, op), without empty flows and zero-length ops."""
    columns = run.schedule.columns
    streams = np.arange(columns.streams)
    spans = _spans(run, np.arange(columns.size), columns.streams_called(COMPUTE_STREAM), streams)
    order = np.lexsort((spans["end_ps"], spans["stream"], spans["worker"], spans["start_ps"]))
    spans = {name: column[order] for name, column in spans.items()}
    names = tuple(columns.names[name] for name in columns.stream_name.tolist())
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=names)


def timeline_near(run: Run, rank: Rank, since: int) -> Timeline:
    """The spans of one worker, and those of others with this worker as peer, unordered; streams of one name are merged.

    It covers iterations in which one of these ops ends after `since`, in picoseconds.
    """
    columns, near = run.schedule.columns, run.schedule.columns.near(rank)
    rows = np.flatnonzero(run.ends[:, near].max(axis=1) > since)
    main = columns.streams_called(COMPUTE_STREAM)
    own = main[columns.stream_worker[main] == rank]
    spans = _spans(run, near, own, columns.stream_name, int(rows[0]))
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=columns.names)


def _spans(run: Run, chosen: IntArray, main: IntArray, streams: IntArray, first: Iteration = 0) -> Parts:
    """The spans of the ops `chosen`, and the waits of the streams `main`, from iteration `first` on.

    streams: the number of each stream in the result.
    """
    schedule = run.schedule
    ops = schedule.columns
    rows = np.arange(first, run.iterations)
    demand = schedule.demand[:, chosen][rows % schedule.demand.shape[0]]
    on_cores = np.array([*(kind == "cpu" for kind in schedule.link_kinds), False])
    is_bytes = (ops.way[chosen] >= 0) & ~on_cores[ops.first_link(chosen)]
    columns: Parts = {
        "kind": ops.kind[chosen].astype(np.uint8),
        "worker": ops.worker[chosen].astype(np.int32),
        "stream": streams[ops.stream[chosen]].astype(np.int32),
        "layer": ops.layer[chosen].astype(np.int32),
        "direction": ops.direction[chosen].astype(np.uint8),
        "peer": ops.peer[chosen].astype(np.int32),
    }
    spans = {name: np.tile(column, rows.size) for name, column in columns.items()}
    spans["iteration"] = np.repeat(rows.astype(np.int32), chosen.size)
    spans["start_ps"], spans["end_ps"] = run.starts[first:, chosen].ravel(), run.ends[first:, chosen].ravel()
    spans["nbytes"] = np.where(is_bytes, demand, 0.0).ravel()
    every = [spans, *(_waits(run, index, int(streams[index])) for index in main.tolist())]
    spans = {name: np.concatenate([part[name] for part in every]) for name in spans}
    real = spans["end_ps"] > spans["start_ps"]
    return {name: column[real] for name, column in spans.items()}


def _waits(run: Run, index: int, stream: int) -> Parts:
    """The gaps of a worker's compute stream `index` as spans of kind WAIT, named after the op they delay."""
    columns = run.schedule.columns
    queue = columns.queue_of(index)
    starts, ends = run.starts[:, queue].ravel(), run.ends[:, queue].ravel()
    size = starts.size
    return {
        "kind": np.full(size, KIND_CODE[OpKind.WAIT], dtype=np.uint8),
        "worker": np.full(size, columns.stream_worker[index], dtype=np.int32),
        "stream": np.full(size, stream, dtype=np.int32),
        "iteration": np.repeat(np.arange(run.iterations, dtype=np.int32), queue.size),
        "layer": np.tile(columns.layer[queue].astype(np.int32), run.iterations),
        "direction": np.full(size, Direction.NONE, dtype=np.uint8),
        "peer": np.full(size, -1, dtype=np.int32),
        "start_ps": np.r_[0, ends[:-1]],
        "end_ps": starts,
        "nbytes": np.zeros(size),
    }


def begun(run: Run) -> IntArray:
    """When each op began, int64[T, ops].

    A message begins no earlier than the previous one on its connection arrives.
    """
    found: IntArray = run.starts.copy()
    connections = run.schedule.columns.connection
    for connection in np.unique(connections[connections >= 0]):
        chosen = np.flatnonzero(connections == connection)
        starts, ends = run.starts[:, chosen].ravel(), run.ends[:, chosen].ravel()
        order = np.lexsort((ends, starts))
        ahead = np.concatenate([[0], np.maximum.accumulate(ends[order])[:-1]])
        actual = np.empty_like(starts)
        actual[order] = np.maximum(starts[order], ahead)
        found[:, chosen] = actual.reshape(run.iterations, -1)
    return found


def link_rates(run: Run) -> Mapping[str, tuple[IntArray, FloatArray]]:
    """Per link that carries bytes, by name: ascending instants in picoseconds, and the bytes per second from each on.

    The last rate of a link is 0. Unused links and cores are left out.
    """
    schedule = run.schedule
    moves = [
        op.index
        for op in schedule.ops
        if op.route is not None and op.thread < 0 and all(schedule.link_kinds[link] != "cpu" for link in op.route)
    ]
    group_of = connected(len(schedule.capacity), [schedule.ops[op].route or () for op in moves])
    found: dict[str, tuple[IntArray, FloatArray]] = {}
    for group in sorted(set(group_of)):
        links = [link for link, own in enumerate(group_of) if own == group]
        ops = [op for op in moves if group_of[(schedule.ops[op].route or (-1,))[0]] == group]
        if ops:
            found |= _group_rates(run, links, ops)
    order = [name for name in schedule.link_names if name in found]
    return {name: found[name] for name in order}


def _group_rates(run: Run, links: list[int], ops: list[int]) -> dict[str, tuple[IntArray, FloatArray]]:
    """`link_rates` of the links that these ops connect."""
    schedule = run.schedule
    kinds = sorted({(schedule.ops[op].route or (), schedule.ops[op].cap or np.inf) for op in ops})
    bundle = np.array([kinds.index((schedule.ops[op].route or (), schedule.ops[op].cap or np.inf)) for op in ops])
    work = schedule.demand[np.arange(run.iterations) % schedule.demand.shape[0]][:, ops]
    first = np.minimum(_first_bytes(run)[:, ops], run.ends[:, ops] - 1)
    sent = work > 0
    units, since, until = work[sent], first[sent], run.ends[:, ops][sent]
    of = np.broadcast_to(bundle, work.shape)[sent]
    if not units.size:
        return {}
    instants = np.unique(np.concatenate([since, until]))
    begins, ends = np.searchsorted(instants, since), np.searchsorted(instants, until)
    rates = _rates(run, links, kinds, _under_way(instants.size, len(kinds), of, begins, ends, np.ones(units.size)))
    seconds = np.diff(instants, append=instants[-1:]) / PS_PER_S
    served = np.concatenate([np.zeros((1, len(kinds))), np.cumsum(rates * seconds[:, None], axis=0)])
    weight = units / np.maximum(served[ends, of] - served[begins, of], 1e-9)
    carried = _under_way(instants.size, len(kinds), of, begins, ends, weight) * rates
    found = {}
    for link in links:
        crossing = [index for index, (route, _) in enumerate(kinds) if link in route]
        rate = carried[:, crossing].sum(axis=1)
        changed = np.flatnonzero(np.abs(np.diff(rate, prepend=0.0)) > 1e-6 * schedule.capacity[link])
        if changed.size:
            rate[-1] = 0.0
            found[schedule.link_names[link]] = instants[changed], np.maximum(rate[changed], 0.0)
    return found


def _first_bytes(run: Run) -> IntArray:
    """When the first byte of each flow moves, int64[T, ops]: after its latency, or after its start-up behind another
    message.
    """
    columns = run.schedule.columns
    latency, startup = (
        np.rint(columns.of_route(seconds) * PS_PER_S).astype(np.int64)
        for seconds in (columns.latency_s, columns.startup_s)
    )
    behind = begun(run)
    found: IntArray = np.where(
        behind > run.starts, np.maximum(behind + startup, run.starts + latency), run.starts + latency
    )
    return found


def _under_way(
    instants: int, bundles: int, of: IntArray, begins: IntArray, ends: IntArray, weight: FloatArray
) -> FloatArray:
    """The summed weights of each bundle's flows from each instant on, float64[instants, bundles]."""
    change = np.zeros((instants, bundles))
    np.add.at(change, (begins, of), weight)
    np.add.at(change, (ends, of), -weight)
    return np.cumsum(change, axis=0)


def _rates(run: Run, links: list[int], kinds: list[tuple[tuple[int, ...], float]], counts: FloatArray) -> FloatArray:
    """The rate of one flow of each bundle from each instant on, float64[instants, bundles]."""
    index = {link: position for position, link in enumerate(links)}
    sharing = Sharing(
        [run.schedule.capacity[link] for link in links],
        [tuple(index[link] for link in route) for route, _ in kinds],
        [None if cap == np.inf else cap for _, cap in kinds],
    )
    distinct, which = np.unique(np.rint(counts).astype(np.int64), axis=0, return_inverse=True)
    each = np.array([sharing.rates(tuple(row)) for row in distinct.tolist()])
    return np.asarray(each[which.ravel()])
