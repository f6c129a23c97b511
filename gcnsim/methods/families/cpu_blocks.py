"""Training by block rows by workers that compute on CPU cores, as the training runtime does it with gloo.

The iteration is that of `block_workers`; what differs is what the runtime does (`runtime.exchange.blocks`): blocks that
are not sent are multiplied first, then each block goes around its ring in pieces and is multiplied when a worker has it
and has passed it on; one matrix serves both ways, so a backward product is that of the forward pass at the output's
width; replicas add up their sums step by step between products. Everything takes turns on the cores.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from gcnsim.cost import (
    CoreShares,
    Kept,
    adding_seconds,
    core_shares,
    elementwise_seconds,
    loss_seconds,
    row_bytes,
    spmm_seconds,
    step_seconds,
)
from gcnsim.ids import FloatArray, Layer, Rank
from gcnsim.methods.families.block_broadcast import BlockBroadcast, grid_of
from gcnsim.methods.families.block_workers import GAP_PASSES
from gcnsim.methods.families.cpu_ops import TAG, WOKEN_S, CpuOps
from gcnsim.methods.method import Facts
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency
from gcnsim.schedule.collectives import CHUNK
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import NO_DROPOUT

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

FLAG = 4
"""Bytes in which a worker says whether it sends a block."""


class CpuBlockWriter(CpuOps):
    """Writes the schedule of `method` for workers on CPU cores."""

    def __init__(self, method: BlockBroadcast, facts: Facts) -> None:
        sent = method.sent(facts)
        super().__init__(method.name, facts, 1 if sent is None else sent.shape[0])
        self.rule, self.grid = method.block_rule, grid_of(facts.counts, method.replicas)
        every = np.ones((1, len(facts.shapes), self.grid.blocks)) if sent is None else sent
        self.cycles = every.shape[0] > 1
        self.sent: FloatArray = np.tile(every, (self.iterations // every.shape[0], 1, 1))
        self.costs = [self._costs(rank) for rank in self.workers]
        self.drops = facts.dropout != NO_DROPOUT

    def write(self) -> Schedule:
        """The schedule."""
        facts, last = self.facts, len(self.facts.shapes) - 1
        for layer, shape in enumerate(facts.shapes):
            for rank in self.workers:
                self.handed_over(rank)
                self._drop(rank, layer, FORWARD)
                self._test(rank, layer)
            self._exchange_flags(layer)
            if shape.gathers:
                self._sum(layer, FORWARD, shape.d_in)
            for rank in self.workers:
                self.work(OpKind.UPDATE, rank, self.costs[rank][layer].update, layer, FORWARD)
        for rank in self.workers:
            inner = int(facts.counts.inner_nodes[rank])
            self.work(OpKind.LOSS, rank, loss_seconds(facts.device, inner, facts.shapes[last].d_out))
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in range(last, -1, -1):
            for rank, op in enumerate(self._backward(layer)):
                reduced[rank].append(op)
        seconds = float(step_seconds(facts.device, facts.shapes))
        steps = [self.work(OpKind.STEP, rank, seconds, after=reduced[rank]) for rank in self.workers]
        return self.builder.close(steps, periodic=self.cycles)

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op at which its weights' gradient is that of all."""
        shape = self.facts.shapes[layer]
        for rank in self.workers:
            self.handed_over(rank)
        if shape.gathers:
            self._sum(layer, BACKWARD, shape.d_out)
        costs = [self.costs[rank][layer].update for rank in self.workers]
        made = [self.work(OpKind.UPDATE, rank, costs[rank], layer, BACKWARD) for rank in self.workers]
        for rank in self.workers:
            if layer:
                self._drop(rank, layer, BACKWARD)
        return self.reduce(layer, made)

    def _sum(self, layer: Layer, direction: Direction, width: int) -> None:
        """The products with blocks that are kept, then every other block's broadcast and its product."""
        grid, sends = self.grid, self._sends(layer, direction)
        products = [self._products(rank, width) for rank in self.workers]
        for rank in self.workers:
            for index, block in enumerate(self._stages(rank)):
                stale_share = 1.0 - sends[:, block]
                if stale_share.any():
                    self.work(OpKind.AGGREGATE, rank, stale_share * products[rank][index], layer, direction)
        for member in range(grid.replicas):
            ring = grid.ring(member)
            for index, root in enumerate(grid.stages(member)):
                if not sends[:, root].any():
                    continue
                nbytes = row_bytes(np.asarray(grid.rows[root]), width) * sends[:, root]
                self._broadcast(ring, root, nbytes, layer, direction)
                for rank in ring:
                    seconds = products[rank][index] * sends[:, root]
                    self.work(OpKind.AGGREGATE, rank, seconds, layer, direction)
        if grid.replicas > 1:
            self._add_up(layer, direction, width)

    def _broadcast(self, ring: list[Rank], root: int, nbytes: FloatArray, layer: Layer, direction: Direction) -> None:
        """A block around its ring, piece after piece; each member's thread waits until it has it and passed it on."""
        size = len(ring)
        if size == 1:
            return
        pieces = max(1, ceil(float(nbytes.max()) / CHUNK)) if size > 2 else 1
        begun = [self.work(OpKind.SCATTER, rank, 0.0, layer, direction) for rank in ring]
        through: list[list[Dependency]] = [[] for _ in ring]
        for _ in range(pieces):
            came: list[Dependency] = []
            for hop in range(size - 1):
                here, there = (root + hop) % size, (root + hop + 1) % size
                stream = f"{TAG[direction]}.tx{ring[there]}.{layer}"
                after: list[Dependency] = [begun[here], begun[there], *came]
                moved = self.message(
                    OpKind.WIRE, ring[here], ring[there], nbytes / pieces, after, stream, layer, direction
                )
                through[here] += moved.sent
                through[there].append(moved.got)
                came = [moved.got]
        woken: FloatArray = np.where(nbytes > 0, WOKEN_S, 0.0)
        for rank, ends in zip(ring, through, strict=True):
            self.work(OpKind.SCATTER, rank, woken, layer, direction, after=ends)

    def _add_up(self, layer: Layer, direction: Direction, width: int) -> None:
        """The replicas of each block add up their sums of its rows, around their ring and back."""
        grid = self.grid
        for block in range(grid.blocks):
            ring = grid.holders.holders(block)
            chunk = float(row_bytes(np.asarray(grid.rows[block]), width)) / len(ring)
            for step in range(2 * (len(ring) - 1)):
                begun = [self.work(OpKind.SCATTER, rank, 0.0, layer, direction) for rank in ring]
                ends: list[list[Dependency]] = [[] for _ in ring]
                for index, rank in enumerate(ring):
                    to = (index + 1) % len(ring)
                    stream = f"{TAG[direction]}.tx{ring[to]}.{layer}"
                    after: list[Dependency] = [begun[index], begun[to]]
                    moved = self.message(OpKind.ALLREDUCE, rank, ring[to], chunk, after, stream, layer, direction)
                    ends[index] += moved.sent
                    ends[to].append(moved.got)
                added = adding_seconds(self.facts.device, chunk) if step < len(ring) - 1 else 0.0
                for index, rank in enumerate(ring):
                    self.work(OpKind.SCATTER, rank, WOKEN_S + added, layer, direction, after=ends[index])

    def _sends(self, layer: Layer, direction: Direction) -> FloatArray:
        """How much of each block is broadcast, float64[T, blocks]."""
        always = direction is BACKWARD and not self.rule.skips_backward
        return np.ones_like(self.sent[:, layer]) if always else self.sent[:, layer]

    def _test(self, rank: Rank, layer: Layer) -> None:
        """What it costs to see how far a layer's input has moved: the features never do."""
        if self._gap and layer > 0:
            values = float(self.facts.counts.inner_nodes[rank]) * self.facts.shapes[layer].d_in
            seconds = elementwise_seconds(self.facts.device, values, GAP_PASSES)
            self.work(OpKind.UPDATE, rank, seconds, layer - 1, FORWARD)

    def _exchange_flags(self, layer: Layer) -> None:
        """Every worker tells every other one whether it sends, because only the owner knows how far rows moved."""
        if not self._gap:
            return
        begun = [self.work(OpKind.INDEX, rank, 0.0, layer) for rank in self.workers]
        ends: list[list[Dependency]] = [[] for _ in self.workers]
        for rank, peer in self.pairs():
            after: list[Dependency] = [begun[rank], begun[peer]]
            transfer = self.message(OpKind.INDEX, rank, peer, FLAG, after, f"flags.tx{peer}", layer)
            ends[rank] += transfer.sent
            ends[peer].append(transfer.got)
        for rank in self.workers:
            self.work(OpKind.INDEX, rank, WOKEN_S, layer, after=ends[rank])

    @property
    def _gap(self) -> bool:
        return self.rule.test == "gap" and bool((self.sent < 1.0).any())

    def _products(self, rank: Rank, width: int) -> list[float]:
        """The share of a worker's product with each of the blocks that it takes."""
        own = rank // self.grid.replicas
        rows, every = float(self._rows(rank)), [float(self.grid.entries[own, block]) for block in self._stages(rank)]
        return [float(spmm_seconds(self.facts.device, entries, rows, width)) if entries else 0.0 for entries in every]

    def _rows(self, rank: Rank) -> int:
        return int(self.grid.rows[rank // self.grid.replicas])

    def _stages(self, rank: Rank) -> range:
        return self.grid.stages(rank % self.grid.replicas)

    def _drop(self, rank: Rank, layer: Layer, direction: Direction) -> None:
        if self.drops:
            self.work(OpKind.UPDATE, rank, self.costs[rank][layer].dropped, layer, direction)

    def _costs(self, rank: Rank) -> list[CoreShares]:
        """The maps and dropout of each layer over the rows of a worker's block."""
        kept = Kept(np.array([self._rows(rank)]), np.zeros(1, np.int64))
        return [core_shares(self.facts.device, shape, kept, self.facts.dropout) for shape in self.facts.shapes]
