"""The memory of each server of a scenario, and how many servers would hold it.

Mini-batches: every server has the whole graph and all rows, or those of its own part (DistDGL). Other methods: every
worker reads its own part, whose rows and entries it copies to its GPU, and a partition book.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

import numpy as np

from gcnsim.core.ids import Bytes
from gcnsim.cost import SYSTEM, ServerMemory, server_memory
from gcnsim.cost.device import VALUE
from gcnsim.methods import MiniBatch
from gcnsim.methods.roc import Roc
from gcnsim.scenario import STAGED, Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape

PINNED: Final = 2
"""Copies of a boundary row in host memory where rows are staged: one that leaves, one that arrived."""


def server_memory_of(
    scenario: Scenario, counts: AccessCounts, shapes: Sequence[LayerShape]
) -> tuple[ServerMemory, ...] | None:
    """The memory of each server; None for workers on CPU cores, whose memory is that of their device."""
    cluster = scenario.cluster
    if resolve_machine(cluster).kind != "gpu":
        return None
    each = cluster.gpus_per_server
    return tuple(
        _of_server(scenario, counts, shapes, slice(first, min(first + each, cluster.gpus)))
        for first in range(0, cluster.gpus, each)
    )


def _of_server(scenario: Scenario, counts: AccessCounts, shapes: Sequence[LayerShape], ranks: slice) -> ServerMemory:
    method, width, workers = scenario.method, shapes[0].d_in, ranks.stop - ranks.start
    own, entries = float(counts.inner_nodes[ranks].sum()), float(counts.entries[ranks].sum())
    nodes = float(counts.inner_nodes.sum())
    if isinstance(method, MiniBatch):
        whole = method.everywhere
        return server_memory(
            nodes=nodes if whole else own,
            entries=float(counts.entries.sum()) if whole else entries,
            width=width,
            booked=0.0 if whole else nodes,
            buffered=_loaded(method, counts, width, ranks),
            workers=workers,
        )
    # A system that swaps keeps its layers' rows in host memory too (`gcnsim.methods.roc`).
    swapped = method.host_bytes(counts, tuple(shapes), workers) if isinstance(method, Roc) else 0.0
    staged = resolve_machine(scenario.cluster).between.transport == STAGED
    widest = max(shape.d_in for shape in shapes)
    copies = PINNED * VALUE * widest * float(counts.boundary_nodes[ranks].sum()) if staged else 0.0
    return server_memory(
        nodes=own, entries=entries, width=width, booked=workers * nodes, buffered=swapped + copies, workers=workers
    )


def _loaded(method: MiniBatch, counts: AccessCounts, width: int, ranks: slice) -> Bytes:
    """Bytes of the batches that the loaders of a server's workers hold at once."""
    if counts.batches is None:
        return 0.0
    largest = np.asarray(counts.batches.levels[:, ranks, 0]).max(axis=0).sum()
    return float(VALUE * width * largest * (1 + method.loading.ahead))


def server_holds(memory: Sequence[ServerMemory] | None, room: Bytes | None) -> bool | None:
    """Whether every server's memory of `room` bytes holds it; None if unknown."""
    return None if memory is None or room is None else all(item.fits(room) for item in memory)


def least_servers(scenario: Scenario, memory: Sequence[ServerMemory], room: Bytes) -> int | None:
    """The fewest servers of as many workers that would hold it, as far as its data can be divided; None if none would.

    What all of them have in common is not divided: a whole graph, a partition book, processes.
    """
    method, batches = scenario.method, isinstance(scenario.method, MiniBatch)
    if isinstance(method, MiniBatch) and method.everywhere:
        return None
    most = max(memory, key=lambda item: item.total)
    divided = most.rows + most.graph + (0.0 if batches else most.buffers)
    left = room - SYSTEM - (most.total - divided)
    return None if left <= 0 else max(len(memory) + 1, ceil(divided * len(memory) / left))
