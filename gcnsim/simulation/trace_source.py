"""Sources for recorded traces: the same sampled graphs or mini-batches on any machine, by the recorded rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import frozen
from gcnsim.methods import FULL, Method, NeighbourBatches
from gcnsim.scenario import Scenario
from gcnsim.simulation.batches import only_batches, plan_of
from gcnsim.simulation.model import Declared, resolve_model
from gcnsim.simulation.source import RangeEnd, Source, drawing
from gcnsim.trace import AccessTrace, BatchTrace, read_batch_trace, read_trace
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts
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
