"""The two documents that people and programs read: the answer of a what-if, and one simulated scenario.

What workers and links of a simulated run hold, carry and do: bytes, and shares of an iteration in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypedDict

from gcnsim.breakdown import Parts
from gcnsim.cost import Memory
from gcnsim.ids import Bytes, Rank, Seconds, Server
from gcnsim.results.advice import LeftOutRow, NoEffect, Recommendation, Step
from gcnsim.results.asked import FaultFree, MeasuredReport, PartitionSeeds, PricesReport, TargetReport
from gcnsim.results.grounds import Certainty, Provenance
from gcnsim.results.plain import by_field
from gcnsim.results.row import Row
from gcnsim.shapes import JUDGED, ONLY_IF_SAID, SINCE, Amount, As, Count, OneOrMore, Positive, Share, Text, Within


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What each worker's GPU holds at its peak, in bytes by component; null for methods without a law for it."""

    device_bytes: Bytes | None
    """Memory of the GPU of the worker that is nearest its limit; null of workers on CPU cores."""
    devices_bytes: tuple[Bytes, ...] | None = field(metadata=SINCE)
    """Memory of every worker's GPU."""
    tightest: Rank = field(metadata=SINCE)
    """The worker that is nearest its GPU's limit."""
    reserved_bytes: Bytes
    """Of each, for the system."""
    fits: bool | None
    least_gpus: OneOrMore | None
    """The fewest GPUs of this kind that hold it, of those that can be asked for; null where that is not known."""
    workers: tuple[Annotated[Memory, As(Mapping[str, Bytes])], ...]

    def payload(self) -> dict[str, Any]:
        """As plain data; of each worker the total besides."""
        return by_field(self) | {"workers": [by_field(each) | {"total": each.total} for each in self.workers]}


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What a link carries per iteration, and the share of its capacity that this is."""

    bytes: Positive
    utilization: Annotated[float, Within(minimum=0, maximum=1.01)]


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """Shares of the measured iterations in which a worker is busy. All but gpu and waiting overlap."""

    worker: Rank
    server: Server
    gpu: Share
    """Kernels."""
    sampler: Share
    copies: Share
    """Rows packed and copied between device and host."""
    reduce: Share
    """The all-reduce."""
    waiting: Share
    """The GPU waits for communication."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What was carried over what could have been, of core-seconds for a server's cores."""

    name: Text
    kind: Text
    server: Server | None
    """Null of an uplink of racks."""
    utilization: Share


@dataclass(frozen=True, slots=True)
class Utilization:
    """Of the recommended setting: the share of the measured iterations in which each worker and each link is busy."""

    workers: tuple[WorkerUse, ...]
    links: tuple[LinkUse, ...]


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """The worker whose part of the graph makes the recommended setting's limit what it is; null where none stands
    out."""

    worker: Rank
    boundary_nodes: Count
    boundary_nodes_mean: Amount
    """Of all workers."""
    share_of_mean: Amount
    """Its load behind the limit over the mean worker's."""
    even_s: Seconds | None
    """Seconds per iteration if all parts were alike; null where that changes nothing."""
    text: Text


