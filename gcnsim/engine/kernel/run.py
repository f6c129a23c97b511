"""The reference engine's run in flat arrays: the same events in the same order, so the same picoseconds.

Plain Python that imports nothing slow. `gcnsim.engine.kernel.machine_code` compiles it; run as it stands it does the
same, which tests hold. What an event leads to is done step by step from lists, in the order in which the calls of
`gcnsim.engine.reference` would do it, so that each step is written, and compiled, once.
"""

from __future__ import annotations

from gcnsim.engine.kernel.core_turns import add_thread, next_event, schedule_cores
from gcnsim.engine.kernel.flights import OP, backlog, finish, join, next_dirty, share_group
from gcnsim.engine.kernel.heaps import clear_timer, pop_event, push_event
from gcnsim.engine.kernel.memory import (
    ASKED,
    ASKS,
    COMPLETE,
    DELAY,
    DIRTY_SIZE,
    DONE,
    ENDED_HEAD,
    ENDED_SIZE,
    EVENTS,
    FIRST,
    FIRSTS,
    GROUPS,
    HEADS,
    LATES,
    NOW,
    OPENED,
    OPS,
    READY,
    RING,
    SERIAL,
    STOP,
    STOPPED,
    STUCK,
    TIMERS,
    Calendar,
    Ops,
    Rows,
    State,
)
from gcnsim.engine.kernel.views import state_of
from gcnsim.ids import FloatArray, IntArray

NOTHING, EVENT, TIMER, SHARING = 0, 1, 2, 3
"""What happens next."""

AT_ONCE, ELSEWHERE = -1, -2
"""In place of the picoseconds until an op goes on: its flow starts now; its end will be told by others."""

SHIFT = 32
"""Bits of an event below its iteration."""


def run(
    ints: IntArray,
    floats: FloatArray,
    work: FloatArray,
    starts: IntArray,
    ends: IntArray,
    missing: IntArray,
    graphs: int,
    most: int,
) -> int:
    """Go on with the run in the blocks `ints` and `floats` until there is something to ask; why it returns.

    work, starts, ends, missing: the rows of the run (`memory.Rows`), `graphs` of work and `most` of the others.
    """
    state, rows = state_of(ints, floats), Rows(work, starts, ends, missing)
    calendar = state.calendar
    scalar = calendar.scalar
    event, group = -1, -1
    scalar[DONE] = 0
    while True:
        # The first time it is the ops of iteration 0 that begin; when a run goes on, nothing follows from nothing.
        _all_that_follows(state, rows, graphs, most, event, group)
        if scalar[COMPLETE] > scalar[ASKED]:
            return ASKS
        what = _upcoming(calendar)
        if scalar[STOP] >= 0 and (what == NOTHING or _after_stop(calendar, what)):
            return STOPPED
        if what == NOTHING:
            return STUCK
        event, group = _happen(state, what)


def _upcoming(calendar: Calendar) -> int:
    """What happens next: the first event or timer, or once this instant has none a sharing."""
    scalar = calendar.scalar
    what, time, serial = NOTHING, calendar.time[0], calendar.serial[0]
    if scalar[EVENTS]:
        what = EVENT
    if scalar[TIMERS]:
        first = calendar.timer_heap[0]
        due, number = calendar.timer_time[first], calendar.timer_serial[first]
        if what == NOTHING or due < time or (due == time and number < serial):
            what, time = TIMER, due
    if scalar[DIRTY_SIZE] and (what == NOTHING or time > scalar[NOW]):
        what = SHARING
    return what


def _after_stop(calendar: Calendar, what: int) -> bool:
    """Whether the event that ends the run comes before what happens next."""
    if what == SHARING:
        return True
    first = calendar.timer_heap[0]
    time = calendar.time[0] if what == EVENT else calendar.timer_time[first]
    serial = calendar.serial[0] if what == EVENT else calendar.timer_serial[first]
    return bool(time > calendar.scalar[NOW] or serial > calendar.scalar[STOP])


def _happen(state: State, what: int) -> tuple[int, int]:
    """Let happen what happens next: (the event whose delay or latency is over, the group to share), -1 for none."""
    calendar = state.calendar
    scalar = calendar.scalar
    groups = scalar[GROUPS]
    scalar[DONE] = 0
    if what == EVENT:
        scalar[NOW] = calendar.time[0]
        return pop_event(calendar), -1
    if what == SHARING:
        resource = next_dirty(calendar)
        calendar.dirty[resource] = 0
        if resource >= groups:
            next_event(calendar, state.machines, resource - groups)
    else:
        resource = calendar.timer_heap[0]
        scalar[NOW] = calendar.timer_time[resource]
        clear_timer(calendar, resource)
        if resource >= groups:
            schedule_cores(calendar, state.machines, resource - groups)
        else:
            finish(state, resource)
    return -1, resource if resource < groups else -1


