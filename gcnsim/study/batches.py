"""What a scenario's mini-batches are: their sizes, who trains which nodes, where input rows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from gcnsim.caching import capacity
from gcnsim.cost import RESERVED, VALUE, Memory, batch_memory
from gcnsim.errors import ScenarioError
from gcnsim.ids import IntArray, frozen
from gcnsim.knobs import MINI_BATCH
from gcnsim.scenario import MethodSpec, Scenario
from gcnsim.study.machine import profiles
from gcnsim.trace import AccessCounts, BatchCounts
from gcnsim.workload import LayerShape

TRAIN: Final = 0.65
"""Share of the nodes that train where nobody says (PaGraph's split)."""

USUAL: Final = {"dgl": 2, "pagraph": 2, "distdgl": 10, "graphsage": 10}
"""Neighbours per node and layer where nobody says: PaGraph's setting, and the usual one of distributed training."""

ONE_SERVER: Final = ("dgl", "pagraph")
"""Systems whose workers share a graph in the memory of one server."""

OWN_NODES: Final = ("pagraph", "distdgl")
"""Systems whose workers train the training nodes of their own part; in the others all are shuffled together."""

SUBGRAPHS: Final = ("graphsaint", "clustergcn")
"""Systems whose mini-batch is a sub-graph, the same in every layer."""

CLUSTERS: Final = 20
"""Clusters in a mini-batch of ClusterGCN (its setting for Reddit: 20 of 1500, 1.3 % of the nodes)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a method draws. fanout, sizes: a number for each layer that draws, the input's first; one of them is empty.
    shapes: the model's layers as this method trains them. width: of an input row."""

    fanout: tuple[int | float, ...]
    sizes: tuple[int, ...]
    shapes: tuple[LayerShape, ...]
    width: int


def mini_batch(method: MethodSpec) -> bool:
    """Whether a method updates the model once per mini-batch."""
    return method.name in MINI_BATCH


def plan_of(scenario: Scenario, shapes: tuple[LayerShape, ...]) -> Plan:
    """The plan of a mini-batch method. Raises ScenarioError for what it cannot train or lists of the wrong length."""
    method, layers = scenario.method, len(shapes)
    _refuse(scenario, shapes)
    for name in ("fanout", "layer_sizes"):
        given = getattr(method, name)
        if given is not None and len(given) != layers:
            text = ",".join(f"{100 * each:g}%" if isinstance(each, float) else str(each) for each in given)
            raise ScenarioError(
                f"method.{name}: {text} is not allowed; the model has {layers} layers, so {layers} numbers"
            )
    sizes = tuple(int(each) for each in method.layer_sizes or ())
    fanout = () if sizes else method.fanout or (USUAL.get(method.name, 1),) * layers
    if method.preprocess == "no":
        return Plan(fanout, sizes, shapes, shapes[0].d_in)
    trained = prepared(shapes)
    return Plan(fanout[1:], sizes[1:], trained, trained[0].update_in)


def prepared(shapes: tuple[LayerShape, ...]) -> tuple[LayerShape, ...]:
    """The layers when the input was aggregated before: the first one sums no neighbours."""
    first = shapes[0]
    return (LayerShape(first.d_in, first.d_out, first.weights, gathers=False), *shapes[1:])


def _refuse(scenario: Scenario, shapes: Sequence[LayerShape]) -> None:
    """Raises ScenarioError for what no mini-batch schedule models."""
    method, cluster = scenario.method, scenario.cluster
    if profiles(cluster)[0].kind == "cpu":
        raise ScenarioError(f"cluster.device: {cluster.device} is not allowed; {method.name} is modelled for GPUs only")
    if method.name in ONE_SERVER and cluster.servers > 1:
        raise ScenarioError(
            f"cluster.gpus_per_server: {cluster.gpus_per_server} gives {cluster.servers} servers; {method.name} keeps "
            "the graph in the memory of one"
        )
    if method.overlap != "none":
        raise ScenarioError(f"method.overlap: {method.overlap} is not allowed; {method.name} has none")
    if not all(shape.gathers for shape in shapes):
        name = "dense_layers" if shapes[0].gathers else "preaggregate"
        raise ScenarioError(
            f"workload.{name}: {getattr(scenario.workload, name)!s} is not modelled with mini-batches; allowed: "
            f"{'0' if name == 'dense_layers' else 'false'}"
        )


def epoch_of(scenario: Scenario, nodes: int, training: int) -> int:
    """Iterations in which every training node is trained once (every node, where sub-graphs are drawn)."""
    method, gpus = scenario.method, scenario.cluster.gpus
    if method.name in SUBGRAPHS:
        return max(1, ceil(1.0 / (method.subgraph * gpus) - 1e-9))
    return max(1, ceil(ceil(training / gpus) / method.batch))


def cached_rows(scenario: Scenario, plan: Plan, levels: Sequence[float], entries: Sequence[float], stored: int) -> int:
    """Rows that one GPU's cache holds: as asked, or what its memory leaves (PaGraph).

    levels, entries: of the largest mini-batch. stored: rows it could hold at most.
    """
    method = scenario.method
    if not method.cache.auto:
        return capacity(method.cache, stored, plan.width)
    memory = profiles(scenario.cluster)[0].memory.value
    used = batch_memory(levels, entries, plan.shapes, waiting=method.queue, width=plan.width).total
    return max(0, min(stored, int((memory - used - RESERVED) // (VALUE * plan.width))))


def batches_memory(scenario: Scenario, plan: Plan, batches: BatchCounts) -> tuple[Memory, ...]:
    """What every worker's GPU holds, by its largest mini-batch."""
    waiting = scenario.method.queue if scenario.method.name == "pagraph" else 0
    found = []
    for rank in range(int(batches.cached.size)):
        largest = int(np.argmax(batches.levels[:, rank, 0]))
        levels, entries = batches.levels[largest, rank].tolist(), batches.entries[largest, rank].tolist()
        cached = int(batches.cached[rank])
        found.append(batch_memory(levels, entries, plan.shapes, waiting=waiting, width=plan.width, cached=cached))
    return tuple(found)


def only_batches(batches: BatchCounts, nodes: int, entries: int) -> AccessCounts:
    """The counts of a system that exchanges nothing by layer: equal parts, no boundary, its mini-batches."""
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
