"""The worker of mini-batch methods: one thread samples batches, another loads their rows, the main thread trains them.

The method sets how far sampling and loading run ahead. The trained model does not depend on it, because every batch is
sampled from the random streams of its iteration.

Some systems sample neighbours around their training nodes; in others a mini-batch is a subgraph, the same in all
layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import BoolArray, FloatArray, Int32Array, IntArray, Iteration, Layer
from gcnsim.graph import Graph
from gcnsim.graph.assign import training_parts
from gcnsim.timeline import OpKind
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.mini_batches import (
    Batch,
    BatchDraws,
    ClusterDraws,
    NeighbourDraws,
    WalkDraws,
    own_pools,
    shuffled_pools,
    training_order,
)
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange.batches import BatchBuilder, BatchGraph, DrawnScaling, LoadedBatch, whole_degrees
from runtime.exchange.staging import CopyStream
from runtime.methods.batches.stores import CachedStore, Hits, PartStore, Store
from runtime.methods.method import MiniBatch, NeighbourBatches
from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class RowPlaces:
    """The places of rows for the access trace. owner: int32[N], the worker that stores each node's row; None: every
    worker stores all. held: bool[N], rows in this worker's cache. stored: rows that its batches may request.
    """

    owner: Int32Array | None
    held: BoolArray
    stored: int


@dataclass(frozen=True)
class BatchSource:
    """The source of a worker's batches. shares: the weight of every node in the loss, float64[N]; None: all equal.
    stored: nodes whose rows batches may request, bool[N]; None: all.
    """

    draws: BatchDraws
    builder: BatchBuilder
    store: Store
    shares: FloatArray | None = None
    stored: BoolArray | None = None


@dataclass(frozen=True)
class _Ready:
    """A batch with its input rows loaded."""

    graph: BatchGraph
    matrices: tuple[Matrix | None, ...]
    rows: Tensor
    hits: Hits | None


class BatchWorker(MethodWorker):
    """The worker of mini-batch methods; see the module."""

    exchanges = False

    def __init__(self, context: Context, method: MiniBatch, source: BatchSource) -> None:
        """Start two threads; nothing is sampled yet."""
        super().__init__(context)
        self._ahead, self._draws_ahead, self.source = method.ahead, method.draws_ahead, source
        self.caches = source.store.caches
        self._trained_any = self._told = False
        # The input has no gradient, so layer 0 needs no transpose; attention's weights do need it.
        self._turned = context.options.gathers
        self._sampler, self._loader = (ThreadPoolExecutor(1, name) for name in ("sampler", "loader"))
        self._sampling, self._loading = (CopyStream(context.device) for _ in range(2))
        self._drawn: dict[Iteration, Future[tuple[BatchGraph, tuple[Matrix | None, ...]]]] = {}
        self._loaded: dict[Iteration, Future[_Ready]] = {}
        dataset, device = context.dataset, context.device
        labels = torch.from_numpy(dataset.labels.copy()).to(device)
        self._labels = labels.to(context.dtype) if dataset.multilabel else labels.long()
        self._trains = dataset.train

    def start(self) -> None:
        """Fill the cache."""
        self.source.store.start()

    def batch(self, t: Iteration) -> LoadedBatch:
        """The batch of iteration t with its rows on the device; starts work on later ones."""
        if self._trained_any and not self._told:
            self._told = True
            self.source.store.trained_first()
        self._trained_any = True
        soon = t + max(1, self._ahead)
        for index in range(t, soon):
            self._load(index)
        if self._draws_ahead:
            self._draw(soon)
        recorder, future = self.context.recorder, self._loaded.pop(t)
        start, blocked = recorder.mark_compute(), not future.done()
        ready = future.result()
        if blocked:
            recorder.add(OpKind.WAIT, "compute", t, start, recorder.mark_compute())
        found = self._trained(t, ready)
        if self._ahead:
            self._load(soon)
            self._draw(soon + 1)
        return found

    def kept(self) -> RowPlaces:
        """The places of rows."""
        nodes, store = self.context.dataset.graph.nodes, self.source.store
        stored = nodes if self.source.stored is None else int(np.count_nonzero(self.source.stored))
        return RowPlaces(store.owner, store.held(), stored)

    def drain(self) -> None:
        """Wait for all active work; raises the first error of any thread."""
        futures: list[Future[Any]] = [*self._drawn.values(), *self._loaded.values()]
        for future in futures:
            future.result()

    def close(self) -> None:
        """End the threads."""
        for thread in (self._sampler, self._loader):
            thread.shutdown(cancel_futures=True)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Rows and ids, by peer."""
        return dict(self.source.store.bytes_sent)

    def _draw(self, t: Iteration) -> None:
        self._begin(self._drawn, self._sampler, self._drawn_at, t)

    def _load(self, t: Iteration) -> None:
        if t not in self._loaded:
            self._draw(t)
            self._begin(self._loaded, self._loader, self._loaded_at, t)

    def _begin(
        self, under_way: dict[Iteration, Any], thread: ThreadPoolExecutor, job: Callable[..., Any], t: int
    ) -> None:
        if t not in under_way and t < self.context.options.iterations:
            under_way[t] = thread.submit(job, t)

    def _drawn_at(self, t: Iteration) -> tuple[BatchGraph, tuple[Matrix | None, ...]]:
        """Sample the batch of iteration t and build its matrices, in the sampler's thread."""
        context = self.context
        start = context.recorder.mark()
        batch = self.source.draws.draw(t, context.channels.rank, keep=True)
        graph = self.source.builder.built(t, batch)
        drew = context.recorder.mark()
        context.recorder.add(OpKind.SAMPLE, "sampler", t, start, drew)
        kind = matrix_kind(context.options.aggregator)
        made: list[Matrix | None] = []
        for layer, rows in enumerate(graph.rows):
            if rows is None:
                made.append(None)
                continue
            same = layer and rows is graph.rows[layer - 1]
            turned = self._turned or layer > 0 or any(rows is above for above in graph.rows[1:])
            with self._sampling.aside():
                made.append(made[-1] if same else kind(rows, context.dtype, context.device, turned=turned))
        context.recorder.add(OpKind.INDEX, "sampler", t, drew, context.recorder.mark())
        return graph, tuple(made)

    def _loaded_at(self, t: Iteration) -> _Ready:
        """Load the rows that the batch of iteration t reads, in the loader's thread."""
        graph, matrices = self._drawn[t].result()
        del self._drawn[t]
        with self._loading.aside():
            rows, hits = self.source.store.load(t, graph.nodes)
        return _Ready(graph, matrices, rows, hits)

    def _trained(self, t: Iteration, ready: _Ready) -> LoadedBatch:
        """The batch with cached rows inserted between loaded ones, and the labels of its training nodes."""
        context, own = self.context, ready.graph.nodes[: ready.graph.drawn.levels[-1].size]
        x, hits = ready.rows, 0
        if ready.hits is not None:
            start = context.recorder.mark_compute()
            x, hits = ready.hits.put_between(ready.rows), int(ready.hits.slots.size)
            context.recorder.add(OpKind.LOOKUP, "compute", t, start, context.recorder.mark_compute())
        targets: IntArray = np.flatnonzero(self._trains[own])
        chosen = torch.from_numpy(own[targets]).to(context.device)
        shares = self.source.shares
        weights = None if shares is None else torch.from_numpy(shares[own[targets]]).to(context.device, context.dtype)
        place = torch.from_numpy(targets).to(context.device)
        return LoadedBatch(ready.graph, ready.matrices, x, place, self._labels[chosen], weights, hits)


