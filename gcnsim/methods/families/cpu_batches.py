"""Mini-batch training on CPU cores, as the training runtime does it with gloo.

One thread of each worker samples batches and builds their matrices, another loads their input rows, the main thread
trains. Order of ops, from the runtime's loop:

- a batch is sampled, loaded and trained in turn; or the next one is sampled while it is trained; or `queue` batches are
loaded and one more is sampled while it is trained;

- rows of other parts are requested by all workers together: the number of ids, the ids, the rows. Each is a message to
every peer that both ends must have posted. The owner's loading thread gathers the requested rows;

- layer by layer forward, loss, and backward. Layer 0 needs no input gradient, so it has no backward sum, and its matrix
has no transpose. Weight gradients are reduced during the backward pass.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.cost import CoreShares, Kept, core_shares, id_bytes, loss_seconds, row_bytes, rows_seconds, step_seconds
from gcnsim.methods.families.cpu_ops import SAMPLER, WOKEN_S, CpuOps
from gcnsim.methods.families.cpu_workers import COUNTS
from gcnsim.methods.method import Facts, Loading
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import BatchCounts
from gcnsim.workload import NO_DROPOUT

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
LOADER = "load"
COUNT = COUNTS // 2
"""Bytes of the message with the number of ids: half the size of a number in the other exchange."""


class CpuBatchWriter(CpuOps):
    """Builds the schedule of the method `name` for workers on CPU cores.

    The demand of work done in advance is shifted by that number of iterations.
    """

    def __init__(
        self, name: str, facts: Facts, batches: BatchCounts, loading: Loading, width: int, *, one_graph: bool
    ) -> None:
        """width: values of an input row. one_graph: whether all layers sum over the same entries."""
        as_long = replace(facts.counts, batches=None).repeated(batches.iterations)
        counts = replace(as_long, batches=batches)
        super().__init__(name, replace(facts, counts=counts), batches.iterations)
        self.facts = replace(self.facts, counts=counts.repeated(self.iterations // batches.iterations))
        assert self.facts.counts.batches is not None
        self.batches: BatchCounts = self.facts.counts.batches
        self.loading, self.width, self.one_graph = loading, width, one_graph
        ahead = self.loading.ahead
        self.loaded: IntArray = np.roll(self.batches.wanted - self.batches.hits, -ahead, axis=0)
        every = range(len(self.workers))
        self.pulls = any(self.loaded[:, rank, peer].any() for rank in every for peer in every if rank != peer)
        self.costs = [self._costs(rank) for rank in self.workers]
        self.drops = facts.dropout != NO_DROPOUT

    def write(self) -> Schedule:
        """Build the schedule."""
        sample_ops, made = zip(*(self._draw(rank) for rank in self.workers), strict=True)
        lag = int(self.loading.draws_ahead)
        ready: list[list[Dependency]] = [[(op, lag)] for op in made]
        begun, arrived = self._pulled(ready) if self.pulls else self._own_rows(ready)
        taken = [self._taken(rank, arrived[rank]) for rank in self.workers]
        reduced = self._trained()
        steps = []
        for rank in self.workers:
            seconds = float(step_seconds(self.facts.device, self.facts.shapes))
            self.work(OpKind.STEP, rank, seconds, after=reduced[rank])
            steps.append(self.handed_over(rank))
        for rank in self.workers:
            self._begins(sample_ops[rank], begun[rank], taken[rank], steps[rank])
        return self.builder.close(steps)

    def _begins(self, sample_op: int, begun: int, taken: int, step: int) -> None:
        """The work that the main thread starts, and when."""
        if self.loading.ahead:
            # With a batch taken, the one `queue` later is loaded, and another is sampled behind it.
            self.builder.reuse(begun, taken)
            self.builder.reuse(sample_op, taken)
            return
        self.builder.wait_for(sample_op, (step, 1))
        self.builder.wait_for(begun, (step, 1))

    def _draw(self, rank: Rank) -> tuple[int, int]:
        """The sampler's thread: a batch is drawn and numbered, its matrices are made; the ops that do each. How long
        they take is measured."""
        first = self.work(OpKind.SAMPLE, rank, WOKEN_S, stream=SAMPLER)
        return first, self.work(OpKind.INDEX, rank, WOKEN_S, stream=SAMPLER)

    def _own_rows(self, ready: list[list[Dependency]]) -> tuple[list[int], list[list[int]]]:
        """Rows from the worker's memory; per worker, the op that begins to load, and those that end it."""
        ops = [self._gather(rank, self.loaded[:, rank].sum(axis=1), ready[rank]) for rank in self.workers]
        return ops, [[op] for op in ops]

    def _gather(self, rank: Rank, rows: IntArray, after: list[Dependency]) -> int:
        """Rows gathered from the worker's memory, by its loader's thread."""
        seconds = rows_seconds(self.facts.device, rows, self.width)
        return self.work(OpKind.GATHER, rank, seconds, 0, FORWARD, after=after, stream=LOADER)

    def _pulled(self, ready: list[list[Dependency]]) -> tuple[list[int], list[list[int]]]:
        """The same if rows of others are requested from their owners: numbers, ids and rows, all workers together."""
        begun = [self.work(OpKind.INDEX, rank, 0.0, after=ready[rank], stream=LOADER) for rank in self.workers]
        counts: FloatArray = np.full(self.loaded.shape, float(COUNT))
        received = self._swap(OpKind.INDEX, counts, "count", begun)
        counted = [self.work(OpKind.INDEX, rank, 0.0, after=received[rank], stream=LOADER) for rank in self.workers]
        received = self._swap(OpKind.INDEX, id_bytes(self.loaded), "ids", counted)
        answering = []
        for rank in self.workers:
            self._gather(rank, self.loaded[:, rank, rank], received[rank])
            others = self.loaded[:, :, rank].sum(axis=1) - self.loaded[:, rank, rank]
            answering.append(self._gather(rank, others, []))
        answers = row_bytes(self.loaded, self.width).transpose(0, 2, 1)
        received = self._swap(OpKind.WIRE, answers, "rows", answering, 0, FORWARD)
        placed = []
        for rank in self.workers:
            seconds = rows_seconds(self.facts.device, self.loaded[:, rank].sum(axis=1), self.width)
            placed.append([self.work(OpKind.SCATTER, rank, seconds, 0, FORWARD, after=received[rank], stream=LOADER)])
        return begun, placed

    def _swap(
        self,
        kind: OpKind,
        nbytes: FloatArray,
        name: str,
        posted: list[int],
        layer: int = -1,
        direction: Direction = Direction.NONE,
    ) -> list[list[Dependency]]:
        """nbytes[t, n, m] from n to m, for each pair once both have `posted`; per worker, its last ops."""
        through: list[list[Dependency]] = [[] for _ in self.workers]
        for rank, peer in self.pairs():
            both: list[Dependency] = [posted[rank], posted[peer]]
            stream = f"{LOADER}.{name}{peer}"
            message = self.message(kind, rank, peer, nbytes[:, rank, peer], both, stream, layer, direction)
            through[rank] += message.sent
            through[peer].append(message.got)
        return through

    def _taken(self, rank: Rank, arrived: list[int]) -> int:
        """The main thread takes a loaded batch and inserts cached rows between the loaded ones."""
        ahead = self.loading.ahead
        wanted, cached = (item[:, rank].sum(axis=1) for item in (self.batches.wanted, self.batches.hits))
        # Cached rows are gathered before they are inserted; the others are written in place at once.
        moved = (wanted + cached) * (cached > 0)
        seconds = rows_seconds(self.facts.device, moved, self.width) + WOKEN_S
        return self.work(OpKind.LOOKUP, rank, seconds, after=[(op, ahead) for op in arrived])

    def _trained(self) -> list[list[int]]:
        """Forward, loss and backward; per worker, the ops that end the all-reduces of the weight gradients."""
        facts, layers = self.facts, range(len(self.facts.shapes))
        for rank in self.workers:
            for layer in layers:
                if layer:
                    self.handed_over(rank)
                cost = self.costs[rank][layer]
                self._drop(rank, layer, FORWARD)
                if facts.shapes[layer].gathers:
                    self.work(OpKind.AGGREGATE, rank, cost.inner + cost.boundary, layer, FORWARD)
                self.work(OpKind.UPDATE, rank, cost.update, layer, FORWARD)
            rows = self.batches.levels[:, rank, -1]
            self.work(OpKind.LOSS, rank, loss_seconds(facts.device, rows, facts.shapes[-1].d_out))
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in reversed(layers):
            made = []
            for rank in self.workers:
                self.handed_over(rank)
                cost = self.costs[rank][layer]
                made.append(self.work(OpKind.UPDATE, rank, cost.update, layer, BACKWARD))
                if layer:
                    if facts.shapes[layer].gathers:
                        self.work(OpKind.AGGREGATE, rank, cost.inner + cost.boundary, layer, BACKWARD)
                    self._drop(rank, layer, BACKWARD)
            for rank, op in enumerate(self.reduce(layer, made)):
                reduced[rank].append(op)
        return reduced

    def _drop(self, rank: Rank, layer: Layer, direction: Direction) -> None:
        """Dropout of rows that are read side by side, at once: all are a batch's own."""
        if self.drops:
            cost = self.costs[rank][layer]
            self.work(OpKind.UPDATE, rank, cost.dropped + cost.dropped_boundary, layer, direction)

    def _costs(self, rank: Rank) -> list[CoreShares]:
        levels, entries = self.batches.levels[:, rank], self.batches.entries[:, rank]
        return [
            core_shares(self.facts.device, shape, Kept(levels[:, layer], entries[:, layer]), self.facts.dropout)
            for layer, shape in enumerate(self.facts.shapes)
        ]