def _all_that_follows(state: State, rows: Rows, graphs: int, most: int, event: int, group: int) -> None:
    """Do what an event leads to: first what it joins and begins, then whom its end tells, then the next that is done.

    event: whose delay or latency is over, or -1. group: to be shared when all is told, or -1.
    """
    calendar, ops = state.calendar, state.ops
    scalar = calendar.scalar
    later = 0
    if group >= 0:
        # What arrives may start flows of this very instant: they share with the rest, once, when all have arrived.
        later = calendar.dirty[group]
        calendar.dirty[group] = 1
    joining, sharing, telling = _flow_or_end(calendar, ops, event), -1, -1
    begun, done, count = 0, 0, scalar[OPS]
    scalar[READY] = 0
    while True:
        moving, delay = -1, ELSEWHERE
        if joining >= 0:
            sharing = join(state, joining, rows.work[((joining >> SHIFT) % graphs) * count + (joining & OP)])
            joining = -1
        elif begun < scalar[READY]:
            moving = calendar.todo[begun]
            begun += 1
            delay = _begin(state, rows, graphs, moving)
        elif telling >= 0:
            _close(calendar, telling >> SHIFT)
            telling = -1
        elif scalar[ENDED_SIZE]:
            telling = _ended(calendar)
            begun = 0
            _report(state, rows, most, telling)
        elif scalar[FIRST] < scalar[FIRSTS]:
            begun = 0
            scalar[READY] = 1
            calendar.todo[0] = calendar.first[scalar[FIRST]]
            scalar[FIRST] += 1
        elif done < scalar[DONE]:
            moving = _next_message(state, rows, graphs, calendar.done[done])
            if moving >= 0:
                delay = _behind(state, rows, moving)
            _append(calendar, calendar.done[done])
            done += 1
        elif group >= 0:
            sharing = group
        else:
            return
        if delay >= 0:
            push_event(calendar, scalar[NOW] + delay, moving)
        elif delay == AT_ONCE:
            joining = moving
        if sharing >= 0:
            share_group(state, sharing)
            calendar.dirty[sharing] = 0
            if joining < 0 and sharing == group:
                calendar.dirty[group] = later
                return
            sharing = -1


def _flow_or_end(calendar: Calendar, ops: Ops, event: int) -> int:
    """The flow `event`, whose latency is over; -1 for an op whose delay is over, so that it ends, and for no event."""
    if event >= 0 and ops.bundle[event & OP] < 0:
        _append(calendar, event)
        return -1
    return event


def _append(calendar: Calendar, event: int) -> None:
    """Note that an op has ended; its followers are told when those of the ones before it are."""
    scalar = calendar.scalar
    index, size = scalar[ENDED_HEAD] + scalar[ENDED_SIZE], scalar[RING]
    calendar.ended[index - size if index >= size else index] = event
    scalar[ENDED_SIZE] += 1


def _ended(calendar: Calendar) -> int:
    """Take out the op that ended first of those that have not told it."""
    scalar = calendar.scalar
    head = scalar[ENDED_HEAD]
    scalar[ENDED_HEAD] = head + 1 if head + 1 < scalar[RING] else 0
    scalar[ENDED_SIZE] -= 1
    return calendar.ended[head]


def _begin(state: State, rows: Rows, graphs: int, event: int) -> int:
    """Start an op. Picoseconds until its exclusive work is done or its flow's first unit moves, or why there are none:
    its flow starts AT_ONCE, or it is ELSEWHERE: ended, behind another message, or a thread's task."""
    calendar, ops, messages = state.calendar, state.ops, state.messages
    iteration, op, count = event >> SHIFT, event & OP, calendar.scalar[OPS]
    rows.starts[iteration * count + op] = calendar.scalar[NOW]
    amount = rows.work[(iteration % graphs) * count + op]
    bundle = ops.bundle[op]
    if amount <= 0:
        _append(calendar, event)
        return ELSEWHERE
    if bundle == DELAY:
        return int(amount)
    if bundle < DELAY:
        add_thread(calendar, state.machines, DELAY - 1 - bundle, amount, event)
        return ELSEWHERE
    connection = ops.connection[op]
    if connection >= 0:
        room = messages.at[connection + 1] - messages.at[connection]
        index = messages.head[connection] + messages.size[connection]
        messages.which[messages.at[connection] + (index - room if index >= room else index)] = event
        messages.size[connection] += 1
        if messages.size[connection] > 1:
            messages.following[connection] += amount
            return ELSEWHERE
    delay = ops.latency[op]
    if ops.queue[op] > 0.0:
        delay += backlog(state, op)
    return delay if delay > 0 else AT_ONCE


