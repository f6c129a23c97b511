"""The partitions behind published tables: boundary counts as printed, unevenness and cross edges by published facts.

A table's runs were on METIS partitions that nobody else has. What is printed of them is used as it is:
- mean boundary nodes at the published numbers of parts, a law through them in between; beyond them, or where none is
  published, those of the surrogate's profile (gcnsim/data/profiles);
- unevenness: of the ten parts of Reddit's training nodes the largest boundary is 1.68 times the mean (BNS-GCN, Table
  1: 86,000 of 51,200). One part is even, so parts^0.225 in between; assumed of every dataset, of stored entries too;
- cross edges of a boundary node: the range that volumes of edge sampling leave (docs/surrogates.md).
"""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Final

from gcnsim.scenario import Scenario
from gcnsim.study import Corner, PublishedAccesses, Range
from gcnsim.trace import profile_at, profiled_parts
from gcnsim.workload import BoundaryRow, DatasetFacts, boundary_at

LARGEST: Final = Range(1.3, 86_000 / 51_200, 2.1)
"""The largest of ten parts over their mean: least, published, most (that of a surrogate's stored entries)."""

MOST_CROSSING: Final = 0.95

OUTLINED: Final = {"ogbn-papers100M": (32, 0.4)}
"""Parts, and boundary over inner nodes, where nothing is printed and no surrogate was drawn. Assumed: at 10 Gbit/s the
6.6 s of communication in PipeGCN's Table 5 leave at most 0.47 in the mean of its 32 parts, before any unevenness.
"""

GROWTH: Final = 0.94
"""Power of the number of parts with which that ratio grows. Assumed: as Yelp's printed counts do, between those of
ogbn-products (0.62) and Reddit (1.02)."""


class TableAccesses(PublishedAccesses):
    """A dataset cut as in a published table. at_random: its parts are alike, and only like ends fall together."""

    def __init__(self, facts: DatasetFacts, workers: int, *, at_random: bool = False, parts: int | None = None) -> None:
        row, share = _row(facts, parts or workers), workers / (parts or workers)
        fewer = replace(facts, nodes=round(facts.nodes * share), entries=round(facts.entries * share))
        super().__init__(replace(fewer, boundary=(replace(row, partitions=workers),)))
        self.at_random = at_random
        self.parts = parts or workers

    def remote(self, scenario: Scenario, corner: Corner) -> float:
        """Where workers stand for more: as much comes from other servers as among all of them."""
        cluster = scenario.cluster
        away = [1.0 - (cluster.gpus_per_server - 1) / max(1, count - 1) for count in (self.parts, cluster.gpus)]
        return super().remote(scenario, corner) * (away[0] / away[1] if self.parts > cluster.gpus else 1.0)

    def imbalances(self, scenario: Scenario, assumed: Range) -> Range:
        """The largest part over the mean part at the scenario's workers: low, likely, high."""
        workers = self.parts
        if self.at_random or workers == 1:
            return Range(1.0, 1.0, 1.0)
        return Range(*(workers ** (log(most) / log(10)) for most in LARGEST))

    def cross_fractions(self, scenario: Scenario) -> tuple[float, float, float]:
        """Share of entries that cross partitions: low, likely, high."""
        from gcnsim.graph.generate import outline, outlines, surrogate_facts

        if self.at_random:
            crossing = 1.0 - 1.0 / scenario.cluster.gpus
            return crossing, crossing, crossing
        (row,) = self.facts.boundary
        name = self.facts.name
        per_node = (outline(name) if name in outlines() else surrogate_facts(name)).cross_edges
        assert per_node is not None
        ends = (per_node.low, per_node.likely, per_node.high)
        low, likely, high = (min(MOST_CROSSING, share * row.boundary / row.inner) for share in ends)
        return low, likely, high


def _row(facts: DatasetFacts, workers: int) -> BoundaryRow:
    """Mean inner and boundary nodes at `workers` parts."""
    if facts.name in OUTLINED:
        inner, (parts, ratio) = facts.nodes / workers, OUTLINED[facts.name]
        return BoundaryRow(workers, inner, ratio * (workers / parts) ** GROWTH * inner)
    printed = [row.partitions for row in facts.boundary]
    within = bool(printed) and printed[0] <= workers <= printed[-1]
    if not within and workers in profiled_parts(facts.name):
        profile, _ = profile_at(facts.name, workers)
        return BoundaryRow(workers, float(profile.inner_nodes.mean()), float(profile.boundary_nodes.mean()))
    inner, boundary, _ = boundary_at(facts, workers)
    return BoundaryRow(workers, inner, boundary)
