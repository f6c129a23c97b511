"""One worker's iteration in a method: the graph it trains, and the age of other workers' rows.

The base class trains the whole graph with rows that are `tau` iterations old; methods override the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import Float32Array, Iteration
from gcnsim.graph.parts import Partitioning
from gcnsim.timeline import Direction
from runtime.data import Dataset, Share
from runtime.exchange import (
    Boundary,
    BoundaryView,
    Channels,
    Exchange,
    GraphBuilder,
    IterationContext,
    SampledGraph,
    StepBoundaries,
    fetch_rows,
)
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
