"""Uncertainty of the partition: the assignment of parts to unequal GPUs, and the effect of other partitions.

Parts have unequal work and an arbitrary numbering, so it is open which one runs on the slower device. The likely answer
puts part n on GPU n. The ends put the part with most work on the slowest GPU, the next one on the next slowest, or the
reverse. With four GPUs of two kinds, these were the extremes of all 24 orders. For methods that broadcast blocks, whose
products differ pair by pair, other orders were up to 5 % beyond.

The profile of a published dataset belongs to one partition, and METIS' seed decides which. The largest worker's
boundary and entries, and the mean boundary, move to either end of their variation over seeds
(`gcnsim.graph.describe.partition_scatter`). All workers keep their order; those below the mean move the other
way.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import AnyArray, FloatArray, IntArray, Seconds
from gcnsim.graph.describe import SeedVariation
from gcnsim.hardware import DeviceProfile
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.schedule import estimate
from gcnsim.simulation.diagnosis import evened
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd, Source, SourceView
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.packaged_profiles import bundled_parts


class PartOrder(Enum):
    """An order of the parts among unequal GPUs."""

    NUMBERED = 0
    HEAVY_ON_FAST = 1
    HEAVY_ON_SLOW = 2


def placements(scenario: Scenario) -> tuple[PartOrder, ...]:
    """The orders that an interval covers: one if GPUs are equal, or if the user numbered the parts."""
    chosen = scenario.partition.file is not None or scenario.workload.trace is not None
    unequal = len({device.name for device in resolve_machine(scenario.cluster).devices}) > 1
    return tuple(PartOrder) if unequal and not chosen else (PartOrder.NUMBERED,)


class Placed(SourceView):
    """The accesses of `source` with its parts in another order."""

    def __init__(self, source: Source, placement: PartOrder) -> None:
        super().__init__(source)
        self.placement = placement

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method, worker by worker in the requested order."""
        counts = self.source.counts(scenario, features, bound)
        if self.placement is PartOrder.NUMBERED:
            return counts
        work = (counts.inner_edges + counts.boundary_edges).mean(axis=0) + counts.inner_nodes
        pace = np.array([_pace(device) for device in resolve_machine(scenario.cluster).devices])
        heaviest = np.argsort(-work, kind="stable")
        ranks = np.argsort(-pace if self.placement is PartOrder.HEAVY_ON_FAST else pace, kind="stable")
        order: IntArray = np.empty(counts.workers, dtype=np.int64)
        order[ranks] = heaviest
        return counts.placed(order)


def _pace(device: DeviceProfile) -> float:
    """Bytes per second at which a device aggregates neighbours, which is most of a part's work."""
    return device.memory_bandwidth.value * device.spmm_efficiency.value


PARTITION: Final = "partition"
"""The name of the partitioner's seed among the assumptions."""


def partition_factors(
    scenario: Scenario, accesses: Source, counts: AccessCounts, now_s: Seconds
) -> tuple[float, float] | None:
    """The estimated iteration time at either end of other partitions over `now_s`, with the scenario's `counts`.

    None if there are no other partitions. The scenario has no faults.
    """
    scatter = accesses.scatter(scenario)
    if scatter is None:
        return None
    ends = [scattered(counts, scatter, end, scenario.cluster.gpus_per_server) for end in (RangeEnd.LOW, RangeEnd.HIGH)]
    low, high = (estimate(write_schedule(scenario, end, accesses)) / now_s for end in ends)
    return min(low, 1.0), max(high, 1.0)


def statistics_warning(scenario: Scenario) -> str | None:
    """Why the dataset's other kind of statistics gives another answer; None if it has one kind only, and for one
    worker.
    """
    spec, name = scenario.partition, scenario.workload.dataset
    if name is None or scenario.cluster.gpus not in bundled_parts(name) or scenario.cluster.gpus == 1:
        return None
    if scenario.method.mini_batches or spec.parts is not None:
        return None
    if spec.statistics == "published":
        return (
            "partition.statistics published: assumes that all workers send alike, and that 15 % fewer rows cross "
            f"servers than at random; in the measured profile of {name} neither holds, so a busy NIC carries more "
            "there (docs/surrogates.md)"
        )
    return (
        f"the profile of {name} describes one partition of a drawn graph; partition.statistics published uses printed "
        "and assumed figures, with another result (docs/surrogates.md)"
    )


def scattered(counts: AccessCounts, scatter: SeedVariation, end: RangeEnd, per_server: int = 1) -> AccessCounts:
    """The counts of another partition at `end` of the variation; at `LIKELY` they are `counts`."""
    if end is RangeEnd.LIKELY or counts.batches is not None:
        return counts
    side = 0 if end is RangeEnd.LOW else 1
    mean, most, heaviest = (
        scatter.factors(name)[side] for name in ("boundary_mean", "boundary_largest", "entries_largest")
    )
    even = evened(counts, per_server)
    boundary = _stretch(counts.boundary_nodes, mean, most)
    load = _stretch(counts.entries, 1.0, heaviest)
    changed: dict[str, Any] = {"boundary_nodes": _moved(counts.boundary_nodes, even.boundary_nodes, boundary, mean)}
    for name in ("rows", "hits", "boundary_edges", "cached_rows"):
        changed[name] = _moved(getattr(counts, name), getattr(even, name), boundary, mean)
    changed["hits"] = np.minimum(changed["hits"], changed["rows"])
    for name in ("inner_edges", "entries"):
        changed[name] = _moved(getattr(counts, name), getattr(even, name), load, 1.0)
    return replace(counts, **changed)


def _stretch(amounts: AnyArray, mean: float, most: float) -> float:
    """The factor on differences from the mean when the mean changes by `mean` and the largest by `most`."""
    values: FloatArray = amounts.astype(np.float64)
    above = float(values.max() - values.mean())
    if above <= 0.0:
        return 1.0
    return max(0.0, most * float(values.max()) - mean * float(values.mean())) / (mean * above)


def _moved(amounts: AnyArray, even: AnyArray, stretch: float, mean: float) -> AnyArray:
    """The amounts with their differences from `even` multiplied by `stretch`, then all by `mean`; whole and not
    negative.
    """
    moved: AnyArray = np.rint(np.maximum(mean * (even + stretch * (amounts - even)), 0.0)).astype(np.int64)
    return moved
