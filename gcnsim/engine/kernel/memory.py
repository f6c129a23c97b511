"""The kernel's data: flat arrays in two blocks of memory, and their names.

Compiled code receives only the addresses of the blocks. The first words of the integer block are a table with the begin
and end of array k of either block. `views` reads it and `packed` writes it, both in the order of the fields below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray

NOW: Final = 0
"""Indices in `Calendar.scalar`: the present instant, in picoseconds."""
SERIAL: Final = 1
"""Serial number of the next event."""
EVENTS: Final = 2
"""Events in the heap."""
TIMERS: Final = 3
"""Active timers."""
DIRTY_HEAD: Final = 4
"""The start of the queue of groups to share again (a ring)."""
DIRTY_SIZE: Final = 5
"""The number of groups in that queue."""
OPENED: Final = 6
"""Iterations with an op that has begun or waits."""
COMPLETE: Final = 7
"""Iterations whose ops have all ended."""
ASKED: Final = 8
"""The kernel returns when more iterations than this are complete."""
STOP: Final = 9
"""Serial number of the event that ends the run at this instant, -1 for none."""
ENDED_HEAD: Final = 10
"""The start of the ring of ops that have ended and whose followers are not notified yet."""
ENDED_SIZE: Final = 11
"""The number of ops in that ring."""
READY: Final = 12
"""Ops without remaining dependencies that are about to begin."""
FIRST: Final = 13
"""Ops of iteration 0 that are still to begin."""
FIRSTS: Final = 14
"""Ops that iteration 0 begins with."""
DONE: Final = 15
"""Flows and tasks that are finished at this instant."""
OPS: Final = 16
"""Ops of an iteration."""
GROUPS: Final = 17
"""Groups of links: resources before the first machine."""
RING: Final = 18
"""Capacity of the ring of ended ops."""
RESOURCES: Final = 19
"""Capacity of the queue of groups to share again."""
HEADS: Final = 20
"""Ops that are first on their stream."""
LATES: Final = 21
"""Waits on earlier iterations."""
GRAIN: Final = 22
"""The least picoseconds between two sharings of a group that is shared once per grain (`Grains`)."""
SCALARS: Final = 23
"""Words in `Calendar.scalar`."""
SCALAR: Final = 12
"""Which of the arrays of integers is `Calendar.scalar`."""
CLOSING: Final = 27
"""Which is `Calendar.closing`."""
LATENCY, STARTUP, QUEUE = 1, 2, 0
"""Which are those of `Ops`, the last of the arrays of floats."""
CAPACITY, SUPPLY = 1, 8
"""Which of the arrays of floats are those of `Links`."""
WORDS, RATES = 94, 23
"""Which are those of `Known`, the last of the arrays of floats."""

ASKS, STUCK, STOPPED = 1, 2, 3
"""Why the kernel returned: an iteration is complete, nothing is left to happen, the event that ends the run is reached.
"""

DELAY: Final = -1
"""In place of a bundle, of exclusive work; that of a task of thread t is DELAY - 1 - t."""


class Ops(NamedTuple):
    """n ops. bundle: of a flow, DELAY for exclusive work, TASK - thread for a task of a thread. latency, startup:
    picoseconds. connection: -1 for none. follower_at, follower, follower_lag: who waits for an op, by (offset, op,
    lag). waits_now: waits of lag 0. late_op, late_on, late_lag: the others, (who, for whom, how far back). head: ops
    that are first on their stream, ascending. queue: units that others may have ahead."""

    bundle: IntArray
    latency: IntArray
    startup: IntArray
    connection: IntArray
    follower_at: IntArray
    follower: IntArray
    follower_lag: IntArray
    waits_now: IntArray
    late_op: IntArray
    late_on: IntArray
    late_lag: IntArray
    head: IntArray
    queue: FloatArray


class Calendar(NamedTuple):
    """The event queue.

    time, serial, which: a heap of events by (time, serial); an event is iteration * 2**32 + op. timer_time,
    timer_serial, timer_place: of each resource (group of links or machine), its place in timer_heap or -1. dirty,
    dirty_queue: resources to share again at this instant, in the order in which they became dirty.
    """

    scalar: IntArray
    time: IntArray
    serial: IntArray
    which: IntArray
    timer_time: IntArray
    timer_serial: IntArray
    timer_place: IntArray
    timer_heap: IntArray
    dirty: IntArray
    dirty_queue: IntArray
    ended: IntArray
    todo: IntArray
    done: IntArray
    first: IntArray
    running: IntArray
    closing: IntArray


class Links(NamedTuple):
    """G groups of links, their B bundles and L links, numbered through. first_bundle, first_link: int64[G + 1].
    shared: the first link of each group that is a bundle's own cap. route_at, route: the links of each
    bundle. live_at: int64[G + 1], where the words of each group begin in `Flows.live`; word, bit: of each bundle, its
    bit there, in the order of its group (`ordered`, by bit). crossing_at, crossing, crossing_bits: the bundles of each
    link, as (offset, word, bits). senders, receivers: of a group that is shared as a matrix
    (`fill_dense`), 0 of others; planes: the most bundles of a sender and a receiver; rank: of its links, which of
    equally tight ones goes first. turned: where its transposed counts begin in `Flows.number`. alone: 1 of a group that
    one bundle has to itself. slots: of each group, how many sharings are remembered (`sharing.share`), 0 or a power of
    two; word_at: int64[G + 1], where its counts begin in `Flows.words`; key_at, rate_at: where its sharings begin in
    `Known`. token: by bundle, what a flow of it adds to `Flows.mark`. capacity: units per picosecond. kept: of each
    group, the words of a sharing in `Known.rates`. rising, following, ring: room to work in, by word, by bundle and by
    link; left, weight, share, level, step, waiting: by link. supply: the capacity, and what is owed
    besides."""

    first_bundle: IntArray
    first_link: IntArray
    shared: IntArray
    group: IntArray
    route_at: IntArray
    route: IntArray
    crossing_at: IntArray
    crossing: IntArray
    crossing_bits: IntArray
    word: IntArray
    bit: IntArray
    ordered: IntArray
    live_at: IntArray
    senders: IntArray
    receivers: IntArray
    planes: IntArray
    rank: IntArray
    turned: IntArray
    last: IntArray
    alone: IntArray
    slots: IntArray
    word_at: IntArray
    key_at: IntArray
    rate_at: IntArray
    token: IntArray
    rising: IntArray
    following: IntArray
    ring: IntArray
    kept: IntArray
    capacity: FloatArray
    left: FloatArray
    weight: FloatArray
    share: FloatArray
    level: FloatArray
    step: FloatArray
    waiting: FloatArray
    supply: FloatArray


class Flows(NamedTuple):
    """Flows under way by bundle. counts: how many. room_at: where those of a bundle are kept, as a heap by (target,
    serial): service at which each is done, and its event. started, before: serials of each group's last flow, and of
    the last that started before this instant. rates: units per picosecond of one flow. service: what each flow of a
    bundle has received. heads: the least target of a bundle, infinite without flows. number: counts by bundle of groups
    that are shared as a matrix, behind them transposed, and then the flows beside the matrix and those of each plane.
    crossing: flows of each link, 1 at most of a cap. words: the counts of each group, `PACKED` to a word; mark: a
    number of each group that they make."""

    counts: IntArray
    room_at: IntArray
    serial: IntArray
    which: IntArray
    started: IntArray
    before: IntArray
    words: IntArray
    mark: IntArray
    live: IntArray
    target: FloatArray
    rates: FloatArray
    service: FloatArray
    heads: FloatArray
    number: FloatArray
    crossing: FloatArray


class Messages(NamedTuple):
    """Messages by connection, in rings. at: where each ring begins.

    following: units of the messages behind the first.
    """

    at: IntArray
    head: IntArray
    size: IntArray
    which: IntArray
    following: FloatArray


class Machines(NamedTuple):
    """M machines whose cores threads take turns on, and their threads, numbered through. cores, slice_ps, wake_ps: of
    each machine. first: its first place in running and ready. running, running_size: threads on cores. ready_thread,
    ready_serial, ready_had, ready_size: a heap of those that wait. machine, at, head, size, since, on, woken: of each
    thread its machine, its ring of tasks, since when it has its core, whether it has one, and whether it waits for its
    first since it was given work. tasks, left: events, and core picoseconds left of them. had: core time of each
    thread. capacity: core-seconds per second of a machine. least: core time of who has had least."""

    cores: IntArray
    slice_ps: IntArray
    wake_ps: IntArray
    first: IntArray
    running: IntArray
    running_size: IntArray
    ready_thread: IntArray
    ready_serial: IntArray
    ready_size: IntArray
    serial: IntArray
    last: IntArray
    machine: IntArray
    at: IntArray
    head: IntArray
    size: IntArray
    since: IntArray
    on: IntArray
    woken: IntArray
    tasks: IntArray
    ready_had: FloatArray
    left: FloatArray
    had: FloatArray
    capacity: FloatArray
    least: FloatArray


class Grains(NamedTuple):
    """Groups of links that are shared once per grain (`coarse`). grouped: int64[G], 1 for such a group, whose `last` is
    its last sharing, and whose service and supply are those since. due_size, due_heap: a heap of bundles for each
    group, from its first bundle on, by due_time, when the first flow is done; due_place: of each bundle, -1 for none.
    free_capacity: of each link, units per picosecond that nobody has. carry_over: units it could not carry in this
    grain."""

    grouped: IntArray
    due_size: IntArray
    due_time: IntArray
    due_place: IntArray
    due_heap: IntArray
    free_capacity: FloatArray
    carry_over: FloatArray


class Known(NamedTuple):
    """Sharings that are remembered, the last arrays of their blocks. words: counts of a group, and 1 more, so that 0 is
    none; rates: what they had."""

    words: IntArray
    rates: FloatArray


class Rows(NamedTuple):
    """Iterations by ops, row after row. work: picoseconds or units, of as many graphs as there are, in turn. starts,
    ends: picoseconds, -1 of what has not ended. missing: what each op still waits for."""

    work: FloatArray
    starts: IntArray
    ends: IntArray
    missing: IntArray


class State(NamedTuple):
    """The complete state, without the rows."""

    ops: Ops
    calendar: Calendar
    links: Links
    flows: Flows
    messages: Messages
    machines: Machines
    grains: Grains
    known: Known


BITS: Final = 62
"""Bundles in a word of bits, which is never negative."""

PACKED: Final = 15
"""Counts of flows in a word, of four bits each."""

MOST: Final = 15
"""The most that four bits count."""

ARRAYS: Final = 96
"""Capacity of the table of arrays of one block."""

_ALIGNED: Final = 8
"""Arrays are aligned to this number of words: a cache line."""


def whole(ints: IntArray, place: int) -> IntArray:
    """Array `place` of the block of integers (compiled, the address of its first word)."""
    return ints[ints[2 * place] : ints[2 * place + 1]]


def real(ints: IntArray, floats: FloatArray, place: int) -> FloatArray:
    """Array `place` of the block of floats, whose table is the second half of that of the integers."""
    return floats[ints[2 * (ARRAYS + place)] : ints[2 * (ARRAYS + place) + 1]]


def packed(state: State) -> tuple[IntArray, FloatArray]:
    """The arrays of `state` copied into two blocks, with the table of where each is; what is one 0 throughout is room
    for so many, of floats with anything in it."""
    arrays = [array for part in state for array in part]
    ints = [array for array in arrays if array.dtype.kind == "i"]
    floats = [array for array in arrays if array.dtype == np.float64]
    table = np.zeros(4 * ARRAYS, np.int64)
    whole_at, size = _places(ints, table.size)
    real_at, real_size = _places(floats, 0)
    table[: 2 * len(ints)] = whole_at
    table[2 * ARRAYS : 2 * (ARRAYS + len(floats))] = real_at
    whole_block, real_block = np.zeros(size, np.int64), np.empty(real_size)
    whole_block[: table.size] = table
    _fill(whole_block, ints, whole_at)
    _fill(real_block, floats, real_at)
    return whole_block, real_block


def _fill(block: IntArray | FloatArray, arrays: Sequence[IntArray | FloatArray], places: Sequence[int]) -> None:
    for index, array in enumerate(arrays):
        if array.strides != (0,) or array[:1].any():
            block[places[2 * index] : places[2 * index + 1]] = array


def _places(arrays: Sequence[IntArray | FloatArray], begin: int) -> tuple[list[int], int]:
    """Begin and end of each array, flat, in a block whose first `begin` words are in use; and the size of the block."""
    places: list[int] = []
    for array in arrays:
        places += [begin, begin + array.size]
        begin += -(-array.size // _ALIGNED) * _ALIGNED
    return places, max(begin, 1)
