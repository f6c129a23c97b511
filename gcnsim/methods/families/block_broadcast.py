"""Training by block rows: what CAGNET and SANCUS share, and their iteration.

Every worker stores the rows of its part of the adjacency matrix and of every layer's input. The aggregation of a layer
is the product of these rows with all blocks of the input. So before each layer every block is broadcast by its owner,
one root after the other, and multiplied by the matching columns: dense traffic, independent of the boundary. The
backward pass broadcasts the blocks of the gradient likewise. Source: CAGNET, sections on 1D and 1.5D algorithms;
SANCUS, Algorithm 1.

Interpretations of open points in the papers:

- blocks travel around a ring of the workers, pipelined (SANCUS, section on communication);

- a worker receives block j + 1 when its product with block j is done, as in the released loop of broadcasts: nothing
overlaps;

- rows are aggregated before the product with the weights: forward at a layer's input width, backward at its output
width, also in the first layer, because its weight gradient is the input times the sum of the gradients;

- weight gradients are reduced layer by layer, and the worker waits for them;

- with c replicas of a block, member m takes the stages of its share of the blocks, and the last member the remainder;
then they add up their sums. All of them compute the whole block's dense products (released code);

- entries of A_ij cross from i to j: a worker's crossing entries are distributed over its peers in proportion to the
rows it needs of each;

- products are sparse sums, row by row; released code's (`Facts.released`) process a block column by column
(`gcnsim.cost.columns_seconds`), as the sparse library does with its storage format: Table 6 of PipeGCN has three times
the computation of a row-wise product;

- a block that is not sent (SANCUS) is multiplied from the stored copy, before any wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.cost import (
    Block,
    LayerCost,
    Memory,
    block_memory,
    columns_seconds,
    elementwise_seconds,
    gradient_bytes,
    issued,
    layer_cost,
    loss_seconds,
    row_bytes,
    spmm_seconds,
    step_seconds,
)
from gcnsim.graph.parts import Replicas, allowed_copies
from gcnsim.methods.method import Facts, Method
from gcnsim.schedule import Builder, Dependency, Schedule, allreduce, ring_broadcast, ring_reduce_among
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape
from gcnsim.workload.staleness import BlockRule

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

GAP_PASSES = 2
"""The variation of a block: its rows and the copy sent last are read once."""


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

    uses: ClassVar[frozenset[str]] = frozenset(
        {"devices", "implementation", "nvlink", "transport", "gpudirect", "allreduce"}
    )
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
        return _BlockWriter(self, facts).write()

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


class _BlockWriter:
    """Writes one schedule."""

    def __init__(self, method: BlockBroadcast, facts: Facts) -> None:
        self.rule = method.block_rule
        self.facts = facts
        self.call_s = facts.host.call_s.value
        """Seconds of a host call: released code calls its framework too, and has no other overhead here."""
        self.grid = grid_of(facts.counts, method.replicas)
        self.workers = range(facts.cluster.gpus)
        sent = method.sent(facts)
        self.sent = np.ones((1, len(facts.shapes), self.grid.blocks)) if sent is None else sent
        self.builder = Builder(method.name, facts.cluster, self.sent.shape[0])
        self.costs = [self._costs(rank) for rank in self.workers]

    def write(self) -> Schedule:
        """Build the schedule."""
        facts, builder = self.facts, self.builder
        for layer, shape in enumerate(facts.shapes):
            if shape.gathers:
                self._sum(layer, FORWARD, shape.d_in)
            for rank in self.workers:
                self._compute(OpKind.UPDATE, rank, self._cost(rank, layer).update, layer, FORWARD)
                self._test(rank, layer, shape.d_out)
        for rank in self.workers:
            seconds = loss_seconds(
                facts.device_of(rank), int(self.grid.rows[self._block(rank)]), facts.shapes[-1].d_out
            )
            builder.compute(OpKind.LOSS, rank, issued(OpKind.LOSS, seconds, self.call_s))
        reduced: list[int] = []
        for layer in reversed(range(len(facts.shapes))):
            reduced = self._backward(layer)
        steps = []
        for rank in self.workers:
            seconds = issued(OpKind.STEP, step_seconds(facts.device_of(rank), facts.shapes), self.call_s)
            steps.append(builder.compute(OpKind.STEP, rank, seconds, after=[reduced[rank]]))
        return builder.close(steps, periodic=True)

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op after which its weight gradient is reduced."""
        shape = self.facts.shapes[layer]
        if shape.gathers:
            self._sum(layer, BACKWARD, shape.d_out)
        made = [
            self._compute(OpKind.UPDATE, rank, self._cost(rank, layer).update_backward, layer, BACKWARD)
            for rank in self.workers
        ]
        ends = allreduce(self.builder, gradient_bytes((shape,)), made)
        if layer == 0:
            return ends
        return [
            self.builder.compute(OpKind.SCATTER, rank, 0.0, after=[ends[rank]], layer=layer, direction=BACKWARD)
            for rank in self.workers
        ]

    def _sum(self, layer: Layer, direction: Direction, width: int) -> None:
        """Every block's broadcast and its product, root after root; with replicas, their sums are added."""
        grid, sends = self.grid, self._sends(layer, direction)
        last: list[int | None] = [None for _ in self.workers]
        for rank in self.workers:
            stale_share = 1.0 - sends[:, list(self._stages(rank))]
            if stale_share.any():
                seconds = (stale_share * self._products(rank, width)).sum(axis=1)
                last[rank] = self._compute(OpKind.AGGREGATE, rank, seconds, layer, direction)
        for member in range(grid.replicas):
            ring = grid.ring(member)
            for index, root in enumerate(grid.stages(member)):
                ends = self._broadcast(ring, root, sends[:, root], width, last, layer, direction)
                for rank, end in zip(ring, ends, strict=True):
                    seconds = self._products(rank, width)[index] * sends[:, root]
                    last[rank] = self._compute(OpKind.AGGREGATE, rank, seconds, layer, direction, after=end)
        if grid.replicas > 1:
            self._add_up(layer, direction, width, last)

    def _broadcast(
        self,
        ring: list[Rank],
        root: int,
        sends: FloatArray,
        width: int,
        last: list[int | None],
        layer: Layer,
        direction: Direction,
    ) -> list[list[Dependency]]:
        """Block `root` around its ring if it is sent; per member, the ops that its product waits for."""
        if len(ring) == 1:
            return [[]]
        nbytes = row_bytes(np.asarray(self.grid.rows[root]), width) * sends
        after = [[op] if (op := last[rank]) is not None else self._begun(rank) for rank in ring]
        ends = ring_broadcast(self.builder, ring, root, nbytes, after, layer=layer, direction=direction)
        return [[end] for end in ends]

    def _begun(self, rank: Rank) -> list[Dependency]:
        """The op that a layer's first message waits for: the worker has reached that layer."""
        return [self.builder.compute(OpKind.SCATTER, rank, 0.0)]

    def _add_up(self, layer: Layer, direction: Direction, width: int, last: list[int | None]) -> None:
        """The replicas of each block add up their sums of its rows."""
        grid = self.grid
        for block in range(grid.blocks):
            ring = [block * grid.replicas + member for member in range(grid.replicas)]
            after: list[Dependency] = [
                made if (made := last[rank]) is not None else self._begun(rank)[0] for rank in ring
            ]
            nbytes = float(row_bytes(np.asarray(grid.rows[block]), width))
            ends = ring_reduce_among(self.builder, ring, nbytes, after, layer, direction)
            for rank, end in zip(ring, ends, strict=True):
                self.builder.compute(OpKind.SCATTER, rank, 0.0, after=[end], layer=layer, direction=direction)

    def _sends(self, layer: Layer, direction: Direction) -> FloatArray:
        """The share of each block that is broadcast, float64[T, blocks]."""
        always = direction is BACKWARD and not self.rule.skips_backward
        return np.ones_like(self.sent[:, layer]) if always else self.sent[:, layer]

    def _test(self, rank: Rank, layer: Layer, width: int) -> None:
        """The cost of a stale test of the rows that a layer has computed."""
        if self.rule.test == "gap" and (self.sent < 1.0).any():
            values = float(self.grid.rows[self._block(rank)]) * width
            self._compute(
                OpKind.UPDATE, rank, elementwise_seconds(self.facts.device_of(rank), values, GAP_PASSES), layer, FORWARD
            )

    def _products(self, rank: Rank, width: int) -> FloatArray:
        """Seconds of a worker's product with each of its blocks, float64[stages].

        All but the first add to the existing result, which is read and written.
        """
        block, found = self._block(rank), []
        for index, other in enumerate(self._stages(rank)):
            starts = int(self.grid.rows[block])
            rows, entries = starts * (2 if index else 1), float(self.grid.entries[block, other])
            device, share = self.facts.device_of(rank), self._streaming(rank)
            seconds = (
                spmm_seconds(device, entries, rows, width, int(self.grid.rows[other]))
                if share is None
                else columns_seconds(device, share, entries, rows, width, min(starts, entries))
            )
            found.append(float(seconds) if entries else 0.0)
        return np.array(found)

    def _streaming(self, rank: Rank) -> float | None:
        """The share of memory bandwidth at which a worker's device reads entries, per device if they differ; None where
        products go row by row."""
        facts = self.facts
        own = facts.devices and facts.streaming is not None
        return facts.device_of(rank).elementwise_efficiency.value if own else facts.streaming

    def _stages(self, rank: Rank) -> range:
        return self.grid.stages(rank % self.grid.replicas)

    def _block(self, rank: Rank) -> int:
        return rank // self.grid.replicas

    def _costs(self, rank: Rank) -> list[LayerCost]:
        """The dense kernels of each layer over the rows of a worker's block."""
        none, rows = np.zeros(1, dtype=np.int64), int(self.grid.rows[self._block(rank)])
        return [
            layer_cost(
                self.facts.device_of(rank),
                shape,
                first=layer == 0,
                inner=rows,
                entries=none,
                boundary_rows=none,
                norm=self.facts.norm,
                last=layer + 1 == len(self.facts.shapes),
                dropout=self.facts.dropout,
            )
            for layer, shape in enumerate(self.facts.shapes)
        ]

    def _cost(self, rank: Rank, layer: Layer) -> LayerCost:
        return self.costs[rank][layer]

    def _compute(
        self,
        kind: OpKind,
        rank: Rank,
        seconds: FloatArray,
        layer: Layer,
        direction: Direction,
        *,
        after: list[Dependency] | None = None,
    ) -> int:
        seconds = issued(kind, seconds, self.call_s)
        return self.builder.compute(kind, rank, seconds, after=after or [], layer=layer, direction=direction)
