"""Mini-batch training on CPU cores, as the training runtime does it with gloo.

One thread of each worker samples batches and builds their matrices, another loads their input rows, the main thread
trains. Order of ops, from the runtime's loop:

- a batch is sampled, loaded and trained in turn; or the next one is sampled while it is trained; or `queue` batches are
loaded and one more is sampled while it is trained;

- rows of other parts are requested by all workers together: the number of ids, the ids, the rows. Each is a message to
every peer that both ends must have posted. The owner's loading thread gathers the requested rows;

- layer by layer forward, loss, and backward. Layer 0 needs no input gradient, so it has no backward sum, and its matrix
has no transpose; nor has a matrix used for pooling. Weight gradients are reduced during the backward pass.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.boundary import BatchCounts
from gcnsim.cost import (
    VALUE,
    BatchCoreCost,
    BatchHost,
    CoreDropout,
    batch_core_cost,
    core_dropout,
    host_in_training,
    id_bytes,
    loading_seconds,
    logits_seconds,
    row_bytes,
    step_seconds,
)
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.methods.families.cpu_ops import SAMPLER, WOKEN_S, CpuOps
from gcnsim.methods.families.cpu_workers import COUNTS
from gcnsim.methods.families.mini_batch import MiniBatch
from gcnsim.methods.method import Facts
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
LOADER = "load"
INTERPRETER_HELD = 0.1
"""The share of a sampling thread's work during which the training thread is blocked by the interpreter lock.

Chosen, like CALLS, on the runs of draw 12 of the other systems.
"""
CALLS = 15
"""Framework calls per iteration outside its kernels, each as long as a launch.

