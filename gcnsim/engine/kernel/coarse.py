"""Large groups of links shared once per grain of time, not at every instant: the engine's coarse mode.

Max-min sharing is what a run of many servers spends its time on: every flow that starts or ends changes all rates.
Here the links of a group are shared when something changes, and then not again for one grain (`GRAIN` picoseconds).
What happens within the grain is settled on the spot, in a few steps that do not grow with the group:

- A flow ends when its own last unit is there, as ever. The rate it had is then *spare* on its links.
- A flow that starts is given what is spare on all of its links, but no more than an equal share of any of them; the
  flows of its bundle share that with what they have. Where nothing is spare it waits for the end of the grain.
- What a link could have carried, from the end of a flow to the end of the grain, is *owed* to the flows that still
  cross it, less what those that start are given. In the next grain the link can carry that much more: its supply is
  its capacity and what is owed over a grain. What is not used then is lost, and a link without flows owes nothing.

What holds, and why:

- *Units are conserved.* A flow ends when the service of its bundle, which grows at the rates, has grown by its units.
- *At every instant the rates over a link add up to no more than its supply.* They do after a sharing; a flow that ends
  takes its rate off; one that starts is given no more than is spare, which is what is left of the supply.
- *No link has ever carried more than its capacity times the time.* Let a link be capacity * t - carried(t) behind. If
  at the beginning of a grain it is behind by what it is owed or more, it still is at the end: within the grain it
  carries what its supply gives, capacity * grain + owed, less what was spare to its end, which is no less than what is
  owed then. In between it catches up by no more than owed * s / grain within s <= grain, so it is never ahead. As
  owed <= capacity * grain, it carries at most capacity * (s + grain) within any time s.
- *What is wrong is when things happen, by about a grain.* What a flow leaves is given to others in the next grain, not
  in this one, and a flow that waits for the next grain is behind. Errors have either sign and grow with the grain.

Both matter. At a grain of 1e-4 of an iteration, on 24 GPUs: without what is owed psc-gcn, which saturates its links,
is 3e-4 too slow, and with it right to 1e-6; without what is given at once full-graph training is 1e-3 too slow, and
with it 1e-4.
A group whose links have queues is shared exactly: what is in a queue depends on every instant.

Which bundles of a group are done next is a heap of bundles by (time, number), each in it once at most. Every group has
its part of the arrays of `Grains`, from its first bundle on.
"""

from __future__ import annotations

from math import ceil, inf

from gcnsim.engine.kernel.filling import fill
from gcnsim.engine.kernel.heaps import clear_timer, pop_small, push_small, set_timer
from gcnsim.engine.kernel.matrix import settle_all
from gcnsim.engine.kernel.memory import DONE, GRAIN, NOW, Calendar, Flows, Grains, Links, State
from gcnsim.engine.kernel.sharing import advance_group, count
from gcnsim.engine.kernel.simd_loops import LANES, block_within, pitch, rate_rows, soonest


def join_coarse(state: State, event: int, bundle: int, units: float) -> None:
    """Start the flow `event` of `units` > 0 on `bundle`, with the free capacity of its links until the end of the
    grain.
    """
    calendar, links, flows, grains = state.calendar, state.links, state.flows, state.grains
    group = links.group[bundle]
    elapsed, had, rate = calendar.scalar[NOW] - links.last[group], flows.counts[bundle], flows.rates[bundle]
    base, served = flows.room_at[bundle], flows.service[bundle] + rate * elapsed
    flows.started[group] += 1
    push_small(flows.target, flows.serial, flows.which, base, had, served + units, flows.started[group], event)
    flows.heads[bundle] = flows.target[base]
    count(links, flows, group, bundle, 1)
    left = calendar.scalar[GRAIN] - elapsed
    first_rate = _given(links, flows, grains, group, bundle, left) if left > 0 else 0.0
    rate = (rate * had + first_rate) / (had + 1)
    flows.rates[bundle] = rate
    # The service counter is the one at the last sharing: as if the new rate had applied since then.
    flows.service[bundle] = served - rate * elapsed
    if left > 0:
        set_due(links, grains, group, bundle, due_at(links, flows, group, bundle))


