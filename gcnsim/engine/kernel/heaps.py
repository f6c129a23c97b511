"""Heaps in flat arrays: events by (time, serial), timers that can be moved, and small heaps that share one array.

A small heap (flows of a bundle, waiting threads) has the same layout as `heapq` of the standard library, because sums
over its members are taken in that order.
"""

from __future__ import annotations

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.engine.kernel.memory import EVENTS, SERIAL, TIMERS, Calendar


def push_event(calendar: Calendar, time: int, which: int) -> None:
    """Add an event, with the next serial number; every node has four children."""
    scalar, times, serials, events = calendar.scalar, calendar.time, calendar.serial, calendar.which
    index = scalar[EVENTS]
    scalar[EVENTS] = index + 1
    serial = scalar[SERIAL]
    scalar[SERIAL] = serial + 1
    while index > 0:
        parent = (index - 1) >> 2
        # Events of equal time keep their order of insertion; no serial number is higher than this one's.
        if times[parent] <= time:
            break
        times[index], serials[index], events[index] = times[parent], serials[parent], events[parent]
        index = parent
    times[index], serials[index], events[index] = time, serial, which


def pop_event(calendar: Calendar) -> int:
    """Remove and return the first event."""
    times, serials, events = calendar.time, calendar.serial, calendar.which
    found = events[0]
    size = calendar.scalar[EVENTS] - 1
    calendar.scalar[EVENTS] = size
    if size == 0:
        return found
    time, serial, which = times[size], serials[size], events[size]
    index = 0
    while True:
        child = 4 * index + 1
        if child >= size:
            break
        least = child
        for other in range(child + 1, min(child + 4, size)):
            if times[other] < times[least] or (times[other] == times[least] and serials[other] < serials[least]):
                least = other
        if times[least] > time or (times[least] == time and serials[least] > serial):
            break
        times[index], serials[index], events[index] = times[least], serials[least], events[least]
        index = least
    times[index], serials[index], events[index] = time, serial, which
    return found


def _sooner(calendar: Calendar, one: int, other: int) -> bool:
    times, serials = calendar.timer_time, calendar.timer_serial
    return times[one] < times[other] or (times[one] == times[other] and serials[one] < serials[other])


def _settle_timer(calendar: Calendar, index: int) -> None:
    """Move the timer at `index` of the heap up or down to its place."""
    heap, places = calendar.timer_heap, calendar.timer_place
    moved, size = heap[index], calendar.scalar[TIMERS]
    while index > 0:
        parent = (index - 1) >> 1
        if not _sooner(calendar, moved, heap[parent]):
            break
        heap[index] = heap[parent]
        places[heap[index]] = index
        index = parent
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and _sooner(calendar, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(calendar, heap[child], moved):
            break
        heap[index] = heap[child]
        places[heap[index]] = index
        index = child
    heap[index] = moved
    places[moved] = index


def set_timer(calendar: Calendar, resource: int, time: int) -> None:
    """Set the only timer of `resource` to `time`, with the next serial number."""
    scalar = calendar.scalar
    calendar.timer_time[resource] = time
    calendar.timer_serial[resource] = scalar[SERIAL]
    scalar[SERIAL] += 1
    index = calendar.timer_place[resource]
    if index < 0:
        index = scalar[TIMERS]
        scalar[TIMERS] = index + 1
        calendar.timer_heap[index] = resource
    _settle_timer(calendar, index)


def clear_timer(calendar: Calendar, resource: int) -> None:
    """Clear the timer of `resource`."""
    index = calendar.timer_place[resource]
    if index < 0:
        return
    calendar.timer_place[resource] = -1
    last = calendar.scalar[TIMERS] - 1
    calendar.scalar[TIMERS] = last
    if index < last:
        calendar.timer_heap[index] = calendar.timer_heap[last]
        _settle_timer(calendar, index)


def sift_down(keys: FloatArray, serials: IntArray, values: IntArray, base: int, index: int) -> None:
    """`heapq._siftdown` of the heap that begins at `base`: move the element at `index` towards the root."""
    key, serial, value = keys[base + index], serials[base + index], values[base + index]
    while index > 0:
        parent = base + ((index - 1) >> 1)
        if not (key < keys[parent] or (key == keys[parent] and serial < serials[parent])):
            break
        keys[base + index], serials[base + index], values[base + index] = keys[parent], serials[parent], values[parent]
        index = parent - base
    keys[base + index], serials[base + index], values[base + index] = key, serial, value


def push_small(
    keys: FloatArray, serials: IntArray, values: IntArray, base: int, size: int, key: float, serial: int, value: int
) -> None:
    """`heapq.heappush` of (key, serial, value) on the heap of `size` members that begins at `base`."""
    keys[base + size], serials[base + size], values[base + size] = key, serial, value
    sift_down(keys, serials, values, base, size)


def pop_small(keys: FloatArray, serials: IntArray, values: IntArray, base: int, size: int) -> int:
    """`heapq.heappop`: remove the first of `size` members and return its value."""
    found = values[base]
    end = size - 1
    if end == 0:
        return found
    key, serial, value = keys[base + end], serials[base + end], values[base + end]
    index = 0
    child = 1
    while child < end:
        left, right = base + child, base + child + 1
        if child + 1 < end and not (
            keys[left] < keys[right] or (keys[left] == keys[right] and serials[left] < serials[right])
        ):
            child += 1
        at = base + child
        keys[base + index], serials[base + index], values[base + index] = keys[at], serials[at], values[at]
        index = child
        child = 2 * index + 1
    keys[base + index], serials[base + index], values[base + index] = key, serial, value
    sift_down(keys, serials, values, base, index)
    return found