def neighbour_worker(context: Context, method: NeighbourBatches) -> BatchWorker:
    """Batches of training nodes, sampled by the rules of `gcnsim.workload`."""
    seed = context.options.seed
    training, owner = np.flatnonzero(context.dataset.train), context.partitioning.owner
    if method.trains == "own":
        pools = own_pools(training, owner, context.world, seed)
    else:
        pools = shuffled_pools(training, context.world, seed)
    store = Store(context) if method.everywhere else PartStore(context)
    return BatchWorker(context, method, _source(context, method, pools, store))


def dealt_worker(context: Context, method: NeighbourBatches, cache: CacheSize) -> BatchWorker:
    """Batches of training nodes assigned to parts that contain their neighbourhoods (PaGraph)."""
    graph, layers = context.dataset.graph, len(context.widths) - 1
    order = training_order(np.flatnonzero(context.dataset.train), context.options.seed)
    parts = training_parts(graph, order, context.world, layers)
    holds = parts.holds[context.channels.rank]
    source = _source(context, method, parts.training, CachedStore(context, holds, cache, sums=method.ready > 0))
    return BatchWorker(context, method, replace(source, stored=holds))


def _source(context: Context, method: NeighbourBatches, pools: Sequence[IntArray], store: Store) -> BatchSource:
    graph = context.dataset.graph
    fanout, sizes = method.amounts(len(context.widths) - 1)
    ready = method.ready
    draws = NeighbourDraws(graph, pools, method.batch, fanout[ready:], sizes[ready:], context.options.seed, ready)
    builder = BatchBuilder(graph, context.weights, DrawnScaling(graph, fanout or sizes), ready)
    return BatchSource(draws, builder, store)


