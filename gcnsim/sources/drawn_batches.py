"""Mini-batches of a real graph: really drawn, one for every worker and iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.boundary import BatchCounts, Store, count_batches
from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, Int32Array, IntArray
from gcnsim.machine import resolve_machine
from gcnsim.methods import NeighbourBatches, Plan, SubgraphBatches
from gcnsim.partition import TrainingParts, metis_owners
from gcnsim.sampling import Batch, layer_batch, neighbour_batch, subgraph_batch, walked_nodes
from gcnsim.scenario import Scenario
from gcnsim.sources.batches import CLUSTERS, batching, cached_rows
from gcnsim.streams import stream

MOST_DRAWN: Final = 30
"""Iterations that are drawn at most: counts of mini-batches hardly vary."""

Draw = Callable[[int, int, np.random.Generator], Batch]
"""The mini-batch of an iteration and a worker."""


@dataclass(frozen=True, slots=True)
class BatchGraph:
    """A graph with its training nodes, int64. owner: finds who owns each node, int32[N]. dealt: deals training nodes,
    in this order, to so many parts that hold so many hops. Both are slow, and asked for only where they are needed.
    """

    graph: Graph
    training: IntArray
    owner: Callable[[], Int32Array]
    dealt: Callable[[IntArray, int, int], TrainingParts]


def training_nodes(graph: Graph, mask: BoolArray | None, share: float, seed: int) -> IntArray:
    """The nodes that train: of a mask, or a share of all at random; at least one, int64, ascending."""
    if mask is not None and mask.any():
        return np.flatnonzero(mask)
    count = max(1, round(share * graph.nodes))
    return np.sort(stream(seed, "training nodes").choice(graph.nodes, size=count, replace=False))


def drawn_batches(source: BatchGraph, scenario: Scenario, plan: Plan) -> BatchCounts:
    """Counts of the scenario's mini-batches, in as many iterations as it records, at most MOST_DRAWN."""
    graph, method, workers = source.graph, batching(scenario), scenario.cluster.gpus
    pools, stores = _pools(source, scenario, plan)
    epoch = method.epoch(graph.nodes, workers * max(pool.size for pool in pools), workers)
    draw = (
        _subgraphs(graph, scenario, method, len(plan.shapes))
        if isinstance(method, SubgraphBatches)
        else _neighbourhoods(graph, scenario, plan, pools, epoch)
    )
    drawn = [
        [draw(t, rank, stream(scenario.run.seed, "mini-batch", t, rank)) for rank in range(workers)]
        for t in range(min(scenario.run.iterations, MOST_DRAWN))
    ]
    cached = tuple(
        _by_degree(graph, holds, _cache(scenario, plan, [row[rank] for row in drawn], int(holds.sum())))
        for rank, holds in enumerate(stores)
    )
    stored = [int(holds.sum()) for holds in stores] or [graph.nodes] * workers
    store = Store(None if method.everywhere else source.owner(), cached, np.array(stored, np.int64))
    return count_batches(drawn, store, epoch)


def _pools(source: BatchGraph, scenario: Scenario, plan: Plan) -> tuple[list[IntArray], tuple[BoolArray, ...]]:
    """Training nodes of every worker, and, for PaGraph, the nodes that its part holds."""
    trains, workers, seed = batching(scenario).trains, scenario.cluster.gpus, scenario.run.seed
    shuffled = stream(seed, "training order").permutation(source.training)
    if trains == "dealt":
        parts = source.dealt(shuffled, workers, len(plan.shapes))
        return list(parts.training), parts.holds
    if trains == "own":
        owner = source.owner()[shuffled]
        return [shuffled[owner == rank] for rank in range(workers)], ()
    return np.array_split(shuffled, workers), ()


def _neighbourhoods(graph: Graph, scenario: Scenario, plan: Plan, pools: list[IntArray], epoch: int) -> Draw:
    """Mini-batches of training nodes: every worker goes through its own, shuffled anew in each epoch."""
    method, seed = batching(scenario), scenario.run.seed
    assert isinstance(method, NeighbourBatches)
    batch = method.batch
    ahead = len(plan.shapes) - max(len(plan.fanout), len(plan.sizes))

    def draw(t: int, rank: int, generator: np.random.Generator) -> Batch:
        order = stream(seed, "epoch", t // epoch, rank).permutation(pools[rank])
        nodes = order[(t % epoch) * batch : (t % epoch + 1) * batch]
        if plan.sizes:
            found = layer_batch(graph, nodes, plan.sizes, generator)
        else:
            found = neighbour_batch(graph, nodes, plan.fanout, generator)
        # A layer that was aggregated before reads the rows it makes.
        return Batch((found.levels[0],) * ahead + found.levels, (0,) * ahead + found.entries, found.looked)

    return draw


def _subgraphs(graph: Graph, scenario: Scenario, method: SubgraphBatches, layers: int) -> Draw:
    """Mini-batches of nodes on random walks, or of a few clusters."""
    wanted = max(1, round(method.subgraph * graph.nodes))
    if method.nodes_of == "walks":
        return lambda t, rank, generator: subgraph_batch(graph, walked_nodes(graph, wanted, generator), layers)
    together = min(CLUSTERS, wanted)
    clusters = max(together, min(graph.nodes // 2 or 1, round(together / method.subgraph)))
    owner, _ = metis_owners(graph, clusters, objective="cut", seed=scenario.partition.seed)

    def draw(t: int, rank: int, generator: np.random.Generator) -> Batch:
        chosen = np.zeros(clusters, np.bool_)
        chosen[generator.choice(clusters, size=together, replace=False)] = True
        return subgraph_batch(graph, np.flatnonzero(chosen[owner]), layers)

    return draw


def _cache(scenario: Scenario, plan: Plan, drawn: list[Batch], stored: int) -> int:
    largest = max(drawn, key=lambda batch: batch.levels[0].size)
    memory = resolve_machine(scenario.cluster).device.memory.value
    levels = [level.size for level in largest.levels]
    return cached_rows(batching(scenario), memory, plan, levels, largest.entries, stored)


def _by_degree(graph: Graph, holds: BoolArray, rows: int) -> BoolArray:
    """The rows of highest degree within the part, ties by id, bool[N] (PaGraph's cache)."""
    nodes = np.flatnonzero(holds)
    mask = np.zeros(graph.nodes, np.bool_)
    if rows <= 0:
        return mask
    degree = graph.degrees[nodes] if holds.all() else _degrees_within(graph, holds)[nodes]
    mask[nodes[np.argsort(-degree, kind="stable")[:rows]]] = True
    return mask


def _degrees_within(graph: Graph, holds: BoolArray) -> IntArray:
    """Neighbours of every node among those held."""
    inside = np.concatenate([[0], np.cumsum(holds[graph.indices])])
    within: IntArray = inside[graph.indptr[1:]] - inside[graph.indptr[:-1]]
    return within
