"""Training by block rows on CPU cores, as the training runtime does it with gloo.

The iteration is that of `block_workers`, except for details of the runtime (`runtime.exchange.blocks`). Blocks that are
not sent are multiplied first. Then each block travels around its ring in pieces and is multiplied when a worker has
received and forwarded it. One matrix serves both directions, so a backward product equals a forward product at the
output's width. Replicas add up their sums step by step between products. All threads share the cores.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from gcnsim.cost import (
    CoreCost,
    CoreDropout,
    Kept,
    adding_seconds,
    bytes_between,
    core_cost,
    core_dropout,
    elementwise_seconds,
    logits_seconds,
    neighbour_sums,
    row_bytes,
    step_seconds,
)
from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.methods.families.block_broadcast import BlockBroadcast, grid_of
from gcnsim.methods.families.block_workers import GAP_PASSES
from gcnsim.methods.families.cpu_ops import TAG, WOKEN_S, CpuOps
from gcnsim.methods.method import Facts
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency
from gcnsim.schedule.collectives import CHUNK
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

FLAG = 4
"""Bytes of a worker's flag that it sends a block."""


class CpuBlockWriter(CpuOps):
    """Builds the schedule of `method` for workers on CPU cores."""

    def __init__(self, method: BlockBroadcast, facts: Facts) -> None:
        sent = method.sent(facts)
        super().__init__(method.name, facts, 1 if sent is None else sent.shape[0])
        self.rule, self.grid = method.block_rule, grid_of(facts.counts, method.replicas)
        every = np.ones((1, len(facts.shapes), self.grid.blocks)) if sent is None else sent
        self.cycles = every.shape[0] > 1
        self.sent: FloatArray = np.tile(every, (self.iterations // every.shape[0], 1, 1))
        self.costs = [self._costs(rank) for rank in self.workers]
        self.dropped = [self._dropped(rank) for rank in self.workers]

    def write(self) -> Schedule:
        """Build the schedule."""
        facts, last = self.facts, len(self.facts.shapes) - 1
        for layer, shape in enumerate(facts.shapes):
            for rank in self.workers:
                self._handed_over(rank)
                if dropped := self.dropped[rank][layer]:
                    self.work(OpKind.UPDATE, rank, float(dropped.inner), layer, FORWARD)
                self._test(rank, layer)
            self._exchange_flags(layer)
            if shape.gathers:
                self._sum(layer, FORWARD, shape.d_in)
            for rank in self.workers:
                self.work(OpKind.UPDATE, rank, self.costs[rank][layer].update, layer, FORWARD)
        for rank in self.workers:
            inner = int(facts.counts.inner_nodes[rank])
            self.work(OpKind.LOSS, rank, logits_seconds(facts.device, facts.host, inner, facts.shapes[last].d_out))
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in range(last, -1, -1):
            for rank, op in enumerate(self._backward(layer)):
                reduced[rank].append(op)
        seconds = float(step_seconds(facts.device, facts.shapes))
        steps = [self.work(OpKind.STEP, rank, seconds, after=reduced[rank]) for rank in self.workers]
        return self.builder.close(steps, periodic=self.cycles)

    def _backward(self, layer: Layer) -> list[int]:
        """One layer's backward pass; per worker, the op after which its weight gradient is reduced."""
        shape = self.facts.shapes[layer]
        for rank in self.workers:
            self._handed_over(rank)
        if shape.gathers:
            self._sum(layer, BACKWARD, shape.d_out)
        costs = [self.costs[rank][layer].update_backward for rank in self.workers]
        made = [self.work(OpKind.UPDATE, rank, costs[rank], layer, BACKWARD) for rank in self.workers]
        for rank in self.workers:
            if dropped := self.dropped[rank][layer]:
                self.work(OpKind.UPDATE, rank, float(dropped.inner_backward), layer, BACKWARD)
        return self.reduce(layer, made)

    def _sum(self, layer: Layer, direction: Direction, width: int) -> None:
        """The products with stored blocks, then every other block's broadcast and its product."""
        grid, sends = self.grid, self._sends(layer, direction)
        products = [self._products(rank, width, first=layer == 0 and direction is FORWARD) for rank in self.workers]
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
        """A block around its ring, piece by piece.

        Each member's thread waits until it has received and forwarded it.
        """
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
        """The share of each block that is broadcast, float64[T, blocks]."""
        always = direction is BACKWARD and not self.rule.skips_backward
        return np.ones_like(self.sent[:, layer]) if always else self.sent[:, layer]

    def _test(self, rank: Rank, layer: Layer) -> None:
        """The cost of testing how far a layer's input has moved; the features never move."""
        if self._gap and layer > 0:
            values = float(self.facts.counts.inner_nodes[rank]) * self.facts.shapes[layer].d_in
            seconds = elementwise_seconds(self.facts.device, values, GAP_PASSES)
            self.work(OpKind.UPDATE, rank, seconds, layer - 1, FORWARD)

    def _exchange_flags(self, layer: Layer) -> None:
        """Every worker sends every other one its flag, because only the owner knows how far rows moved."""
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

    def _handed_over(self, rank: Rank) -> None:
        """The time of the interpreter and of thread switches, spread evenly over the layers' two passes."""
        self.work(OpKind.STEP, rank, self.facts.host.iteration_s.value / (2 * len(self.facts.shapes)))

    def _products(self, rank: Rank, width: int, *, first: bool) -> list[float]:
        """Core-seconds of a worker's product with each of its blocks."""
        return [self._product(rank, block, width, first=first) for block in self._stages(rank)]

    def _product(self, rank: Rank, block: int, width: int, *, first: bool) -> float:
        own, nothing = rank // self.grid.replicas, np.zeros(1, np.int64)
        entries = np.array([round(float(self.grid.entries[own, block]))])
        inner, cross = (entries, nothing) if block == own else (nothing, entries)
        matrix = self._kept(rank, inner, cross, np.array([int(self.grid.rows[block])]))
        sums = neighbour_sums(self.facts.device, matrix, width, first=first)
        return float(sums[0 if block == own else 2][0]) if entries[0] else 0.0

    def _kept(self, rank: Rank, inner: IntArray, cross: IntArray, rows: IntArray) -> Kept:
        counts = self.facts.counts
        cores = self.facts.cluster.cores(rank)
        beside = [worker for worker in self.workers if self.facts.cluster.cores(worker) == cores]
        held = [(float(self._rows(item)), float(self.grid.rows.max())) for item in beside]
        between = sum(bytes_between(*item, self.facts.shapes, norm=self.facts.norm) for item in held)
        reuse = None if counts.reuse is None else counts.reuse[rank]
        return Kept(self._rows(rank), inner, cross, rows, reuse, between, min(len(beside), len(cores)))

    def _rows(self, rank: Rank) -> int:
        return int(self.grid.rows[rank // self.grid.replicas])

    def _stages(self, rank: Rank) -> range:
        return self.grid.stages(rank % self.grid.replicas)

    def _dropped(self, rank: Rank) -> list[CoreDropout | None]:
        facts, own = self.facts, float(self._rows(rank))
        return [
            core_dropout(facts.device, facts.host, facts.dropout, shape, own, 0.0, first=layer == 0)
            for layer, shape in enumerate(facts.shapes)
        ]

    def _costs(self, rank: Rank) -> list[CoreCost]:
        """The dense kernels of each layer over the rows of a worker's block."""
        nothing = np.zeros(1, np.int64)
        matrix, last = self._kept(rank, nothing, nothing, nothing), len(self.facts.shapes) - 1
        return [
            core_cost(self.facts.device, shape, matrix, first=layer == 0, last=layer == last, norm=self.facts.norm)
            for layer, shape in enumerate(self.facts.shapes)
        ]
