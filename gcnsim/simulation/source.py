"""The base class of sources: a source knows which rows a scenario's workers exchange, and the basis of that knowledge.

A source counts (`counts`), describes itself (`describe`, `warnings`), and states its assumptions (`assumptions`,
`batch_assumptions`). Provenance and planning call these methods and never test types.

`RangeEnd` is the end of the assumptions that a run uses; `drawing` returns the knobs of a method that determine its
access counts. If each worker trains the training nodes of its part, the worker with most of them determines an epoch
(`TrainingShares`). One graph is sampled for each iteration of a run, fewer with a million pairs of workers.

Graphs may drop edges instead of boundary nodes (BNS-GCN's baselines: edge sampling, DropEdge). As many edges are
dropped as boundary-node sampling at the same rate p drops: the share 1 - p of the crossing entries. They are dropped
from crossing entries only (`boundary-edges`), or the same number from all entries (`edges`). A boundary node is still
sent if one of its m cross edges is kept, with probability 1 - dropped^m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Protocol

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.ids import Int32Array, IntArray, Iteration, Rank
from gcnsim.graph import Graph
from gcnsim.graph.assign import TRAINING_NODES
from gcnsim.graph.describe import SeedVariation
from gcnsim.methods import BASELINE, Method, NeighbourBatches, create_method
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.simulation.model import Declared
from gcnsim.trace.bins import MANY_PARTS
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.mini_batches import passes


class RangeEnd(Enum):
    """The end of the assumed ranges that a run uses; without assumptions there is only the likely one."""

    LOW = 0
    LIKELY = 1
    HIGH = 2


def drawing(method: Method) -> tuple[object, ...]:
    """The knobs of a method that determine its access counts; tau and refresh do not."""
    return (method.sampling(), method.cache, method.cache_policy)


NOTEWORTHY: Final = 1.05
"""The least ratio of the largest worker's training nodes to the mean for which balancing would shorten an epoch."""