def _next_message(state: State, rows: Rows, graphs: int, event: int) -> int:
    """The message that follows the flow `event`, which is through, on its connection; -1 for none."""
    ops, messages = state.ops, state.messages
    op, count = event & OP, state.calendar.scalar[OPS]
    connection = ops.connection[op]
    if connection < 0 or ops.bundle[op] < 0:
        return -1
    head = messages.head[connection] + 1
    if messages.at[connection] + head >= messages.at[connection + 1]:
        head = 0
    messages.head[connection] = head
    messages.size[connection] -= 1
    if messages.size[connection] == 0:
        return -1
    found = messages.which[messages.at[connection] + head]
    messages.following[connection] -= rows.work[((found >> SHIFT) % graphs) * count + (found & OP)]
    return found


def _behind(state: State, rows: Rows, event: int) -> int:
    """Picoseconds until the message `event`, now first on its connection, moves, or AT_ONCE.

    It is right behind the one before, but for its start-up, and takes no less than its latency since it was ready.
    """
    ops = state.ops
    op = event & OP
    ready = rows.starts[(event >> SHIFT) * state.calendar.scalar[OPS] + op] + ops.latency[op]
    delay = max(ops.startup[op], ready - state.calendar.scalar[NOW])
    return delay if delay > 0 else AT_ONCE


def _report(state: State, rows: Rows, most: int, event: int) -> None:
    """An op has ended: one thing less to wait for, for every follower. An iteration opens when an op first reaches it;
    it knows what has ended, so nothing is left to tell it."""
    calendar, ops = state.calendar, state.ops
    scalar = calendar.scalar
    iteration, op, count = event >> SHIFT, event & OP, scalar[OPS]
    rows.ends[iteration * count + op] = scalar[NOW]
    scalar[READY] = 0
    known = scalar[OPENED]
    for index in range(ops.follower_at[op], ops.follower_at[op + 1]):
        target = iteration + ops.follower_lag[index]
        if target < known:
            at = target * count + ops.follower[index]
            rows.missing[at] -= 1
            if rows.missing[at] == 0:
                calendar.todo[scalar[READY]] = (target << SHIFT) | ops.follower[index]
                scalar[READY] += 1
        elif target < most:
            while scalar[OPENED] <= target:
                _open(calendar, ops, rows)


def _open(calendar: Calendar, ops: Ops, rows: Rows) -> None:
    """Make room for the next iteration; those of its ops begin that wait for nothing (any more)."""
    scalar = calendar.scalar
    count, iteration = scalar[OPS], scalar[OPENED]
    base = iteration * count
    for op in range(count):
        rows.ends[base + op] = -1
        rows.missing[base + op] = ops.waits_now[op]
    for index in range(scalar[LATES]):
        lag = ops.late_lag[index]
        # Where a dependency reaches back before the start there is no one to wait for.
        if lag <= iteration and rows.ends[(iteration - lag) * count + ops.late_on[index]] < 0:
            rows.missing[base + ops.late_op[index]] += 1
    for index in range(scalar[HEADS]):
        op = ops.head[index]
        if rows.missing[base + op] == 0:
            calendar.todo[scalar[READY]] = (iteration << SHIFT) | op
            scalar[READY] += 1
    calendar.running[iteration] = count
    scalar[OPENED] = iteration + 1


def _close(calendar: Calendar, iteration: int) -> None:
    """One op of the iteration less to wait for; note when an iteration is complete, and the next serial number then."""
    scalar = calendar.scalar
    calendar.running[iteration] -= 1
    if calendar.running[iteration] == 0:
        while scalar[COMPLETE] < scalar[OPENED] and calendar.running[scalar[COMPLETE]] == 0:
            calendar.closing[scalar[COMPLETE]] = scalar[SERIAL]
            scalar[SERIAL] += 1
            scalar[COMPLETE] += 1
