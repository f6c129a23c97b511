"""How many graphs are drawn for a run: one for each iteration, fewer where each has a million pairs of workers.

Graphs may drop edges instead of boundary nodes (BNS-GCN's baselines: edge sampling, DropEdge). As many edges are
dropped as boundary-node sampling at the same rate p drops: the share 1 - p of the entries that cross, of these alone
(`boundary-edges`), or as many of all entries (`edges`). A boundary node is still sent while one of its m cross edges is
kept, with probability 1 - dropped^m.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from gcnsim.boundary import MANY_PARTS, AccessCounts
from gcnsim.methods import BASELINE, create_method
from gcnsim.scenario import Scenario
from gcnsim.sources.range_end import RangeEnd

MOST_PAIRS: Final = 1 << 22
"""Pairs of workers in all graphs of a run together, beyond `MANY_PARTS` workers: counts of rows and hits then take at
most 67 MB, and 1,024 workers have four graphs. What a worker exchanges with a thousand others in all hardly varies."""


def drawn_graphs(scenario: Scenario) -> int:
    """Graphs drawn for the scenario, one where it drops nothing; its iterations take them in turn."""
    if scenario.method.sampling().whole:
        return 1
    asked, gpus = scenario.run.iterations, scenario.cluster.gpus
    return asked if gpus <= MANY_PARTS else min(asked, max(2, MOST_PAIRS // gpus**2))


def fewer_drawn(asked: Iterable[Scenario], *, nodes: bool = False) -> Iterator[str]:
    """A warning where fewer graphs are drawn than there are iterations, once for each number of GPUs.

    nodes: whether graphs of drawn nodes are drawn, and not taken as their mean.
    """
    for one in {each.cluster.gpus: each for each in asked if _draws(each, nodes=nodes)}.values():
        drawn, gpus = drawn_graphs(one), one.cluster.gpus
        if drawn < one.run.iterations:
            yield (
                f"{gpus} GPUs: {drawn} graphs are drawn for {one.run.iterations} iterations, which take them in turn: "
                f"each has {gpus * (gpus - 1):,} pairs of workers"
            )


def _draws(scenario: Scenario, *, nodes: bool) -> bool:
    sampling = scenario.method.sampling()
    return not (scenario.method.mini_batches or sampling.whole) and (nodes or sampling.by_edge or sampling.drops_edges)


class Counting(Protocol):
    """What counts the accesses of a scenario (`gcnsim.sources.Source`)."""

    def counts(self, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method."""
        ...


def edge_counts(source: Counting, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
    """Counts of `source` where edges are dropped at the scenario's rate, each for itself."""
    sampling = scenario.method.sampling()
    whole = source.counts(replace(scenario, method=create_method(BASELINE)), features, corner)
    kept = sampling.rate
    if sampling.sample == "edges":
        every = whole.inner_edges.sum() + whole.boundary_edges.sum()
        kept = 1.0 - (1.0 - kept) * float(whole.boundary_edges.sum() / max(1, every))
    if kept == 0.0:
        return replace(whole, rows=np.zeros_like(whole.rows), boundary_edges=np.zeros_like(whole.boundary_edges))
    if kept == 1.0:
        return whole
    uniform = create_method("psc-gcn", tau=0, epsilon=kept, sampler="uniform")
    drawn = source.counts(replace(scenario, method=uniform), features, corner)
    if sampling.sample == "edges":
        return drawn
    return replace(drawn, inner_edges=np.tile(whole.inner_edges, (drawn.iterations, 1)))
