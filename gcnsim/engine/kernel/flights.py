"""Flows that start, wait for queues and end: `gcnsim.engine.fluid` in flat arrays, step by step."""

from __future__ import annotations

from math import ceil, inf

from gcnsim.engine.kernel.coarse import finish_coarse, join_coarse, share_coarse
from gcnsim.engine.kernel.heaps import clear_timer, pop_small, push_small, set_timer
from gcnsim.engine.kernel.matrix import planes_in_use
from gcnsim.engine.kernel.memory import (
    DIRTY_HEAD,
    DIRTY_SIZE,
    DONE,
    NOW,
    RESOURCES,
    Calendar,
    Flows,
    Links,
    Messages,
    Ops,
    State,
)
from gcnsim.engine.kernel.sharing import advance_group, count, pass_time, share
from gcnsim.engine.kernel.simd_loops import LANES, pitch, serve

OP = 2**32 - 1
"""Bits of an event that hold the op; the higher ones hold the iteration."""


def share_later(calendar: Calendar, resource: int) -> None:
    """Mark `resource` for one new sharing at the end of this instant."""
    if calendar.dirty[resource] == 0:
        calendar.dirty[resource] = 1
        scalar = calendar.scalar
        index = scalar[DIRTY_HEAD] + scalar[DIRTY_SIZE]
        size = scalar[RESOURCES]
        calendar.dirty_queue[index - size if index >= size else index] = resource
        scalar[DIRTY_SIZE] += 1


def next_dirty(calendar: Calendar) -> int:
    """Remove and return the resource that became dirty first."""
    scalar = calendar.scalar
    index = scalar[DIRTY_HEAD]
    scalar[DIRTY_HEAD] = index + 1 if index + 1 < scalar[RESOURCES] else 0
    scalar[DIRTY_SIZE] -= 1
    return calendar.dirty_queue[index]


def join(state: State, event: int, units: float) -> int:
    """Start the flow `event` of `units` > 0. Returns the group if it must be shared at once, otherwise -1.

    Simultaneous changes are rare if one kind of flow has a link to itself: they do not wait for each other.
    """
    calendar, links, flows = state.calendar, state.links, state.flows
    bundle = state.ops.bundle[event & OP]
    group = links.group[bundle]
    if state.grains.grouped[group]:
        join_coarse(state, event, bundle, units)
        share_later(calendar, group)
        return -1
    advance_group(links, flows, group, calendar.scalar[NOW])
    flows.started[group] += 1
    base, size = flows.room_at[bundle], flows.counts[bundle]
    target = flows.service[bundle] + units
    push_small(flows.target, flows.serial, flows.which, base, size, target, flows.started[group], event)
    flows.heads[bundle] = flows.target[base]
    count(links, flows, group, bundle, 1)
    if links.alone[group] and calendar.dirty[group] == 0:
        return group
    share_later(calendar, group)
    return -1


def share_group(state: State, group: int) -> None:
    """Share the links of `group` among its current flows, and set the timer for the first one to finish."""
    calendar, links, flows = state.calendar, state.links, state.flows
    if state.grains.grouped[group]:
        share_coarse(calendar, links, flows, state.grains, group)
        return
    due = share(links, flows, state.known, group)
    if due < inf:
        # Rounded up to a whole picosecond: a flow is never done before its last unit.
        set_timer(calendar, group, calendar.scalar[NOW] + max(0, ceil(due)))
    else:
        clear_timer(calendar, group)


def finish(state: State, group: int) -> None:
    """Remove the flows whose last unit has arrived, in the order of bundles, then of ends, and record them as done."""
    calendar, links, flows = state.calendar, state.links, state.flows
    if state.grains.grouped[group]:
        finish_coarse(state, group)
        return
    begin, end = links.first_bundle[group], links.first_bundle[group + 1]
    calendar.scalar[DONE] = 0
    elapsed = float(pass_time(links, flows, group, calendar.scalar[NOW]))
    columns = pitch(links.receivers[group])
    width, used = columns * links.planes[group], columns * planes_in_use(links, flows, group)
    for _ in range(links.senders[group]):
        _take_out_done(calendar, links, flows, group, begin, begin + used, elapsed)
        begin += width
    _take_out_done(calendar, links, flows, group, begin, end, elapsed)


def _take_out_done(
    calendar: Calendar, links: Links, flows: Flows, group: int, begin: int, end: int, elapsed: float
) -> None:
    """Let the bundles from `begin` to `end` receive data for `elapsed`, and remove their finished flows."""
    block = serve(flows.service, flows.rates, flows.heads, begin, end, elapsed)
    while block < end:
        for bundle in range(block, block + LANES):
            # One picosecond of service covers the rounding of the due time and the last bits of the additions.
            if flows.heads[bundle] <= flows.service[bundle] + flows.rates[bundle]:
                _take_out(calendar, links, flows, group, bundle)
        block = serve(flows.service, flows.rates, flows.heads, block + LANES, end, elapsed)


def _take_out(calendar: Calendar, links: Links, flows: Flows, group: int, bundle: int) -> None:
    """Remove the finished flows of a bundle from its heap."""
    level = flows.service[bundle] + flows.rates[bundle]
    base = flows.room_at[bundle]
    scalar = calendar.scalar
    while flows.counts[bundle] and flows.target[base] <= level:
        size = flows.counts[bundle]
        calendar.done[scalar[DONE]] = pop_small(flows.target, flows.serial, flows.which, base, size)
        scalar[DONE] += 1
        count(links, flows, group, bundle, -1)
    if flows.counts[bundle]:
        flows.heads[bundle] = flows.target[base]
    else:
        flows.heads[bundle] = inf
        flows.service[bundle], flows.rates[bundle] = 0.0, 0.0


def backlog(state: State, op: int) -> int:
    """Picoseconds to drain the data of current flows in the queues of the links of flow `op`.

    At most `queue` units each, including those that follow a flow on its connection. Flows that started at this instant
    have nothing in the queues yet.
    """
    links, flows, ops, messages = state.links, state.flows, state.ops, state.messages
    queue, bundle = ops.queue[op], ops.bundle[op]
    group = links.group[bundle]
    advance_group(links, flows, group, state.calendar.scalar[NOW])
    for link in range(links.first_link[group], links.first_link[group + 1]):
        links.waiting[link] = 0.0
    for other in range(links.first_bundle[group], links.first_bundle[group + 1]):
        ahead = _ahead(ops, flows, messages, group, other, queue)
        for index in range(links.route_at[other], links.route_at[other + 1]):
            links.waiting[links.route[index]] += ahead
    longest = 0.0
    for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
        link = links.route[index]
        if link < links.shared[group]:
            longest = max(longest, links.waiting[link] / links.capacity[link])
    return ceil(longest)


def _ahead(ops: Ops, flows: Flows, messages: Messages, group: int, bundle: int, queue: float) -> float:
    """Units that the flows of a bundle have in queues, at most `queue` each."""
    found = 0.0
    base = flows.room_at[bundle]
    for index in range(base, base + flows.counts[bundle]):
        if flows.serial[index] <= flows.before[group]:
            connection = ops.connection[flows.which[index] & OP]
            behind = messages.following[connection] if connection >= 0 else 0.0
            found += min(flows.target[index] - flows.service[bundle] + behind, queue)
    return found
