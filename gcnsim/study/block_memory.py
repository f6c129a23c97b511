"""What every worker holds under the systems that keep no part with its boundary: block rows, and swapping."""

from __future__ import annotations

from typing import Final

from gcnsim.cost import Block, Memory, block_memory, swapped_host_bytes, swapped_memory
from gcnsim.ids import Bytes
from gcnsim.knobs import WHOLE_BLOCKS
from gcnsim.methods.block_rows import grid_of
from gcnsim.scenario import Scenario
from gcnsim.trace import AccessCounts
from gcnsim.workload import LayerShape

SWAPPED: Final = "roc"
BLOCKS: Final = (*WHOLE_BLOCKS, SWAPPED)
"""Methods whose memory is told here."""


def blocks_memory(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> tuple[Memory, ...]:
    """Per worker what its GPU holds under one of `BLOCKS`."""
    if scenario.method.name == SWAPPED:
        inner, rows, entries = _part(counts)
        return tuple(swapped_memory(shapes, *one) for one in zip(inner, rows, entries, strict=True))
    norm = scenario.workload.norm == "layer"
    return tuple(block_memory(shapes, block, norm=norm) for block in _held(scenario, counts))


def host_bytes(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> Bytes:
    """Bytes of the fullest server's memory that hold what the method `SWAPPED` swaps."""
    inner, _, entries = _part(counts)
    parts = [swapped_host_bytes(shapes, *one) for one in zip(inner, entries, strict=True)]
    each = scenario.cluster.gpus_per_server
    return max(sum(parts[first : first + each]) for first in range(0, len(parts), each))


def _part(counts: AccessCounts) -> tuple[list[int], list[int], list[int]]:
    """Per worker: inner nodes, boundary rows that its sums read, stored entries of its rows with self-loops."""
    rows = counts.rows.mean(axis=0).sum(axis=1).round().astype(int)
    return counts.inner_nodes.tolist(), rows.tolist(), (counts.entries + counts.inner_nodes).tolist()


def _held(scenario: Scenario, counts: AccessCounts) -> list[Block]:
    method = scenario.method
    replicas = method.replication if method.name == "cagnet-1.5d" else 1
    grid, found = grid_of(counts, replicas), []
    nodes, skips = int(counts.inner_nodes.sum()), method.name == "sancus"
    for rank in range(counts.workers):
        block, stages = rank // replicas, grid.stages(rank % replicas)
        rows = int(grid.rows[block])
        found.append(
            Block(
                rows=rows,
                entries=round(float(grid.entries[block, stages.start : stages.stop].sum())),
                stages=len(stages),
                received=max((int(grid.rows[other]) for other in stages if other != block), default=0),
                replicas=replicas,
                stored=nodes - rows if skips else 0,
                copied=rows if skips and method.stale_test == "gap" else 0,
            )
        )
    return found
