"""What a worker does with mini-batches: a thread draws them, another loads their rows, the main thread trains them.

How far drawing and loading run ahead is the method's; what is trained does not depend on it, since every batch is drawn
from streams of its own iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.ids import BoolArray, FloatArray, Int32Array, IntArray, Iteration
from gcnsim.sampling import BatchDraws
from gcnsim.timeline import OpKind
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange.batches import BatchBuilder, BatchGraph, LoadedBatch
from runtime.methods.batches.stores import Hits, Store
from runtime.methods.worker import Context, MethodWorker

if TYPE_CHECKING:
    from runtime.methods.batches.method import MiniBatch


@dataclass(frozen=True)
class Kept:
    """What the access trace says of where rows are. owner: int32[N], who stores each node's row; None: everybody all.
    held: bool[N], rows of this worker's cache. stored: rows that its batches may ask for."""

    owner: Int32Array | None
    held: BoolArray
    stored: int


@dataclass(frozen=True)
class Source:
    """Where a worker's batches come from. shares: of every node in the loss, float64[N]; None: all alike. stored:
    nodes whose rows batches may ask for, bool[N]; None: all."""

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
    """See the module."""

    exchanges = False

    def __init__(self, context: Context, method: MiniBatch, source: Source) -> None:
        """Two threads; nothing is drawn yet."""
        super().__init__(context)
        self._ahead, self._draws_ahead, self.source = method.ahead, method.draws_ahead, source
        self.caches = source.store.caches
        self._trained_any = self._told = False
        # The input's rows learn nothing, so layer 0 sums no gradients by its transpose; attention's weights do.
        # Pooling's gradients go to the rows that were the largest, by no transpose.
        self._turned, self._pools = context.options.model == "gat", context.options.pools
        self._sampler, self._loader = (ThreadPoolExecutor(1, name) for name in ("sampler", "loader"))
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
        """The batch of iteration t, its rows on the device; begins with those that come after it."""
        if self._trained_any and not self._told:
            self._told = True
            self.source.store.trained_first()
        self._trained_any = True
        soon = t + max(1, self._ahead)
        for each in range(t, soon):
            self._load(each)
        if self._draws_ahead:
            self._draw(soon)
        recorder, future = self.context.recorder, self._loaded.pop(t)
        start, blocked = recorder.mark(), not future.done()
        ready = future.result()
        if blocked:
            recorder.add(OpKind.WAIT, "compute", t, start, recorder.mark())
        found = self._trained(t, ready)
        if self._ahead:
            self._load(soon)
            self._draw(soon + 1)
        return found

    def kept(self) -> Kept:
        """Where rows are."""
        nodes, store = self.context.dataset.graph.nodes, self.source.store
        stored = nodes if self.source.stored is None else int(np.count_nonzero(self.source.stored))
        return Kept(store.owner, store.held(), stored)

    def drain(self) -> None:
        """Wait for everything under way; raises the first error of any thread."""
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
        """Draw the batch of iteration t and make its matrices; the sampler's thread."""
        context = self.context
        start = context.recorder.mark()
        drawn = self.source.draws.draw(t, context.channels.rank, keep=True)
        graph = self.source.builder.built(t, drawn)
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
            turned = turned and not self._pools
            made.append(made[-1] if same else kind(rows, context.dtype, context.device, turned=turned))
        context.recorder.add(OpKind.INDEX, "sampler", t, drew, context.recorder.mark())
        return graph, tuple(made)

    def _loaded_at(self, t: Iteration) -> _Ready:
        """Load the rows that the batch of iteration t reads; the loader's thread."""
        graph, matrices = self._drawn[t].result()
        del self._drawn[t]
        rows, hits = self.source.store.load(t, graph.nodes)
        return _Ready(graph, matrices, rows, hits)

    def _trained(self, t: Iteration, ready: _Ready) -> LoadedBatch:
        """The batch with its cached rows put between those loaded, and the labels of its training nodes."""
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
