"""What a scenario's mini-batches are: their sizes, who trains which nodes, where input rows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gcnsim.boundary import AccessCounts, BatchCounts
from gcnsim.caching import capacity
from gcnsim.cost import RESERVED, VALUE
from gcnsim.errors import ScenarioError
from gcnsim.ids import Bytes, IntArray, frozen
from gcnsim.methods import MiniBatch, Plan
from gcnsim.scenario import Scenario
from gcnsim.workload import LayerShape

TRAIN: Final = 0.65
"""Share of the nodes that train where nobody says (PaGraph's split)."""


def batching(scenario: Scenario) -> MiniBatch:
    """The scenario's method, of which it is known that it trains mini-batches."""
    assert isinstance(scenario.method, MiniBatch)
    return scenario.method


def refuse_unmodelled(scenario: Scenario, method: MiniBatch, shapes: Sequence[LayerShape]) -> None:
    """Raises ScenarioError for what no mini-batch schedule models."""
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


def plan_of(scenario: Scenario, shapes: tuple[LayerShape, ...]) -> Plan:
    """How a mini-batch method draws. Raises ScenarioError for what it cannot train or lists of the wrong length."""
    method = batching(scenario)
    refuse_unmodelled(scenario, method, shapes)
    return method.plan(shapes)


def cached_rows(
    method: MiniBatch, memory: Bytes, plan: Plan, levels: Sequence[float], entries: Sequence[float], stored: int
) -> int:
    """Rows that one GPU's cache holds: as asked, or what its `memory` leaves (PaGraph).

    levels, entries: of the largest mini-batch. stored: rows it could hold at most.
    """
    if not method.cache.auto:
        return capacity(method.cache, stored, plan.width)
    used = method.batch_memory(plan, levels, entries).total
    return max(0, min(stored, int((memory - used - RESERVED) // (VALUE * plan.width))))


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