def _given(links: Links, flows: Flows, grains: Grains, group: int, bundle: int, left: int) -> float:
    """The rate of a flow that starts on `bundle`, for the `left` picoseconds of the grain."""
    rate = inf
    begin, end = links.route_at[bundle], links.route_at[bundle + 1]
    for index in range(begin, end):
        link = links.route[index]
        if link < links.shared[group]:
            rate = min(rate, grains.free_capacity[link], links.capacity[link] / flows.crossing[link])
        else:
            rate = min(rate, links.capacity[link])
    for index in range(begin, end):
        link = links.route[index]
        if link < links.shared[group]:
            grains.free_capacity[link] -= rate
            grains.carry_over[link] = max(0.0, grains.carry_over[link] - rate * left)
    return rate


def finish_coarse(state: State, group: int) -> None:
    """Remove the flows of a group whose last unit has arrived, by time and bundle, and record them as done."""
    calendar, links, flows, grains = state.calendar, state.links, state.flows, state.grains
    now, base = calendar.scalar[NOW], links.first_bundle[group]
    calendar.scalar[DONE] = 0
    while first_due_at(links, grains, group) <= now:
        bundle = grains.due_heap[base]
        _take_out(calendar, links, flows, grains, group, bundle)
        # Rounding may leave a last bit for the next picosecond.
        set_due(links, grains, group, bundle, max(due_at(links, flows, group, bundle), now + 1))


def _take_out(calendar: Calendar, links: Links, flows: Flows, grains: Grains, group: int, bundle: int) -> None:
    """Remove finished flows of a bundle from its heap; their rates become free capacity and are carried over."""
    scalar, base, rate = calendar.scalar, flows.room_at[bundle], flows.rates[bundle]
    elapsed = scalar[NOW] - links.last[group]
    # One picosecond of service covers the rounding of the due time and the last bits of the additions.
    level = flows.service[bundle] + rate * elapsed + rate
    freed, left = 0.0, max(0, scalar[GRAIN] - elapsed)
    while flows.counts[bundle] and flows.target[base] <= level:
        size = flows.counts[bundle]
        calendar.done[scalar[DONE]] = pop_small(flows.target, flows.serial, flows.which, base, size)
        scalar[DONE] += 1
        freed += rate
        count(links, flows, group, bundle, -1)
    if flows.counts[bundle]:
        flows.heads[bundle] = flows.target[base]
    else:
        flows.heads[bundle] = inf
        flows.service[bundle], flows.rates[bundle] = 0.0, 0.0
    for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
        link = links.route[index]
        if link < links.shared[group]:
            grains.free_capacity[link] += freed
            grains.carry_over[link] = grains.carry_over[link] + freed * left if flows.crossing[link] > 0.0 else 0.0


def share_coarse(calendar: Calendar, links: Links, flows: Flows, grains: Grains, group: int) -> None:
    """Share the links of `group` anew if the grain is over, otherwise at its end."""
    now, grain = calendar.scalar[NOW], calendar.scalar[GRAIN]
    again = links.last[group] + grain
    if now >= again:
        again = now + grain if _share_anew(now, grain, links, flows, grains, group) else NEVER
    time = min(again, first_due_at(links, grains, group))
    if time < NEVER:
        set_timer(calendar, group, max(time, now))
    else:
        clear_timer(calendar, group)


def _share_anew(now: int, grain: int, links: Links, flows: Flows, grains: Grains, group: int) -> bool:
    """Share the links of `group`. Returns whether a supply exceeds a capacity, which is valid for one grain only."""
    advance_group(links, flows, group, now)
    forget_due(links, grains, group)
    paid = False
    for link in range(links.first_link[group], links.shared[group]):
        owed = min(grains.carry_over[link], links.capacity[link] * grain)
        paid = paid or owed > 0.0
        grains.carry_over[link] = 0.0
        links.supply[link] = links.capacity[link] + owed / grain
    if links.senders[group]:
        settle_all(links, flows, group)
        _write_rates(links, flows, grains, group, float(grain))
    else:
        fill(links, flows, group)
        _note_within(links, flows, grains, group, float(grain))
    for link in range(links.first_link[group], links.shared[group]):
        full = links.senders[group] and links.step[link] < inf
        grains.free_capacity[link] = 0.0 if full else links.left[link]
    if grains.due_size[group] == 0:
        _note_first(links, flows, grains, group)
    return paid