WHAT_IF: Final = "gcnsim.what-if/1"
RESULT: Final = "gcnsim.result/1"


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster of a row."""

    gpus: OneOrMore
    bandwidth: Text
    """With its unit, e.g. 15Gbps."""
    device: Text
    """Device of every server; where servers differ, each in turn, separated by commas."""


class AskedScenario(TypedDict):
    """The question, every field resolved."""

    grid: Annotated[tuple[Place, ...], Within(min_items=1), "Entry i is the cluster of results[i]."]


class ScenarioFields(TypedDict):
    """The scenario, every field resolved."""

    schema: Any
    name: Any
    cluster: Any
    workload: Any
    partition: Any
    method: Any
    run: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """All that a what-if found. Seconds, bytes and fractions."""

    scenario: Annotated[Mapping[str, Any], As(AskedScenario, Any)]
    provenance: Provenance
    results: Annotated[tuple[Annotated[Row, JUDGED], ...], Within(min_items=1)]
    """The rows that were asked for."""
    memory: tuple[MemoryReport | None, ...] = field(default=(), metadata=SINCE)
    """Of each of results."""
    recommendation: Recommendation
    next_steps: tuple[Step, ...]
    no_effect: tuple[NoEffect, ...]
    """Knobs that change nothing where the recommended setting stands, and why."""
    straggler: StragglerReport | None
    certainty: Certainty
    utilization: Utilization | None = field(default=None, metadata=ONLY_IF_SAID)
    left_out: tuple[LeftOutRow, ...] | None = field(default=None, metadata=ONLY_IF_SAID)
    """Settings of --method all that cannot be answered for; only where there are any."""
    fault_free: FaultFree | None = field(default=None, metadata=ONLY_IF_SAID)
    """The recommended setting without the injected faults; only where there are any."""
    measured: tuple[MeasuredReport, ...] | None = field(default=None, metadata=ONLY_IF_SAID)
    """Measured times beside their rows; only where any were given."""
    partition_seeds: PartitionSeeds | None = field(default=None, metadata=ONLY_IF_SAID)
    """The recommended setting with other seeds of the partitioner; only where it was asked."""
    target: TargetReport | None = field(default=None, metadata=ONLY_IF_SAID)
    """Time until a validation accuracy is reached; only where it was asked."""
    prices: PricesReport | None = field(default=None, metadata=ONLY_IF_SAID)
    """Only where prices were chosen."""

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": WHAT_IF} | by_field(self)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows asked for, then the recommended setting and the best ones of each machine, if they are none of
        them."""
        best = self.recommendation
        return (*self.results, *([best.row] if best.in_results is None else []), *best.by_machine)

    @property
    def fastest_first(self) -> list[Row]:
        """`rows` by the time in which every training node is trained once."""
        return sorted(self.rows, key=lambda row: row.epoch_s)


@dataclass(frozen=True, slots=True)
class RunLength:
    """Iterations of the run, and how closely they were simulated."""

    iterations: OneOrMore
    measured: OneOrMore
    settled: bool
    """Whether the measured ones had settled by then."""
    simulated: OneOrMore | None = field(default=None, metadata=ONLY_IF_SAID)
    """Iterations that were simulated; older results have none, where all were."""
    by_period: Count = field(default=0, metadata=SINCE)
    """Iterations that repeat the simulated ones picosecond by picosecond, and were not: the rest of iterations."""
    fidelity: Annotated[str, As(Literal["exact", "coarse"])] = field(default="exact", metadata=SINCE)
    """Whether links were shared at every instant, or those that many routes cross once per grain; older results have
    none, where all were exact."""
    grain_s: Positive | None = field(default=None, metadata=ONLY_IF_SAID)
    """Seconds between two sharings of a link, only of a coarse run."""
    error: Positive | None = field(default=None, metadata=ONLY_IF_SAID)
    """Share of the iteration by which a coarse run may be wrong either way; in the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """One simulated scenario, as `gcnsim simulate --json` prints it and as --out writes it to result.json. Seconds,
    bytes, shares of one."""

    scenario: Annotated[Mapping[str, Any], As(ScenarioFields, Any)]
    provenance: Provenance
    result: Row
    links: Mapping[str, LinkTraffic]
    """Those in use, by name."""
    slowest: Rank | None = field(default=None, metadata=ONLY_IF_SAID)
    """The worker that the others wait for."""
    memory: MemoryReport | None = field(default=None, metadata=SINCE)
    workers: tuple[Parts, ...] = field(default=(), metadata=SINCE)
    """Per worker, by rank, where its iteration goes; older results have none."""
    run: RunLength

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RESULT} | by_field(self)
