"""Open the source of a run's accesses: a graph, a recorded trace, a profile, or published statistics.

Every slow input is computed once and cached: what-if uses the same partition for many rates, caches and machines. A
graph with only known sizes uses a generated outline.
"""

from __future__ import annotations

from dataclasses import replace

from gcnsim.core.errors import GraphError, ScenarioError, plural
from gcnsim.graph import Graph, two_columns
from gcnsim.scenario import PartitionSpec, Scenario, WorkloadSpec
from gcnsim.simulation.batches import TRAIN
from gcnsim.simulation.model import CLASSES, FEATURES, HIDDEN, LAYERS, MODEL, Declared
from gcnsim.simulation.profile_source import ProfileSource, SurrogateSource
from gcnsim.simulation.published_tables import PublishedTables
from gcnsim.simulation.source import Source
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.trace.packaged_profiles import profiled_parts
from gcnsim.workload import DatasetFacts, dataset


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
        from gcnsim.simulation.trace_source import BatchTraceSource, TraceSource

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
    if replace(scenario.partition, statistics="profile", parts=None, placement=None) != PartitionSpec():
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
