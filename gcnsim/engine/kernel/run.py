"""The reference engine's run in flat arrays: the same events in the same order, so the same picoseconds.

This is plain Python without slow imports. `gcnsim.engine.kernel.machine_code` compiles it; interpreted it gives the
same result, which tests check. The consequences of an event are processed from lists, in the order of the calls in
`gcnsim.engine.reference`. So each step is written, and compiled, once.
"""

from __future__ import annotations

from gcnsim.core.ids import FloatArray, IntArray
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

NOTHING, EVENT, TIMER, SHARING = 0, 1, 2, 3
"""What happens next."""

AT_ONCE, ELSEWHERE = -1, -2
"""Replaces the picoseconds until an op continues: its flow starts now, or another event reports its end."""

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
    """Continue the run in the blocks `ints` and `floats` until the caller must decide; returns the reason.

    work, starts, ends, missing: the rows of the run (`memory.Rows`), `graphs` of work and `most` of the others.
    """
    state, rows = state_of(ints, floats), Rows(work, starts, ends, missing)
    calendar = state.calendar
    scalar = calendar.scalar
    event, group = -1, -1
    scalar[DONE] = 0
    while True:
        # At first, the ops of iteration 0 begin; when a run continues, there is nothing to process yet.
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
    """The next step: the first event or timer, or a sharing once this instant has no more events."""
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
    """Whether the event that ends the run comes before the next step."""
    if what == SHARING:
        return True
    first = calendar.timer_heap[0]
    time = calendar.time[0] if what == EVENT else calendar.timer_time[first]
    serial = calendar.serial[0] if what == EVENT else calendar.timer_serial[first]
    return bool(time > calendar.scalar[NOW] or serial > calendar.scalar[STOP])


def _happen(state: State, what: int) -> tuple[int, int]:
    """Do the next step. Returns (the event whose delay or latency is over, the group to share), -1 for none."""
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
    """Process the consequences of an event: what it joins and begins, then its followers, then the next finished one.

    event: the event whose delay or latency is over, or -1. group: the group to share at the end, or -1.
    """
    calendar, ops = state.calendar, state.ops
    scalar = calendar.scalar
    later = 0
    if group >= 0:
        # An arrival may start flows at this instant: they join the sharing once all arrivals are processed.
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
    """The flow `event` whose latency is over; -1 for an op whose delay is over (it ends) and for no event."""
    if event >= 0 and ops.bundle[event & OP] < 0:
        _append(calendar, event)
        return -1
    return event


def _append(calendar: Calendar, event: int) -> None:
    """Queue an ended op; its followers are notified after those of earlier ones."""
    scalar = calendar.scalar
    index, size = scalar[ENDED_HEAD] + scalar[ENDED_SIZE], scalar[RING]
    calendar.ended[index - size if index >= size else index] = event
    scalar[ENDED_SIZE] += 1


def _ended(calendar: Calendar) -> int:
    """Remove and return the first op of the queue of ended ops."""
    scalar = calendar.scalar
    head = scalar[ENDED_HEAD]
    scalar[ENDED_HEAD] = head + 1 if head + 1 < scalar[RING] else 0
    scalar[ENDED_SIZE] -= 1
    return calendar.ended[head]


def _begin(state: State, rows: Rows, graphs: int, event: int) -> int:
    """Start an op. Returns the picoseconds until its exclusive work is done or its flow's first unit moves.

    AT_ONCE: its flow starts now. ELSEWHERE: it has ended, waits behind another message, or is a thread's task.
    """
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
    """The message that follows the finished flow `event` on its connection; -1 for none."""
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

    It follows the previous message after its start-up, and not before its latency since it was ready.
    """
    ops = state.ops
    op = event & OP
    ready = rows.starts[(event >> SHIFT) * state.calendar.scalar[OPS] + op] + ops.latency[op]
    delay = max(ops.startup[op], ready - state.calendar.scalar[NOW])
    return delay if delay > 0 else AT_ONCE


def _report(state: State, rows: Rows, most: int, event: int) -> None:
    """Remove one dependency from every follower of an ended op.

    An iteration opens when an op first reaches it; it already accounts for ended ops.
    """
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
    """Allocate the next iteration; its ops without remaining dependencies begin."""
    scalar = calendar.scalar
    count, iteration = scalar[OPS], scalar[OPENED]
    base = iteration * count
    for op in range(count):
        rows.ends[base + op] = -1
        rows.missing[base + op] = ops.waits_now[op]
    for index in range(scalar[LATES]):
        lag = ops.late_lag[index]
        # A dependency on an iteration before the first is satisfied.
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
    """Count one more ended op of the iteration; note the next serial number when the iteration is complete."""
    scalar = calendar.scalar
    calendar.running[iteration] -= 1
    if calendar.running[iteration] == 0:
        while scalar[COMPLETE] < scalar[OPENED] and calendar.running[scalar[COMPLETE]] == 0:
            calendar.closing[scalar[COMPLETE]] = scalar[SERIAL]
            scalar[SERIAL] += 1
            scalar[COMPLETE] += 1
