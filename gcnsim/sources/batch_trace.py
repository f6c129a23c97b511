"""Source of recorded mini-batches: the same batches on any machine, of the method that they were drawn by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from gcnsim.boundary import AccessCounts
from gcnsim.errors import ScenarioError, plural
from gcnsim.methods import NeighbourBatches
from gcnsim.scenario import Scenario
from gcnsim.sources.batches import only_batches, plan_of
from gcnsim.sources.model import Declared, resolve_model
from gcnsim.sources.range_end import RangeEnd
from gcnsim.sources.source import Source
from gcnsim.trace import BatchTrace, read_batch_trace


class BatchTraceSource(Source):
    """A batch trace file, which answers for its own method and number of workers."""

    def __init__(self, path: str) -> None:
        """Raises FileError."""
        self.path = path
        self.trace: BatchTrace = read_batch_trace(path)
        self.most_gpus = self.trace.nodes
        self.declared = Declared()
        self.corners: tuple[RangeEnd, ...] = (RangeEnd.LIKELY,)

    @property
    def graph_hash(self) -> str | None:
        """Of the graph that was traced."""
        return self.trace.origin.graph_hash

    @property
    def name(self) -> str:
        """The name of the graph that was traced."""
        return self.trace.origin.graph_name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """What was traced, and how it was drawn."""
        origin, trace = self.trace.origin, self.trace
        return {
            "kind": "recorded-trace",
            "text": f"{self.path}: {trace.iterations} mini-batches of {origin.graph_name} for each of {trace.workers} "
            f"workers, drawn with {origin.method}, seed {origin.seed}",
            "hash": origin.graph_hash,
        }

    def counts(self, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
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
        # Nothing is exchanged by layer, so what parts have in entries is asked by nobody.
        return only_batches(self.trace.counts(), self.trace.nodes, int(self.trace.entries.sum(axis=2).max()))
