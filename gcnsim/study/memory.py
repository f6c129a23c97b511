"""What every worker of a scenario holds in its GPU's memory, and whether that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gcnsim.cost import Held, Memory, history_bytes, least_partitions, partition_memory
from gcnsim.ids import Bytes, Rank
from gcnsim.profile import device
from gcnsim.scenario import MethodSpec, Scenario
from gcnsim.study.batches import batches_memory, plan_of
from gcnsim.study.corners import keeps_all
from gcnsim.trace import AccessCounts
from gcnsim.workload import LayerShape

PARTITIONED: Final = ("full-graph", "pipegcn", "pipegcn-g", "pipegcn-f", "pipegcn-gf", "bns-gcn", "psc-gcn", "sancus")
"""Methods whose workers keep a partition on their GPU, as `gcnsim.cost.memory` has it."""

AVERAGES: Final = {"pipegcn-g": 1, "pipegcn-f": 1, "pipegcn-gf": 2}


def memory_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> tuple[Memory, ...] | None:
    """Per worker what its GPU holds; None for methods without a law."""
    chosen, tau = scenario.method, scenario.method.tau
    if counts.batches is not None:
        return batches_memory(scenario, plan_of(scenario, shapes), counts.batches)
    if chosen.name not in PARTITIONED or any(shape.heads for shape in shapes):
        return None
    norm, model = scenario.workload.norm == "layer", shapes
    found = [
        partition_memory(model, _held(counts, rank, chosen, tau), norm=norm, averages=AVERAGES.get(chosen.name, 0))
        for rank in range(counts.workers)
    ]
    if chosen.name == "sancus":
        history = history_bytes(int(counts.inner_nodes.sum()), counts.workers, shapes[0].d_in)
        found = [replace(each, cache=history) for each in found]
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


def device_bytes(scenario: Scenario) -> Bytes | None:
    """Bytes of memory of the scenario's GPU, the smallest; None of workers on CPU cores, which share their host's."""
    chosen = [device(name) for name in scenario.cluster.devices or (scenario.cluster.device,)]
    return None if chosen[0].kind == "cpu" else min(each.memory.value for each in chosen)


def fits(memory: Sequence[Memory] | None, capacity: Bytes | None) -> bool | None:
    """Whether every worker's part fits; None where that is not known."""
    if memory is None or capacity is None:
        return None
    return all(each.fits(capacity) for each in memory)


def least_gpus(memory: Sequence[Memory], capacity: Bytes) -> int | None:
    """About how many GPUs would hold it, by the worker that needs most; None where no number would."""
    return least_partitions(max(memory, key=lambda each: each.total), len(memory), capacity)
