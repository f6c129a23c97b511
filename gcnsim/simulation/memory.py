"""What every worker of a scenario holds in its GPU's memory, and whether that fits."""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.boundary import AccessCounts
from gcnsim.cost import Memory
from gcnsim.ids import Bytes, Rank
from gcnsim.methods import MiniBatch
from gcnsim.scenario import Scenario
from gcnsim.sources.placement import batch_memory_of
from gcnsim.workload import LayerShape


def memory_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> tuple[Memory, ...] | None:
    """Per worker what its GPU holds; None for methods without a law."""
    if isinstance(scenario.method, MiniBatch):
        return batch_memory_of(scenario, counts, shapes)
    norm, payload = scenario.workload.norm == "layer", scenario.cluster.payload
    return scenario.method.memory(counts, shapes, norm=norm, payload=payload)


def fits(memory: Sequence[Memory] | None, room: Sequence[Bytes] | None) -> bool | None:
    """Whether every worker's GPU, of `room` bytes, holds its part; None where that is not known."""
    if memory is None or room is None:
        return None
    return all(each.fits(capacity) for each, capacity in zip(memory, room, strict=True))


def tightest(memory: Sequence[Memory], room: Sequence[Bytes] | None) -> Rank:
    """The worker nearest the limit of its GPU, the first of equals; without limits the one that holds most."""
    limits = room or [0.0] * len(memory)
    return max(range(len(memory)), key=lambda rank: (memory[rank].total - limits[rank], -rank))
