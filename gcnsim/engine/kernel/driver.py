"""Run the kernel: convert a schedule to the kernel's arrays, answer its callbacks, return the result as a `Run`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray
from gcnsim.engine.kernel.groups import capacities, grouped, never_full, remembered
from gcnsim.engine.kernel.memory import (
    ARRAYS,
    ASKED,
    ASKS,
    CAPACITY,
    CLOSING,
    COMPLETE,
    DELAY,
    FIRSTS,
    GRAIN,
    GROUPS,
    HEADS,
    LATENCY,
    LATES,
    OPENED,
    OPS,
    QUEUE,
    RATES,
    RESOURCES,
    RING,
    SCALAR,
    SCALARS,
    STARTUP,
    STOP,
    STOPPED,
    SUPPLY,
    WORDS,
    Calendar,
    Flows,
    Grains,
    Known,
    Links,
    Machines,
    Messages,
    Ops,
    Rows,
    State,
    packed,
    real,
    whole,
)
from gcnsim.engine.kernel.store import LoadedKernel
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import Stop, StopCondition
from gcnsim.schedule import Schedule
from gcnsim.schedule.columns import Columns, rows_by, stream_waits
from gcnsim.timeline import PS_PER_S

LARGE: Final = 48
"""The fewest bundles of a group that is shared once per grain; smaller ones are cheap to share exactly."""


KEPT: Final = 2_000
"""Most ops of a structure whose blocks are kept: to lay out more takes no time beside their run."""


def blocks(schedule: Schedule, most: int, large: int = LARGE) -> tuple[IntArray, FloatArray]:
    """`layout` in blocks (`packed`); a structure is laid out once, and then copied with other delays and capacities.

    Kept is the last layout of a structure, for so many iterations and links.
    """
    columns, spare = schedule.columns, _spare(schedule)
    if schedule.cores or schedule.grain_s > 0.0 or columns.size > KEPT:
        return packed(layout(schedule, most, large))
    used_ints, whole_size, used_floats, real_size = columns.latest(
        "blocks", (most, len(schedule.capacity), spare), lambda: _used(*packed(layout(schedule, most)))
    )
    ints, floats = np.zeros(whole_size, np.int64), np.empty(real_size)
    ints[: used_ints.size], floats[: used_floats.size] = used_ints, used_floats
    whole(ints, LATENCY)[:], whole(ints, STARTUP)[:] = _delays(columns)
    real(ints, floats, QUEUE)[:] = columns.of_route(columns.queue)
    capacity = capacities(schedule.capacity, columns, _sent(columns), spare)
    real(ints, floats, CAPACITY)[:], real(ints, floats, SUPPLY)[:] = capacity, capacity
    return ints, floats


def _used(ints: IntArray, floats: FloatArray) -> tuple[IntArray, int, FloatArray, int]:
    """Two blocks up to the room for what a run remembers, and their sizes."""
    return ints[: ints[2 * WORDS]].copy(), ints.size, floats[: ints[2 * (ARRAYS + RATES)]].copy(), floats.size


def _spare(schedule: Schedule) -> tuple[int, ...]:
    """Links that are never full; none are left out of groups that are shared once per grain, whose links owe."""
    columns = schedule.columns
    return () if schedule.grain_s > 0.0 else never_full(schedule.capacity, columns, _sent(columns))


def _sent(columns: Columns) -> BoolArray:
    """bool[n]: the flows that are no thread's task."""
    return columns.derived("sent", lambda: columns.is_flow & (columns.thread < 0))


def _delays(columns: Columns) -> tuple[IntArray, IntArray]:
    """Latency and start-up of each op, in picoseconds."""
    latency, startup = (
        np.rint(columns.of_route(seconds) * PS_PER_S).astype(np.int64)
        for seconds in (columns.latency_s, columns.startup_s)
    )
    return latency, startup


