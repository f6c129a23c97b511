"""The workers of systems whose mini-batch is a sub-graph, the same in all layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import FloatArray, IntArray, Layer
from gcnsim.sampling import Batch, ClusterDraws, WalkDraws
from runtime.exchange.batches import BatchBuilder
from runtime.methods.batches.stores import Store
from runtime.methods.batches.worker import BatchWorker, Source
from runtime.methods.worker import Context

if TYPE_CHECKING:
    from runtime.methods.batches.method import MiniBatch


@dataclass(frozen=True)
class InducedScaling:
    """Entries weigh by the degrees within the sub-graph."""

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """Neighbours in the sub-graph."""
        return counts.astype(np.float64)

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """None but the weights themselves."""
        return np.ones(places.size)


class MetScaling:
    """Entries weigh by the degrees in the whole graph, divided by the chance that a sub-graph with the row's node has
    the entry: C_v / C_uv of the sub-graphs `drawn` before training, each count at least 1."""

    def __init__(self, graph: Graph, drawn: Iterable[Batch]) -> None:
        """Count how often nodes and entries are met."""
        self._nodes, self._entries = np.zeros(graph.nodes, np.int64), np.zeros(graph.entries, np.int32)
        self._drawn = 0
        for self._drawn, batch in enumerate(drawn, 1):
            self._nodes[batch.levels[0]] += 1
            self._entries[batch.places[0]] += 1
        np.maximum(self._nodes, 1, out=self._nodes)
        np.maximum(self._entries, 1, out=self._entries)

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """Those in the whole graph."""
        return graph.degrees[nodes].astype(np.float64)

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """See the class."""
        met: FloatArray = np.repeat(self._nodes[nodes], counts) / self._entries[places]
        return met

    def shares(self, training: int, workers: int) -> FloatArray:
        """What a node counts in a worker's loss, so that all workers' mean is the mean over `training` nodes:
        S / C_v over both numbers, float64[N]."""
        found: FloatArray = self._drawn / (self._nodes * float(training) * workers)
        return found


def cluster_worker(context: Context, method: MiniBatch, share: float) -> BatchWorker:
    """Batches of a few METIS clusters."""
    graph, options = context.dataset.graph, context.options
    layers = len(context.widths) - 1
    draws = ClusterDraws(graph, share, layers, context.world, options.seed, options.partition_seed)
    builder = BatchBuilder(graph, context.weights, InducedScaling())
    return BatchWorker(context, method, Source(draws, builder, Store(context)))


def walk_worker(context: Context, method: MiniBatch, share: float, coverage: int) -> BatchWorker:
    """Batches of nodes on random walks."""
    graph = context.dataset.graph
    draws = WalkDraws(graph, share, len(context.widths) - 1, context.world, context.options.seed)
    met = MetScaling(graph, draws.samples(coverage * graph.nodes))
    shares = met.shares(int(np.count_nonzero(context.dataset.train)), context.world)
    builder = BatchBuilder(graph, context.weights, met)
    return BatchWorker(context, method, Source(draws, builder, Store(context), shares))
