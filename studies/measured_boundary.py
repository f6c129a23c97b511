"""Boundary nodes of a drawn graph's parts, and what was published but not fitted: the slow half of fitting surrogates.

METIS' result depends on its seed by several percent, so a row is the mean over seeds 1 to `seeds`. Seed 0 is left out:
the C library's generator, which METIS uses, makes the same numbers of 0 and 1.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
from scipy.optimize import brentq

from gcnsim.core.ids import FloatArray
from gcnsim.core.processes import cores
from gcnsim.graph import Graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.generate import BlockModel, Surrogate, block_model
from gcnsim.graph.parts import part_of
from gcnsim.workload.reach import lognormal_law

RANDOM_PARTS: Final = 10
"""Parts at random, whose boundary tells the spread of degrees."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What partitioning the drawn graph gave, by number of parts.

    boundary: mean boundary nodes per part, scaled back to all nodes. spread: its standard deviation over seeds as a
    share of it; NaN for one seed. cross_fraction: share of entries that cross.
    """

    boundary: FloatArray
    spread: FloatArray
    cross_fraction: FloatArray


def drawn(facts: Surrogate, model: BlockModel, scale: float) -> Graph:
    """The graph of `model` with the share `scale` of its nodes and edges: same degrees, same communities."""
    small = replace(model, nodes=round(model.nodes * scale), edges=round(model.edges * scale))
    return block_model(small, facts.seed, facts.name, processes=cores())


def measured(graph: Graph, facts: Surrogate, counts: Sequence[int], scale: float, seeds: int) -> Measured:
    """Partition and look, one number of parts after another."""
    boundary, spread, crossing = [], [], []
    for parts in counts:
        found = np.array([_looked(graph, facts, parts, seed) for seed in range(1, seeds + 1)])
        nodes, crossed = found.mean(axis=0)
        boundary.append(nodes / parts / scale)
        spread.append(found[:, 0].std(ddof=1) / nodes if seeds > 1 else np.nan)
        crossing.append(crossed / graph.entries)
        sys.stdout.write(f"{facts.name}: {parts} parts: {boundary[-1]:,.0f} boundary nodes each\n")
        sys.stdout.flush()
    return Measured(np.array(boundary), np.array(spread), np.array(crossing))


def checked(graph: Graph, facts: Surrogate, scale: float, seeds: int) -> list[dict[str, object]]:
    """The surrogate's checks, looked at again on the graph drawn at `scale`."""
    found = []
    for check in facts.checks:
        if check.partition == "random":
            total = random_boundary(graph, check.parts) / scale
        else:
            total = float(measured(graph, facts, [check.parts], scale, seeds).boundary[0]) * check.parts
        found.append(asdict(check) | {"surrogate": round(total), "scale": scale})
    return found


def random_boundary(graph: Graph, parts: int) -> float:
    """Boundary nodes of all parts in expectation when every node's part is drawn at random.

    A node of degree d has a neighbour in a given other part with the chance 1 - (1 - 1 / parts)^d.
    """
    alone = (1.0 - 1.0 / parts) ** graph.degrees.astype(np.float64)
    return float((parts - 1) * (1.0 - alone).sum())


def spread_of(nodes: int, entries: int, parts: int, boundary: float) -> float:
    """The spread of lognormal degrees with which random parts have so many boundary nodes in all."""

    def more(spread: float) -> float:
        law = lognormal_law(nodes, entries / nodes, spread)
        reached = 1.0 - (1.0 - 1.0 / parts) ** law.degree
        return float((parts - 1) * nodes * (law.share @ reached)) - boundary

    return float(brentq(more, 0.01, 3.0))


def _looked(graph: Graph, facts: Surrogate, parts: int, seed: int) -> tuple[int, int]:
    """Boundary nodes and cross entries of all parts."""
    owners = partition_graph(graph, parts, "metis", facts.partition.removeprefix("metis-"), seed)
    nodes = crossed = 0
    for rank in range(parts):
        share = part_of(graph, owners, rank)
        nodes += share.boundary_nodes
        crossed += int(np.count_nonzero(share.columns >= share.inner_nodes))
    return nodes, crossed