def layout(schedule: Schedule, most: int, large: int = LARGE) -> State:
    """The state before the first event of a run of at most `most` iterations.

    large: fewest bundles of a group that is shared once per grain, where the schedule has one.
    """
    columns = schedule.columns
    grain = max(1, round(schedule.grain_s * PS_PER_S)) if schedule.grain_s > 0.0 else 0
    threads, sent = (columns.thread >= 0) & columns.is_flow, _sent(columns)
    spare = _spare(schedule)
    links, crossed = grouped(schedule.capacity, columns, sent, spare)
    thread, machines = _machines(schedule, columns, threads)
    ops = _ops(columns, np.where(threads, DELAY - 1 - thread, crossed))
    flows = _flows(columns, crossed, links, spare)
    messages = _messages(columns, sent)
    resources = links.last.size + machines.cores.size
    calendar = _calendar(ops, links.last.size, resources, columns.streams, most)
    calendar.scalar[GRAIN] = grain
    grains = _grains(ops, links, grain, large)
    if grains.grouped.any():
        slots, key_at, rate_at = remembered(np.diff(links.first_bundle), links.kept, links.alone | grains.grouped)
        links = links._replace(slots=slots, key_at=key_at, rate_at=rate_at)
    known = Known(
        np.broadcast_to(np.int64(0), int(links.key_at[-1])), np.broadcast_to(0.0, int(links.rate_at[-1]))
    )  # fmt: skip
    return State(ops, calendar, links, flows, messages, machines, grains, known)


def rows_of(schedule: Schedule, most: int) -> Rows:
    """The rows of such a run."""
    columns, count = schedule.columns, schedule.columns.size
    work = np.where(_sent(columns), schedule.demand, np.rint(schedule.demand * PS_PER_S))
    rows = Rows(np.ascontiguousarray(work).ravel(), *(np.empty(most * count, np.int64) for _ in range(3)))
    rows.ends[:count] = -1
    rows.missing[:count] = _waits_of(columns).waits_now
    return rows


class _Waits(NamedTuple):
    """The dependencies of ops, in the form of `Ops`."""

    follower_at: IntArray
    follower: IntArray
    follower_lag: IntArray
    waits_now: IntArray
    late_op: IntArray
    late_on: IntArray
    late_lag: IntArray
    head: IntArray


def _ops(columns: Columns, bundle: IntArray) -> Ops:
    latency, startup = _delays(columns)
    return Ops(
        bundle=bundle,
        latency=latency,
        startup=startup,
        connection=columns.connection,
        **_waits_of(columns)._asdict(),
        queue=columns.of_route(columns.queue),
    )


def _waits_of(columns: Columns) -> _Waits:
    return columns.shortly("followers", lambda: _found_waits(columns))


def _found_waits(columns: Columns) -> _Waits:
    wait_at, whom, back = columns.every_wait()
    who = np.repeat(np.arange(columns.size, dtype=whom.dtype), np.diff(wait_at))
    at, places = rows_by(whom, columns.size)
    late = back > 0
    return _Waits(
        follower_at=at,
        follower=who[places],
        follower_lag=back[places],
        waits_now=np.bincount(who[~late], minlength=columns.size).astype(np.int64),
        late_op=who[late],
        late_on=whom[late],
        late_lag=back[late],
        head=np.flatnonzero(stream_waits(columns).lag == 1),
    )


