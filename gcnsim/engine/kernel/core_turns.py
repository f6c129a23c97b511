"""Threads that share cores: `gcnsim.engine.cores` in flat arrays, step by step."""

from __future__ import annotations

from math import ceil

from gcnsim.engine.kernel.flights import share_later
from gcnsim.engine.kernel.heaps import clear_timer, pop_small, push_small, set_timer
from gcnsim.engine.kernel.memory import DONE, GROUPS, NOW, Calendar, Machines

DONE_PS = 1.0
"""Picoseconds of work that rounding may leave (`gcnsim.engine.cores.DONE`)."""


def _rate(machines: Machines, machine: int) -> float:
    return min(1.0, machines.capacity[machine] / machines.running_size[machine])


def _advance(machines: Machines, machine: int, now: int) -> None:
    elapsed = now - machines.last[machine]
    if elapsed:
        machines.last[machine] = now
        size = machines.running_size[machine]
        if size:
            served = elapsed * _rate(machines, machine)
            first = machines.first[machine]
            for index in range(first, first + size):
                thread = machines.running[index]
                if machines.size[thread]:
                    machines.left[machines.at[thread] + machines.head[thread]] -= served
                    machines.had[thread] += served


def _wait(machines: Machines, machine: int, thread: int) -> None:
    """Queue `thread` for a core, after the threads with less core time."""
    machines.had[thread] = min(machines.had[thread], machines.least[machine] + machines.slice_ps[machine])
    machines.serial[machine] += 1
    size = machines.ready_size[machine]
    machines.ready_size[machine] = size + 1
    push_small(
        machines.ready_had, machines.ready_serial, machines.ready_thread, machines.first[machine], size,
        machines.had[thread], machines.serial[machine], thread,
    )  # fmt: skip


def add_thread(calendar: Calendar, machines: Machines, thread: int, work: float, event: int) -> None:
    """Give `thread` the task `event` of `work` > 0 core-picoseconds."""
    scalar = calendar.scalar
    machine = machines.machine[thread]
    _advance(machines, machine, scalar[NOW])
    room = machines.at[thread + 1] - machines.at[thread]
    index = machines.head[thread] + machines.size[thread]
    at = machines.at[thread] + (index - room if index >= room else index)
    machines.tasks[at], machines.left[at] = event, work
    machines.size[thread] += 1
    if machines.size[thread] == 1 and machines.on[thread] == 0:
        machines.had[thread] = max(machines.had[thread], machines.least[machine])
        machines.woken[thread] = 1
        _wait(machines, machine, thread)
    share_later(calendar, scalar[GROUPS] + machine)


def _keep(machines: Machines, machine: int, now: int) -> None:
    """Keep the threads on cores that have work and whose slice is not over."""
    first, size = machines.first[machine], machines.running_size[machine]
    end = first
    for index in range(first, first + size):
        thread = machines.running[index]
        if machines.size[thread]:
            machines.running[end] = thread
            end += 1
        else:
            machines.on[thread] = 0
    size = end - first
    if machines.ready_size[machine]:
        end = first
        for index in range(first, first + size):
            thread = machines.running[index]
            stays = True
            if now - machines.since[thread] >= machines.slice_ps[machine]:
                if machines.had[thread] >= machines.ready_had[first]:
                    stays = False
                    machines.on[thread] = 0
                    _wait(machines, machine, thread)
                else:
                    machines.since[thread] = now
            if stays:
                machines.running[end] = thread
                end += 1
        size = end - first
    machines.running_size[machine] = size


def _next(machines: Machines, machine: int, now: int) -> int:
    """Move the next waiting thread to a core."""
    ready = machines.ready_size[machine]
    thread = pop_small(
        machines.ready_had, machines.ready_serial, machines.ready_thread, machines.first[machine], ready
    )  # fmt: skip
    machines.ready_size[machine] = ready - 1
    machines.since[thread] = now
    machines.on[thread] = 1
    machines.woken[thread] = 0
    return thread


