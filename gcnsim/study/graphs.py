"""Accesses of a real graph: partitioned and sampled as the runtime would, then replayed."""

from __future__ import annotations

from functools import cached_property

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph, load_graph
from gcnsim.partition import Part, Partitioning, partition_graph, read_partition, split
from gcnsim.record import read_norms
from gcnsim.sampling import NODES
from gcnsim.scenario import Scenario
from gcnsim.study.corners import FULL, Corner, drawing, sampler_of
from gcnsim.study.model import Declared
from gcnsim.trace import (
    AccessCounts,
    AccessTrace,
    PreparedSampling,
    counts,
    prepared_sampling,
    record_nodes,
    record_prepared,
)


class GraphAccesses:
    """A graph, or the file it is in; parts, prepared samplers, traces and counts are made once each."""

    def __init__(self, graph: str | Graph, processes: int = 1) -> None:
        self.processes = processes
        self.graph: Graph = load_graph(graph) if isinstance(graph, str) else graph
        self.most_gpus = self.graph.nodes
        self.declared = Declared(features=self.graph.features, classes=self.graph.classes)
        self.corners: tuple[Corner, ...] = (Corner.LIKELY,)
        self._parts: dict[object, tuple[Partitioning, tuple[Part, ...]]] = {}
        self._prepared: dict[object, PreparedSampling] = {}
        self._traces: dict[object, AccessTrace] = {}
        self._counts: dict[object, AccessCounts] = {}

    @cached_property
    def graph_hash(self) -> str | None:
        """Of the graph's content."""
        return self.graph.content_hash()

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
        name, rate = sampler_of(method)
        iterations = 1 if name == FULL else run.iterations
        norms_file = None if name == FULL else method.norms
        key = (place, name, norms_file, rate, iterations, run.seed)
        if key in self._traces:
            return self._traces[key]
        if name == NODES:
            trace = record_nodes(parts, cut, rate=rate, iterations=iterations, seed=run.seed)
        else:
            trace = record_prepared(
                self._prepare(place, name, norms_file, parts),
                cut,
                epsilon=rate,
                iterations=iterations,
                seed=run.seed,
                processes=self.processes,
            )
        self._traces[key] = trace
        return trace

    def _prepare(self, place: object, name: str, norms_file: str | None, parts: tuple[Part, ...]) -> PreparedSampling:
        """The edge sampler `name` of these parts, prepared once."""
        rule = (place, name, norms_file)
        if rule not in self._prepared:
            norms = read_norms(norms_file, self.graph) if norms_file else None
            self._prepared[rule] = prepared_sampling(name, parts, norms)
        return self._prepared[rule]

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts of the recorded trace with the scenario's cache filled once."""
        method, run = scenario.method, scenario.run
        key = (scenario.partition, scenario.cluster.gpus, drawing(method), features, run)
        if key not in self._counts:
            self._counts[key] = counts(self.trace(scenario), method.cache, method.cache_policy, features, run.seed)
        return self._counts[key]
