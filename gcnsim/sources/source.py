"""What a source of accesses is: whatever knows which rows the workers of a scenario exchange, and says how it knows.

A source counts (`counts`), describes itself (`describe`, `warnings`), and says what it assumes (`assumptions`,
`batch_assumptions`): provenance and planning ask, and test no types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcnsim.boundary import AccessCounts
from gcnsim.graph import Graph
from gcnsim.partition import Scatter
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.sources.model import Declared
from gcnsim.sources.range_end import RangeEnd
from gcnsim.sources.training_shares import TrainingShares


class Source(ABC):
    """Counts for any method and machine of one workload.

    declared: the model and widths it declares. corners: the ends of its assumptions, one where it has none.
    most_gpus: no more workers than that can be answered for: one node each, or what is known of the dataset.
    any_parts: whether it knows counts for any number of parts.
    """

    declared: Declared
    corners: tuple[RangeEnd, ...]
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
    def counts(self, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method; one all-ones graph when it keeps every edge."""

    def cut_for(self, scenarios: Sequence[Scenario]) -> None:  # noqa: B027 - most cut nothing
        """Cut the graph for these scenarios, side by side: asking for their counts later is then sooner answered."""

    @abstractmethod
    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Kind and text, as provenance has them, and the hash of a graph or the citations of statistics."""

    def warnings(self, asked: Sequence[Scenario]) -> Iterator[str]:
        """What is odd about it, or thin, for these scenarios."""
        yield from ()

    def assumptions(self, scenario: Scenario, asked: Sequence[Scenario]) -> Iterator[Assumed]:
        """What stands in for what is not known of the partition, with its range; asked: all scenarios."""
        yield from ()

    def batch_assumptions(self, asked: Sequence[Scenario]) -> Iterator[Assumed]:
        """The same of mini-batches; asked: scenarios some of which train them."""
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

    def scatter(self, scenario: Scenario) -> Scatter | None:
        """How much the partitions behind the scenario's counts scatter; None where they are the scenario's own to
        choose, where their unevenness is assumed with a range, of mini-batches and of one worker.
        """
        return None


class SourceView(Source):
    """Another source with its counts changed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.declared, self.corners, self.most_gpus = source.declared, source.corners, source.most_gpus
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

    def scatter(self, scenario: Scenario) -> Scatter | None:
        """As its source's."""
        return self.source.scatter(scenario)
