"""Which part of the graph lies on which GPU, where GPUs are unequal.

Parts are of unequal work, and whoever cuts a graph numbers them as it likes: nobody chose which of them meets the
slower device. The likely answer leaves part n on GPU n; the ends put the part of most work on the slowest GPU, the next
one on the next slowest, or the other way round. Among four GPUs of two kinds these ends were those of all 24 orders;
of methods that broadcast blocks, whose products differ pair by pair, other orders were up to 5 % beyond.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import IntArray
from gcnsim.machine import resolve_machine
from gcnsim.scenario import Scenario
from gcnsim.sources import Source, SourceView
from gcnsim.sources.range_end import RangeEnd


class Placement(Enum):
    """An order of the parts among unequal GPUs."""

    NUMBERED = 0
    HEAVY_ON_FAST = 1
    HEAVY_ON_SLOW = 2


def placements(scenario: Scenario) -> tuple[Placement, ...]:
    """The orders that an interval covers: one where GPUs are equal, or where whoever asks numbered the parts."""
    chosen = scenario.partition.file is not None or scenario.workload.trace is not None
    unequal = len({each.name for each in resolve_machine(scenario.cluster).devices}) > 1
    return tuple(Placement) if unequal and not chosen else (Placement.NUMBERED,)


class Placed(SourceView):
    """The accesses of `source` with its parts in another order."""

    def __init__(self, source: Source, placement: Placement) -> None:
        super().__init__(source)
        self.placement = placement

    def counts(self, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method, worker by worker in the order asked for."""
        found = self.source.counts(scenario, features, corner)
        if self.placement is Placement.NUMBERED:
            return found
        work = (found.inner_edges + found.boundary_edges).mean(axis=0) + found.inner_nodes
        pace = np.array([_pace(each) for each in resolve_machine(scenario.cluster).devices])
        heaviest = np.argsort(-work, kind="stable")
        ranks = np.argsort(-pace if self.placement is Placement.HEAVY_ON_FAST else pace, kind="stable")
        order: IntArray = np.empty(found.workers, dtype=np.int64)
        order[ranks] = heaviest
        return found.placed(order)


def _pace(device: DeviceProfile) -> float:
    """Bytes per second at which a device sums neighbours, most of what a part asks of it."""
    return device.memory_bandwidth.value * device.spmm_efficiency.value
