"""Mini-batches of a dataset known by its sizes: expected counts from a law of degrees, at each end of what is assumed.

The mean degree is published; how widely degrees are spread is assumed, but where something published tells it. The
wider, the more often batches ask for the same nodes, and the more a cache of high degrees answers: so that end is the
fast one. PaGraph's partition is taken to be no better than a random one, since nothing says how good it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.boundary import BatchCounts
from gcnsim.ids import FloatArray, IntArray, frozen
from gcnsim.machine import resolve_machine
from gcnsim.methods import BatchPlan, MiniBatch, NeighbourBatches, SubgraphBatches
from gcnsim.sampling import (
    DegreeLaw,
    Expected,
    Groups,
    counted,
    expected_layers,
    expected_neighbours,
    lognormal_law,
)
from gcnsim.scenario import Scenario
from gcnsim.sources.batches import batching, cached_rows
from gcnsim.sources.source import RangeEnd
from gcnsim.workload import DatasetFacts

SPREADS: Final = (1.85, 1.4, 0.95)
"""Standard deviation of the log of degrees where nothing published tells it: fast, likely and slow end. Nine of ten of
further graphs, by the nine whose is known (studies/batch_hits.py)."""

KNOWN: Final = 0.1
"""What a spread that something published tells is off by: with such a one hits were off by up to 2.4 points."""

WITHIN: Final = (0.25, 0.5, 0.8)
"""Share of a node's entries that stay in its cluster of ClusterGCN: fewer are faster. Assumed."""

WALK: Final = 2
"""Steps of a random walk."""


def degree_spreads(facts: DatasetFacts) -> tuple[float, float, float]:
    """Standard deviation of the log of degrees: fast, likely and slow end."""
    known = facts.degree_spread
    return SPREADS if known is None else (known + KNOWN, known, known - KNOWN)


def degree_law(facts: DatasetFacts, bound: RangeEnd, *, directed: bool = False) -> DegreeLaw:
    """The law at one end of the assumed range. directed: of the graph as distributed, where that has a direction."""
    one_way = directed and facts.directed > 0
    entries = facts.directed if one_way else facts.entries
    law = lognormal_law(float(facts.nodes), entries / facts.nodes, degree_spreads(facts)[bound.value])
    return replace(law, directed=one_way)


def expected_batches(
    facts: DatasetFacts, scenario: Scenario, plan: BatchPlan, bound: RangeEnd, crossing: float
) -> BatchCounts:
    """Expected counts of the scenario's mini-batches, one iteration that stands for all.

    crossing: share of the entries that lead from a worker's part to others.
    """
    method, workers = batching(scenario), scenario.cluster.gpus
    # Sub-graphs are of the graph made symmetric, as their systems' codes have it; on cores all are, as the runtime's.
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
    """What one mini-batch of a worker with `training` training nodes is expected to hold."""
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
            # Layers are drawn among all neighbours: what leaves the part is spread as the entries are.
            parts = tuple(np.repeat(chance, groups.size.size, axis=0) for chance in expected.chance)
            expected = Expected(parts, expected.entries, expected.looked)
    else:
        expected = expected_neighbours(law, targets, plan.fanout, groups)
    ahead = len(plan.shapes) - len(expected.entries)
    return Expected((expected.chance[0],) * ahead + expected.chance, (0.0,) * ahead + expected.entries, expected.looked)


def _walks(law: DegreeLaw, subgraph: float, plan: BatchPlan) -> Expected:
    """A sub-graph of the nodes on random walks: roots anywhere, then nodes in proportion to their degree."""
    roots = subgraph * law.nodes / (WALK + 1)
    ending = law.nodes * law.mean
    chance = 1.0 - (1.0 - roots / law.nodes) * np.exp(-WALK * roots * law.degree / ending)
    # A walk's own steps, both ways, besides what lies between nodes that happen to be there.
    return _subgraph(law, plan, chance, 2.0 * WALK * roots)


def _clusters(law: DegreeLaw, subgraph: float, plan: BatchPlan, bound: RangeEnd) -> Expected:
    """A sub-graph of a few clusters: a share of every class of nodes."""
    chance = np.full(law.degree.size, subgraph)
    inside = float(law.nodes * (law.share * chance * law.degree).sum())
    return _subgraph(law, plan, chance, WITHIN[bound.value] * inside)


def _subgraph(law: DegreeLaw, plan: BatchPlan, chance: FloatArray, more: float) -> Expected:
    leaving = float(law.nodes * (law.share * chance * law.degree).sum())
    entries = min(leaving, leaving * leaving / (law.nodes * law.mean) + more)
    layers = len(plan.shapes)
    return Expected((chance[None, :],) * (layers + 1), (entries,) * layers, leaving)


def _held(law: DegreeLaw, plan: BatchPlan, training: float) -> FloatArray:
    """Chance of a node of each class to be in a worker's part: within reach of its training nodes, float64[1, K]."""
    targets = np.array([min(1.0, training / law.nodes)])
    return expected_neighbours(law, targets, (1.0,) * len(plan.shapes)).chance[0]


def _hits(law: DegreeLaw, held: FloatArray, wanted: FloatArray, rows: int) -> float:
    """Expected input rows in a cache of `rows` rows, the highest degrees of a part first."""
    nodes = law.nodes * law.share * held
    above = np.cumsum(nodes[::-1])[::-1] - nodes
    cached = np.clip((rows - above) / np.maximum(nodes, 1e-12), 0.0, 1.0)
    return float(law.nodes * (law.share * np.minimum(wanted, held) * cached).sum())


def _counts(
    scenario: Scenario,
    levels: list[float],
    found: Expected,
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
        entries=_whole(alike * np.array(found.entries)),
        looked=_whole(np.full((1, workers), found.looked)),
        wanted=_whole(wanted),
        hits=np.minimum(_whole(answered), _whole(wanted)),
        cached=_whole(np.full(workers, float(rows))),
        stored=_whole(np.full(workers, float(stored))),
        per_epoch=epoch,
    )


def _whole(values: FloatArray) -> IntArray:
    return frozen(np.rint(values).astype(np.int64))
