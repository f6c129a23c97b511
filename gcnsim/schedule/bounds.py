"""Analytic bounds of a schedule's iteration time, without simulation: max(resources, critical path) <= T <= sum.

A schedule is a max-plus system once the durations of its flows are fixed. Its period is the largest mean over cycles of
(work / iterations reached back).

Lower bound: with durations that no run can undercut, the period is at least the longest chain from the start of a
worker's iteration to its end. It is also at least the load of each stream and link. Upper bound: with durations that no
run can exceed, the period is at most the longest chain of the synchronous reading (every dependency of lag >= 1 counts
as lag 0). A chain that ends at another worker than it started at is not a cycle and gives no bound, because workers may
run the same iteration at different times for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Rank, Seconds
from gcnsim.schedule.columns import Columns, distinct_within, narrow, stream_waits
from gcnsim.schedule.schedule import Levels, Schedule, levels

AT_ONCE = 1_000_000
"""Durations that are handled at once: 8 MB."""

CHAINS_AT_ONCE = 8_000_000
"""Chains (of an op from a worker) that are followed at once: 64 MB, and some copies of them."""

MOST_CHAINS = 200_000_000
"""The most chains (of an op from a worker) that are followed for the lower bound: from about 300 workers on, only those
of workers with probably the longest ones, which still is a bound."""

FEW_CHAINS = 100_000
"""Up to this many chains (of an op from a worker), all are followed, because selecting some would take longer."""

ROUNDING = 1e-9
"""The relative error of a sum of seconds in another order; a generous bound."""


@dataclass(frozen=True, slots=True)
class ScheduleBounds:
    """Seconds per iteration: lower <= T <= upper."""

    lower_s: Seconds
    upper_s: Seconds


def bounds(schedule: Schedule) -> ScheduleBounds:
    """Bounds of the mean iteration, from the mean demand of each op."""
    load = _largest_load(schedule)
    return ScheduleBounds(
        lower_s=max(load, _longest_alone(schedule)),
        upper_s=max(load, _longest_serial(schedule, levels(schedule, collapse=True), _senders(schedule.columns))),
    )


def lower_bound(schedule: Schedule) -> Seconds:
    """`ScheduleBounds.lower_s` by itself."""
    return max(_largest_load(schedule), _longest_alone(schedule))


def _largest_load(schedule: Schedule) -> Seconds:
    """Of all streams and links, with the mean demand of each op."""
    return float(resource_loads(schedule).mean(axis=0).max())


def _longest_alone(schedule: Schedule) -> Seconds:
    """The longest chain from a worker's end to its next, with every flow alone on its links."""
    alone = _durations(schedule, schedule.demand.mean(axis=0), np.ones(1, np.int64))
    return _longest_cycle(schedule, levels(schedule), alone)


def least_seconds(schedule: Schedule, *, chains: bool = True) -> Seconds:
    """No mean iteration takes less: about `lower_bound`. Without `chains`, of loads alone: less tight, sooner found."""
    load = float(mean_loads(schedule).max())
    return max(load, _longest_alone(schedule)) if chains else load


def mean_loads(schedule: Schedule) -> FloatArray:
    """The mean over the graphs of `resource_loads`, float64[R]."""
    columns, demand = schedule.columns, schedule.demand.mean(axis=0)
    alone = _durations(schedule, demand, np.ones(1, np.int64))
    ops, links = columns.crossings
    streams = np.bincount(columns.stream, weights=alone, minlength=columns.streams)
    carried = np.bincount(links, weights=demand[ops], minlength=len(schedule.capacity)) / np.array(schedule.capacity)
    return np.concatenate([streams, carried])


def _senders(columns: Columns) -> IntArray:
    """For each of `crossings`, the senders whose flows cross its link: connections, or streams for ops without
    connection.

    A sender has at most one active flow.
    """

    def make() -> IntArray:
        ops, links = columns.crossings
        sender = np.where(columns.connection >= 0, columns.connection, -1 - columns.stream)
        return narrow(distinct_within(links, sender[ops]), columns.size)

    return columns.shortly("senders", make)


