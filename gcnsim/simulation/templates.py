"""Schedules that differ in bandwidth alone are written once.

The bandwidth of the network is the capacity of links, and of nothing else that a schedule holds: a sweep over
bandwidths writes the first and puts other capacities into it. Only where somebody asks for it (`Templates.used`), since
what is kept takes memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from gcnsim.cluster import Cluster
from gcnsim.machine import resolve_machine
from gcnsim.scenario import Scenario
from gcnsim.schedule import Schedule

T = TypeVar("T")

STANDARD: Final = 1.25e9
"""The bandwidth under which scenarios that differ in it alone are kept, in bytes/s."""

MOST: Final = 48
"""Things that are kept: a few for each of the methods that take turns, and for each path that rows may take."""

MOST_GPUS: Final = 64
"""Of more, schedules take too much memory to be kept."""


class Templates:
    """What was made for a scenario at one bandwidth, for the same scenario at others."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, tuple[object, ...]]] = OrderedDict()

    @contextmanager
    def used(self) -> Iterator[None]:
        """A block in which schedules are kept and found here."""
        global _current
        before, _current = _current, self
        try:
            yield
        finally:
            _current = before

    def get(self, key: Hashable, of: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` gives, made once for each key and the very objects `of`, which are kept with it."""
        whole = (key, *map(id, of))
        if whole not in self._kept:
            self._kept[whole] = make(), of
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(whole)
        found: T = self._kept[whole][0]
        return found


_current: Templates | None = None


def shared(what: str, scenario: Scenario, of: tuple[object, ...], make: Callable[[], T], *more: Hashable) -> T:
    """What `make` gives for the scenario, whatever its bandwidth; what: its name. of: objects that it is made of."""
    if _current is None or not _movable(scenario):
        return make()
    return _current.get((what, at_standard(scenario), *more), of, make)


def at_standard(scenario: Scenario) -> Scenario:
    """The scenario at the standard bandwidth, without name and faults."""
    return replace(scenario, name="", faults=(), cluster=replace(scenario.cluster, bandwidth=STANDARD))


def _movable(scenario: Scenario) -> bool:
    """Whether the bandwidth is nothing but capacity to the scenario's schedule: of our methods, on GPUs whose kernels
    do not slow down beside transfers."""
    machine = resolve_machine(scenario.cluster)
    ours = type(scenario.method).__module__.startswith("gcnsim.")
    return ours and machine.rate_beside_copies == 1.0 and scenario.cluster.gpus <= MOST_GPUS


def rebased(schedule: Schedule, cluster: Cluster) -> Schedule:
    """The schedule with the capacities of `cluster`, which has the same links."""
    capacity = tuple(link.spec.capacity for link in cluster.links)
    return schedule if capacity == schedule.capacity else replace(schedule, capacity=capacity)
