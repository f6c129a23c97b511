"""The partitions behind published tables: boundary counts as printed; imbalance and cross edges from published facts.

A table's runs used METIS partitions that are not available. Printed values are used unchanged:

- mean boundary nodes at the published numbers of parts, with a fitted law in between. Beyond them, or without published
counts, the counts come from the surrogate's profile (gcnsim/data/profiles) or the outline;

- imbalance: of ten parts of Reddit's training nodes, the largest boundary is 1.68 times the mean (BNS-GCN, Table 1:
86,000 against 51,200). One part is balanced, so it is parts^0.225 in between. This is assumed for every dataset, also
for stored entries;

- cross edges per boundary node: the range that fits the volumes of edge sampling (docs/surrogates.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.simulation.profile_source import boundary_ratio
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.statistics_source import Range, StatisticsSource, extrapolated_boundary
from gcnsim.trace.counts import AccessCounts, BoundaryProfile
from gcnsim.trace.packaged_profiles import outline_named, outline_of, profile_at, profiled_parts
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.workload import BoundaryRow, DatasetFacts, boundary_at, crossing_fraction

LARGEST: Final = Range(1.3, 86_000 / 51_200, 2.1)
"""The largest of ten parts over their mean: least, published, most (that of a surrogate's stored entries)."""


class TableSource(StatisticsSource):
    """A dataset partitioned as in a published table. at_random: its parts are statistically equal.

    parts: the number of parts if `workers` represent more than themselves.
    """

    def __init__(self, facts: DatasetFacts, workers: int, *, at_random: bool = False, parts: int | None = None) -> None:
        row, share = _row(facts, parts or workers), workers / (parts or workers)
        fewer = replace(facts, nodes=round(facts.nodes * share), entries=round(facts.entries * share))
        super().__init__(replace(fewer, boundary=(replace(row, partitions=workers),)))
        self.at_random = at_random
        self.parts = parts or workers
        self.printed = tables(facts)

    def remote(self, scenario: Scenario, bound: RangeEnd) -> float:
        """If workers represent more parts: other servers own the same share as among all of them."""
        cluster = scenario.cluster
        away = [1.0 - (cluster.gpus_per_server - 1) / max(1, count - 1) for count in (self.parts, cluster.gpus)]
        return super().remote(scenario, bound) * (away[0] / away[1] if self.parts > cluster.gpus else 1.0)

    def boundary_by(self, scenario: Scenario, bound: RangeEnd) -> float:
        """For an outlined dataset and for more parts than any table, the ratio of the boundary to the likely one."""
        if self.at_random or self.parts == 1:
            return 1.0
        facts = outline_named(self.facts.name)
        if self.printed or facts is None:
            return extrapolated_boundary(self.printed, self.parts, bound)
        return mean_ratio(facts, self.parts, bound.value) / mean_ratio(facts, self.parts)

    def imbalances(self, scenario: Scenario, figure: str) -> Range:
        """The largest part over the mean part at the scenario's workers: low, likely, high."""
        workers = self.parts
        if self.at_random or workers == 1:
            return Range(1.0, 1.0, 1.0)
        return Range(*(workers ** (log(most) / log(10)) for most in LARGEST))

    def cross_fractions(self, scenario: Scenario) -> tuple[float, float, float]:
        """Share of entries that cross partitions: low, likely, high."""
        from gcnsim.graph.generate import surrogate_facts, surrogates

        if self.at_random:
            crossing = 1.0 - 1.0 / scenario.cluster.gpus
            return crossing, crossing, crossing
        (row,) = self.facts.boundary
        ratio = row.boundary / row.inner
        if self.facts.name not in surrogates():
            return crossing_fraction(ratio, self.facts.entries / self.facts.nodes)
        per_node = surrogate_facts(self.facts.name).cross_edges
        low, likely, high = (per_node.crossing(ratio, end) for end in range(3))
        return low, likely, high


class PublishedTables(StatisticsSource):
    """The accesses of a scenario that requests its table's partitions (`partition.statistics: published`).

    Any number of workers; random parts for methods whose tables use them. parts: the number of parts that the workers
    represent (`partition.parts`), None for themselves.
    """

    def __init__(self, facts: DatasetFacts, parts: int | None) -> None:
        super().__init__(facts)
        self.parts = parts
        self.most_gpus = facts.nodes
        self._tables: dict[tuple[int, bool], TableSource] = {}

    def table(self, scenario: Scenario) -> TableSource:
        """The partitions for the scenario's method. Raises ScenarioError if none are known."""
        gpus, at_random = scenario.cluster.gpus, scenario.method.random_partition
        if self.parts is not None and self.parts < gpus:
            raise ScenarioError(f"partition.parts: {self.parts} is not allowed; at least cluster.gpus, {gpus}")
        key = gpus, at_random
        if key not in self._tables:
            self._tables[key] = self._table(gpus, at_random)
        return self._tables[key]

    def _table(self, gpus: int, at_random: bool) -> TableSource:
        if not at_random:
            return TableSource(self.facts, gpus, parts=self.parts)
        if self.parts is not None and self.parts > gpus:
            raise ScenarioError(
                f"partition.parts: {self.parts} is not allowed with {gpus} GPUs; who sends to all cannot stand for some"
            )
        return random_parts(self.facts, gpus, self.facts.nodes * (1.0 - 1.0 / gpus))

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warn also if the settings' counts come from different sources."""
        yield from super().warnings(scenarios)
        counted = {row.partitions: row.source for row in tables(self.facts)}
        used = {one.cluster.gpus: counted.get(self.parts or one.cluster.gpus, "") for one in scenarios}
        if len(set(filter(None, used.values()))) > 1:
            listed = "; ".join(f"{gpus} GPUs: {source}" for gpus, source in sorted(used.items()) if source)
            yield f"boundary nodes come from different sources: {listed}"

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumptions that replace data missing from the tables."""
        facts = None if self.facts.boundary else outline_of(self.facts)
        if scenario.cluster.gpus > 1 and facts is not None and not self._unpublished(scenario):
            yield boundary_ratio(facts, self.parts or scenario.cluster.gpus)
        yield from StatisticsSource.assumptions(self, scenario, scenarios)

    def _of_growth(self, scenario: Scenario) -> Iterator[Assumed]:
        # For an outline, the ratio is stated.
        if outline_of(self.facts) is None and not self._unpublished(scenario):
            yield from super()._of_growth(scenario)

    def boundary_by(self, scenario: Scenario, bound: RangeEnd) -> float:
        """The ratio of the boundary to the likely one, from its partitions."""
        return self.table(scenario).boundary_by(scenario, bound)

    def basis(self, scenario: Scenario) -> tuple[str, str]:
        """The basis of the share of crossing entries and of the imbalance."""
        return (
            "from the range of cross edges of a boundary node: docs/surrogates.md",
            "of the largest part over the mean part, as Reddit's ten training parts (BNS-GCN, Table 1)",
        )

    def cut(self, scenario: Scenario) -> tuple[float, float, str]:
        """Mean inner and boundary nodes of a part, and their source."""
        if self._unpublished(scenario):
            return super().cut(scenario)
        inner, boundary, _ = self.table(scenario).cut(scenario)
        if scenario.method.random_partition:
            return inner, boundary, "of parts at random, as their tables have them"
        known = "as tables print them" if self.facts.boundary else "by assumption"
        return inner, boundary, f"of {self.parts or scenario.cluster.gpus} parts {known}"

    def _unpublished(self, scenario: Scenario) -> bool:
        """Whether a scenario trains mini-batches of a dataset without a published boundary."""
        return scenario.method.mini_batches and not self.facts.boundary

    def cross_fractions(self, scenario: Scenario) -> tuple[float, float, float]:
        """Share of entries that cross partitions: low, likely, high."""
        if self._unpublished(scenario):
            return super().cross_fractions(scenario)
        return self.table(scenario).cross_fractions(scenario)

    def imbalances(self, scenario: Scenario, figure: str) -> Range:
        """The largest part over the mean part: low, likely, high."""
        return self.table(scenario).imbalances(scenario, figure)

    def profile(self, scenario: Scenario, bound: RangeEnd) -> BoundaryProfile:
        """The boundary profile at one end of the assumptions."""
        return self.table(scenario).profile(scenario, bound)

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts sampled from the profile at `bound`, or means for node sampling."""
        if self._unpublished(scenario):
            return super().counts(scenario, features, bound)
        return self.table(scenario).counts(scenario, features, bound)


def tables(facts: DatasetFacts) -> tuple[BoundaryRow, ...]:
    """The counts that any table prints, ascending; of several sources at one number of parts the dataset's own."""
    own = {row.partitions for row in facts.boundary}
    rows = (*facts.boundary, *(row for row in facts.elsewhere if row.partitions not in own))
    return tuple(sorted(rows, key=lambda row: row.partitions))


def random_parts(facts: DatasetFacts, workers: int, boundary: float) -> TableSource:
    """Statistically equal parts with this many boundary nodes each: nodes assigned without regard to edges."""
    row = BoundaryRow(workers, facts.nodes / workers, boundary)
    return TableSource(replace(facts, boundary=(row,)), workers, at_random=True)


def _row(facts: DatasetFacts, workers: int) -> BoundaryRow:
    """Mean inner and boundary nodes at `workers` parts."""
    outline = None if facts.boundary or workers == 1 else outline_of(facts)
    if outline is not None:
        inner = facts.nodes / workers
        return BoundaryRow(workers, inner, mean_ratio(outline, workers) * inner)
    facts = replace(facts, boundary=tables(facts))
    printed = [row.partitions for row in facts.boundary]
    within = bool(printed) and printed[0] <= workers <= printed[-1]
    if not within and workers in profiled_parts(facts.name):
        profile, _ = profile_at(facts.name, workers)
        return BoundaryRow(workers, float(profile.inner_nodes.mean()), float(profile.boundary_nodes.mean()))
    inner, boundary, _ = boundary_at(facts, workers)
    return BoundaryRow(workers, inner, boundary)
