"""Mini-batches of a dataset known by its sizes: expected counts from a law of degrees, at each end of the assumptions.

The mean degree is published. The spread of degrees is assumed unless a publication determines it. A wider spread makes
batches request the same nodes more often, and a cache of high-degree nodes answers more, so the wide end is the fast
one. PaGraph's partition is assumed to be random, because its quality is unpublished.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, frozen
from gcnsim.methods import BatchPlan, MiniBatch, NeighbourBatches, SubgraphBatches
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.batches import batching, cached_rows
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.counts import BatchCounts
from gcnsim.workload import DatasetFacts, assumed_spread
from gcnsim.workload.reach import (
    DegreeLaw,
    Expected,
    Groups,
    counted,
    expected_layers,
    expected_neighbours,
    lognormal_law,
)

KNOWN: Final = 0.1
"""The error of a published spread; with such a spread, hit rates were off by up to 2.4 points."""

WITHIN: Final = (0.25, 0.5, 0.8)
"""The share of a node's entries inside its ClusterGCN cluster; fewer are faster. Assumed."""

WALK: Final = 2
"""Steps of a random walk."""


def degree_spreads(facts: DatasetFacts) -> tuple[float, float, float]:
    """Standard deviation of the log of degrees: fast, likely and slow end."""
    known = facts.degree_spread
    if known is not None:
        return known + KNOWN, known, known - KNOWN
    low, likely, high = assumed_spread(facts.entries / facts.nodes)
    return high, likely, low


def degree_law(facts: DatasetFacts, bound: RangeEnd, *, directed: bool = False) -> DegreeLaw:
    """The law of degrees at one end of the assumed range.

    directed: whether the distributed graph has directed edges.
    """
    one_way = directed and facts.directed > 0
    entries = facts.directed if one_way else facts.entries
    law = lognormal_law(float(facts.nodes), entries / facts.nodes, degree_spreads(facts)[bound.value])
    return replace(law, directed=one_way)


def sampled_entries(facts: DatasetFacts, scenario: Scenario) -> int:
    """Stored entries of the graph that the scenario's mini-batches are drawn from.

    Neighbours are drawn along the arcs of a graph that is distributed with one direction, as public loaders do on GPUs.
    Subgraphs come from the symmetric graph, as in their systems' code; on cores all batches do, as in the runtime.
    """
    one_way = resolve_machine(scenario.cluster).kind == "gpu" and isinstance(scenario.method, NeighbourBatches)
    return facts.directed if one_way and facts.directed > 0 else facts.entries


def expected_batches(
    facts: DatasetFacts, scenario: Scenario, plan: BatchPlan, bound: RangeEnd, crossing: float
) -> BatchCounts:
    """Expected counts of the scenario's mini-batches, one iteration that represents all.

    crossing: share of the entries that lead from a worker's part to others.
    """
    method, workers = batching(scenario), scenario.cluster.gpus
    # Subgraphs come from the symmetric graph, as in their systems' code; on cores all batches do, as in the runtime.
    on_gpus = resolve_machine(scenario.cluster).kind == "gpu"
    law = degree_law(facts, bound, directed=on_gpus and isinstance(method, NeighbourBatches))
    share = scenario.workload.train_fraction or facts.train
    training = max(1, round(share * facts.nodes))
    own = method.trains == "own"
    groups = Groups.own_and_others(workers, crossing) if own else Groups.one()
    expected = _drawn(method, law, groups, plan, training / workers, bound)
    sizes = [counted(law, groups, chance) for chance in expected.chance]
    levels = [float(size.sum()) for size in sizes]
    held = _held(law, plan, training / workers) if method.one_server else None
    stored = law.nodes if held is None else float(counted(law, groups, held).sum())
    memory = resolve_machine(scenario.cluster).device.memory.value
    rows = cached_rows(method, memory, plan, levels, expected.entries, int(stored)) if held is not None else 0
    hits = 0.0 if held is None else _hits(law, held[0], expected.chance[0][0], rows)
    epoch = method.epoch(facts.nodes, training, workers)
    return _counts(scenario, levels, expected, sizes[0], own, hits, rows, round(stored), epoch)


def _drawn(
    method: MiniBatch, law: DegreeLaw, groups: Groups, plan: BatchPlan, training: float, bound: RangeEnd
) -> Expected:
    """The expected contents of one mini-batch of a worker with `training` training nodes."""
    if isinstance(method, SubgraphBatches):
        if method.nodes_of == "walks":
            return _walks(law, method.subgraph, plan)
        return _clusters(law, method.subgraph, plan, bound)
    assert isinstance(method, NeighbourBatches)
    return _neighbourhoods(law, groups, plan, min(method.batch, training))