def _calendar(ops: Ops, groups: int, resources: int, streams: int, most: int) -> Calendar:
    """An empty calendar with iteration 0 opened."""
    scalar = np.zeros(SCALARS, np.int64)
    first = ops.head[ops.waits_now[ops.head] == 0]
    room = streams + 1
    scalar[[OPENED, FIRSTS, ASKED, STOP, RING, RESOURCES]] = 1, first.size, most - 1, -1, room, resources + 1
    scalar[[OPS, GROUPS, HEADS, LATES]] = ops.bundle.size, groups, ops.head.size, ops.late_op.size
    running = np.zeros(most, np.int64)
    running[0] = ops.bundle.size
    # A stream has at most one active op, and a resource one timer and one place in the queue.
    return Calendar(
        scalar=scalar,
        time=_ints(room),
        serial=_ints(room),
        which=_ints(room),
        timer_time=_ints(resources + 1),
        timer_serial=_ints(resources + 1),
        timer_place=np.full(resources + 1, -1, np.int64),
        timer_heap=_ints(resources + 1),
        dirty=_ints(resources + 1),
        dirty_queue=_ints(resources + 1),
        ended=_ints(room),
        todo=_ints(room),
        done=_ints(room),
        first=first,
        running=running,
        closing=_ints(most),
    )


def _flows(columns: Columns, bundle: IntArray, links: Links, spare: tuple[int, ...]) -> Flows:
    """No active flow, with room for one per stream of a bundle."""
    size, groups = links.group.size, links.last.size
    room_at = columns.lately("room", (size, spare), lambda: _room(bundle, columns.stream, size))
    return Flows(
        counts=_ints(size),
        room_at=room_at,
        serial=_ints(int(room_at[-1])),
        which=_ints(int(room_at[-1])),
        started=_ints(groups),
        before=_ints(groups),
        target=np.zeros(int(room_at[-1])),
        rates=np.zeros(size),
        service=np.zeros(size),
        heads=np.full(size, np.inf),
        number=np.zeros(int(links.turned[-1])),
        crossing=np.zeros(links.capacity.size),
        words=_ints(int(links.word_at[-1])),
        mark=_ints(groups),
        live=_ints(int(links.live_at[-1])),
    )


def _grains(ops: Ops, links: Links, grain: int, large: int) -> Grains:
    """The groups of at least `large` bundles, shared once per `grain` picoseconds unless flows wait for queues."""
    size = links.group.size
    kinds = np.add.reduceat((np.diff(links.route_at) > 0).astype(np.int64), links.first_bundle[:-1])
    wide = np.where(links.senders > 0, np.diff(links.first_bundle), kinds)
    grouped = (wide >= large) & (grain > 0)
    grouped[links.group[ops.bundle[(ops.bundle >= 0) & (ops.queue > 0)]]] = False
    # The grain before the run is over.
    links.last[grouped] = -grain
    return Grains(
        grouped=grouped.astype(np.int64),
        due_size=_ints(grouped.size),
        due_time=_ints(size),
        due_place=np.full(size, -1, np.int64),
        due_heap=_ints(size),
        free_capacity=np.zeros(links.capacity.size),
        carry_over=np.zeros(links.capacity.size),
    )


def _messages(columns: Columns, flows: BoolArray) -> Messages:
    """Empty connections, with room for one message per stream."""
    count = int(columns.connection.max(initial=-1)) + 1
    at = columns.derived("connections", lambda: _room(np.where(flows, columns.connection, -1), columns.stream, count))
    return Messages(at, _ints(count), _ints(count), _ints(int(at[-1])), np.zeros(count))


def _machines(schedule: Schedule, columns: Columns, threads: BoolArray) -> tuple[IntArray, Machines]:
    """The thread number of each op (of those in `threads`), and the machines without active threads."""
    links = tuple(schedule.cores)
    of_op, own, at = columns.derived(f"threads of {links}", lambda: _threads(links, columns, threads))
    count = own.size
    specs = list(schedule.cores.values())
    return of_op, Machines(
        cores=np.array([spec.cores for spec in specs], np.int64),
        slice_ps=np.array([round(spec.slice_s * PS_PER_S) for spec in specs], np.int64),
        wake_ps=np.array([round(spec.wake_s * PS_PER_S) for spec in specs], np.int64),
        first=np.searchsorted(own, np.arange(len(specs))).astype(np.int64),
        running=_ints(count),
        running_size=_ints(len(specs)),
        ready_thread=_ints(count),
        ready_serial=_ints(count),
        ready_size=_ints(len(specs)),
        serial=_ints(len(specs)),
        last=_ints(len(specs)),
        machine=own.copy(),
        at=at,
        head=_ints(count),
        size=_ints(count),
        since=_ints(count),
        on=_ints(count),
        woken=_ints(count),
        tasks=_ints(int(at[-1])),
        ready_had=np.zeros(count),
        left=np.zeros(int(at[-1])),
        had=np.zeros(count),
        capacity=np.array([schedule.capacity[link] for link in schedule.cores], np.float64),
        least=np.zeros(len(specs)),
    )


