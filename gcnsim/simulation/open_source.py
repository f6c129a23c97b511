"""Open the source of a run's accesses: a graph, a recorded trace, a profile, or published statistics.

Every slow input is computed once and cached: what-if uses the same partition for many rates, caches and machines. A
graph with only known sizes uses a generated outline. A recorded trace gives the same sampled graphs or mini-batches on
any machine, by the recorded rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gcnsim.core.errors import GraphError, ScenarioError, plural
from gcnsim.core.ids import frozen
from gcnsim.graph import Graph, two_columns
from gcnsim.methods import FULL, Method, NeighbourBatches
from gcnsim.scenario import PartitionSpec, Scenario, WorkloadSpec
from gcnsim.simulation.batches import TRAIN, only_batches, plan_of
from gcnsim.simulation.model import CLASSES, FEATURES, HIDDEN, LAYERS, MODEL, Declared, resolve_model
from gcnsim.simulation.profile_source import ProfileSource, SurrogateSource
from gcnsim.simulation.published_tables import PublishedTables
from gcnsim.simulation.source import RangeEnd, Source, drawing
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.trace import AccessTrace, BatchTrace, read_batch_trace, read_trace
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.packaged_profiles import profiled_parts
from gcnsim.workload import DatasetFacts, dataset
from gcnsim.workload.draws import NODES


class TraceSource(Source):
    """A trace file. It also supports methods that keep every edge, because it has each worker's whole boundary."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.trace: AccessTrace = read_trace(path)
        self.most_gpus = int(self.trace.inner_nodes.sum())
        self.declared = Declared()
        self.assumption_bounds: tuple[RangeEnd, ...] = (RangeEnd.LIKELY,)
        self._counts: dict[object, AccessCounts] = {}

    @property
    def graph_hash(self) -> str | None:
        """The hash of the traced graph."""
        return self.trace.origin.graph_hash

    @property
    def name(self) -> str:
        """The name of the traced graph."""
        return self.trace.origin.graph_name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Describe the traced graph, its sampling and its partition."""
        origin, trace = self.trace.origin, self.trace
        boundary = int(trace.boundary_nodes.sum())
        knob = "rate" if origin.sampler == NODES else "epsilon"
        return {
            "kind": "recorded-trace",
            "text": f"{self.path}: {trace.iterations} graphs of {origin.graph_name} drawn with {origin.sampler} at "
            f"{knob} {origin.epsilon:g}; {origin.partition_method}, seed {origin.partition_seed}: boundary/inner "
            f"{boundary / int(trace.inner_nodes.sum()):.3g} at {plural(trace.parts, 'part')}",
            "hash": origin.graph_hash,
        }

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts of the trace with the scenario's cache.

        Raises ScenarioError if the number of workers, the sampler or the rate differs from the trace.
        """
        if scenario.method.mini_batches:
            raise ScenarioError(
                f"method.name: {scenario.method.name} trains mini-batches; {self.path} has only what crosses partitions"
            )
        method = scenario.method
        sampling = method.sampling()
        if sampling.drops_edges:
            raise ScenarioError(f"method.sample: {sampling.sample} cannot be replayed; {self.path} answers for nodes")
        self._check(scenario.cluster.gpus, method)
        key = (drawing(method), features, scenario.run.seed)
        if key not in self._counts:
            trace = whole(self.trace) if sampling.whole else self.trace
            self._counts[key] = counts(trace, method.cache, method.cache_policy, features, scenario.run.seed)
        return self._counts[key]

    def _check(self, gpus: int, method: Method) -> None:
        origin = self.trace.origin
        if gpus != self.trace.parts:
            raise ScenarioError(
                f"{self.path}: has {plural(self.trace.parts, 'worker')}, the cluster has {plural(gpus, 'GPU')}"
            )
        if method.sampling().whole:
            return
        sampler = method.sampling().drawn_by
        if (origin.sampler, origin.epsilon) != sampler:
            knob = "rate" if origin.sampler == NODES else "epsilon"
            raise ScenarioError(
                f"{self.path}: was drawn with {origin.sampler} at {knob} {origin.epsilon:g}, "
                f"the method asks for {sampler[0]} at {sampler[1]:g}"
            )