def concurrent_flows(columns: Columns) -> IntArray:
    """For each of `crossings`, the streams that cross its link with flows of the same stage.

    A method starts these flows together; they share kind, layer and direction.
    """

    def make() -> IntArray:
        ops, links = columns.crossings
        layers = int(columns.layer.max(initial=-1)) + 2
        stage = (columns.kind * layers + columns.layer + 1) * 3 + columns.direction
        return distinct_within(
            links.astype(np.int64) * (int(stage.max(initial=0)) + 1) + stage[ops], columns.stream[ops]
        )

    return columns.derived("together", make)


def estimate(schedule: Schedule) -> Seconds:
    """An estimate of the mean iteration for ranking candidates; neither a bound nor a simulation.

    The larger of the largest load and the longest chain to the end of an iteration. For the chain, a link is shared
    equally by the flows of the same kind, layer and direction, one per stream, because a method starts them together.
    """
    seconds = _durations(schedule, schedule.demand.mean(axis=0), concurrent_flows(schedule.columns))
    chain = levels(schedule).longest(seconds)[list(schedule.ends)].max()
    return max(float(chain), _largest_load(schedule))


def resource_loads(schedule: Schedule) -> FloatArray:
    """Seconds of work per graph and resource, float64[T, R]: the schedule's streams first, then its links.

    Streams count their flows at the rate without other flows.
    """
    return schedule.derived("loads", lambda: _loads(schedule))


def _loads(schedule: Schedule) -> FloatArray:
    columns, demand = schedule.columns, schedule.demand
    ops, links = columns.crossings
    latency = columns.of_route(columns.latency_s)
    alone = latency * (demand > 0) + demand / _rate_alone(schedule)
    carried = demand[:, ops] / np.array(schedule.capacity)[links]
    streams = _sums(alone, columns.stream, columns.streams)
    return np.concatenate([streams, _sums(carried, links, len(schedule.capacity))], axis=1)


def _sums(values: FloatArray, groups: IntArray, count: int) -> FloatArray:
    """Row by row, the sum of each group's columns, float64[T, count]."""
    return np.array([np.bincount(groups, weights=row, minlength=count) for row in values])


def _rate_alone(schedule: Schedule) -> FloatArray:
    """The rate of each op alone on its route, float64[ops]; 1 for exclusive work."""
    columns = schedule.columns
    ways = columns.least_on_route(np.array(schedule.capacity))
    return np.minimum(columns.of_route(ways, 1.0), np.where(columns.way >= 0, columns.cap, np.inf))


def _durations(
    schedule: Schedule, demand: FloatArray, sharers: IntArray, sends: FloatArray | None = None
) -> FloatArray:
    """Seconds of each op when `sharers` flows (including itself) share each of its links equally.

    demand and result: float64[T, ops], or float64[ops] for one iteration. sharers: for each of `crossings`, or one
    number for all. sends: the share of iterations in which an op has work; its latency counts only in these.
    """
    rate, delay = _divided(schedule, sharers)
    often = _sends(schedule) if sends is None else sends
    seconds: FloatArray = np.where((demand == 0) | ~schedule.is_flow, demand, delay * often + demand / rate)
    _take_turns(schedule, demand, seconds, sharers)
    return seconds


def _take_turns(schedule: Schedule, demand: FloatArray, seconds: FloatArray, sharers: IntArray) -> None:
    """Write to `seconds` the time of threads that share cores with others."""
    columns = schedule.columns
    threads = np.flatnonzero((columns.thread >= 0) & (columns.way >= 0))
    if not threads.size:
        return
    ops, _ = columns.crossings
    counts = np.ones(columns.size, np.int64)
    # The route of a thread is its cores, one link.
    counts[ops] = sharers
    shared = threads[counts[threads] > 1]
    if not shared.size:
        return
    for work, row in zip(np.atleast_2d(demand), np.atleast_2d(seconds), strict=True):
        turns = _turns(schedule, threads, work)
        busy = shared[work[shared] != 0]
        row[busy] = turns[columns.thread[busy]]


