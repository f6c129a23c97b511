"""What every worker of a scenario holds in its GPU's memory, and whether that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gcnsim.cost import Held, Memory, partition_memory
from gcnsim.ids import Bytes, Rank
from gcnsim.profile import device
from gcnsim.scenario import ClusterSpec, MethodSpec, Scenario
from gcnsim.study.batches import batches_memory, plan_of
from gcnsim.study.block_memory import BLOCKS, blocks_memory
from gcnsim.study.corners import keeps_all
from gcnsim.study.paths import devices_of
from gcnsim.timeline import Direction
from gcnsim.trace import AccessCounts
from gcnsim.workload import LayerShape

PARTITIONED: Final = ("full-graph", "pipegcn", "pipegcn-g", "pipegcn-f", "pipegcn-gf", "bns-gcn", "psc-gcn")
"""Methods whose workers keep a partition on their GPU, as `gcnsim.cost.memory` has it."""

AVERAGES: Final[Mapping[str, tuple[Direction, ...]]] = {
    "pipegcn-g": (Direction.BACKWARD,),
    "pipegcn-f": (Direction.FORWARD,),
    "pipegcn-gf": (Direction.FORWARD, Direction.BACKWARD),
}
"""Directions in which what a method receives enters a moving average."""


def memory_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> tuple[Memory, ...] | None:
    """Per worker what its GPU holds; None for methods without a law."""
    chosen, tau = scenario.method, scenario.method.tau
    if counts.batches is not None:
        return batches_memory(scenario, plan_of(scenario, shapes), counts.batches)
    if any(shape.heads for shape in shapes):
        return None
    if chosen.name in BLOCKS:
        return blocks_memory(scenario, counts, shapes)
    if chosen.name not in PARTITIONED:
        return None
    norm, model = scenario.workload.norm == "layer", shapes
    found = [
        partition_memory(
            model,
            _held(counts, rank, chosen, tau),
            norm=norm,
            averages=AVERAGES.get(chosen.name, ()),
            payload=scenario.cluster.payload,
        )
        for rank in range(counts.workers)
    ]
    return tuple(found)


def _held(counts: AccessCounts, rank: Rank, method: MethodSpec, tau: int) -> Held:
    inner, loops = int(counts.inner_nodes[rank]), int(counts.inner_nodes[rank])
    entries = int(counts.entries[rank])
    rows, asked = counts.rows[:, rank].sum(axis=1), counts.rows[:, :, rank].sum(axis=1)
    inside, cross = counts.inner_edges[:, rank], counts.boundary_edges[:, rank]
    kept = int((inside + cross).max())
    # What is drawn keeps the whole's mix of inner and crossing entries, or all inner ones.
    crossing = entries - int(inside.max()) if method.rate < 1 or not kept else round(entries * int(cross.max()) / kept)
    held = Held(
        inner=inner,
        entries=entries + loops,
        crossing=max(crossing, int(cross.max())),
        boundary=int(counts.boundary_nodes[rank]),
        rows=int(rows.max()),
        asked=int(asked.max()),
        cached=int(counts.cached_rows[rank]),
        tau=tau,
    )
    if keeps_all(method):
        # PSC-GCN sets the cache's rows apart in a crossing block of its own, even where it draws nothing.
        return replace(held, graphs=1, kept_crossing=held.crossing) if method.name == "psc-gcn" else held
    if method.rate < 1:
        return replace(held, graphs=1, kept_crossing=int(cross.max()))
    return replace(held, graphs=2 * tau + 1, kept=kept + loops, kept_crossing=int(cross.max()))


def capacities(cluster: ClusterSpec) -> tuple[Bytes, ...] | None:
    """Bytes of memory of each worker's GPU, by rank; None of workers on CPU cores, which share their host's."""
    unequal, alike = devices_of(cluster), device(cluster.device)
    if unequal:
        return tuple(each.memory.value for each in unequal)
    return None if alike.kind == "cpu" else (alike.memory.value,) * cluster.gpus


def fits(memory: Sequence[Memory] | None, room: Sequence[Bytes] | None) -> bool | None:
    """Whether every worker's GPU, of `room` bytes, holds its part; None where that is not known."""
    if memory is None or room is None:
        return None
    return all(each.fits(capacity) for each, capacity in zip(memory, room, strict=True))


def tightest(memory: Sequence[Memory], room: Sequence[Bytes] | None) -> Rank:
    """The worker nearest the limit of its GPU, the first of equals; without limits the one that holds most."""
    limits = room or [0.0] * len(memory)
    return max(range(len(memory)), key=lambda rank: (memory[rank].total - limits[rank], -rank))
