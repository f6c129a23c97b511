"""Accesses of a real graph: partitioned and sampled as the runtime would, then replayed."""

from __future__ import annotations

from functools import cached_property

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph, load_graph
from gcnsim.partition import Part, Partitioning, partition_graph, read_partition, split
from gcnsim.record import read_norms
from gcnsim.scenario import Scenario
from gcnsim.study.corners import FULL, Corner, drawing, keeps_all
from gcnsim.study.model import Declared
from gcnsim.trace import AccessCounts, AccessTrace, PreparedSampling, counts, prepared_sampling, record_prepared


class GraphAccesses:
    """A graph, or the file it is in; parts, prepared samplers, traces and counts are made once each."""

    def __init__(self, graph: str | Graph, processes: int = 1) -> None:
        self.processes = processes
        self.graph: Graph = load_graph(graph) if isinstance(graph, str) else graph
        self.nodes = self.graph.nodes
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
                self._prepared[rule],
                cut,
                epsilon=epsilon,
                iterations=iterations,
                seed=run.seed,
                processes=self.processes,
            )
        return self._traces[key]

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts of the recorded trace with the scenario's cache filled once."""
        method, run = scenario.method, scenario.run
        key = (scenario.partition, scenario.cluster.gpus, drawing(method), features, run)
        if key not in self._counts:
            self._counts[key] = counts(self.trace(scenario), method.cache, method.cache_policy, features, run.seed)
        return self._counts[key]
