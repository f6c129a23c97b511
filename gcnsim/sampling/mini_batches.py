"""Which mini-batch a worker trains in which iteration: the one rule of simulator and training runtime.

Training nodes are shuffled once and shared out; every worker goes through its own in an order drawn anew for each epoch
(streams "training order" and "epoch"), and draws from the stream ("mini-batch", iteration, worker). A sub-graph is
drawn from that stream alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final, Protocol

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, Int32Array, IntArray, Iteration, Rank
from gcnsim.partition import metis_owners
from gcnsim.sampling.neighbours import Batch, layer_batch, neighbour_batch, subgraph_batch, walked_nodes
from gcnsim.streams import stream

CLUSTERS: Final = 20
"""Clusters in a mini-batch of ClusterGCN (its setting for Reddit: 20 of 1500, 1.3 % of the nodes)."""


class BatchDraws(Protocol):
    """The mini-batches of a run. epoch: iterations in which every training node is trained once, or, of sub-graphs, as
    many nodes are read as the graph has."""

    @property
    def epoch(self) -> int: ...

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """That of worker `rank` in iteration t. keep: whether the places of its entries are kept."""
        ...


def passes(training: int, workers: int, batch: int) -> int:
    """Iterations in which `workers` train `training` nodes once, `batch` each at a time."""
    return max(1, ceil(ceil(training / workers) / batch))


def subgraphs(share: float, workers: int) -> int:
    """Iterations in which `workers` that read the `share` of all nodes each have read as many as there are."""
    return max(1, ceil(1.0 / (share * workers) - 1e-9))


def training_order(training: IntArray, seed: int) -> IntArray:
    """The training nodes as they are shared out to workers."""
    return stream(seed, "training order").permutation(training)


def shuffled_pools(training: IntArray, workers: int, seed: int) -> list[IntArray]:
    """Training nodes of every worker, whoever owns them."""
    return np.array_split(training_order(training, seed), workers)


def own_pools(training: IntArray, owner: Int32Array, workers: int, seed: int) -> list[IntArray]:
    """Training nodes of every worker's own part. owner: int32[N]."""
    shuffled = training_order(training, seed)
    mine = owner[shuffled]
    return [shuffled[mine == rank] for rank in range(workers)]


class NeighbourDraws:
    """Batches of training nodes with the neighbours drawn around them.

    pools: training nodes of every worker. batch: of them in a batch. fanout or sizes: per layer that draws, the input's
    first, as of `neighbour_batch` and `layer_batch`; the other is empty. ready: layers before them, whose sums were
    made once; they read the rows they make.
    """

    def __init__(
        self,
        graph: Graph,
        pools: Sequence[IntArray],
        batch: int,
        fanout: Sequence[int | float],
        sizes: Sequence[int | float],
        seed: int,
        ready: int = 0,
    ) -> None:
        self._graph, self._pools, self._batch = graph, pools, batch
        self._fanout, self._sizes, self._seed, self._ready = fanout, sizes, seed, ready
        self.epoch = passes(len(pools) * max(pool.size for pool in pools), len(pools), batch)
        self._orders: dict[Rank, tuple[int, IntArray]] = {}

    def nodes(self, t: Iteration, rank: Rank) -> IntArray:
        """The training nodes of the batch, in the order of their epoch."""
        turn, first = t // self.epoch, t % self.epoch * self._batch
        if rank not in self._orders or self._orders[rank][0] != turn:
            order = stream(self._seed, "epoch", turn, rank).permutation(self._pools[rank])
            self._orders[rank] = turn, order
        found: IntArray = self._orders[rank][1][first : first + self._batch]
        return found

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """See `BatchDraws`."""
        nodes, generator = self.nodes(t, rank), stream(self._seed, "mini-batch", t, rank)
        if self._sizes:
            found = layer_batch(self._graph, nodes, [int(size) for size in self._sizes], generator, keep=keep)
        else:
            found = neighbour_batch(self._graph, nodes, self._fanout, generator, keep=keep)
        before = (np.zeros(0, np.int64),) * self._ready if keep else ()
        levels = (found.levels[0],) * self._ready + found.levels
        return Batch(levels, (0,) * self._ready + found.entries, found.looked, before + found.places)


class WalkDraws:
    """Sub-graphs of the nodes on random walks, about the `share` of all nodes each (GraphSAINT)."""

    def __init__(self, graph: Graph, share: float, layers: int, workers: int, seed: int) -> None:
        self._graph, self._layers, self._seed = graph, layers, seed
        self._wanted = wanted_nodes(graph, share)
        self.epoch = subgraphs(share, workers)

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """See `BatchDraws`."""
        nodes = walked_nodes(self._graph, self._wanted, stream(self._seed, "mini-batch", t, rank))
        return subgraph_batch(self._graph, nodes, self._layers, keep=keep)

    def samples(self, nodes: int) -> Iterator[Batch]:
        """Sub-graphs of one layer drawn before training, until they have `nodes` nodes together."""
        number = seen = 0
        while seen < nodes:
            walked = walked_nodes(self._graph, self._wanted, stream(self._seed, "sub-graph before", number))
            yield subgraph_batch(self._graph, walked, 1, keep=True)
            number, seen = number + 1, seen + walked.size


class ClusterDraws:
    """Sub-graphs of a few clusters, about the `share` of all nodes each (ClusterGCN). cluster_seed: of METIS."""

    def __init__(self, graph: Graph, share: float, layers: int, workers: int, seed: int, cluster_seed: int) -> None:
        self._graph, self._layers, self._seed = graph, layers, seed
        self._together = min(CLUSTERS, wanted_nodes(graph, share))
        self._clusters = max(self._together, min(graph.nodes // 2 or 1, round(self._together / share)))
        self._owner, _ = metis_owners(graph, self._clusters, objective="cut", seed=cluster_seed)
        self.epoch = subgraphs(share, workers)

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """See `BatchDraws`."""
        generator = stream(self._seed, "mini-batch", t, rank)
        chosen: BoolArray = np.zeros(self._clusters, np.bool_)
        chosen[generator.choice(self._clusters, size=self._together, replace=False)] = True
        return subgraph_batch(self._graph, np.flatnonzero(chosen[self._owner]), self._layers, keep=keep)


def wanted_nodes(graph: Graph, share: float) -> int:
    """Nodes that a sub-graph of the `share` of all is to have, at least one."""
    return max(1, round(share * graph.nodes))
