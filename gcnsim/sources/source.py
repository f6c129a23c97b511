"""The base class of sources: a source knows which rows a scenario's workers exchange, and on what that rests.

A source counts (`counts`), describes itself (`describe`, `warnings`), and states its assumptions (`assumptions`,
`batch_assumptions`). Provenance and planning call these methods, and test no types.

`RangeEnd` is the end of the assumptions that a run takes; `drawing` gives what of a method determines its access
counts. Where each worker trains its own training nodes, the one with the most determines an epoch (`TrainingShares`).
One graph is drawn for each iteration of a run, fewer where each has a million pairs of workers.

Graphs may drop edges instead of boundary nodes (BNS-GCN's baselines: edge sampling, DropEdge). As many edges are
dropped as boundary-node sampling at the same rate p drops. That is the share 1 - p of the crossing entries: from these
alone (`boundary-edges`), or as many from all entries (`edges`). A boundary node is still sent while one of its m cross
edges is kept, with probability 1 - dropped^m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Protocol

import numpy as np

from gcnsim.boundary import MANY_PARTS, AccessCounts
from gcnsim.errors import plural
from gcnsim.graph import Graph
from gcnsim.ids import Int32Array, IntArray, Iteration, Rank
from gcnsim.methods import BASELINE, Method, NeighbourBatches, create_method
from gcnsim.partition import TRAINING_NODES, SeedVariation
from gcnsim.results import Assumed
from gcnsim.sampling import passes
from gcnsim.scenario import Scenario
from gcnsim.sources.model import Declared


class RangeEnd(Enum):
    """Which end of the assumed ranges a run uses; without assumptions there is only the likely one."""

    LOW = 0
    LIKELY = 1
    HIGH = 2


def drawing(method: Method) -> tuple[object, ...]:
    """What of a method decides its access counts: tau and refresh do not."""
    return (method.sampling(), method.cache, method.cache_policy)


NOTEWORTHY: Final = 1.05
"""Training nodes of the worker with the most over the mean, from which on even ones would shorten an epoch."""


@dataclass(frozen=True, slots=True)
class TrainingShares:
    """Of one setting. worker: the one with the most training nodes; most, total: its own and all of them. batch: how
    many it trains in an iteration at most; epoch, even_epoch: iterations of an epoch, now and with even shares.
    hint: what evens them out, in words.
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
        """Training nodes of the worker with the most, if they were shared evenly."""
        return -(-self.total // self.workers)

    @property
    def uneven(self) -> bool:
        """Whether even training nodes would shorten an epoch: by iterations, or by smaller ones where it has one."""
        longer = self.epoch > self.even_epoch or self.epoch == 1
        return longer and self.most * self.workers >= NOTEWORTHY * self.total

    @property
    def text(self) -> str:
        """What the worker with the most makes of an epoch."""
        whose = f"all {self.total:,}" if self.most == self.total else f"{self.most:,} of the {self.total:,}"
        if self.epoch > self.even_epoch:
            makes = f"an epoch takes {plural(self.epoch, 'iteration')}, {self.even_epoch:,} if they were even"
        else:
            makes = f"its batch holds {self.most:,}, {self.even:,} if they were even"
        return (
            f"{self.method}, batch {self.batch:,}: worker {self.worker} has {whose} training nodes: {makes}{self.hint}"
        )


def trains_own(scenario: Scenario) -> bool:
    """Whether each of several workers trains the training nodes of its own part."""
    method = scenario.method
    return isinstance(method, NeighbourBatches) and method.trains == "own" and scenario.cluster.gpus > 1


def training_shares(scenario: Scenario, training: IntArray, owner: Int32Array) -> TrainingShares | None:
    """How the nodes `training` lie in the parts of `owner`, int32[N]; None of methods without batches of them."""
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
"""Pairs of workers in all graphs of a run together, beyond `MANY_PARTS` workers: counts of rows and hits then take at
most 67 MB, and 1,024 workers have four graphs. What a worker exchanges with a thousand others in all hardly varies."""


def drawn_graphs(scenario: Scenario) -> int:
    """Graphs drawn for the scenario, one where it drops nothing; its iterations take them in turn."""
    if scenario.method.sampling().whole:
        return 1
    scenarios, gpus = scenario.run.iterations, scenario.cluster.gpus
    return scenarios if gpus <= MANY_PARTS else min(scenarios, max(2, MOST_PAIRS // gpus**2))


def fewer_drawn(scenarios: Iterable[Scenario], *, nodes: bool = False) -> Iterator[str]:
    """A warning where fewer graphs are drawn than there are iterations, once for each number of GPUs.

    nodes: whether graphs of drawn nodes are drawn, and not taken as their mean.
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
    """What counts the accesses of a scenario (`gcnsim.sources.Source`)."""

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method."""
        ...


def edge_counts(source: Counting, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
    """Counts of `source` where edges are dropped at the scenario's rate, each for itself."""
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

    declared: the model and widths it declares. assumption_bounds: the ends of its assumptions, one where it has none.
    most_gpus: no more workers than that can be answered for: one node each, or what is known of the dataset.
    any_parts: whether it knows counts for any number of parts.
    """

    declared: Declared
    assumption_bounds: tuple[RangeEnd, ...]
    most_gpus: int
    any_parts: bool = False

    @property
    def graph_hash(self) -> str | None:
        """Of the graph's content, where it is known."""
        return None

    @property
    def graph(self) -> Graph | None:
        """The graph, if it is loaded."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """What its graph is called."""

    @abstractmethod
    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method; one all-ones graph when it keeps every edge."""

    def cut_for(self, scenarios: Sequence[Scenario]) -> None:  # noqa: B027 - most cut nothing
        """Cut the graph for these scenarios, side by side: asking for their counts later is then sooner answered."""

    @abstractmethod
    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Kind and text, as provenance has them, and the hash of a graph or the citations of statistics."""

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """What is odd about it, or thin, for these scenarios."""
        yield from ()

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """What stands in for what is not known of the partition, with its range; scenarios: all scenarios."""
        yield from ()

    def batch_assumptions(self, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The same of mini-batches; scenarios: scenarios some of which train them."""
        yield from ()

    def evidence(self, scenario: Scenario) -> str:
        """What the scenario's parts are known from: times of different evidence are not to be compared."""
        return "one"

    def partition_note(self, scenario: Scenario) -> str | None:
        """From which partition the scenario's counts are, and how much another one differs; None where that is open."""
        return None

    def partition_hash(self, scenario: Scenario) -> str | None:
        """Of the owners of the scenario's parts, where they are known."""
        return None

    def training_shares(self, scenario: Scenario) -> TrainingShares | None:
        """How the training nodes lie in the parts, where each worker trains those of its own; None elsewhere."""
        return None

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """How much the partitions behind the scenario's counts scatter; None where they are the scenario's own to
        choose, where their unevenness is assumed with a range, of mini-batches and of one worker.
        """
        return None


class SourceView(Source):
    """Another source with its counts changed."""

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
        """Of the graph's content: the graph is the same."""
        return self.source.graph_hash

    @property
    def name(self) -> str:
        """As its source's."""
        return self.source.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """As its source's."""
        return self.source.describe(scenario)

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """As its source's."""
        return self.source.scatter(scenario)