def whole(trace: AccessTrace) -> AccessTrace:
    """One graph with every edge of the traced partitions, cached by the recorded inclusion.

    A trace of whole graphs or of sampled nodes has the number of crossing entries. A trace of sampled edges has not,
    and counts all as inner.
    """
    if trace.origin.sampler == FULL:
        return trace
    every = tuple(
        replace(
            worker, bits=frozen(np.packbits(np.ones((1, worker.boundary_nodes), np.bool_), axis=1, bitorder="little"))
        )
        for worker in trace.workers
    )
    inner = trace.edges[0, :, 0] if trace.origin.sampler == NODES else trace.entries
    edges = np.stack([inner, trace.entries - inner], axis=1)[None]
    return replace(trace, workers=every, edges=frozen(edges))


class BatchTraceSource(Source):
    """A batch trace file, for its method and number of workers only."""

    def __init__(self, path: str) -> None:
        """Raises FileError."""
        self.path = path
        self.trace: BatchTrace = read_batch_trace(path)
        self.most_gpus = self.trace.nodes
        self.declared = Declared()
        self.assumption_bounds: tuple[RangeEnd, ...] = (RangeEnd.LIKELY,)

    @property
    def graph_hash(self) -> str | None:
        """The hash of the traced graph."""
        return self.trace.origin.graph_hash

    @property
    def name(self) -> str:
        """The name of the traced graph."""
        return self.trace.origin.graph_name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Describe the traced graph and its sampling."""
        origin, trace = self.trace.origin, self.trace
        return {
            "kind": "recorded-trace",
            "text": f"{self.path}: {trace.iterations} mini-batches of {origin.graph_name} for each of {trace.workers} "
            f"workers, drawn with {origin.method}, seed {origin.seed}",
            "hash": origin.graph_hash,
        }

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts of the recorded batches. Raises ScenarioError for another method, model or number of workers."""
        method, trace = scenario.method, self.trace
        if method.name != trace.origin.method:
            raise ScenarioError(
                f"method.name: {method.name} is not allowed; {self.path} has mini-batches of {trace.origin.method}"
            )
        gpus = scenario.cluster.gpus
        if gpus != trace.workers:
            raise ScenarioError(
                f"{self.path}: has {plural(trace.workers, 'worker')}, the cluster has {plural(gpus, 'GPU')}"
            )
        shapes = resolve_model(scenario.workload, self.declared).shapes
        plan_of(scenario, shapes)
        layers = int(trace.entries.shape[2])
        if layers != len(shapes):
            raise ScenarioError(f"{self.path}: has mini-batches of {layers} layers, the model has {len(shapes)}")
        largest = int(trace.levels[:, :, -1].max())
        if isinstance(method, NeighbourBatches) and largest > method.batch:
            raise ScenarioError(f"method.batch: {method.batch} is not allowed; {self.path} has batches of {largest}")
        return self._counted

    @cached_property
    def _counted(self) -> AccessCounts:
        # Nothing is exchanged per layer, so the entries of parts are not needed.
        return only_batches(self.trace.counts(), self.trace.nodes, int(self.trace.entries.sum(axis=2).max()))


