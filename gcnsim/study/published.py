"""Accesses of a dataset known from publications: boundary nodes as printed, the rest as stated assumptions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.ids import FloatArray
from gcnsim.scenario import Scenario
from gcnsim.study.corners import FULL, Corner, drawing, keeps_all
from gcnsim.study.model import Declared
from gcnsim.trace import AccessCounts, BoundaryProfile, draw_counts, likely_cross_fraction, published_profile
from gcnsim.workload import boundary_at, dataset

DISPERSION = 1.4
"""Standard deviation of the log of the cross edges per boundary node: fitted 1.0 to 1.5 on four real graphs
(docs/validation.md); the two that resemble Reddit gave 1.3 and 1.5."""

MOST_OF_ALL = 0.9
"""The largest part holds at most this share of everything."""

VR_ROWS = (0.95, 1.0, 1.28)
"""Rows that the variance-reducing sampler needs over those of the first-order rule that stands in for it without a
graph: low, likely, high on four real graphs (docs/validation.md)."""

IMBALANCE = (1.2, 1.6, 2.0)
"""Stored entries of the largest part over the mean part on four real graphs at 4 to 8 METIS parts: least, median, most
(docs/validation.md). Boundary nodes, which go with them, spread a little more."""


class PublishedAccesses:
    """A dataset known from publications: boundary nodes as printed, cross edges and imbalance as stated assumptions."""

    def __init__(self, name: str) -> None:
        self.facts = dataset(name)
        facts = self.facts
        self.declared = Declared(facts.model, facts.layers, facts.hidden, facts.features, facts.classes)
        self.corners: tuple[Corner, ...] = tuple(Corner)
        self._profiles: dict[object, BoundaryProfile] = {}
        self._counts: dict[object, AccessCounts] = {}

    def cross_fractions(self, scenario: Scenario) -> tuple[float, float, float]:
        """Share of entries that cross partitions: low, likely, high (all the scenario's own where it gives one)."""
        given = scenario.workload.cross_fraction
        if given is not None:
            return given, given, given
        inner, boundary, _ = boundary_at(self.facts, scenario.cluster.gpus)
        return likely_cross_fraction(inner, boundary)

    def imbalances(self, scenario: Scenario) -> tuple[float, float, float]:
        """Largest part over mean part: low, likely, high; never more than the number of parts allows."""
        given, gpus = scenario.workload.imbalance, scenario.cluster.gpus
        most = max(1.0, MOST_OF_ALL * gpus)
        if given is not None and given > most:
            raise ScenarioError(
                f"workload.imbalance: {given:g} is not allowed; with {gpus} workers it is at most {most:g}"
            )
        low, likely, high = (given, given, given) if given is not None else IMBALANCE
        return min(low, most), min(likely, most), min(high, most)

    def profile(self, scenario: Scenario, corner: Corner) -> BoundaryProfile:
        """The boundary profile at one corner of the assumptions."""
        gpus, workload = scenario.cluster.gpus, scenario.workload
        key = (gpus, workload.cross_fraction, workload.imbalance, corner)
        if key not in self._profiles:
            self._profiles[key] = self._profile(scenario, corner)
        return self._profiles[key]

    def _profile(self, scenario: Scenario, corner: Corner) -> BoundaryProfile:
        gpus = scenario.cluster.gpus
        inner, boundary, _ = boundary_at(self.facts, gpus)
        share = loads(self.imbalances(scenario)[corner.value], gpus)
        return published_profile(
            np.full(gpus, round(inner), dtype=np.int64),
            np.rint(np.minimum(boundary * share, self.facts.nodes - inner)).astype(np.int64),
            np.rint(self.facts.entries / gpus * share).astype(np.int64),
            self.cross_fractions(scenario)[corner.value],
            DISPERSION,
        )

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts drawn from the profile at `corner`."""
        workload = scenario.workload
        key = (scenario.cluster.gpus, workload, drawing(scenario.method), features, scenario.run, corner)
        if key not in self._counts:
            self._counts[key] = self._draw(scenario, features, corner)
        return self._counts[key]

    def _draw(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        method = scenario.method
        everything = keeps_all(method)
        drawn = draw_counts(
            self.profile(scenario, corner),
            sampler=FULL if everything else method.sampler,
            epsilon=method.epsilon,
            iterations=1 if everything else scenario.run.iterations,
            seed=scenario.run.seed,
            cache=method.cache,
            policy=method.cache_policy,
            feature_width=features,
        )
        factor = VR_ROWS[corner.value] if method.sampler == "vr" and not everything else 1.0
        return scaled_rows(drawn, factor)


def scaled_rows(counts: AccessCounts, factor: float) -> AccessCounts:
    """The counts with `factor` times the rows, at most each pair's share of the boundary; hits keep their rate."""
    if factor == 1.0:
        return counts
    others = max(1, counts.workers - 1)
    most = np.maximum(counts.rows, -(-counts.boundary_nodes // others)[None, :, None])
    rows = np.minimum(np.rint(counts.rows * factor).astype(np.int64), most)
    rate = counts.hits / np.maximum(counts.rows, 1)
    return replace(counts, rows=rows, hits=np.rint(rows * rate).astype(np.int64))


def loads(imbalance: float, workers: int) -> FloatArray:
    """Load of each worker over the mean, float64[P]: rising by one factor from worker to worker up to `imbalance`.

    The factor is found by bisection; every worker has some load, as METIS parts do.
    """
    steps = np.arange(workers) - (workers - 1)

    def largest(factor: float) -> float:
        return workers / float(np.sum(factor**steps))

    low, high = 1.0, 1e6
    for _ in range(100):
        factor = (low * high) ** 0.5
        low, high = (factor, high) if largest(factor) < imbalance else (low, factor)
    return np.asarray(largest(high) * high**steps, dtype=np.float64)