@dataclass(frozen=True)
class InducedScaling:
    """Weights by the degrees within the subgraph."""

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """Neighbours in the subgraph."""
        return counts.astype(np.float64)

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """No factors beyond the weights."""
        return np.ones(places.size)


class MetScaling:
    """Weights by the degrees in the whole graph, divided by the probability of the entry given the row's node.

    That is C_v / C_uv of the subgraphs `drawn` before training, each count at least 1.
    """

    def __init__(self, graph: Graph, batches: Iterable[Batch]) -> None:
        """Count how often nodes and entries occur."""
        self._nodes, self._entries = np.zeros(graph.nodes, np.int64), np.zeros(graph.entries, np.int32)
        self._drawn = 0
        for self._drawn, batch in enumerate(batches, 1):
            self._nodes[batch.levels[0]] += 1
            self._entries[batch.places[0]] += 1
        np.maximum(self._nodes, 1, out=self._nodes)
        np.maximum(self._entries, 1, out=self._entries)

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """The degrees in the whole graph."""
        return whole_degrees(graph, nodes)

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """As in the base class."""
        met: FloatArray = np.repeat(self._nodes[nodes], counts) / self._entries[places]
        return met

    def shares(self, training: int, workers: int) -> FloatArray:
        """The weight of a node in a worker's loss, so that all workers' mean is the mean over `training` nodes.

        S / C_v over both numbers, float64[N].
        """
        found: FloatArray = self._drawn / (self._nodes * float(training) * workers)
        return found


def cluster_worker(context: Context, method: MiniBatch, share: float) -> BatchWorker:
    """Batches of a few METIS clusters."""
    graph, options = context.dataset.graph, context.options
    layers = len(context.widths) - 1
    draws = ClusterDraws(graph, share, layers, context.world, options.seed, options.partition_seed)
    builder = BatchBuilder(graph, context.weights, InducedScaling())
    return BatchWorker(context, method, BatchSource(draws, builder, Store(context)))


def walk_worker(context: Context, method: MiniBatch, share: float, coverage: int) -> BatchWorker:
    """Batches of nodes on random walks."""
    graph = context.dataset.graph
    draws = WalkDraws(graph, share, len(context.widths) - 1, context.world, context.options.seed)
    met = MetScaling(graph, draws.samples(coverage * graph.nodes))
    shares = met.shares(int(np.count_nonzero(context.dataset.train)), context.world)
    builder = BatchBuilder(graph, context.weights, met)
    return BatchWorker(context, method, BatchSource(draws, builder, Store(context), shares))
