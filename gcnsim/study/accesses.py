"""Where a run's accesses come from: a real graph (partition, sample, record) or published partition statistics.

Everything slow is made once and kept: what-if asks the same partition for many rates, caches and machines.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Protocol

import numpy as np

from gcnsim.errors import GraphError, ScenarioError
from gcnsim.graph import Graph, load_graph
from gcnsim.ids import FloatArray
from gcnsim.partition import Part, Partitioning, partition_graph, read_partition, split
from gcnsim.record import read_norms
from gcnsim.scenario import MethodSpec, PartitionSpec, Scenario
from gcnsim.trace import (
    AccessCounts,
    AccessTrace,
    BoundaryProfile,
    PreparedSampling,
    counts,
    draw_counts,
    likely_cross_fraction,
    prepared_sampling,
    published_profile,
    record_prepared,
)
from gcnsim.workload import boundary_at, dataset

FULL = "full"
"""The sampler that keeps every edge."""

DISPERSION = 1.4
"""Standard deviation of the log of the cross edges per boundary node: fitted 1.0 to 1.5 on four real graphs
(docs/validation.md); the two that resemble Reddit gave 1.3 and 1.5."""

VR_ROWS = (0.95, 1.0, 1.28)
"""Rows that the variance-reducing sampler needs over those of the first-order rule that stands in for it without a
graph: low, likely, high on four real graphs (docs/validation.md)."""

IMBALANCE = (1.2, 1.4, 1.9)
"""Stored entries of the largest part over the mean part: low, likely, high on four real graphs (docs/validation.md)."""


class Corner(Enum):
    """Which end of the stated assumptions a run takes; real graphs have none, so all three are the same."""

    LOW = 0
    LIKELY = 1
    HIGH = 2


class Accesses(Protocol):
    """Counts for any method and machine of one workload."""

    @property
    def graph(self) -> Graph | None:
        """The graph, where there is one."""
        ...

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Access counts of the scenario's method; one all-ones graph when it keeps every edge."""
        ...


def keeps_all(method: MethodSpec) -> bool:
    """Whether a method draws nothing: every edge of every graph is kept."""
    return method.epsilon == 1.0


def drawing(method: MethodSpec) -> tuple[object, ...]:
    """What of a method decides its access counts: tau and refresh do not."""
    rule = (FULL,) if keeps_all(method) else (method.sampler, method.epsilon, method.norms)
    return (*rule, method.cache, method.cache_policy)


class GraphAccesses:
    """A real graph: partitioned and sampled as the runtime would, then replayed."""

    def __init__(self, path: str) -> None:
        self.graph: Graph = load_graph(path)
        self._parts: dict[object, tuple[Partitioning, tuple[Part, ...]]] = {}
        self._prepared: dict[object, PreparedSampling] = {}
        self._traces: dict[object, AccessTrace] = {}
        self._counts: dict[object, AccessCounts] = {}

    def partition(self, scenario: Scenario) -> tuple[Partitioning, tuple[Part, ...]]:
        """The scenario's partition of the graph, cut or read from its file."""
        spec, gpus = scenario.partition, scenario.cluster.gpus
        if (spec, gpus) not in self._parts:
            if spec.file is None:
                cut = partition_graph(self.graph, gpus, method=spec.method, objective=spec.objective, seed=spec.seed)
            else:
                cut = read_partition(spec.file, self.graph)
                if cut.parts != gpus:
                    raise ScenarioError(f"{spec.file}: has {cut.parts} parts, the cluster has {gpus} GPUs")
            self._parts[spec, gpus] = cut, split(self.graph, cut)
        return self._parts[spec, gpus]

    def trace(self, scenario: Scenario) -> AccessTrace:
        """The access trace of the scenario's sampler and rate."""
        method, run = scenario.method, scenario.run
        cut, parts = self.partition(scenario)
        place = (scenario.partition, scenario.cluster.gpus)
        name, epsilon, iterations = (
            (FULL, 1.0, 1) if keeps_all(method) else (method.sampler, method.epsilon, run.iterations)
        )
        norms_file = None if name == FULL else method.norms
        rule = (place, name, norms_file)
        if rule not in self._prepared:
            norms = read_norms(norms_file, self.graph) if norms_file else None
            self._prepared[rule] = prepared_sampling(name, parts, norms)
        key = (rule, epsilon, iterations, run.seed)
        if key not in self._traces:
            self._traces[key] = record_prepared(
                self._prepared[rule], cut, epsilon=epsilon, iterations=iterations, seed=run.seed
            )
        return self._traces[key]

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts of the recorded trace with the scenario's cache filled once."""
        method, run = scenario.method, scenario.run
        key = (scenario.partition, scenario.cluster.gpus, drawing(method), features, run)
        if key not in self._counts:
            self._counts[key] = counts(self.trace(scenario), method.cache, method.cache_policy, features, run.seed)
        return self._counts[key]


class PublishedAccesses:
    """A dataset known from publications: boundary nodes as printed, cross edges and imbalance as stated assumptions."""

    def __init__(self, name: str) -> None:
        self.facts = dataset(name)
        self.graph: None = None
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
        if given is not None and given > gpus:
            raise ScenarioError(
                f"workload.imbalance: {given:g} is not allowed; with {gpus} workers it is at most {gpus}"
            )
        low, likely, high = (given, given, given) if given is not None else IMBALANCE
        return min(low, gpus), min(likely, gpus), min(high, gpus)

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
    """Load of each worker over the mean, float64[P], ascending: an even spread around 1 whose largest is `imbalance`.

    Above 2 an even spread would need negative loads; then one worker has it all and the others share the rest.
    """
    if workers == 1:
        return np.ones(1)
    if imbalance <= 2.0:
        return np.linspace(2.0 - imbalance, imbalance, workers, dtype=np.float64)
    return np.append(np.full(workers - 1, (workers - imbalance) / (workers - 1)), imbalance)


def open_accesses(scenario: Scenario) -> GraphAccesses | PublishedAccesses:
    """The accesses of the scenario's workload.

    Raises FileError or GraphError for a graph that cannot be used, ScenarioError for an unknown dataset.
    """
    workload = scenario.workload
    _refuse_idle_fields(scenario)
    if workload.graph is not None:
        accesses = GraphAccesses(workload.graph)
        if accesses.graph.nodes < scenario.cluster.gpus:
            raise GraphError(
                f"{workload.graph}: has {accesses.graph.nodes} nodes, fewer than the {scenario.cluster.gpus} workers"
            )
        return accesses
    return PublishedAccesses(workload.dataset or "")


def _refuse_idle_fields(scenario: Scenario) -> None:
    """A field that would not change the answer is refused, not ignored."""
    workload = scenario.workload
    if workload.graph is not None:
        for name in ("cross_fraction", "imbalance"):
            if getattr(workload, name) is not None:
                raise ScenarioError(f"workload.{name}: is counted on the graph {workload.graph}; allowed: null")
        return
    if scenario.method.norms is not None:
        raise ScenarioError(f"method.norms: {scenario.method.norms} needs workload.graph: a dataset has no nodes here")
    if scenario.partition != PartitionSpec():
        raise ScenarioError(f"partition: dataset {workload.dataset} comes partitioned; give workload.graph to cut one")
