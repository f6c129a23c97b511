"""Uncertainty of the partition: the effect of other partitions.

The profile of a published dataset belongs to one partition, and METIS' seed decides which. The largest worker's
boundary and entries, and the mean boundary, move to either end of their variation over seeds
(`gcnsim.graph.describe.partition_scatter`). All workers keep their order; those below the mean move the other
way. Which part runs on which GPU is `gcnsim.simulation.part_orders`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import AnyArray, FloatArray, Seconds
from gcnsim.graph.describe import SeedVariation
from gcnsim.scenario import Scenario
from gcnsim.schedule import estimate
from gcnsim.simulation.diagnosis import evened
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.packaged_profiles import bundled_parts

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
