"""Build schedules that differ only in bandwidth once.

The bandwidth of the network affects only the capacity of links in a schedule. A sweep over bandwidths builds the first
schedule and then replaces its capacities. This happens only on request (`Templates.used`), because the stored schedules
take memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from gcnsim.hardware.topology import Cluster
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.schedule import Schedule

T = TypeVar("T")

STANDARD: Final = 1.25e9
"""The bandwidth under which scenarios that differ only in it are stored, in bytes/s."""

MOST: Final = 48
"""The most stored objects: a few per method and per path of rows."""

MOST_GPUS: Final = 64
"""Schedules of more GPUs take too much memory to be stored."""


class Templates:
    """Objects built for a scenario at one bandwidth, reused for the same scenario at others."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, tuple[object, ...]]] = OrderedDict()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Store and reuse schedules inside this block."""
        global _current
        before, _current = _current, self
        try:
            yield
        finally:
            _current = before

    def get(self, key: Hashable, of: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key and per identical objects `of`, which are stored with it."""
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
    """The result of `make` for the scenario, independent of its bandwidth. what: its name. of: the objects it depends
    on.
    """
    if _current is None or not _movable(scenario):
        return make()
    return _current.get((what, at_standard(scenario), *more), of, make)


@lru_cache(maxsize=MOST)
def at_standard(scenario: Scenario) -> Scenario:
    """The scenario at the standard bandwidth, without name and faults."""
    return replace(scenario, name="", faults=(), cluster=replace(scenario.cluster, bandwidth=STANDARD))


def _movable(scenario: Scenario) -> bool:
    """Whether the bandwidth affects only capacities in the scenario's schedule.

    True for built-in methods on GPUs whose kernels do not slow down during transfers.
    """
    machine = resolve_machine(scenario.cluster)
    ours = type(scenario.method).__module__.startswith("gcnsim.")
    return ours and machine.rate_beside_copies == 1.0 and scenario.cluster.gpus <= MOST_GPUS


def rebased(schedule: Schedule, cluster: Cluster) -> Schedule:
    """The schedule with the capacities of `cluster`, which has the same links."""
    capacity = tuple(link.spec.capacity for link in cluster.links)
    return schedule if capacity == schedule.capacity else replace(schedule, capacity=capacity)
