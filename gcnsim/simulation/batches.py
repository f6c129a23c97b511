"""The mini-batches of a scenario: their sizes, training nodes of each worker, sampling device, and place of input rows.

Mini-batches of a real graph are really sampled, one for every worker and iteration. Sampling device and place of input
rows come from the scenario, otherwise from the method's default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import BoolArray, Bytes, Int32Array, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.cost import RESERVED, VALUE, Memory, stored_graph_bytes
from gcnsim.graph import Graph
from gcnsim.graph.assign import TrainingParts
from gcnsim.methods import ON_GPU, UVA, BatchPlan, MiniBatch, NeighbourBatches, Placement, SubgraphBatches
from gcnsim.scenario import RELEASED, Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.trace.counts import AccessCounts, BatchCounts, Store, count_batches
from gcnsim.workload import LayerShape
from gcnsim.workload.caching import capacity, most_connected
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


def sampler_of(scenario: Scenario) -> Placement:
    """The device that samples the scenario's mini-batches; the place of rows is None if it depends on their size.

    Raises ScenarioError for sampler threads if the GPU samples, and for a place of rows that the method does not
    support.
    """
    method, cluster = batching(scenario), scenario.cluster
    usual = method.scripts if cluster.implementation == RELEASED else method.usual
    on_gpu = usual.on_gpu if cluster.sampler_device is None else cluster.sampler_device == "gpu"
    if on_gpu and cluster.sampler_threads not in (None, 1):
        raise ScenarioError(
            f"cluster.sampler_threads: {cluster.sampler_threads} needs cluster.sampler_device: cpu; {method.name} "
            "draws on the GPU"
        )
    if cluster.features is not None and cluster.features not in method.rows_in:
        raise ScenarioError(
            f"cluster.features: {cluster.features} is not modelled with {method.name}; allowed: "
            f"{', '.join(method.rows_in)}"
        )
    threads = usual.threads if cluster.sampler_threads is None else cluster.sampler_threads
    return Placement(on_gpu, threads, cluster.features or usual.features)


def placement_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> Placement:
    """The same with the place of rows: on the GPU if every GPU has memory for them and its largest batch, otherwise
    UVA.
    """
    placement = sampler_of(scenario)
    if placement.features is not None:
        return placement
    everywhere = replace(placement, features=ON_GPU)
    held, room = batch_memory_of(scenario, counts, shapes, everywhere), resolve_machine(scenario.cluster).capacities
    fits = held is not None and room is not None and all(map(Memory.fits, held, room))
    return everywhere if fits else replace(placement, features=UVA)


def batch_memory_of(
    scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...], placement: Placement | None = None
) -> tuple[Memory, ...] | None:
    """The GPU memory of each worker for mini-batches, including rows and graph if they are on the GPU."""
    method, norm = batching(scenario), scenario.workload.norm == "layer"
    held = method.memory(counts, shapes, norm=norm, payload=scenario.cluster.payload)
    if held is None or resolve_machine(scenario.cluster).kind != "gpu":
        return held
    lies = placement or placement_of(scenario, counts, shapes)
    if lies.features != ON_GPU:
        return held
    nodes, entries = int(counts.inner_nodes.sum()), int(counts.entries.sum())
    rows: Bytes = float(VALUE * nodes * method.plan(shapes).width)
    graph: Bytes = float(stored_graph_bytes(nodes, entries)) if lies.graph_on_gpu else 0.0
    return tuple(
        replace(memory, features=memory.features + rows, adjacency=memory.adjacency + graph) for memory in held
    )


TRAIN: Final = 0.65
"""The default share of training nodes (PaGraph's split)."""


def batching(scenario: Scenario) -> MiniBatch:
    """The scenario's method, typed as a mini-batch method."""
    assert isinstance(scenario.method, MiniBatch)
    return scenario.method


def refuse_unmodelled(scenario: Scenario, method: MiniBatch, shapes: Sequence[LayerShape]) -> None:
    """Raise ScenarioError for options that no mini-batch schedule models."""
    cluster = scenario.cluster
    if method.one_server and cluster.servers > 1:
        raise ScenarioError(
            f"cluster.gpus_per_server: {cluster.gpus_per_server} gives {cluster.servers} servers; {method.name} keeps "
            "the graph in the memory of one"
        )
    if not all(shape.gathers for shape in shapes):
        name = "dense_layers" if shapes[0].gathers else "preaggregate"
        raise ScenarioError(
            f"workload.{name}: {getattr(scenario.workload, name)!s} is not modelled with mini-batches; allowed: "
            f"{'0' if name == 'dense_layers' else 'false'}"
        )


def plan_of(scenario: Scenario, shapes: tuple[LayerShape, ...]) -> BatchPlan:
    """How a mini-batch method samples. Raises ScenarioError for an unsupported model or lists of the wrong length."""
    method = batching(scenario)
    refuse_unmodelled(scenario, method, shapes)
    return method.plan(shapes)


def cached_rows(
    method: MiniBatch, memory: Bytes, plan: BatchPlan, levels: Sequence[float], entries: Sequence[float], stored: int
) -> int:
    """Rows in one GPU's cache: as requested, or as many as `memory` leaves (PaGraph).

    levels, entries: of the largest mini-batch. stored: the most rows it can cache.
    """
    if not method.cache.auto:
        return capacity(method.cache, stored, plan.width)
    used = method.batch_memory(plan, levels, entries).total
    return max(0, min(stored, int((memory - used - RESERVED) // (VALUE * plan.width))))


def only_batches(batches: BatchCounts, nodes: int, entries: int) -> AccessCounts:
    """The counts of a system without exchange per layer: equal parts, no boundary, its mini-batches."""
    workers = int(batches.cached.size)
    none = np.zeros((1, workers, workers), np.int64)

    def each(total: int) -> IntArray:
        return frozen(np.full(workers, round(total / workers), np.int64))

    return AccessCounts(
        rows=none,
        hits=none,
        inner_edges=frozen(each(entries)[None, :]),
        boundary_edges=frozen(np.zeros((1, workers), np.int64)),
        inner_nodes=each(nodes),
        boundary_nodes=frozen(np.zeros(workers, np.int64)),
        entries=each(entries),
        cached_rows=batches.cached,
        batches=batches,
    )


MOST_DRAWN: Final = 30
"""The most iterations that are sampled; counts of mini-batches hardly vary."""


@dataclass(frozen=True, slots=True)
class BatchGraph:
    """A graph with its training nodes, int64.

    owner: computes the owner of each node, int32[N]. dealt: distributes training nodes in this order over parts that
    contain a number of hops. Both are slow and called only if needed.
    """

    graph: Graph
    training: IntArray
    owner: Callable[[], Int32Array]
    dealt: Callable[[IntArray, int, int], TrainingParts]


def training_nodes(graph: Graph, mask: BoolArray | None, share: float, seed: int) -> IntArray:
    """The training nodes: from a mask, or a random share of all; at least one, int64, ascending."""
    if mask is not None and mask.any():
        return np.flatnonzero(mask)
    count = max(1, round(share * graph.nodes))
    return np.sort(stream(seed, "training nodes").choice(graph.nodes, size=count, replace=False))


def drawn_batches(source: BatchGraph, scenario: Scenario, plan: BatchPlan) -> BatchCounts:
    """Counts of the scenario's mini-batches for the recorded iterations, at most MOST_DRAWN."""
    graph, method, workers = source.graph, batching(scenario), scenario.cluster.gpus
    pools, stores = _pools(source, scenario, plan)
    draws = _draws(graph, scenario, plan, pools)
    batches = [
        [draws.draw(t, rank) for rank in range(workers)] for t in range(min(scenario.run.iterations, MOST_DRAWN))
    ]
    cached = tuple(
        most_connected(graph, holds, _cache(scenario, plan, [row[rank] for row in batches], int(holds.sum())))
        for rank, holds in enumerate(stores)
    )
    stored = [int(holds.sum()) for holds in stores] or [graph.nodes] * workers
    store = Store(None if method.everywhere else source.owner(), cached, np.array(stored, np.int64))
    return count_batches(batches, store, draws.epoch)


def _pools(source: BatchGraph, scenario: Scenario, plan: BatchPlan) -> tuple[list[IntArray], tuple[BoolArray, ...]]:
    """Training nodes of every worker, and for PaGraph the nodes that its part contains."""
    trains, workers, seed = batching(scenario).trains, scenario.cluster.gpus, scenario.run.seed
    if trains == "dealt":
        parts = source.dealt(training_order(source.training, seed), workers, len(plan.shapes))
        return list(parts.training), parts.holds
    if trains == "own":
        return own_pools(source.training, source.owner(), workers, seed), ()
    return shuffled_pools(source.training, workers, seed), ()


def _draws(graph: Graph, scenario: Scenario, plan: BatchPlan, pools: list[IntArray]) -> BatchDraws:
    """Mini-batches of training nodes, of nodes on random walks, or of a few clusters."""
    method, layers, workers, seed = batching(scenario), len(plan.shapes), scenario.cluster.gpus, scenario.run.seed
    if not isinstance(method, SubgraphBatches):
        assert isinstance(method, NeighbourBatches)
        ready = layers - max(len(plan.fanout), len(plan.sizes))
        return NeighbourDraws(graph, pools, method.batch, plan.fanout, plan.sizes, seed, ready)
    if method.nodes_of == "walks":
        return WalkDraws(graph, method.subgraph, layers, workers, seed)
    return ClusterDraws(graph, method.subgraph, layers, workers, seed, scenario.partition.seed)


def _cache(scenario: Scenario, plan: BatchPlan, batches: list[Batch], stored: int) -> int:
    largest = max(batches, key=lambda batch: batch.levels[0].size)
    machine = resolve_machine(scenario.cluster)
    if machine.kind == "cpu" and batching(scenario).cache.auto:
        # Device and host share one memory, so all rows of a part are cached.
        return stored
    memory = machine.device.memory.value
    levels = [level.size for level in largest.levels]
    return cached_rows(batching(scenario), memory, plan, levels, largest.entries, stored)
