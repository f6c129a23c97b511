"""Source for a real graph: partitioned and sampled like the runtime does, then replayed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import BoolArray, IntArray
from gcnsim.core.processes import parallel_map
from gcnsim.graph import IDS, Graph, graph_warnings, induced, load_graph
from gcnsim.graph.assign import TRAINING_NODES, TrainingParts, partition_graph, training_parts
from gcnsim.graph.describe import partition_warnings
from gcnsim.graph.formats.nodes import read_nodes
from gcnsim.graph.owners import open_partition
from gcnsim.graph.parts import FROM_FILE, Part, Partitioning, split
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.simulation.batches import TRAIN, BatchGraph, drawn_batches, only_batches, plan_of, training_nodes
from gcnsim.simulation.model import Declared, resolve_model
from gcnsim.simulation.source import (
    RangeEnd,
    Source,
    TrainingShares,
    drawing,
    drawn_graphs,
    edge_counts,
    fewer_drawn,
    training_shares,
    trains_own,
)
from gcnsim.trace import AccessTrace, PreparedSampling, prepared_sampling, record_nodes, record_prepared
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.draws import NODES
from gcnsim.workload.samplers import read_norms


class GraphSource(Source):
    """A graph, or its file; partitions, prepared samplers, traces and counts are computed once each."""

    def __init__(
        self,
        graph: str | Graph,
        processes: int = 1,
        *,
        training: bool = False,
        ids: str = IDS[0],
        ends: tuple[str, str] | None = None,
    ) -> None:
        """training: keep only the subgraph of training nodes. ids, ends: for edge lists, as in `load_graph`.

        Raises ScenarioError without a training split.
        """
        self.processes = processes
        whole: Graph = load_graph(graph, ids, ends) if isinstance(graph, str) else graph
        self._path = graph if isinstance(graph, str) else None
        self._whole = whole
        self._graph = self._trained(whole) if training else whole
        self.most_gpus = self.graph.nodes
        self.declared = Declared(features=self.graph.features, classes=self.graph.classes)
        self.assumption_bounds: tuple[RangeEnd, ...] = (RangeEnd.LIKELY,)
        self._parts: dict[object, tuple[Partitioning, tuple[Part, ...]]] = {}
        self._prepared: dict[object, PreparedSampling] = {}
        self._traces: dict[object, AccessTrace] = {}
        self._counts: dict[object, AccessCounts] = {}
        self._training_parts: dict[object, TrainingParts] = {}

    @property
    def graph(self) -> Graph:
        """The partitioned graph: all of it, or its training nodes."""
        return self._graph

    @property
    def name(self) -> str:
        """The graph's name."""
        return self.graph.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Describe the graph, its cleaning and partition, and the share of boundary nodes."""
        graph = self.graph
        cut, parts = self.partition(scenario)
        boundary = sum(part.boundary_nodes for part in parts)
        how = f"{cut.method}, seed {cut.seed}"
        if scenario.partition.file is not None:
            made = "" if cut.method == FROM_FILE else f"{how}, "
            how = f"parts of {scenario.partition.file} ({made}SHA-256 {cut.owner_hash[:12]})"
        return {
            "kind": "real",
            "text": f"{graph.name}: {graph.nodes:,} nodes, {graph.entries:,} stored entries ({graph.cleaning}); "
            f"{how}: boundary/inner {boundary / graph.nodes:.3g} at {plural(cut.parts, 'part')}",
            "hash": cut.graph_hash,
        }

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warnings about the graph and its partitions."""
        yield from graph_warnings(self.graph)
        cut = (item for item in scenarios if not item.method.mini_batches)
        for one in {item.cluster.gpus: item for item in cut}.values():
            for line in partition_warnings(self.partition(one)[1]):
                yield f"{plural(one.cluster.gpus, 'GPU')}: {line}"
        files = {text.partition.file: text for text in scenarios if text.partition.file is not None}
        for note in (self.partition(one)[0].note for one in files.values()):
            if note:
                yield note
        for scenario in scenarios:
            shares = self.training_shares(scenario)
            if shares is not None and shares.uneven:
                yield shares.text
        yield from fewer_drawn(scenarios, nodes=True)

    def batch_assumptions(self, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumption about training nodes, if neither graph nor scenario gives them."""
        if not self.splits and all(scenario.workload.train_fraction is None for scenario in scenarios):
            yield Assumed("train_fraction", f"{TRAIN:.0%}", "50%", "80%", "share of the nodes that train", False)

    @cached_property
    def graph_hash(self) -> str | None:
        """The hash of the graph's content."""
        return self.graph.content_hash()

    def cut_for(self, scenarios: Sequence[Scenario]) -> None:
        """Partition the graph for these scenarios in parallel, so that their counts are ready sooner."""
        wanted = {self._cut_of(scenario): scenario for scenario in scenarios if scenario.partition.file is None}
        missing = [value for key, value in wanted.items() if key not in self._parts]
        for item, found in zip(missing, parallel_map(self._cut, missing, self.processes), strict=True):
            self._parts[self._cut_of(item)] = found, split(self.graph, found)

    def _cut_of(self, scenario: Scenario) -> Hashable:
        """The key of a scenario's partition: equal for equal partitions."""
        spec = scenario.partition
        trains = (scenario.workload.train_fraction, scenario.run.seed) if spec.balance == TRAINING_NODES else None
        return replace(spec, placement=None), scenario.cluster.gpus, trains

    def _cut(self, scenario: Scenario) -> Partitioning:
        spec = scenario.partition
        return partition_graph(
            self.graph,
            scenario.cluster.gpus,
            method=spec.method,
            objective=spec.objective,
            seed=spec.seed,
            algorithm=spec.algorithm,
            imbalance=spec.imbalance,
            balance=spec.balance,
            training=self._balanced(scenario) if spec.balance == TRAINING_NODES else None,
        )

    def _balanced(self, scenario: Scenario) -> BoolArray | None:
        """The training nodes to balance over parts, bool[N]; None without a split."""
        if not self.splits and scenario.workload.train_fraction is None and not scenario.method.mini_batches:
            return None
        mask = np.zeros(self.graph.nodes, np.bool_)
        mask[self._training_nodes(scenario)] = True
        return mask

    def _training_nodes(self, scenario: Scenario) -> IntArray:
        """The training nodes of the scenario's mini-batches, int64, ascending."""
        share = scenario.workload.train_fraction
        mask = None if share is not None else self._trains
        return training_nodes(self.graph, mask, share or TRAIN, scenario.run.seed)

    def training_shares(self, scenario: Scenario) -> TrainingShares | None:
        """See `Source.training_shares`."""
        if not trains_own(scenario):
            return None
        return training_shares(scenario, self._training_nodes(scenario), self.partition(scenario)[0].owner)

    def partition(self, scenario: Scenario) -> tuple[Partitioning, tuple[Part, ...]]:
        """The scenario's partition of the graph, computed or read from its file."""
        spec, gpus = scenario.partition, scenario.cluster.gpus
        key = self._cut_of(scenario)
        if key not in self._parts:
            if spec.file is None:
                cut = self._cut(scenario)
            else:
                cut = open_partition(spec.file, self.graph)
                if cut.parts != gpus:
                    raise ScenarioError(
                        f"{spec.file}: has {plural(cut.parts, 'part')}, the cluster has {plural(gpus, 'GPU')}"
                    )
            self._parts[key] = cut, split(self.graph, cut)
        return self._parts[key]

    def partition_hash(self, scenario: Scenario) -> str | None:
        """See `Source.partition_hash`."""
        return self.partition(scenario)[0].owner_hash

    def trace(self, scenario: Scenario) -> AccessTrace:
        """The access trace of the scenario's sampler and rate.

        If more graphs were sampled before, the first of them.
        """
        method, run = scenario.method, scenario.run
        cut, parts = self.partition(scenario)
        place = self._cut_of(scenario)
        sampling = method.sampling()
        name, rate = sampling.drawn_by
        iterations, norms_file = drawn_graphs(scenario), sampling.norms
        key = (place, name, norms_file, rate, run.seed)
        if key in self._traces and self._traces[key].iterations >= iterations:
            return self._traces[key].beginning(iterations)
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

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts of the recorded trace with the scenario's cache."""
        if scenario.method.mini_batches:
            return self._batched(scenario)
        method, run = scenario.method, scenario.run
        if method.sampling().drops_edges:
            return edge_counts(self, scenario, features, bound)
        cluster = scenario.cluster
        cut = replace(scenario.partition, placement=None)
        key = (cut, cluster.gpus, cluster.device, drawing(method), features, run)
        if key not in self._counts:
            self._counts[key] = counts(self.trace(scenario), method.cache, method.cache_policy, features, run.seed)
        return self._counts[key]

    def _batched(self, scenario: Scenario) -> AccessCounts:
        """Counts of sampled mini-batches."""
        cluster, workload = scenario.cluster, scenario.workload
        key = (scenario.method, cluster.gpus, cluster.gpus_per_server, cluster.device, workload, scenario.partition)
        if (key, scenario.run) not in self._counts:
            plan = plan_of(scenario, resolve_model(workload, self.declared).shapes)
            training = self._training_nodes(scenario)
            source = BatchGraph(self.graph, training, lambda: self.partition(scenario)[0].owner, self._dealt)
            batches = drawn_batches(source, scenario, plan)
            self._counts[key, scenario.run] = only_batches(batches, self.graph.nodes, self.graph.entries)
        return self._counts[key, scenario.run]

    def _dealt(self, training: IntArray, parts: int, hops: int) -> TrainingParts:
        """Training nodes distributed as in PaGraph, once per order of them."""
        key = (training.tobytes(), parts, hops)
        if key not in self._training_parts:
            self._training_parts[key] = training_parts(self.graph, training, parts, hops)
        return self._training_parts[key]

    def _trained(self, whole: Graph) -> Graph:
        """The subgraph of the training nodes."""
        mask = self._training_mask
        if mask is None:
            raise ScenarioError(
                f"workload.training_subgraph: true is not allowed; {whole.name} does not say who trains (train_mask)"
            )
        return induced(whole, mask, f"{whole.name}, the nodes that train")

    @property
    def splits(self) -> bool:
        """Whether the graph has a training split."""
        return self._training_mask is not None

    @property
    def _trains(self) -> BoolArray | None:
        """Which nodes of the trained graph are training nodes; all of them in a training subgraph."""
        return self._training_mask if self.graph is self._whole else np.ones(self.graph.nodes, np.bool_)

    @cached_property
    def _training_mask(self) -> BoolArray | None:
        """The training mask in the graph's file."""
        if self._path is None:
            return None
        masks = read_nodes(self._path, self._whole.nodes, features=False, labels=False).masks
        return None if masks is None else masks[0]
