"""Counts of graphs that drop edges instead of boundary nodes (BNS-GCN's baselines: edge sampling, DropEdge).

As many edges are dropped as boundary-node sampling at the same rate p drops: the share 1 - p of the entries that cross,
of these alone (`boundary-edges`), or as many of all entries (`edges`). A boundary node is still sent while one of its m
cross edges is kept, with probability 1 - dropped^m.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.methods import BASELINE, create_method
from gcnsim.scenario import Scenario
from gcnsim.sources.range_end import RangeEnd


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
