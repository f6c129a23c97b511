"""The common parts of systems that train mini-batches (their iteration: `batch_workers`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import Memory, batch_memory
from gcnsim.methods.method import FEATURES, Loading, Method, Placement
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape
from gcnsim.workload.knobs import BATCH, FANOUT, LAYER_SIZES, PerLayer, knob
from gcnsim.workload.mini_batches import passes, subgraphs

if TYPE_CHECKING:
    from gcnsim.methods.method import Facts
    from gcnsim.schedule import Schedule


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How a method samples. fanout, sizes: one number per sampled layer, the input's first; one of them is empty.
    shapes: the layers as this method trains them. width: values of an input row.
    """

    fanout: tuple[int | float, ...]
    sizes: tuple[int, ...]
    shapes: tuple[LayerShape, ...]
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatch(Method):
    """A system that updates the model once per mini-batch, several times an epoch.

    one_server: its workers share a graph in the memory of one server. everywhere: every server's memory has the whole
    graph. one_graph: all layers sum over the same entries. trains: the training nodes of a worker: any, shuffled
    together; those of its `own` part; or those `dealt` to a part that contains their neighbourhoods (PaGraph). usual:
    the sampling device and place of rows in common use today. scripts: the same in the system's own scripts. rows_in:
    the possible places of its rows.
    """

    uses: ClassVar[frozenset[str]] = frozenset(
        {
            "allreduce",
            "nvlink",
            "transport",
            "gpudirect",
            "implementation",
            "sampler_device",
            "sampler_threads",
            "features",
        }
    )
    needs_boundary: ClassVar[bool] = False
    mini_batches: ClassVar[bool] = True
    supports_cpu: ClassVar[bool] = True
    one_graph: ClassVar[bool] = False
    one_server: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "shuffled"
    usual: ClassVar[Placement] = Placement()
    scripts: ClassVar[Placement] = Placement()
    rows_in: ClassVar[tuple[str, ...]] = FEATURES

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """The devices that can sample; every batch is sampled."""
        return ("cpu", "gpu")

    @property
    def loading(self) -> Loading:
        """How it loads: in turn with training."""
        return Loading()

    def plan(self, shapes: tuple[LayerShape, ...]) -> BatchPlan:
        """How it samples for this model. Raises ScenarioError if a list does not match the model's layers."""
        return BatchPlan((1,) * len(shapes), (), shapes, shapes[0].d_in)

    @abstractmethod
    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """Iterations in which every training node is used once."""

    def schedule(self, facts: Facts) -> Schedule:
        """The schedule: sample, load, train, reduce gradients; on GPUs or on CPU cores.

        Raises ValueError if the facts have no mini-batches.
        """
        batches, plan, loading, one_graph = facts.counts.batches, self.plan(facts.shapes), self.loading, self.one_graph
        if batches is None:
            raise ValueError(f"{self.name}: the counts have no mini-batches")
        facts = replace(facts, shapes=plan.shapes, placement=facts.placement or self.usual)
        if facts.device.kind == "cpu":
            from gcnsim.methods.families.cpu_batches import CpuBatchWriter

            return CpuBatchWriter(self.name, facts, batches, loading, plan.width, one_graph=one_graph).write()
        from gcnsim.methods.families.batch_workers import BatchWriter

        return BatchWriter(self.name, facts, batches, loading, plan.width, one_graph=one_graph).write()

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of every worker's GPU, by its largest mini-batch."""
        if counts.batches is None:
            return None
        batches, plan, found = counts.batches, self.plan(shapes), []
        for rank in range(int(batches.cached.size)):
            largest = int(np.argmax(batches.levels[:, rank, 0]))
            levels, entries = batches.levels[largest, rank].tolist(), batches.entries[largest, rank].tolist()
            found.append(self.batch_memory(plan, levels, entries, cached=int(batches.cached[rank])))
        return tuple(found)

    def batch_memory(
        self, plan: BatchPlan, levels: Sequence[float], entries: Sequence[float], cached: int = 0
    ) -> Memory:
        """The GPU memory for training batches of these sizes with `cached` input rows."""
        return batch_memory(levels, entries, plan.shapes, waiting=self.loading.ahead, width=plan.width, cached=cached)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourBatches(MiniBatch):
    """Mini-batches of training nodes and the neighbours sampled around them. usual_fanout: the default."""

    usual_fanout: ClassVar[int] = 2

    batch: int = knob(BATCH)
    fanout: PerLayer | None = knob(FANOUT)
    layer_sizes: PerLayer | None = knob(LAYER_SIZES)

    def __post_init__(self) -> None:
        Method.__post_init__(self)
        if self.fanout is not None and self.layer_sizes is not None:
            raise ScenarioError("method.layer_sizes: both fanout and layer_sizes are given; give one, the other null")

    def plan(self, shapes: tuple[LayerShape, ...]) -> BatchPlan:
        """The sampling plan with the numbers of neighbours or nodes from its knobs."""
        layers = len(shapes)
        for name, value in (("fanout", self.fanout), ("layer_sizes", self.layer_sizes)):
            if value is not None and len(value) != layers:
                text = ",".join(f"{100 * item:g}%" if isinstance(item, float) else str(item) for item in value)
                raise ScenarioError(
                    f"method.{name}: {text} is not allowed; the model has {layers} layers, so {layers} numbers"
                )
        sizes = tuple(int(size) for size in self.layer_sizes or ())
        fanout = () if sizes else self.fanout or (self.usual_fanout,) * layers
        return BatchPlan(fanout, sizes, shapes, shapes[0].d_in)

    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """Batches of the worker with the most training nodes."""
        return passes(training, workers, self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphBatches(MiniBatch):
    """Mini-batches that are a subgraph, the same in every layer. nodes_of: the rule that chooses its nodes."""

    everywhere: ClassVar[bool] = True
    one_graph: ClassVar[bool] = True
    nodes_of: ClassVar[Literal["walks", "clusters"]]

    @property
    @abstractmethod
    def subgraph(self) -> float:
        """Share of all nodes in a worker's mini-batch."""

    def epoch(self, nodes: int, training: int, workers: int) -> int:
        """An epoch reads as many nodes as the graph has."""
        return subgraphs(self.subgraph, workers)
