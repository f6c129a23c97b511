"""The common parts of systems that broadcast whole blocks of rows (their iteration: `block_workers`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray, Rank
from gcnsim.cost import Block, Memory, block_memory
from gcnsim.graph.parts import Replicas, allowed_copies
from gcnsim.methods.method import Method
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape
from gcnsim.workload.staleness import BlockRule

if TYPE_CHECKING:
    from gcnsim.methods.method import Facts
    from gcnsim.schedule import Schedule


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """Blocks of rows, int64[G], and entries of A_gh, float64[G, G], if `replicas` workers store each block."""

    replicas: int
    rows: IntArray
    entries: FloatArray

    @property
    def blocks(self) -> int:
        """G, the number of blocks."""
        return int(self.rows.size)

    @property
    def holders(self) -> Replicas:
        """Which workers store and multiply which block."""
        return Replicas(self.blocks * self.replicas, self.replicas)

    def ring(self, member: int) -> list[Rank]:
        """The workers at place `member` among the replicas of each block, in the order of the blocks."""
        return self.holders.ring(member)

    def stages(self, member: int) -> range:
        """The blocks that this member of each block's replicas multiplies."""
        return self.holders.stages(member)


def grid_of(counts: AccessCounts, replicas: int) -> BlockGrid:
    """The blocks of a run. Raises ScenarioError if `replicas` does not divide the workers."""
    workers = counts.workers
    if workers % replicas:
        allowed = allowed_copies(workers)
        raise ScenarioError(f"method.replication: {replicas} does not divide the {workers} workers; allowed: {allowed}")
    rows = counts.rows.mean(axis=0)
    share = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    entries = counts.boundary_edges.mean(axis=0)[:, None] * share
    entries[np.diag_indices(workers)] = counts.inner_edges.mean(axis=0) + counts.inner_nodes
    blocks = workers // replicas
    summed = entries.reshape(blocks, replicas, blocks, replicas).sum(axis=(1, 3))
    return BlockGrid(replicas, counts.inner_nodes.reshape(blocks, replicas).sum(axis=1), summed)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockBroadcast(Method):
    """Training by block rows: before each layer every block of its input is broadcast by its owner.

    skips: whether some broadcasts are skipped, so that a worker keeps copies of the other blocks.
    """

    uses: ClassVar[frozenset[str]] = frozenset({"devices", "nvlink", "transport", "gpudirect", "allreduce"})
    needs_boundary: ClassVar[bool] = False
    random_partition: ClassVar[bool] = True
    sends_blocks: ClassVar[bool] = True
    skips: ClassVar[bool] = False

    @property
    def replicas(self) -> int:
        """Workers that store the same block of rows."""
        return 1

    @property
    def block_rule(self) -> BlockRule:
        """The rule for sending a block again that hardly changed."""
        return BlockRule()

    def sent(self, facts: Facts) -> FloatArray | None:
        """The share of each block that is broadcast, float64[T, layers, blocks]; None: all, always."""
        return None

    def schedule(self, facts: Facts) -> Schedule:
        """The schedule: broadcast and multiply, root after root. Raises ScenarioError if replicas do not divide the
        workers.
        """
        from gcnsim.methods.families.block_workers import block_rows

        return block_rows(self, facts)

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of each worker: its block, the received block, and stored copies; None with attention."""
        if any(shape.heads for shape in shapes):
            return None
        grid = grid_of(counts, self.replicas)
        return tuple(block_memory(shapes, self._block(grid, rank), norm=norm) for rank in range(counts.workers))

    def _block(self, grid: BlockGrid, rank: Rank) -> Block:
        block, stages = rank // self.replicas, grid.stages(rank % self.replicas)
        rows = int(grid.rows[block])
        return Block(
            rows=rows,
            entries=round(float(grid.entries[block, stages.start : stages.stop].sum())),
            stages=len(stages),
            received=max((int(grid.rows[other]) for other in stages if other != block), default=0),
            replicas=self.replicas,
            stored=int(grid.rows.sum()) - rows if self.skips else 0,
            copied=rows if self.skips and self.block_rule.test == "gap" else 0,
        )