def _neighbourhoods(law: DegreeLaw, groups: Groups, plan: BatchPlan, batch: float) -> Expected:
    targets = np.zeros(groups.size.size)
    targets[0] = min(1.0, batch / (law.nodes * groups.size[0]))
    if plan.sizes:
        expected = expected_layers(law, min(1.0, batch / law.nodes), plan.sizes)
        if groups.size.size > 1:
            # Layers are sampled from all neighbours, so remote nodes have the same share as remote entries.
            parts = tuple(np.repeat(chance, groups.size.size, axis=0) for chance in expected.chance)
            expected = Expected(parts, expected.entries, expected.looked)
    else:
        expected = expected_neighbours(law, targets, plan.fanout, groups)
    ahead = len(plan.shapes) - len(expected.entries)
    return Expected((expected.chance[0],) * ahead + expected.chance, (0.0,) * ahead + expected.entries, expected.looked)


def _walks(law: DegreeLaw, subgraph: float, plan: BatchPlan) -> Expected:
    """A subgraph of the nodes on random walks: random roots, then nodes in proportion to their degree."""
    roots = subgraph * law.nodes / (WALK + 1)
    ending = law.nodes * law.mean
    chance = 1.0 - (1.0 - roots / law.nodes) * np.exp(-WALK * roots * law.degree / ending)
    # The walk's steps in both directions, in addition to entries between visited nodes.
    return _subgraph(law, plan, chance, 2.0 * WALK * roots)


def _clusters(law: DegreeLaw, subgraph: float, plan: BatchPlan, bound: RangeEnd) -> Expected:
    """A subgraph of a few clusters: a share of every degree class."""
    chance = np.full(law.degree.size, subgraph)
    inside = float(law.nodes * (law.share * chance * law.degree).sum())
    return _subgraph(law, plan, chance, WITHIN[bound.value] * inside)


def _subgraph(law: DegreeLaw, plan: BatchPlan, chance: FloatArray, more: float) -> Expected:
    leaving = float(law.nodes * (law.share * chance * law.degree).sum())
    entries = min(leaving, leaving * leaving / (law.nodes * law.mean) + more)
    layers = len(plan.shapes)
    return Expected((chance[None, :],) * (layers + 1), (entries,) * layers, leaving)


def _held(law: DegreeLaw, plan: BatchPlan, training: float) -> FloatArray:
    """The probability that a node of each class is in a worker's part (reachable from its training nodes), float64[1,
    K].
    """
    targets = np.array([min(1.0, training / law.nodes)])
    return expected_neighbours(law, targets, (1.0,) * len(plan.shapes)).chance[0]


def _hits(law: DegreeLaw, held: FloatArray, wanted: FloatArray, rows: int) -> float:
    """Expected input rows in a cache of `rows` rows, which holds the highest degrees of a part."""
    nodes = law.nodes * law.share * held
    above = np.cumsum(nodes[::-1])[::-1] - nodes
    cached = np.clip((rows - above) / np.maximum(nodes, 1e-12), 0.0, 1.0)
    return float(law.nodes * (law.share * np.minimum(wanted, held) * cached).sum())


def _counts(
    scenario: Scenario,
    levels: list[float],
    expected: Expected,
    inputs: FloatArray,
    own: bool,
    hits: float,
    rows: int,
    stored: int,
    epoch: int,
) -> BatchCounts:
    workers = scenario.cluster.gpus
    alike = np.ones((1, workers, 1))
    wanted = np.zeros((1, workers, workers))
    if own and inputs.size > 1:
        wanted[:] = inputs[1] / (workers - 1)
        wanted[0][np.diag_indices(workers)] = inputs[0]
    elif batching(scenario).everywhere or workers == 1:
        wanted[0][np.diag_indices(workers)] = inputs.sum()
    else:
        wanted[:] = inputs.sum() / workers
    answered = np.zeros_like(wanted)
    answered[0][np.diag_indices(workers)] = hits
    return BatchCounts(
        levels=_whole(alike * np.array(levels)),
        entries=_whole(alike * np.array(expected.entries)),
        looked=_whole(np.full((1, workers), expected.looked)),
        wanted=_whole(wanted),
        hits=np.minimum(_whole(answered), _whole(wanted)),
        cached=_whole(np.full(workers, float(rows))),
        stored=_whole(np.full(workers, float(stored))),
        per_epoch=epoch,
    )


def _whole(values: FloatArray) -> IntArray:
    return frozen(np.rint(values).astype(np.int64))