def open_source(scenario: Scenario, graph: Graph | None = None, processes: int = 1) -> Source:
    """The source of the scenario's accesses. graph: the graph it names, if already loaded. processes: for recording
    traces.

    Raises FileError or GraphError for an unusable graph, ScenarioError for an unknown dataset.
    """
    workload = scenario.workload
    _refuse_idle_fields(scenario)
    if workload.graph is not None:
        from gcnsim.simulation.graph_source import GraphSource

        ends = None if workload.ends is None else two_columns(workload.ends, "workload.ends")
        source = GraphSource(
            graph or workload.graph, processes, training=workload.training_subgraph, ids=workload.ids, ends=ends
        )
        if source.graph.nodes < scenario.cluster.gpus:
            raise GraphError(
                f"{workload.graph}: has {plural(source.graph.nodes, 'node')}, fewer than the "
                f"{plural(scenario.cluster.gpus, 'worker')}"
            )
        return source
    if workload.trace is not None:
        return (BatchTraceSource if scenario.method.mini_batches else TraceSource)(workload.trace)
    if workload.profile is not None:
        return ProfileSource(workload.profile)
    if workload.nodes is not None:
        return SizesSource(workload, scenario.cluster.gpus)
    facts = dataset(workload.dataset or "")
    if scenario.partition.statistics == "published":
        return PublishedTables(facts, scenario.partition.parts)
    return SurrogateSource(facts) if profiled_parts(facts.name) else StatisticsSource(facts)


def _refuse_idle_fields(scenario: Scenario) -> None:
    """Refuse a field that would not change the answer."""
    workload = scenario.workload
    sizes = None if workload.nodes is None else f"a graph of {workload.nodes} nodes"
    source = workload.graph or workload.trace or workload.profile
    for name in ("cross_fraction", "imbalance"):
        if source is not None and getattr(workload, name) is not None:
            raise ScenarioError(f"workload.{name}: cannot be set, it is counted on {source}; allowed: null")
    if (source or sizes) is not None and scenario.partition.statistics != "profile":
        raise ScenarioError(
            f"partition.statistics: published ones exist for datasets only, not {source or sizes}; allowed: profile"
        )
    for name in ("cross_fraction", "imbalance"):
        if scenario.partition.statistics == "published" and getattr(workload, name) is not None:
            raise ScenarioError(f"workload.{name}: not with partition.statistics: published; allowed: null")
    if workload.graph is not None:
        return
    norms = scenario.method.values().get("norms")
    if norms is not None:
        raise ScenarioError(f"method.norms: {norms} needs workload.graph: only a graph is sampled anew")
    if replace(scenario.partition, statistics="profile", parts=None) != PartitionSpec():
        if sizes is not None:
            raise ScenarioError(f"partition: {sizes} is known by sizes alone; only workload.graph can be partitioned")
        raise ScenarioError(
            f"partition: {source or workload.dataset} is partitioned already and cannot be partitioned anew; allowed: "
            "with a graph file (workload.graph)"
        )


class SizesSource(SurrogateSource):
    """A graph known only by its numbers of nodes and edges."""

    def __init__(self, spec: WorkloadSpec, gpus: int) -> None:
        """gpus: the requested workers. Raises ScenarioError for more workers than nodes."""
        assert spec.nodes is not None
        assert spec.edges is not None
        if gpus > spec.nodes:
            raise ScenarioError(f"cluster.gpus: {gpus} is not allowed; workload.nodes is {spec.nodes}")
        facts = DatasetFacts(
            name=f"{short(spec.nodes)} nodes, {short(spec.edges)} edges",
            nodes=spec.nodes,
            entries=2 * spec.edges,
            features=spec.features or FEATURES,
            classes=spec.classes or CLASSES,
            model=MODEL,
            layers=LAYERS,
            hidden=HIDDEN,
            boundary=(),
            citations=(),
            train=TRAIN,
        )
        super().__init__(facts)
        # Values that the scenario leaves open are assumptions, not data.
        self.declared = self.published.declared = Declared()


def short(count: int) -> str:
    """Format a count with at most three digits and a suffix.

    >>> short(950), short(2_500_000), short(117_185_083)
    ('950', '2.5M', '117M')
    """
    for power, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= power:
            return f"{count / power:.3g}{unit}" if count < 999.5 * power else f"{count / power:.0f}{unit}"
    return str(count)
