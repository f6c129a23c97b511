"""What one worker does in an iteration of a method: which graph it trains, and how old the rows of others are.

The base class trains the whole graph with rows that are `tau` iterations old; the methods say what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnsim.ids import Float32Array, Iteration
from gcnsim.partition import Partitioning
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
    """What a method works with. whole: the graph of `share` with all its entries. features: of the inner nodes of
    `held`, [I, d_0]. weights: what entries weigh, as of `GraphBuilder`. dataset, partitioning: of the whole graph.
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
    """What this worker trains: `share`, or a block of rows that other workers hold too."""
    weights: str
    dataset: Dataset
    partitioning: Partitioning
    exchange: Callable[..., Exchange] = Exchange
    """Makes the exchange of rows and gradients; arguments as of `Exchange`."""

    @property
    def world(self) -> int:
        """Number of workers."""
        return self.channels.world


def completed(graph: SampledGraph) -> Future[SampledGraph]:
    """A graph that needs no waiting."""
    done: Future[SampledGraph] = Future()
    done.set_result(graph)
    return done


class MethodWorker:
    """Base of all methods' workers: the whole graph, rows of iteration t - tau.

    caches: whether layer-0 rows of boundary nodes are kept. exchanges: whether boundary rows travel.
    """

    caches = False
    exchanges = True

    def __init__(self, context: Context, tau: int = 0, cold_start: str = "zeros", smooth: Smooth | None = None) -> None:
        """Open the exchange; a single worker needs none. cold_start: rows that the first tau iterations read."""
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
        """What happens once before iteration 0; every rank calls it at the same time."""
        if self.exchange is not None and self.tau and self._cold_start == "features":
            boundary = np.arange(self.context.share.part.boundary_nodes)
            channel = self.context.channels.open("ids")
            self.exchange.features = fetch_rows(channel, self.context.share, self.context.features, boundary)

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The graph that iteration t trains, and its boundary (None: a single worker)."""
        graph = self.graph(t)
        return graph, None if self.exchange is None else BoundaryView(self.exchange, graph, self.upcoming(t))

    def neighbours(self, step: IterationContext, fixed: Tensor | None) -> Boundaries:
        """The neighbours of each layer in one step. fixed: layer 0's sum when it was computed once."""
        return StepBoundaries(step, fixed)

    def graph(self, t: Iteration) -> SampledGraph:
        """The graph that iteration t trains."""
        return self.context.whole

    def graphs(self, count: int) -> Iterator[SampledGraph]:
        """The first `count` graphs at once, in the place of `start`, where no iteration computes anything."""
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
        """Take the norms s_j of the inner nodes, float32[I], that iteration t measured."""

    def norms(self) -> tuple[Iteration, Float32Array] | None:
        """The norms measured last, of the inner nodes, and in which iteration."""
        return None

    def inclusion(self) -> Float32Array:
        """The chance that a graph needs a boundary node, float32[B]: the mean over the graphs so far."""
        return np.ones(self.context.share.part.boundary_nodes, np.float32)

    def sampler(self) -> str:
        """How an access trace names the sampling rule."""
        return "full"

    def rate(self) -> float:
        """The sampling rate as an access trace names it."""
        return 1.0

    def floored(self) -> int:
        """Edge probabilities raised to the sampler's least value, in the last recomputation."""
        return 0

    def state(self) -> dict[str, Tensor]:
        """What iterations to come need, by name: rows and gradients in flight."""
        if self.exchange is None:
            return {}
        return {
            f"{direction.name.lower()}.{layer}.{iteration}": rows.detach().cpu().clone()
            for (direction, layer, iteration), (_, rows) in self.exchange.in_flight().items()
        }

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Go on after `done` iterations from what `state` gave; called instead of nothing else than after `start`."""
        for name, rows in state.items():
            word, _, rest = name.partition(".")
            if self.exchange is None or word.upper() not in Direction.__members__:
                continue
            direction = Direction[word.upper()]
            layer, iteration = (int(part) for part in rest.split("."))
            graph = iteration + self.tau if direction is Direction.FORWARD else iteration
            self.exchange.put_back(direction, layer, iteration, self.known(graph), rows)

    def known(self, graph: int) -> SampledGraph:
        """The graph number `graph`, drawn before."""
        return self.graph(graph)

    def drain(self) -> None:
        """Wait for everything under way; raises the first error of any thread."""
        if self.exchange is not None:
            self.exchange.drain()

    def close(self) -> None:
        """End the threads."""
        if self.exchange is not None:
            self.exchange.close()

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent so far per peer and kind: rows, gradients, ids, norms, cache."""
        return {} if self.exchange is None else dict(self.exchange.bytes_sent)
