"""Which bundles of a group are done next: a heap of bundles by (time, number), each in it once at most.

Every group has its part of the arrays of `Grains`, from its first bundle on.
"""

from __future__ import annotations

from math import ceil

from gcnsim.engine.kernel.memory import Flows, Grains, Links

NEVER = 2**62
"""An instant that no run reaches, in picoseconds."""


def first_due_at(links: Links, grains: Grains, group: int) -> int:
    """When the first bundle of the heap of `group` is done, NEVER for an empty one."""
    return grains.due_time[grains.due_heap[links.first_bundle[group]]] if grains.due_size[group] else NEVER


def due_at(links: Links, flows: Flows, group: int, bundle: int) -> int:
    """When the first flow of `bundle` is done, rounded up: never before its last unit is there."""
    if flows.rates[bundle] <= 0.0:
        return NEVER
    lasts = (flows.heads[bundle] - flows.service[bundle]) / flows.rates[bundle]
    return links.last[group] + max(0, ceil(lasts)) if lasts < float(NEVER) else NEVER


def set_due(links: Links, grains: Grains, group: int, bundle: int, time: int) -> None:
    """Let `bundle` be done at `time`; at NEVER it is not in the heap."""
    base, size, place = links.first_bundle[group], grains.due_size[group], grains.due_place[bundle]
    if time < NEVER:
        grains.due_time[bundle] = time
        if place < 0:
            place = size
            size += 1
            grains.due_heap[base + place] = bundle
        _settle(grains, base, size, place)
    elif place >= 0:
        grains.due_place[bundle] = -1
        size -= 1
        if place < size:
            grains.due_heap[base + place] = grains.due_heap[base + size]
            _settle(grains, base, size, place)
    grains.due_size[group] = size


def forget_due(links: Links, grains: Grains, group: int) -> None:
    """Empty the heap of `group`."""
    base = links.first_bundle[group]
    for place in range(base, base + grains.due_size[group]):
        grains.due_place[grains.due_heap[place]] = -1
    grains.due_size[group] = 0


def _sooner(grains: Grains, one: int, other: int) -> bool:
    times = grains.due_time
    return times[one] < times[other] or (times[one] == times[other] and one < other)


def _settle(grains: Grains, base: int, size: int, place: int) -> None:
    """Move the bundle at `place` of the heap of `size` that begins at `base` up, or down, to where it belongs."""
    heap, places = grains.due_heap, grains.due_place
    moved = heap[base + place]
    while place > 0:
        parent = (place - 1) >> 1
        if not _sooner(grains, moved, heap[base + parent]):
            break
        heap[base + place] = heap[base + parent]
        places[heap[base + place]] = place
        place = parent
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _sooner(grains, heap[base + child + 1], heap[base + child]):
            child += 1
        if not _sooner(grains, heap[base + child], moved):
            break
        heap[base + place] = heap[base + child]
        places[heap[base + place]] = place
        place = child
    heap[base + place] = moved
    places[moved] = place