def _threads(links: tuple[int, ...], columns: Columns, threads: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """The thread of each op of `threads` on the machines that are these links, int64[n], -1 for other ops.

    Also the machine of each thread, and where the tasks of each begin.
    """
    numbers = {link: index for index, link in enumerate(links)}
    chosen = np.flatnonzero(threads)
    machine = np.array([numbers[link] for link in columns.first_link()[chosen].tolist()], np.int64)
    pairs, slots = np.unique(np.stack([machine, columns.thread[chosen]], axis=1), axis=0, return_inverse=True)
    of_op = np.full(columns.size, -1, np.int64)
    of_op[chosen] = slots.ravel()
    own = pairs[:, 0]
    return of_op, own, _room(of_op, columns.stream, own.size)


def _room(owner: IntArray, stream: IntArray, count: int) -> IntArray:
    """The first index of each of `count` owners' slots, int64[count + 1]: one slot per stream whose ops it owns.

    owner: the owner of each op, negative for none.
    """
    own = owner >= 0
    width = int(stream.max(initial=0)) + 1
    pairs = np.unique(owner[own].astype(np.int64) * width + stream[own])
    at = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(pairs // width, minlength=count), out=at[1:])
    return at


def _ints(size: int) -> IntArray:
    return np.zeros(size, np.int64)


Kernel = Callable[[IntArray, FloatArray, FloatArray, IntArray, IntArray, IntArray, int, int], int]
"""`gcnsim.engine.kernel.run.run`, interpreted or compiled."""


def simulate_by(
    kernel: Kernel,
    schedule: Schedule,
    iterations: int,
    enough: StopCondition | None = None,
    *,
    endless: bool = False,
    large: int = LARGE,
) -> Run:
    """Run `schedule` on `kernel`, with the result of `gcnsim.engine.reference.simulate`; with a grain approximately so.

    large: the fewest bundles of a group that is shared once per grain (`coarse`).

    Raises RuntimeError for a run that gets stuck.
    """
    stop = Stop(schedule, iterations, enough, endless=endless)
    (ints, floats), rows = blocks(schedule, stop.opened, large), rows_of(schedule, stop.opened)
    scalar, closing = whole(ints, SCALAR), whole(ints, CLOSING)
    count, graphs = schedule.columns.size, schedule.demand.shape[0]
    scalar[ASKED] = stop.next_check(0) - 1
    starts, ends = rows.starts.reshape(-1, count), rows.ends.reshape(-1, count)
    complete, on = 0, kernel.on if isinstance(kernel, LoadedKernel) else partial(partial, kernel)
    go_on = on(ints, floats, *rows, graphs, stop.opened)
    while True:
        why = go_on()
        if why == STOPPED:
            break
        if why != ASKS:
            raise RuntimeError(f"{schedule.method}: nothing is left to happen after {scalar[COMPLETE]} iterations")
        while complete < scalar[COMPLETE] and scalar[STOP] < 0:
            complete += 1
            if stop.over(starts, ends, complete):
                scalar[STOP] = closing[complete - 1]
        # All complete iterations were checked, or no more checks are needed.
        scalar[ASKED] = stop.opened if scalar[STOP] >= 0 else stop.next_check(complete) - 1
    return stop.run(starts, ends, int(scalar[COMPLETE]))