@dataclass(frozen=True, slots=True)
class TrainingShares:
    """The training nodes per worker of one setting.

    worker: the one with most training nodes. most, total: its number and the sum. batch: the most trained per
    iteration. epoch, even_epoch: iterations of an epoch, now and if balanced. hint: what balances them, in words.
    """

    method: str
    worker: Rank
    most: int
    total: int
    workers: int
    batch: int
    epoch: Iteration
    even_epoch: Iteration
    hint: str = ""

    @property
    def even(self) -> int:
        """The training nodes per worker if they were balanced."""
        return -(-self.total // self.workers)

    @property
    def uneven(self) -> bool:
        """Whether balanced training nodes would shorten an epoch: fewer iterations, or a smaller single one."""
        longer = self.epoch > self.even_epoch or self.epoch == 1
        return longer and self.most * self.workers >= NOTEWORTHY * self.total

    @property
    def text(self) -> str:
        """The effect of the imbalance on an epoch, in words."""
        whose = f"all {self.total:,}" if self.most == self.total else f"{self.most:,} of the {self.total:,}"
        if self.epoch > self.even_epoch:
            makes = f"an epoch takes {plural(self.epoch, 'iteration')}, {self.even_epoch:,} if they were even"
        else:
            makes = f"its batch holds {self.most:,}, {self.even:,} if they were even"
        return (
            f"{self.method}, batch {self.batch:,}: worker {self.worker} has {whose} training nodes: {makes}{self.hint}"
        )


def trains_own(scenario: Scenario) -> bool:
    """Whether there are several workers and each trains the training nodes of its part."""
    method = scenario.method
    return isinstance(method, NeighbourBatches) and method.trains == "own" and scenario.cluster.gpus > 1


def training_shares(scenario: Scenario, training: IntArray, owner: Int32Array) -> TrainingShares | None:
    """How the nodes `training` are distributed over the parts of `owner`, int32[N]; None if the method has no such
    batches.
    """
    method, workers = scenario.method, scenario.cluster.gpus
    if not isinstance(method, NeighbourBatches):
        return None
    spec = scenario.partition
    balances = spec.file is None and spec.balance != TRAINING_NODES
    counts = np.bincount(owner[training], minlength=workers)
    most = int(counts.max())
    return TrainingShares(
        method=method.name,
        worker=int(counts.argmax()),
        most=most,
        total=int(training.size),
        workers=workers,
        batch=method.batch,
        epoch=passes(workers * most, workers, method.batch),
        even_epoch=passes(int(training.size), workers, method.batch),
        hint=f"; partition.balance: {TRAINING_NODES} evens them out" if balances else "",
    )


MOST_PAIRS: Final = 1 << 22
"""The most pairs of workers over all graphs of a run, beyond `MANY_PARTS` workers.

Counts of rows and hits then need at most 67 MB, and 1,024 workers have four graphs. The total exchange of a worker with
a thousand others hardly varies.
"""


def drawn_graphs(scenario: Scenario) -> int:
    """Graphs sampled for the scenario, one if it drops nothing; its iterations use them in turn."""
    if scenario.method.sampling().whole:
        return 1
    scenarios, gpus = scenario.run.iterations, scenario.cluster.gpus
    return scenarios if gpus <= MANY_PARTS else min(scenarios, max(2, MOST_PAIRS // gpus**2))


def fewer_drawn(scenarios: Iterable[Scenario], *, nodes: bool = False) -> Iterator[str]:
    """A warning if fewer graphs are sampled than there are iterations, once per number of GPUs.

    nodes: whether graphs of sampled nodes are drawn, instead of their mean.
    """
    for one in {scenario.cluster.gpus: scenario for scenario in scenarios if _draws(scenario, nodes=nodes)}.values():
        drawn, gpus = drawn_graphs(one), one.cluster.gpus
        if drawn < one.run.iterations:
            yield (
                f"{gpus} GPUs: {drawn} graphs are drawn for {one.run.iterations} iterations, which take them in turn: "
                f"each has {gpus * (gpus - 1):,} pairs of workers"
            )


def _draws(scenario: Scenario, *, nodes: bool) -> bool:
    sampling = scenario.method.sampling()
    return not (scenario.method.mini_batches or sampling.whole) and (nodes or sampling.by_edge or sampling.drops_edges)


class Counting(Protocol):
    """The interface of an object that counts a scenario's accesses (`gcnsim.simulation.source.Source`)."""

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method."""
        ...


def edge_counts(source: Counting, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
    """Counts of `source` if edges are dropped independently at the scenario's rate."""
    sampling = scenario.method.sampling()
    whole = source.counts(replace(scenario, method=create_method(BASELINE)), features, bound)
    kept = sampling.rate
    if sampling.sample == "edges":
        every = whole.inner_edges.sum() + whole.boundary_edges.sum()
        kept = 1.0 - (1.0 - kept) * float(whole.boundary_edges.sum() / max(1, every))
    if kept == 0.0:
        return replace(whole, rows=np.zeros_like(whole.rows), boundary_edges=np.zeros_like(whole.boundary_edges))
    if kept == 1.0:
        return whole
    uniform = create_method("psc-gcn", tau=0, epsilon=kept, sampler="uniform")
    drawn = source.counts(replace(scenario, method=uniform), features, bound)
    if sampling.sample == "edges":
        return drawn
    return replace(drawn, inner_edges=np.tile(whole.inner_edges, (drawn.iterations, 1)))


class Source(ABC):
    """Counts for any method and machine of one workload.

    declared: the model and widths it declares. assumption_bounds: the ends of its assumptions, one without assumptions.
    most_gpus: the most workers it supports: one node each, or the limit of the known data. any_parts: whether it knows
    counts for any number of parts. placeable: whether its parts may lie in another order.
    """

    placeable: bool = True
    declared: Declared
    assumption_bounds: tuple[RangeEnd, ...]
    most_gpus: int
    any_parts: bool = False

    @property
    def graph_hash(self) -> str | None:
        """The hash of the graph's content, if known."""
        return None

    @property
    def graph(self) -> Graph | None:
        """The graph, if it is loaded."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its graph."""

    @abstractmethod
    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method; one all-ones graph if it keeps every edge."""

    def cut_for(self, scenarios: Sequence[Scenario]) -> None:  # noqa: B027 - most cut nothing
        """Partition the graph for these scenarios in parallel, so that their counts are ready sooner."""

    @abstractmethod
    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Kind and text for the provenance, and the hash of a graph or the citations of statistics."""

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warnings for these scenarios."""
        yield from ()

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumptions that replace unknown properties of the partition, with ranges; scenarios: all scenarios."""
        yield from ()

    def batch_assumptions(self, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The same for mini-batches; scenarios: scenarios, some of which train them."""
        yield from ()

    def evidence(self, scenario: Scenario) -> str:
        """The evidence for the scenario's parts; times with different evidence are not comparable."""
        return "one"

    def partition_note(self, scenario: Scenario) -> str | None:
        """The partition behind the scenario's counts, and how much another one differs; None if that is not fixed."""
        return None

    def partition_hash(self, scenario: Scenario) -> str | None:
        """The hash of the owners of the scenario's parts, if known."""
        return None

    def training_shares(self, scenario: Scenario) -> TrainingShares | None:
        """The distribution of training nodes over parts, if each worker trains those of its part; otherwise None."""
        return None

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """The variation of the counts over partitions.

        None if the scenario chooses the partition, if its imbalance is an assumption, for mini-batches, and for one
        worker.
        """
        return None


class SourceView(Source):
    """Another source with changed counts."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.declared, self.assumption_bounds, self.most_gpus = (
            source.declared,
            source.assumption_bounds,
            source.most_gpus,
        )
        self.any_parts = source.any_parts

    @property
    def graph_hash(self) -> str | None:
        """The hash of the graph's content, which is unchanged."""
        return self.source.graph_hash

    @property
    def name(self) -> str:
        """The name of the wrapped source."""
        return self.source.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """The description of the wrapped source."""
        return self.source.describe(scenario)

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """The variation of the wrapped source."""
        return self.source.scatter(scenario)