def _preempt(machines: Machines, machine: int, now: int) -> None:
    """Let woken threads preempt running ones that have had more core time and have used their minimum."""
    first = machines.first[machine]
    last = first + machines.running_size[machine] - 1
    while machines.ready_size[machine] and machines.woken[machines.ready_thread[first]]:
        most, had = -1, machines.ready_had[first]
        for index in range(first, last + 1):
            thread = machines.running[index]
            able = now - machines.since[thread] >= machines.wake_ps[machine] and machines.had[thread] >= had
            if able and (most < 0 or machines.had[thread] > machines.had[machines.running[most]]):
                most = index
        if most < 0:
            return
        thread = machines.running[most]
        for index in range(most, last):
            machines.running[index] = machines.running[index + 1]
        machines.running[last] = _next(machines, machine, now)
        machines.on[thread] = 0
        _wait(machines, machine, thread)


def _service(machines: Machines, machine: int, now: int, rate: float) -> int:
    """Picoseconds until the next woken thread preempts a running one."""
    first = machines.first[machine]
    soonest = -1
    for index in range(first, first + machines.running_size[machine]):
        thread = machines.running[index]
        delay = machines.since[thread] + machines.wake_ps[machine] - now
        behind = ceil((machines.ready_had[first] - machines.had[thread]) / rate)
        then = max(delay, behind)
        if soonest < 0 or then < soonest:
            soonest = then
    return soonest


def next_event(calendar: Calendar, machines: Machines, machine: int) -> None:
    """Decide which threads run from this instant on, and set the time of the next change."""
    scalar = calendar.scalar
    now = scalar[NOW]
    _keep(machines, machine, now)
    first = machines.first[machine]
    while machines.ready_size[machine] and machines.running_size[machine] < machines.cores[machine]:
        machines.running[first + machines.running_size[machine]] = _next(machines, machine, now)
        machines.running_size[machine] += 1
    _preempt(machines, machine, now)
    size = machines.running_size[machine]
    if size == 0:
        clear_timer(calendar, scalar[GROUPS] + machine)
        return
    rate = _rate(machines, machine)
    had, since = machines.had[machines.running[first]], machines.since[machines.running[first]]
    shortest = machines.left[machines.at[machines.running[first]] + machines.head[machines.running[first]]] / rate
    for index in range(first + 1, first + size):
        thread = machines.running[index]
        had = min(had, machines.had[thread])
        since = min(since, machines.since[thread])
        shortest = min(shortest, machines.left[machines.at[thread] + machines.head[thread]] / rate)
    machines.least[machine] = max(machines.least[machine], had)
    due = ceil(shortest)
    if machines.ready_size[machine]:
        due = min(due, since + machines.slice_ps[machine] - now)
        if machines.woken[machines.ready_thread[first]]:
            due = min(due, _service(machines, machine, now, rate))
    set_timer(calendar, scalar[GROUPS] + machine, now + max(0, due))


def schedule_cores(calendar: Calendar, machines: Machines, machine: int) -> None:
    """A task is done, or a slice is over: record what has ended; the next decision follows when all events are
    processed.
    """
    scalar = calendar.scalar
    _advance(machines, machine, scalar[NOW])
    scalar[DONE] = 0
    first = machines.first[machine]
    for index in range(first, first + machines.running_size[machine]):
        thread = machines.running[index]
        at = machines.at[thread] + machines.head[thread]
        if machines.size[thread] and machines.left[at] <= DONE_PS:
            calendar.done[scalar[DONE]] = machines.tasks[at]
            scalar[DONE] += 1
            head = machines.head[thread] + 1
            machines.head[thread] = head if machines.at[thread] + head < machines.at[thread + 1] else 0
            machines.size[thread] -= 1
    share_later(calendar, scalar[GROUPS] + machine)