def _write_rates(links: Links, flows: Flows, grains: Grains, group: int, limit: float) -> None:
    """Write the rates of a group shared as a matrix, and note what is done within `limit`."""
    columns, first = pitch(links.receivers[group]), links.first_link[group]
    middle = first + pitch(links.senders[group])
    rates, heads, service = flows.rates, flows.heads, flows.service
    level, step = links.level, links.step
    for sender in range(links.senders[group]):
        begin = links.first_bundle[group] + sender * columns
        end, mine, when = begin + columns, level[first + sender], step[first + sender]
        lacks = rate_rows(rates, heads, service, begin, end, level, step, middle, columns, mine, when, limit)
        while lacks <= 0.0 and begin < end:
            begin = block_within(heads, service, rates, begin, end, limit)
            if begin < end:
                _note(links, flows, grains, group, begin, begin + LANES, limit)
                begin += LANES


def _note_within(links: Links, flows: Flows, grains: Grains, group: int, limit: float) -> None:
    _note(links, flows, grains, group, links.first_bundle[group], links.first_bundle[group + 1], limit)


def _note(links: Links, flows: Flows, grains: Grains, group: int, begin: int, end: int, limit: float) -> None:
    """Note the end of those bundles from `begin` to `end` that finish within `limit` picoseconds."""
    for bundle in range(begin, end):
        if flows.heads[bundle] - flows.service[bundle] <= limit * flows.rates[bundle]:
            set_due(links, grains, group, bundle, due_at(links, flows, group, bundle))


def _note_first(links: Links, flows: Flows, grains: Grains, group: int) -> None:
    """Note the bundles of `group` that finish first, however late."""
    due = inf
    begin, end = links.first_bundle[group], links.first_bundle[group + 1]
    if links.senders[group]:
        due = soonest(flows.heads, flows.service, flows.rates, begin, end)
    else:
        for bundle in range(begin, end):
            if flows.rates[bundle] > 0.0:
                due = min(due, (flows.heads[bundle] - flows.service[bundle]) / flows.rates[bundle])
    if due < float(NEVER):
        # Slightly more, so that rounding finds at least one.
        _note_within(links, flows, grains, group, due * (1.0 + 1e-9) + 1.0)


NEVER = 2**62
"""An instant that no run reaches, in picoseconds."""


def first_due_at(links: Links, grains: Grains, group: int) -> int:
    """When the first bundle of the heap of `group` is done; NEVER for an empty heap."""
    return grains.due_time[grains.due_heap[links.first_bundle[group]]] if grains.due_size[group] else NEVER


def due_at(links: Links, flows: Flows, group: int, bundle: int) -> int:
    """When the first flow of `bundle` is done, rounded up so that its last unit has arrived."""
    if flows.rates[bundle] <= 0.0:
        return NEVER
    lasts = (flows.heads[bundle] - flows.service[bundle]) / flows.rates[bundle]
    return links.last[group] + max(0, ceil(lasts)) if lasts < float(NEVER) else NEVER


def set_due(links: Links, grains: Grains, group: int, bundle: int, time: int) -> None:
    """Set the end of `bundle` to `time`; NEVER removes it from the heap."""
    base, size, index = links.first_bundle[group], grains.due_size[group], grains.due_place[bundle]
    if time < NEVER:
        grains.due_time[bundle] = time
        if index < 0:
            index = size
            size += 1
            grains.due_heap[base + index] = bundle
        _settle(grains, base, size, index)
    elif index >= 0:
        grains.due_place[bundle] = -1
        size -= 1
        if index < size:
            grains.due_heap[base + index] = grains.due_heap[base + size]
            _settle(grains, base, size, index)
    grains.due_size[group] = size


def forget_due(links: Links, grains: Grains, group: int) -> None:
    """Empty the heap of `group`."""
    base = links.first_bundle[group]
    for index in range(base, base + grains.due_size[group]):
        grains.due_place[grains.due_heap[index]] = -1
    grains.due_size[group] = 0


def _sooner(grains: Grains, one: int, other: int) -> bool:
    times = grains.due_time
    return times[one] < times[other] or (times[one] == times[other] and one < other)


def _settle(grains: Grains, base: int, size: int, index: int) -> None:
    """Move the bundle at `index` up or down to its place, in the heap of `size` that begins at `base`."""
    heap, places = grains.due_heap, grains.due_place
    moved = heap[base + index]
    while index > 0:
        parent = (index - 1) >> 1
        if not _sooner(grains, moved, heap[base + parent]):
            break
        heap[base + index] = heap[base + parent]
        places[heap[base + index]] = index
        index = parent
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and _sooner(grains, heap[base + child + 1], heap[base + child]):
            child += 1
        if not _sooner(grains, heap[base + child], moved):
            break
        heap[base + index] = heap[base + child]
        places[heap[base + index]] = index
        index = child
    heap[base + index] = moved
    places[moved] = index
