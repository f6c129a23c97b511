"""One worker's iteration in a method: the graph it trains, and the age of other workers' rows.

The base class trains the whole graph with rows that are `tau` iterations old; methods override the differences.
`BlockWorker` is of methods that broadcast whole blocks of rows (`runtime.exchange.blocks`). A block is one worker's
part, or the parts of several workers together, all of which then store it. P_ij for another block j has the crossing
entries to j, at the positions of j's rows in it. The access trace is that of the whole graph; a replay adds the
broadcasts of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import Float32Array, FloatArray, IntArray, Iteration
from gcnsim.graph.parts import Partitioning, Replicas
from gcnsim.timeline import Direction
from runtime.aggregate import Matrix, Rows
from runtime.data import Dataset, Share
from runtime.exchange import (
    BlockNeighbours,
    BlockPlace,
    BlockRing,
    BlockSums,
    Boundary,
    BoundaryView,
    Channels,
    Exchange,
    GraphBuilder,
    IterationContext,
    SampledGraph,
    SendAll,
    StepBoundaries,
    fetch_rows,
)
from runtime.exchange.blocks import Policy
from runtime.exchange.exchange import Smooth
from runtime.model import Boundaries
from runtime.options import Options
from runtime.record import Recorder


@dataclass(frozen=True)
class Context:
    """The environment of a method. whole: the graph of `share` with all its entries. features: of the inner nodes of
    `held`, [I, d_0]. weights: of entries, as in `GraphBuilder`. dataset, partitioning: of the whole graph.
    """

    options: Options
    share: Share
    channels: Channels
    recorder: Recorder
    builder: GraphBuilder
    whole: SampledGraph
    features: Tensor
    widths: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    held: Share
    """The rows that this worker trains: `share`, or a block of rows that other workers store too."""
    weights: str
    dataset: Dataset
    partitioning: Partitioning
    exchange: Callable[..., Exchange] = Exchange
    """Create the exchange of rows and gradients; arguments as in `Exchange`."""

    @property
    def world(self) -> int:
        """Number of workers."""
        return self.channels.world


def completed(graph: SampledGraph) -> Future[SampledGraph]:
    """The wrapper of a graph that is ready."""
    done: Future[SampledGraph] = Future()
    done.set_result(graph)
    return done


class MethodWorker:
    """Base of all methods' workers: the whole graph, rows of iteration t - tau.

    caches: whether layer-0 rows of boundary nodes are cached. exchanges: whether boundary rows are sent.
    """

    caches = False
    exchanges = True

    def __init__(self, context: Context, tau: int = 0, cold_start: str = "zeros", smooth: Smooth | None = None) -> None:
        """Open the exchange; a single worker needs none. cold_start: the rows that the first tau iterations read."""
        self.context = context
        self.tau = tau
        self._cold_start = cold_start
        self.exchange: Exchange | None = None
        if context.world > 1 and self.exchanges:
            self.exchange = context.exchange(
                context.channels,
                context.recorder,
                context.widths,
                tau,
                context.dtype,
                context.device,
                threaded=tau > 0 or context.options.overlap == "central",
                smooth=smooth,
            )

    def start(self) -> None:
        """The work before iteration 0; every rank calls it at the same time."""
        if self.exchange is not None and self.tau and self._cold_start == "features":
            boundary = np.arange(self.context.share.part.boundary_nodes)
            channel = self.context.channels.open("ids")
            self.exchange.features = fetch_rows(channel, self.context.share, self.context.features, boundary)

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The graph that iteration t trains, and its boundary (None for a single worker)."""
        graph = self.graph(t)
        return graph, None if self.exchange is None else BoundaryView(self.exchange, graph, self.upcoming(t))

    def neighbours(self, step: IterationContext, fixed: Tensor | None) -> Boundaries:
        """The neighbours of each layer in one step. fixed: layer 0's sum if it was computed once."""
        return StepBoundaries(step, fixed)

    def graph(self, t: Iteration) -> SampledGraph:
        """The graph that iteration t trains."""
        return self.context.whole

    def graphs(self, count: int) -> Iterator[SampledGraph]:
        """The first `count` graphs at once, instead of `start`, if no iteration computes anything."""
        return (self.graph(t) for t in range(count))

    def upcoming(self, t: Iteration) -> Future[SampledGraph]:
        """The graph that iteration t + tau trains: its rows start to travel in iteration t."""
        return completed(self.graph(t))

    def measures(self, t: Iteration) -> bool:
        """Whether iteration t measures node norms."""
        return False

    def refresh_next(self, refreshing: bool) -> None:
        """Whether the next iterations refresh the sampling probabilities; of methods that have a `period`."""

    def measured(self, t: Iteration, norms: Tensor) -> None:
        """Receive the norms s_j of the inner nodes, float32[I], that iteration t measured."""

    def norms(self) -> tuple[Iteration, Float32Array] | None:
        """The norms of the inner nodes measured last, and their iteration."""
        return None

    def inclusion(self) -> Float32Array:
        """The inclusion probability of each boundary node, float32[B]: the mean over the graphs so far."""
        return np.ones(self.context.share.part.boundary_nodes, np.float32)

    def sampler(self) -> str:
        """The name of the sampling rule in an access trace."""
        return "full"

    def rate(self) -> float:
        """The sampling rate in an access trace."""
        return 1.0

    def floored(self) -> int:
        """The edge probabilities raised to the sampler's least value, in the last recomputation."""
        return 0

    def state(self) -> dict[str, Tensor]:
        """The data that later iterations need, by name: rows and gradients in transit."""
        if self.exchange is None:
            return {}
        return {
            f"{direction.name.lower()}.{layer}.{iteration}": rows.detach().cpu().clone()
            for (direction, layer, iteration), (_, rows) in self.exchange.in_flight().items()
        }

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Continue after `done` iterations from the result of `state`; called after `start`."""
        for name, rows in state.items():
            word, _, rest = name.partition(".")
            if self.exchange is None or word.upper() not in Direction.__members__:
                continue
            direction = Direction[word.upper()]
            layer, iteration = (int(part) for part in rest.split("."))
            graph = iteration + self.tau if direction is Direction.FORWARD else iteration
            self.exchange.put_back(direction, layer, iteration, self.known(graph), rows)

    def known(self, graph: int) -> SampledGraph:
        """The graph number `graph`, sampled before."""
        return self.graph(graph)

    def drain(self) -> None:
        """Wait for all active work; raises the first error of any thread."""
        if self.exchange is not None:
            self.exchange.drain()

    def close(self) -> None:
        """End the threads."""
        if self.exchange is not None:
            self.exchange.close()

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent so far per peer and kind: rows, gradients, ids, norms, cache."""
        return {} if self.exchange is None else dict(self.exchange.bytes_sent)


