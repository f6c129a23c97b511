"""Other partitions of one's own graph: other seeds of the partitioner, and other settings of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.ids import Seconds
from gcnsim.partition import EDGES, KWAY, NODES, RECURSIVE, metis_label
from gcnsim.scenario import PartitionSpec, Scenario

MOST_SEEDS: Final = 100

SETTINGS: Final[tuple[dict[str, Any], ...]] = (
    {"balance": EDGES},
    {"objective": "cut", "balance": EDGES},
    {"objective": "cut"},
    {"objective": "vol"},
    {"objective": "cut", "algorithm": RECURSIVE},
    {"imbalance": 0.1},
)
"""What METIS may be told otherwise, what evens out the work of GPUs and samplers first."""

SECONDS_PER_ENTRY: Final = {"vol": 0.7e-6, "cut": 0.13e-6}
"""Of METIS on one core at 3 GHz, per stored entry, by objective: four real graphs of 0.5 to 9 million at 8 parts."""


@dataclass(frozen=True, slots=True)
class PartitionVariant:
    """One way to cut the graph otherwise. setting: it in words; scenario: the question with it."""

    setting: str
    scenario: Scenario


def partition_setting(spec: PartitionSpec) -> str:
    """How a graph is cut, in a word: `metis-vol`, `metis-cut-recursive`, `random`, or the file's name."""
    if spec.file is not None:
        return spec.file
    if spec.method != "metis":
        return spec.method
    return metis_label(spec.objective, spec.algorithm, spec.imbalance, spec.balance)


def partition_variants(scenario: Scenario) -> list[PartitionVariant]:
    """The settings of METIS that may be tried in place of the scenario's; none where the graph is not here to be cut,
    if the partition came from a file, and for one worker.
    """
    if scenario.workload.graph is None or scenario.partition.file is not None or scenario.cluster.gpus == 1:
        return []
    now = scenario.partition
    plain = replace(now, method="metis", algorithm=KWAY, imbalance=None, balance=NODES)
    specs = [plain, *(replace(plain, **setting) for setting in SETTINGS)]
    others = (spec for spec in dict.fromkeys(specs) if spec != now)
    return [PartitionVariant(partition_setting(spec), replace(scenario, partition=spec)) for spec in others]


def seeds_of(scenario: Scenario, count: int) -> list[Scenario]:
    """The scenario under `count` seeds of the partitioner: its own, and those that follow.

    The accesses of one graph (`gcnsim.sources.GraphSource`) keep each of these partitions. METIS cuts alike with seeds
    0 and 1, so of these two there is one. Raises ScenarioError where no seed decides how the graph is cut.
    """
    spec = scenario.partition
    if not 1 <= count <= MOST_SEEDS:
        raise ScenarioError(f"--partition-seeds: {count} is not allowed; 1 to {MOST_SEEDS}")
    if why := _no_seed(scenario):
        raise ScenarioError(f"--partition-seeds: {count} is not allowed; {why}")
    first = 1 if spec.method == "metis" and spec.seed == 0 else spec.seed
    seeds = [spec.seed, *((first + step) % 2**31 for step in range(1, count))]
    return [replace(scenario, partition=replace(spec, seed=seed)) for seed in seeds]


def _no_seed(scenario: Scenario) -> str:
    """Why no seed decides how the scenario's graph is cut; empty where one does."""
    spec = scenario.partition
    if scenario.workload.graph is None:
        return "needs a graph of your own (--graph)"
    if spec.file is not None:
        return f"not with partition.file: {spec.file}"
    return "not with partition.method: block, which has no seed" if spec.method == "block" else ""


def partition_seconds(entries: int, spec: PartitionSpec) -> Seconds:
    """About how long one core takes to cut a graph of so many stored entries, before it is split."""
    return entries * SECONDS_PER_ENTRY[spec.objective] if spec.method == "metis" and spec.file is None else 0.0


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Iteration times under several seeds of the partitioner, in seconds, the scenario's own first."""

    seeds: tuple[int, ...]
    seconds: tuple[Seconds, ...]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario], seconds: Sequence[Seconds]) -> SeedSpread:
        """Of `seeds_of`, with the iteration time of each."""
        return cls(tuple(each.partition.seed for each in scenarios), tuple(seconds))

    @property
    def low_s(self) -> Seconds:
        """The shortest."""
        return min(self.seconds)

    @property
    def high_s(self) -> Seconds:
        """The longest."""
        return max(self.seconds)

    @property
    def mean_s(self) -> Seconds:
        """The mean."""
        return sum(self.seconds) / len(self.seconds)

    @property
    def best(self) -> int:
        """The seed of the shortest."""
        return self.seeds[self.seconds.index(self.low_s)]