They select labels and targets, zero gradients, sum the loss, and run the optimizer.
"""
NEAR_HELD, NEAR_CALLS = 0.2, 20
"""Both values for records without memory effects, chosen on the runs of draws 1 (dgl, clustergcn, graphsaint) and 6
(pagraph). There an iteration takes 0.7 to 1.3 ms outside its kernels, sampler and optimizer; a launch takes 37 us.
"""
ENTRY_BYTES = 150
"""Bytes of an entry that is sampled, built and put into a matrix: an estimate of the arrays written meanwhile."""
COUNT = COUNTS // 2
"""Bytes of the message with the number of ids: half the size of a number in the other exchange."""


class CpuBatchWriter(CpuOps):
    """Builds the schedule of `method` for workers on CPU cores.

    The demand of work done in advance is shifted by that number of iterations.
    """

    def __init__(self, method: MiniBatch, facts: Facts) -> None:
        plan, batches = method.plan(facts.shapes), facts.counts.batches
        if batches is None:
            raise ValueError(f"{method.name}: the counts have no mini-batches")
        as_long = replace(facts.counts, batches=None).repeated(batches.iterations)
        counts = replace(as_long, batches=batches)
        super().__init__(method.name, replace(facts, shapes=plan.shapes, counts=counts), batches.iterations)
        self.facts = replace(self.facts, counts=counts.repeated(self.iterations // batches.iterations))
        assert self.facts.counts.batches is not None
        self.batches: BatchCounts = self.facts.counts.batches
        self.loading, self.width, self.one_graph = method.loading, plan.width, method.one_graph
        far = facts.device.far
        self.held, self.calls = (NEAR_HELD, NEAR_CALLS) if far is None else (INTERPRETER_HELD, CALLS)
        self.between = [self._between(rank) for rank in self.workers]
        self.hosts = [host_in_training(facts.host, far, between) for between in self.between]
        self.samplers = [BatchHost.of(host) for host in self.hosts]
        ahead = self.loading.ahead
        self.loaded: IntArray = np.roll(self.batches.wanted - self.batches.hits, -ahead, axis=0)
        every = range(len(self.workers))
        self.pulls = any(self.loaded[:, rank, peer].any() for rank in every for peer in every if rank != peer)
        self.stalled: list[Work] = [0.0 for _ in self.workers]
        """Seconds of an iteration in which a worker's sampling thread keeps the interpreter lock from its main thread.
        """

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
            steps.append(self._handed_over(rank))
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
        """The sampler's thread samples and renumbers a batch and builds its matrices; returns the op of each."""
        batches = self.batches
        ahead = self.loading.ahead + self.loading.draws_ahead
        layers = [layer for layer, shape in enumerate(self.facts.shapes) if shape.gathers]
        distinct = layers[:1] if self.one_graph else layers
        entries = batches.entries[:, rank]
        built = entries[:, distinct].sum(axis=1)
        draws = np.zeros_like(built) if self.one_graph else built
        made = batches.levels[:, rank, 1:]
        rows = made[:, 0] if self.one_graph else made[:, layers].sum(axis=1)
        seconds = self.samplers[rank].drawing(batches.looked[:, rank], draws, built, rows)
        making = np.zeros(seconds.shape)
        for layer in distinct:
            turned = (layer > 0 or (self.one_graph and len(layers) > 1)) and not self.facts.shapes[layer].pooled
            stored = entries[:, layer] + batches.levels[:, rank, layer + 1]
            making = making + self.samplers[rank].making(stored, turned=turned)
        if ahead:
            held: FloatArray = self.held * np.roll(seconds, -ahead)
            self.stalled[rank] = held
        first = self.work(OpKind.SAMPLE, rank, np.roll(seconds, -ahead), stream=SAMPLER)
        return first, self.work(OpKind.INDEX, rank, np.roll(making, -ahead), stream=SAMPLER)

    def _own_rows(self, ready: list[list[Dependency]]) -> tuple[list[int], list[list[int]]]:
        """Rows from the worker's memory; per worker, the op that begins to load, and those that end it."""
        ops = [self._gather(rank, self.loaded[:, rank].sum(axis=1), ready[rank]) for rank in self.workers]
        return ops, [[op] for op in ops]

    def _gather(self, rank: Rank, rows: IntArray, after: list[Dependency]) -> int:
        """Rows gathered from the worker's memory, by its loader's thread."""
        seconds = loading_seconds(self.hosts[rank], rows, self.width)
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
            seconds = self.moved(self.between[rank], self.loaded[:, rank].sum(axis=1), self.width)
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
        seconds = self.moved(self.between[rank], moved, self.width) + WOKEN_S
        return self.work(OpKind.LOOKUP, rank, seconds, after=[(op, ahead) for op in arrived])

    def _trained(self) -> list[list[int]]:
        """Forward, loss and backward; per worker, the ops that end the all-reduces of the weight gradients."""
        facts, layers = self.facts, range(len(self.facts.shapes))
        costs = [self._costs(rank) for rank in self.workers]
        dropped = [self._dropped(rank) for rank in self.workers]
        for rank in self.workers:
            for layer in layers:
                if layer:
                    self._handed_over(rank)
                if drops := dropped[rank][layer]:
                    # Rows that are read together get dropout at once: all belong to the batch.
                    self.work(OpKind.UPDATE, rank, drops.inner + drops.boundary, layer, FORWARD)
                if facts.shapes[layer].gathers:
                    self.work(OpKind.AGGREGATE, rank, costs[rank][layer].aggregate, layer, FORWARD)
                self.work(OpKind.UPDATE, rank, costs[rank][layer].update, layer, FORWARD)
            rows = self.batches.levels[:, rank, -1]
            self.work(OpKind.LOSS, rank, logits_seconds(facts.device, facts.host, rows, facts.shapes[-1].d_out))
        reduced: list[list[int]] = [[] for _ in self.workers]
        for layer in reversed(layers):
            made = []
            for rank in self.workers:
                self._handed_over(rank)
                cost = costs[rank][layer]
                learnt = self.work(OpKind.UPDATE, rank, cost.update_backward, layer, BACKWARD)
                shape = facts.shapes[layer]
                if shape.gathers and (layer or shape.pooled):
                    summed = self.work(OpKind.AGGREGATE, rank, cost.aggregate_backward, layer, BACKWARD)
                    # The linear layer before pooling is trained too, also in layer 0, and a layer's gradients are
                    # reduced together.
                    learnt = summed if shape.pooled else learnt
                made.append(learnt)
                drops = dropped[rank][layer]
                if layer and drops:
                    self.work(OpKind.UPDATE, rank, drops.inner_backward + drops.boundary_backward, layer, BACKWARD)
            for rank, op in enumerate(self.reduce(layer, made)):
                reduced[rank].append(op)
        return reduced

    def _dropped(self, rank: Rank) -> list[CoreDropout | None]:
        facts, levels = self.facts, self.batches.levels[:, rank].astype(np.float64)
        return [
            core_dropout(facts.device, facts.host, facts.dropout, shape, levels[:, layer], 0.0, first=layer == 0)
            for layer, shape in enumerate(facts.shapes)
        ]

    def _costs(self, rank: Rank) -> list[BatchCoreCost]:
        facts, levels = self.facts, self.batches.levels[:, rank]
        rate, found = facts.host.busy_core_rate.value, []
        for layer, shape in enumerate(facts.shapes):
            values = levels[:, layer] * shape.d_in + levels[:, layer + 1] * shape.d_out
            if shape.pooled:
                # Rows after the linear layer before pooling and after its ReLU; the largest values, and their indices.
                values = values + 2 * (levels[:, layer] + levels[:, layer + 1]) * shape.d_in
            lost = self.lost(rank, (VALUE * values).astype(np.float64))
            # The engine slows every core with busy neighbours to `busy_core_rate`, also kernels that lose nothing.
            undisturbed = self._cost(self.alone, rank, layer).times((1.0 - lost) * rate)
            found.append(self._cost(facts.device, rank, layer).times(lost).plus(undisturbed))
        return found

    def _between(self, rank: Rank) -> float:
        """Bytes that the workers with the same last-level cache as `rank` touch in an iteration.

        This covers rows read, aggregated and produced by linear layers and activations, all their gradients, and
        sampling.
        """
        cores, extra = self.facts.cluster.cores(rank), (1 if self.facts.norm else 0)
        beside = [worker for worker in self.workers if self.facts.cluster.cores(worker) == cores]
        levels = sum(self.batches.levels[:, item].mean(axis=0) for item in beside)
        values = 0.0
        for layer, shape in enumerate(self.facts.shapes):
            values += 2 * levels[layer] * shape.d_in + 2 * levels[layer + 1] * (shape.d_in + (2 + extra) * shape.d_out)
        # A subgraph is sampled once for all its layers.
        iterations = slice(1) if self.one_graph else slice(None)
        entries = sum(float(self.batches.entries[:, item, iterations].mean(axis=0).sum()) for item in beside)
        return float(VALUE * values + ENTRY_BYTES * entries)

    def _cost(self, device: DeviceProfile, rank: Rank, layer: Layer) -> BatchCoreCost:
        levels = self.batches.levels[:, rank]
        return batch_core_cost(
            device,
            self.facts.shapes[layer],
            rows_in=levels[:, layer],
            rows_out=levels[:, layer + 1],
            entries=self.batches.entries[:, rank, layer],
            first=layer == 0,
            last=layer == len(self.facts.shapes) - 1,
            norm=self.facts.norm,
            between=self.between[rank],
        )

    def _handed_over(self, rank: Rank) -> int:
        """The time of the interpreter, spread evenly over the layers' two passes. No thread hands over rows during
        training.
        """
        passes = 2 * len(self.facts.shapes)
        self.stands_still(rank, self.stalled[rank] / passes)
        return self.work(OpKind.STEP, rank, self.calls * self.facts.device.launch_s.value / passes)
