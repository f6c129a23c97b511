"""The mini-batch of each worker in each iteration: one rule for simulator and training runtime.

Training nodes are shuffled once and divided among the workers. Every worker goes through its nodes in a new order in
each epoch (streams "training order" and "epoch"). It samples from the stream ("mini-batch", iteration, worker). A
subgraph uses only that stream.

Neighbourhoods are really sampled: the nodes that each layer reads, and the entries it sums over. Layers count from 0,
the input's. Level l contains the nodes whose rows layer l reads, level L the batch itself. A level contains all nodes
of the next one, because every node's row is read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Protocol

import numpy as np

from gcnsim.core.ids import BoolArray, Int32Array, IntArray, Iteration, Rank
from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.graph.assign import metis_owners

FEW = 32
"""Neighbours per node up to which they are sampled one by one; beyond, every entry gets a random key."""

HOPS = 2
"""Steps of a random walk (GraphSAINT's walk sampler)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One mini-batch. levels: L + 1 arrays of node ids, int64, ascending. entries: per layer, those it sums over,
    without self-loops.

    looked: entries that sampling read. places: if requested, per layer, the entries' indices in the graph, int64,
    unordered.
    """

    levels: tuple[IntArray, ...]
    entries: tuple[int, ...]
    looked: int
    places: tuple[IntArray, ...] = ()


def neighbour_batch(
    graph: Graph,
    nodes: IntArray,
    fanout: Sequence[int | float],
    generator: np.random.Generator,
    *,
    keep: bool = False,
) -> Batch:
    """Every node samples neighbours, independently in each layer (GraphSAGE, Algorithm 2).

    fanout: per layer, the number without replacement (int; all if a node has fewer), or the probability of each
    (float). keep: whether to store the indices of the entries.
    """
    levels, looked = [np.unique(nodes)], 0
    entries: list[int] = []
    places: list[IntArray] = []
    for amount in reversed(fanout):
        picked, seen = _drawn_places(graph, levels[0], amount, generator)
        levels.insert(0, _union(levels[0], graph.indices[picked].astype(np.int64), graph.nodes))
        entries.insert(0, int(picked.size))
        places.insert(0, picked)
        looked += seen
    return Batch(tuple(levels), tuple(entries), looked, tuple(places) if keep else ())


def layer_batch(
    graph: Graph, nodes: IntArray, sizes: Sequence[int], generator: np.random.Generator, *, keep: bool = False
) -> Batch:
    """Every layer samples a number of nodes among the neighbours of the next one (LADIES; FastGCN samples among all
    nodes).

    Without replacement, in proportion to the entries that lead to a node; all entries from the sampled nodes to the
    next level count. keep: as in `neighbour_batch`.
    """
    levels, looked = [np.unique(nodes)], 0
    entries: list[int] = []
    places: list[IntArray] = []
    for size in reversed(sizes):
        around = _entries(graph, levels[0])
        columns = graph.indices[around]
        leading = np.bincount(columns, minlength=graph.nodes)
        candidates = np.flatnonzero(leading)
        # The largest of the keys u^(1/w) are a weighted sample without replacement (Efraimidis and Spirakis, 2006).
        keys = np.log(generator.random(candidates.size)) / leading[candidates]
        chosen = candidates[np.argsort(-keys, kind="stable")[:size]]
        mask = np.zeros(graph.nodes, np.bool_)
        mask[chosen] = True
        places.insert(0, around[mask[columns]])
        entries.insert(0, int(places[0].size))
        looked += int(columns.size)
        levels.insert(0, _union(levels[0], chosen, graph.nodes))
    return Batch(tuple(levels), tuple(entries), looked, tuple(places) if keep else ())


def subgraph_batch(graph: Graph, nodes: IntArray, layers: int, *, keep: bool = False) -> Batch:
    """All layers train the subgraph of these nodes (GraphSAINT, ClusterGCN). keep: as of `neighbour_batch`."""
    inside = np.zeros(graph.nodes, np.bool_)
    inside[nodes] = True
    ids = np.flatnonzero(inside)
    around = _entries(graph, ids)
    places = around[inside[graph.indices[around]]]
    entries = (places,) * layers if keep else ()
    return Batch((ids,) * (layers + 1), (int(places.size),) * layers, int(around.size), entries)


def walked_nodes(graph: Graph, nodes: int, generator: np.random.Generator) -> IntArray:
    """Nodes on random walks of HOPS steps from distinct roots, about `nodes` of them, int64, ascending.

    A walk ends at a node without neighbours.
    """
    roots = min(graph.nodes, max(1, round(nodes / (HOPS + 1))))
    here = generator.choice(graph.nodes, size=roots, replace=False).astype(np.int64)
    seen = [here]
    for _ in range(HOPS):
        degree = graph.indptr[here + 1] - graph.indptr[here]
        here, degree = here[degree > 0], degree[degree > 0]
        here = graph.indices[graph.indptr[here] + _below(degree, generator)].astype(np.int64)
        seen.append(here)
    return np.unique(np.concatenate(seen))


def _drawn_places(
    graph: Graph, nodes: IntArray, amount: int | float, generator: np.random.Generator
) -> tuple[IntArray, int]:
    """The indices in the graph of the entries that each of `nodes` samples, and how many were read."""
    if isinstance(amount, float):
        around = _entries(graph, nodes)
        mask: BoolArray = generator.random(around.size, dtype=np.float32) < amount
        return around[mask], int(around.size)
    degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
    more = degree > amount
    places = _entries(graph, nodes[~more])
    if more.any():
        some = _one_by_one if amount <= FEW else _by_keys
        places = np.concatenate([places, some(graph, nodes[more], amount, generator)])
    return places, int(places.size)


def _one_by_one(graph: Graph, nodes: IntArray, amount: int, generator: np.random.Generator) -> IntArray:
    """Positions of `amount` distinct entries of every node, all of higher degree (Bentley and Floyd, 1987)."""
    start = graph.indptr[nodes]
    degree = graph.indptr[nodes + 1] - start
    chosen = np.empty((amount, nodes.size), np.int64)
    for step in range(amount):
        last = degree - amount + step
        position = _below(last + 1, generator)
        taken = (chosen[:step] == position).any(axis=0)
        chosen[step] = np.where(taken, last, position)
    positions: IntArray = (start + chosen).ravel(order="F")
    return positions


def _by_keys(graph: Graph, nodes: IntArray, amount: int, generator: np.random.Generator) -> IntArray:
    """The same for a large `amount`: the entries with the smallest of random keys."""
    positions = _entries(graph, nodes)
    degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
    row = np.repeat(np.arange(nodes.size), degree)
    order = np.lexsort((generator.random(positions.size), row))
    first = np.cumsum(degree) - degree
    chosen: IntArray = positions[order[np.arange(positions.size) - first[row] < amount]]
    return chosen


def _below(most: IntArray, generator: np.random.Generator) -> IntArray:
    """A random whole number below each of `most`."""
    return np.minimum((generator.random(most.size) * most).astype(np.int64), most - 1)


def _entries(graph: Graph, nodes: IntArray) -> IntArray:
    """Positions of all entries of `nodes`, row after row."""
    degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
    first = np.cumsum(degree) - degree
    return np.repeat(graph.indptr[nodes] - first, degree) + np.arange(int(degree.sum()))


def _union(level: IntArray, more: IntArray, nodes: int) -> IntArray:
    """Both without repeats, ascending."""
    inside = np.zeros(nodes, np.bool_)
    inside[level] = True
    inside[more] = True
    return np.flatnonzero(inside)


CLUSTERS: Final = 20
"""Clusters in a mini-batch of ClusterGCN (its setting for Reddit: 20 of 1500, 1.3 % of the nodes)."""


class BatchDraws(Protocol):
    """The mini-batches of a run.

    epoch: iterations in which every training node is used once; for subgraphs, in which as many nodes are read as
    the graph has.
    """

    @property
    def epoch(self) -> int: ...

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """The batch of worker `rank` in iteration t. keep: whether to store the indices of its entries."""
        ...


def passes(training: int, workers: int, batch: int) -> int:
    """Iterations in which `workers` train `training` nodes once, `batch` each per iteration."""
    return max(1, ceil(ceil(training / workers) / batch))


def subgraphs(share: float, workers: int) -> int:
    """Iterations in which `workers`, each reading the `share` of all nodes, read as many nodes as the graph has."""
    return max(1, ceil(1.0 / (share * workers) - 1e-9))


def training_order(training: IntArray, seed: int) -> IntArray:
    """The training nodes in the order of their assignment to workers."""
    return stream(seed, "training order").permutation(training)


def shuffled_pools(training: IntArray, workers: int, seed: int) -> list[IntArray]:
    """Training nodes of every worker, independent of their owners."""
    return np.array_split(training_order(training, seed), workers)


def own_pools(training: IntArray, owner: Int32Array, workers: int, seed: int) -> list[IntArray]:
    """Training nodes of every worker's part. owner: int32[N]."""
    shuffled = training_order(training, seed)
    mine = owner[shuffled]
    return [shuffled[mine == rank] for rank in range(workers)]


class NeighbourDraws:
    """Batches of training nodes with the neighbours sampled around them.

    pools: training nodes of every worker. batch: their number in a batch. fanout or sizes: per sampled layer, the
    input's first, as in `neighbour_batch` and `layer_batch`; the other is empty. ready: earlier layers with precomputed
    sums, which read the rows they output.
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
            batch = layer_batch(self._graph, nodes, [int(size) for size in self._sizes], generator, keep=keep)
        else:
            batch = neighbour_batch(self._graph, nodes, self._fanout, generator, keep=keep)
        before = (np.zeros(0, np.int64),) * self._ready if keep else ()
        levels = (batch.levels[0],) * self._ready + batch.levels
        return Batch(levels, (0,) * self._ready + batch.entries, batch.looked, before + batch.places)


class WalkDraws:
    """Subgraphs of the nodes on random walks, each about the `share` of all nodes (GraphSAINT)."""

    def __init__(self, graph: Graph, share: float, layers: int, workers: int, seed: int) -> None:
        self._graph, self._layers, self._seed = graph, layers, seed
        self._wanted = wanted_nodes(graph, share)
        self.epoch = subgraphs(share, workers)

    def draw(self, t: Iteration, rank: Rank, *, keep: bool = False) -> Batch:
        """See `BatchDraws`."""
        nodes = walked_nodes(self._graph, self._wanted, stream(self._seed, "mini-batch", t, rank))
        return subgraph_batch(self._graph, nodes, self._layers, keep=keep)

    def samples(self, nodes: int) -> Iterator[Batch]:
        """Subgraphs of one layer sampled before training, until they have `nodes` nodes together."""
        number = seen = 0
        while seen < nodes:
            walked = walked_nodes(self._graph, self._wanted, stream(self._seed, "sub-graph before", number))
            yield subgraph_batch(self._graph, walked, 1, keep=True)
            number, seen = number + 1, seen + walked.size


class ClusterDraws:
    """Subgraphs of a few clusters, each about the `share` of all nodes (ClusterGCN). cluster_seed: of METIS."""

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
    """The number of nodes in a subgraph with the `share` of all, at least one."""
    return max(1, round(share * graph.nodes))
