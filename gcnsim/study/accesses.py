"""Where a run's accesses come from: a graph, a recorded trace, a profile, or published statistics.

Everything slow is made once and kept: what-if asks the same partition for many rates, caches and machines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from gcnsim.errors import GraphError, ScenarioError, plural
from gcnsim.graph import Graph
from gcnsim.scenario import PartitionSpec, Scenario
from gcnsim.study.corners import Corner
from gcnsim.study.graphs import GraphAccesses
from gcnsim.study.model import Declared
from gcnsim.study.published import PublishedAccesses
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.stored import ProfileAccesses
from gcnsim.study.surrogates import SurrogateAccesses
from gcnsim.study.tables import AsPublished
from gcnsim.trace import AccessCounts, profiled_parts
from gcnsim.workload import dataset


class Accesses(Protocol):
    """Counts for any method and machine of one workload.

    declared: the model and widths its source declares. corners: the ends of its assumptions, one where it has none.
    most_gpus: no more workers than that can be answered for: one node each, or what is known of the dataset.
    """

    declared: Declared
    corners: tuple[Corner, ...]
    most_gpus: int

    @property
    def graph_hash(self) -> str | None:
        """Of the graph's content, where it is known."""
        ...

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Access counts of the scenario's method; one all-ones graph when it keeps every edge."""
        ...


def open_accesses(
    scenario: Scenario, graph: Graph | None = None, processes: int = 1
) -> GraphAccesses | ProfileAccesses | PublishedAccesses | SurrogateAccesses | TraceAccesses:
    """The accesses of the scenario's workload; graph: the graph it names, where it is already at hand;
    processes: how many may record its traces.

    Raises FileError or GraphError for a graph that cannot be used, ScenarioError for an unknown dataset.
    """
    workload = scenario.workload
    _refuse_idle_fields(scenario)
    if workload.graph is not None:
        accesses = GraphAccesses(
            graph or workload.graph, processes, training=workload.training_subgraph, ids=workload.ids
        )
        if accesses.graph.nodes < scenario.cluster.gpus:
            raise GraphError(
                f"{workload.graph}: has {plural(accesses.graph.nodes, 'node')}, fewer than the "
                f"{plural(scenario.cluster.gpus, 'worker')}"
            )
        return accesses
    if workload.trace is not None:
        return TraceAccesses(workload.trace)
    if workload.profile is not None:
        return ProfileAccesses(workload.profile)
    facts = dataset(workload.dataset or "")
    if scenario.partition.statistics == "published":
        return AsPublished(facts, scenario.partition.parts)
    return SurrogateAccesses(facts) if profiled_parts(facts.name) else PublishedAccesses(facts)


def _refuse_idle_fields(scenario: Scenario) -> None:
    """A field that would not change the answer is refused, not ignored."""
    workload = scenario.workload
    source = workload.graph or workload.trace or workload.profile
    for name in ("cross_fraction", "imbalance"):
        if source is not None and getattr(workload, name) is not None:
            raise ScenarioError(f"workload.{name}: cannot be set, it is counted on {source}; allowed: null")
    if source is not None and scenario.partition.statistics != "profile":
        raise ScenarioError(
            f"partition.statistics: published ones exist for datasets only, not {source}; allowed: profile"
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
        raise ScenarioError(
            f"partition: {source or workload.dataset} is partitioned already; only workload.graph can be"
        )
