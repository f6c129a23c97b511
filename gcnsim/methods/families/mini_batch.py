"""The common parts of systems that train mini-batches, and their iteration on CPU cores (on GPUs: `batch_workers`).

On cores, the training runtime does it with gloo. One thread of each worker samples batches and builds their matrices,
another loads their input rows, the main thread trains. Order of ops, from the runtime's loop:

- a batch is sampled, loaded and trained in turn; or the next one is sampled while it is trained; or `queue` batches are
loaded and one more is sampled while it is trained;

- rows of other parts are requested by all workers together: the number of ids, the ids, the rows. Each is a message to
every peer that both ends must have posted. The owner's loading thread gathers the requested rows;

- layer by layer forward, loss, and backward. Layer 0 needs no input gradient, so it has no backward sum, and its matrix
has no transpose. Weight gradients are reduced during the backward pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.cost import (
    CoreShares,
    Kept,
    Memory,
    batch_memory,
    core_shares,
    id_bytes,
    loss_seconds,
    row_bytes,
    rows_seconds,
    step_seconds,
)
from gcnsim.methods.families.cpu_ops import SAMPLER, WOKEN_S, CpuOps
from gcnsim.methods.families.cpu_workers import COUNTS
from gcnsim.methods.method import FEATURES, Facts, Loading, Method, Placement
from gcnsim.schedule import Schedule
from gcnsim.schedule.builder import Dependency
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import AccessCounts, BatchCounts
from gcnsim.workload import NO_DROPOUT, LayerShape
from gcnsim.workload.knobs import BATCH, FANOUT, LAYER_SIZES, PerLayer, knob, usual_fanout
from gcnsim.workload.mini_batches import passes, subgraphs


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How a method samples. fanout, sizes: one number per sampled layer, the input's first; one of them is empty.
    shapes: the layers as this method trains them. width: values of an input row.
    """

    fanout: tuple[int | float, ...]
    sizes: tuple[int, ...]
    shapes: tuple[LayerShape, ...]
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatch(Method):
    """A system that updates the model once per mini-batch, several times an epoch.

    one_server: its workers share a graph in the memory of one server. everywhere: every server's memory has the whole
    graph. one_graph: all layers sum over the same entries. trains: the training nodes of a worker: any, shuffled
    together; those of its `own` part; or those `dealt` to a part that contains their neighbourhoods (PaGraph). usual:
    the sampling device and place of rows in common use today. scripts: the same in the system's own scripts. rows_in:
    the possible places of its rows.
    """

    uses: ClassVar[frozenset[str]] = frozenset(
        {
            "allreduce",
            "nvlink",
            "transport",
            "gpudirect",
            "implementation",
            "sampler_device",
            "sampler_threads",
            "features",
        }
    )
    needs_boundary: ClassVar[bool] = False
    mini_batches: ClassVar[bool] = True
    supports_cpu: ClassVar[bool] = True
    supports_gat: ClassVar[bool] = True
    one_graph: ClassVar[bool] = False
    one_server: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "shuffled"
    usual: ClassVar[Placement] = Placement()
    scripts: ClassVar[Placement] = Placement()
    rows_in: ClassVar[tuple[str, ...]] = FEATURES

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """The devices that can sample; every batch is sampled."""
        return ("cpu", "gpu")

    @property
    def loading(self) -> Loading:
        """How it loads: in turn with training."""
        return Loading()

    def plan(self, shapes: tuple[LayerShape, ...]) -> BatchPlan:
        """How it samples for this model. Raises ScenarioError if a list does not match the model's layers."""
        return BatchPlan((1,) * len(shapes), (), shapes, shapes[0].d_in)

    @abstractmethod
    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """Iterations in which every training node is used once."""

    def schedule(self, facts: Facts) -> Schedule:
        """The schedule: sample, load, train, reduce gradients; on GPUs or on CPU cores.

        Raises ValueError if the facts have no mini-batches.
        """
        batches, plan, loading, one_graph = facts.counts.batches, self.plan(facts.shapes), self.loading, self.one_graph
        if batches is None:
            raise ValueError(f"{self.name}: the counts have no mini-batches")
        facts = replace(facts, shapes=plan.shapes, placement=facts.placement or self.usual)
        if facts.device.kind == "cpu":
            return CpuBatchWriter(self.name, facts, batches, loading, plan.width, one_graph=one_graph).write()
        from gcnsim.methods.families.batch_workers import BatchWriter

        return BatchWriter(self.name, facts, batches, loading, plan.width, one_graph=one_graph).write()

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of every worker's GPU, by its largest mini-batch; None with attention."""
        if counts.batches is None or any(shape.heads for shape in shapes):
            return None
        batches, plan, found = counts.batches, self.plan(shapes), []
        for rank in range(int(batches.cached.size)):
            largest = int(np.argmax(batches.levels[:, rank, 0]))
            levels, entries = batches.levels[largest, rank].tolist(), batches.entries[largest, rank].tolist()
            found.append(self.batch_memory(plan, levels, entries, cached=int(batches.cached[rank])))
        return tuple(found)

    def batch_memory(
        self, plan: BatchPlan, levels: Sequence[float], entries: Sequence[float], cached: int = 0
    ) -> Memory:
        """The GPU memory for training batches of these sizes with `cached` input rows."""
        return batch_memory(levels, entries, plan.shapes, waiting=self.loading.ahead, width=plan.width, cached=cached)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourBatches(MiniBatch):
    """Mini-batches of training nodes and the neighbours sampled around them."""

    batch: int = knob(BATCH)
    fanout: PerLayer | None = knob(FANOUT)
    layer_sizes: PerLayer | None = knob(LAYER_SIZES)

    def __post_init__(self) -> None:
        Method.__post_init__(self)
        if self.fanout is not None and self.layer_sizes is not None:
            raise ScenarioError("method.layer_sizes: both fanout and layer_sizes are given; give one, the other null")

    def plan(self, shapes: tuple[LayerShape, ...]) -> BatchPlan:
        """The sampling plan with the numbers of neighbours or nodes from its knobs."""
        layers = len(shapes)
        for name, value in (("fanout", self.fanout), ("layer_sizes", self.layer_sizes)):
            if value is not None and len(value) != layers:
                text = ",".join(f"{100 * item:g}%" if isinstance(item, float) else str(item) for item in value)
                raise ScenarioError(
                    f"method.{name}: {text} is not allowed; the model has {layers} layers, so {layers} numbers"
                )
        sizes = tuple(int(size) for size in self.layer_sizes or ())
        fanout = () if sizes else self.fanout or usual_fanout(layers)
        return BatchPlan(fanout, sizes, shapes, shapes[0].d_in)

    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """Batches of the worker with the most training nodes."""
        return passes(training, workers, self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphBatches(MiniBatch):
    """Mini-batches that are a subgraph, the same in every layer. nodes_of: the rule that chooses its nodes."""

    everywhere: ClassVar[bool] = True
    one_graph: ClassVar[bool] = True
    nodes_of: ClassVar[Literal["walks", "clusters"]]

    @property
    @abstractmethod
    def subgraph(self) -> float:
        """Share of all nodes in a worker's mini-batch."""

    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """An epoch reads as many nodes as the graph has."""
        return subgraphs(self.subgraph, workers)


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