CHANNEL = "blocks"


class BlockWorker(MethodWorker):
    """The worker of block methods; see the module."""

    exchanges = False

    def __init__(self, context: Context, policy: Policy | None = None, clip: float = 0.0, copies: int = 1) -> None:
        """Open the rings. policy: which blocks are sent; None: all. clip: see `BlockPlace`. copies: workers that store
        each block.
        """
        super().__init__(context)
        replicas, rank = Replicas(context.world, copies), context.channels.rank
        channel, recorder = context.channels.open(CHANNEL, bulk=True), context.recorder
        ring = BlockRing(channel, recorder, replicas.ring(replicas.member(rank)))
        holders = BlockRing(channel, recorder, replicas.holders(replicas.block(rank)))
        grid = _grid(context, replicas, clip)
        self.sums = BlockSums(
            grid, ring, holders, policy or SendAll(replicas.blocks), recorder, context.channels.backend
        )

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The whole graph; no boundary rows travel."""
        return self.graph(t), None

    def neighbours(self, step: IterationContext, fixed: Tensor | None) -> Boundaries:
        """The neighbours of each layer, by blocks."""
        return BlockNeighbours(self.sums, step, fixed)

    def state(self) -> dict[str, Tensor]:
        """The stored copies."""
        return self.sums.kept()

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Restore the copies."""
        self.sums.put_back(state)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent, of blocks."""
        return self.sums.bytes_sent()


def _grid(context: Context, replicas: Replicas, clip: float) -> BlockPlace:
    """The blocks of all workers; every rank at the same time."""
    part = context.held.part
    whole = context.whole if context.held is context.share else context.builder.beside(part).whole()
    nodes = [part.inner]
    if context.world > 1:
        raw = context.channels.open("ids").gather_arrays(part.inner.astype(np.int64).tobytes())
        nodes = [np.frombuffer(data, np.int64) for data in raw[:: replicas.copies]]
    matrices: dict[int, Matrix] = {}
    for block in replicas.stages(replicas.member(context.channels.rank)):
        inner = nodes[block]
        if block == part.rank:
            matrices[block] = whole.inner
            continue
        first, last = int(part.boundary_ptr[block]), int(part.boundary_ptr[block + 1])
        places = np.searchsorted(inner, part.boundary[first:last])
        rows = _columns(whole.boundary, part.inner_nodes, first, places, inner.size)
        matrices[block] = type(whole.inner)(rows, context.dtype, context.device)
    scale = _row_scale(context.options, part.inner_degree)
    on_device = None if scale is None else torch.from_numpy(scale).to(context.device, context.dtype)[:, None]
    sizes = tuple(inner.size for inner in nodes)
    return BlockPlace(part.rank, sizes, matrices, on_device, context.device, clip)


def _columns(boundary: Matrix | None, count: int, first: int, places: IntArray, width: int) -> Rows:
    """The entries of `boundary` in its columns from `first` on, one for each of `places`, moved to those places."""
    if boundary is None:
        return Rows(np.zeros(count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), width)
    rows = boundary.rows
    kept = np.flatnonzero((rows.columns >= first) & (rows.columns < first + places.size))
    columns = places[rows.columns[kept] - first].astype(np.int32)
    return Rows(np.searchsorted(kept, rows.indptr), columns, rows.values[kept], width)


def _row_scale(options: Options, degree: IntArray) -> FloatArray | None:
    """t of every inner row: the factor on its entries beyond that of their column; None if all are equal."""
    if options.model != "graphsage":
        return None
    if options.sage_mean == "with-self":
        return np.asarray(1.0 / (degree + 1.0))
    return np.asarray(1.0 / np.maximum(degree, 1.0))