def _divided(schedule: Schedule, sharers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Rate and delay of each op, float64[ops], when `sharers` flows share its links; otherwise 1 and 0."""
    columns = schedule.columns
    ops, links = columns.crossings
    rate, others = np.ones(columns.size), np.zeros(columns.size)
    if ops.size:
        offered = np.array(schedule.capacity)[links]
        queue = columns.of_route(columns.queue)[ops]
        first = np.flatnonzero(np.diff(ops, prepend=-1))
        rate[ops[first]] = np.minimum.reduceat(offered / sharers, first)
        # With other flows active, the worst case is that they fill the links.
        others[ops[first]] = np.maximum.reduceat(queue * (sharers - 1) / offered, first)
    rate = np.where(columns.way >= 0, np.minimum(rate, columns.cap), rate)
    return rate, columns.of_route(columns.latency_s) + others


def _sends(schedule: Schedule) -> FloatArray:
    return np.asarray((schedule.demand > 0).mean(axis=0), dtype=np.float64)


def _turns(schedule: Schedule, threads: IntArray, demand: FloatArray) -> FloatArray:
    """An upper bound, per thread, on the seconds from a new task to its end. threads: the ops of threads.

    A task waits for earlier tasks of its thread, at most one per stream. Every other thread may use as much core time
    meanwhile, plus two slices: the current one, and one by which it was behind.
    """
    columns = schedule.columns
    thread, link = columns.thread[threads], columns.first_link()[threads]
    own_stream = thread.astype(np.int64) * columns.streams + columns.stream[threads]
    pairs, pair = np.unique(own_stream, return_inverse=True)
    largest = np.zeros(pairs.size)
    np.maximum.at(largest, pair, demand[threads])
    count = int(thread.max()) + 1
    own = np.bincount(pairs // columns.streams, weights=largest, minlength=count)
    machine = np.zeros(count, np.int64)
    machine[thread] = link
    known = np.unique(thread)
    there = np.bincount(machine[known], minlength=len(schedule.capacity))
    found = np.zeros(count)
    for item in known.tolist():
        cores = int(machine[item])
        slice_s = schedule.cores[cores].slice_s
        others, mine = int(there[cores]) - 1, float(own[item])
        found[item] = max(mine, (mine + others * (mine + 2 * slice_s)) / schedule.capacity[cores])
    return found


def _longest_serial(schedule: Schedule, order: Levels, sharers: IntArray) -> Seconds:
    """The mean longest chain of an iteration in which nothing overlaps with other iterations.

    If ops send only in some iterations, the longest chain varies and its mean exceeds the chain of mean durations. So
    it is computed per iteration.
    """
    demand, sends = schedule.demand, _sends(schedule)
    if not ((sends > 0.0) & (sends < 1.0)).any():
        rows = _behind(schedule, _durations(schedule, demand.mean(axis=0)[None], sharers))
        return float(_longest(schedule, order, rows)[0])
    several = max(1, AT_ONCE // schedule.columns.size)
    found = []
    for first in range(0, demand.shape[0], several):
        some = demand[first : first + several]
        rows = _behind(schedule, _durations(schedule, some, sharers, (some > 0).astype(np.float64)))
        found += _longest(schedule, order, rows).tolist()
    return float(np.mean(found))


def _behind(schedule: Schedule, seconds: FloatArray) -> FloatArray:
    """`seconds`, float64[T, ops], plus the time a message may wait for others of its connection.

    It waits for at most one message of each other stream, the longest.
    """
    columns = schedule.columns
    ops = columns.derived("connected", lambda: np.flatnonzero(columns.connection >= 0))
    if not ops.size:
        return seconds
    connection, pair, turn, own = columns.shortly("queues", lambda: _queues(columns, ops))
    longest = np.zeros((seconds.shape[0], turn.size))
    np.maximum.at(longest.T, pair, seconds[:, ops].T)
    every = np.zeros((seconds.shape[0], int(connection.max()) + 1))
    np.add.at(every.T, own, longest[:, turn].T)
    waiting = seconds.copy()
    waiting[:, ops] += np.where(seconds[:, ops] != 0, every[:, connection] - longest[:, pair], 0.0)
    return waiting


def _queues(columns: Columns, ops: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Of messages, their connection and their pair of a connection and a stream, int64[k] each; the pairs in the order
    in which the streams come first on their connection, and whose connection each is, int64[pairs]."""
    connection = columns.connection[ops].astype(np.int64)
    pairs, first, pair = np.unique(
        connection * columns.streams + columns.stream[ops], return_index=True, return_inverse=True
    )
    turn = np.argsort(first, kind="stable")
    return connection, pair, turn, pairs[turn] // columns.streams


def _longest(schedule: Schedule, order: Levels, seconds: FloatArray) -> FloatArray:
    """Length of the longest chain that ends an iteration, float64[T]; seconds: float64[T, ops].

    Transfers that end later are not part of it.
    """
    ends = list(schedule.ends)
    if seconds.shape[0] == 1:
        return np.asarray(order.longest(seconds[0])[ends].max(keepdims=True))
    return np.asarray(order.longest(np.ascontiguousarray(seconds.T))[ends].max(axis=0))


def _longest_cycle(schedule: Schedule, order: Levels, seconds: FloatArray) -> Seconds:
    """Length of the longest chain from an op that waits for a worker's previous end to that worker's next end."""
    begins = schedule.columns.shortly(f"starts after {schedule.ends}", lambda: _start_times(schedule))
    ends = list(schedule.ends)
    workers, size = schedule.workers, schedule.columns.size
    if workers * size <= FEW_CHAINS:
        return max(0.0, float(_own_chains(order, seconds, begins, ends).max()))
    rank, most = _at_most(order, seconds, begins, ends)
    wanted = np.argsort(-most, kind="stable")
    # The worker where the longest chain of all begins probably has a cycle of about that length.
    wanted = np.concatenate([[rank], wanted[wanted != rank]])[: max(1, MOST_CHAINS // size)]
    longest, done, several = 0.0, 0, 1
    while done < wanted.size and (done == 0 or most[wanted[done]] > longest):
        some = wanted[done : done + several].tolist()
        own = _own_chains(order, seconds, [begins[worker] for worker in some], [ends[worker] for worker in some])
        longest, done = max(longest, float(own.max())), done + len(some)
        several = max(1, min(2 * several, CHAINS_AT_ONCE // size))
    return longest


def _own_chains(order: Levels, seconds: FloatArray, begins: list[IntArray], ends: list[int]) -> FloatArray:
    """For each worker, the longest chain from one of its `begins` to its end, float64[len(ends)]."""
    begin = np.full((seconds.size, len(ends)), -np.inf)
    for index, ops in enumerate(begins):
        begin[ops, index] = 0.0
    if len(ends) == 1:
        return order.longest(seconds, begin[:, 0])[ends]
    return order.longest(seconds[:, None], begin)[ends, np.arange(len(ends))]


def _at_most(order: Levels, seconds: FloatArray, begins: list[IntArray], ends: list[int]) -> tuple[Rank, FloatArray]:
    """The worker where the longest chain of all starts, and an upper bound on each worker's chain, float64[P].

    The bound uses the longest chain from any begin to its end, and from its begin to any end.
    """
    begin, last = np.full(seconds.size, -np.inf), np.full(seconds.size, -np.inf)
    begin[np.concatenate(begins)] = 0.0
    last[ends] = 0.0
    arriving = order.longest(seconds, begin)[ends]
    behind = order.remaining(seconds, last)
    leaving = np.array([behind[ops].max(initial=-np.inf) for ops in begins])
    # Sums in another order: rounding must not exclude the longest.
    return int(leaving.argmax()), np.minimum(arriving, leaving * (1.0 + ROUNDING))


def _start_times(schedule: Schedule) -> list[IntArray]:
    """By worker, the ops that wait for the end of its previous iteration."""
    columns, streams = schedule.columns, stream_waits(schedule.columns)
    closing = ~columns.is_reuse() & (columns.lag == 1) & np.isin(columns.wait, schedule.ends)
    # If an end is the last op of its stream, the stream's first op waits for it too.
    heads = np.flatnonzero((streams.lag == 1) & np.isin(streams.before, schedule.ends))
    who = np.concatenate([columns.rows_of_waits()[closing], heads])
    whom = np.concatenate([columns.wait[closing], streams.before[heads]])
    return [who[whom == last] for last in schedule.ends]
