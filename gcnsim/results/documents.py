"""The two result documents: the answer of a what-if, and one simulated scenario.

They include the memory, traffic and use of a simulated run's workers and links: bytes, and shares of an iteration in
[0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypedDict

from gcnsim.core.ids import Bytes, Rank, Seconds, Server
from gcnsim.core.shapes import (
    JUDGED,
    OMIT_IF_NONE,
    SINCE,
    Amount,
    As,
    Count,
    OneOrMore,
    Positive,
    Share,
    Text,
    Within,
    by_field,
)
from gcnsim.cost import Memory
from gcnsim.results.advice import LeftOutRow, NoEffect, Recommendation, Step
from gcnsim.results.optional_sections import (
    EnergyReport,
    FaultFree,
    MeasuredReport,
    PartitionSeeds,
    PricesReport,
    TargetReport,
)
from gcnsim.results.provenance import Certainty, Provenance
from gcnsim.results.row import Row
from gcnsim.timeline.breakdown import Parts


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Peak memory of each worker's GPU, in bytes by component; null for methods without a formula for it."""

    device_bytes: Bytes | None
    """Memory of the GPU of the worker that is nearest its limit; null for workers on CPU cores."""
    devices_bytes: tuple[Bytes, ...] | None = field(metadata=SINCE)
    """Memory of every worker's GPU."""
    tightest: Rank = field(metadata=SINCE)
    """The worker that is nearest its GPU's limit."""
    reserved_bytes: Bytes
    """Bytes of each GPU that are reserved for the system."""
    fits: bool | None
    least_gpus: OneOrMore | None
    """The lowest possible number of GPUs of this kind on which it fits; null if unknown."""
    workers: tuple[Annotated[Memory, As(Mapping[str, Bytes])], ...]

    def payload(self) -> dict[str, Any]:
        """As plain data, with the total of each worker."""
        return by_field(self) | {"workers": [by_field(worker) | {"total": worker.total} for worker in self.workers]}


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The bytes that a link carries per iteration, and their share of its capacity."""

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
    """Bytes carried divided by capacity; for a server's cores, core-seconds."""

    name: Text
    kind: Text
    server: Server | None
    """Null for the uplink of a rack."""
    utilization: Share


@dataclass(frozen=True, slots=True)
class Utilization:
    """Shares of the measured iterations in which each worker and link is busy, for the recommended setting."""

    workers: tuple[WorkerUse, ...]
    links: tuple[LinkUse, ...]


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """The worker whose part of the graph determines the limit of the recommended setting; null if none stands
    out."""

    worker: Rank
    boundary_nodes: Count
    boundary_nodes_mean: Amount
    """Mean over all workers."""
    share_of_mean: Amount
    """Its load on the limiting resource, divided by the mean load."""
    even_s: Seconds | None
    """Seconds per iteration if all parts were equal; null if that changes nothing."""
    text: Text
    placed_s: Seconds | None = field(default=None, metadata=SINCE)
    """Seconds per iteration of these parts with `partition.placement: balanced`; null if that is no next step."""


WHAT_IF: Final = "gcnsim.what-if/1"
RESULT: Final = "gcnsim.result/1"


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster of a row."""

    gpus: OneOrMore
    bandwidth: Text
    """With its unit, e.g. 15Gbps."""
    device: Text
    """Device of every server; if servers differ, one after the other, separated by commas."""


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
    """The complete answer of a what-if. Units: seconds, bytes, fractions of one."""

    scenario: Annotated[Mapping[str, Any], As(AskedScenario, Any)]
    provenance: Provenance
    results: Annotated[tuple[Annotated[Row, JUDGED], ...], Within(min_items=1)]
    """The rows that were asked for."""
    memory: tuple[MemoryReport | None, ...] = field(default=(), metadata=SINCE)
    """One entry for each row of results."""
    recommendation: Recommendation
    next_steps: tuple[Step, ...]
    no_effect: tuple[NoEffect, ...]
    """Knobs that change nothing at the recommended setting, and why."""
    straggler: StragglerReport | None
    certainty: Certainty
    utilization: Utilization | None = field(default=None, metadata=OMIT_IF_NONE)
    left_out: tuple[LeftOutRow, ...] | None = field(default=None, metadata=OMIT_IF_NONE)
    """Settings of --method all that cannot be predicted; only if there are any."""
    fault_free: FaultFree | None = field(default=None, metadata=OMIT_IF_NONE)
    """The recommended setting without the injected faults; only if there are any."""
    measured: tuple[MeasuredReport, ...] | None = field(default=None, metadata=OMIT_IF_NONE)
    """Measured times and their predictions; only if any were given."""
    partition_seeds: PartitionSeeds | None = field(default=None, metadata=OMIT_IF_NONE)
    """The recommended setting with other seeds of the partitioner; only if asked for."""
    target: TargetReport | None = field(default=None, metadata=OMIT_IF_NONE)
    """Time until the training is done; only if asked for."""
    energy: EnergyReport | None = field(default=None, metadata=OMIT_IF_NONE)
    """Energy and what its electricity costs; only if asked for."""
    prices: PricesReport | None = field(default=None, metadata=OMIT_IF_NONE)
    """The chosen prices; only if the user chose some."""

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
        """`rows` by the time in which every training node is used once."""
        return sorted(self.rows, key=lambda row: row.epoch_s)


@dataclass(frozen=True, slots=True)
class RunLength:
    """Iterations of the run, and how closely they were simulated."""

    iterations: OneOrMore
    measured: OneOrMore
    settled: bool
    """Whether the run was steady before the measured iterations."""
    simulated: OneOrMore | None = field(default=None, metadata=OMIT_IF_NONE)
    """Simulated iterations; missing in older results, which simulated all."""
    by_period: Count = field(default=0, metadata=SINCE)
    """Iterations that repeat the simulated ones exactly and were not simulated: the rest."""
    fidelity: Annotated[str, As(Literal["exact", "coarse"])] = field(default="exact", metadata=SINCE)
    """Whether links were shared exactly, or busy links once per grain of time (coarse); missing in older results,
    which were exact."""
    grain_s: Positive | None = field(default=None, metadata=OMIT_IF_NONE)
    """Seconds between two sharings of a link; only for coarse runs."""
    error: Positive | None = field(default=None, metadata=OMIT_IF_NONE)
    """Possible error of a coarse run, as a share of the iteration; the interval includes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """One simulated scenario, as `gcnsim simulate --json` prints it and as --out writes it to result.json. Seconds,
    bytes, shares of one."""

    scenario: Annotated[Mapping[str, Any], As(ScenarioFields, Any)]
    provenance: Provenance
    result: Row
    links: Mapping[str, LinkTraffic]
    """The links in use, by name."""
    slowest: Rank | None = field(default=None, metadata=OMIT_IF_NONE)
    """The worker that the others wait for."""
    memory: MemoryReport | None = field(default=None, metadata=SINCE)
    workers: tuple[Parts, ...] = field(default=(), metadata=SINCE)
    """Where the iteration of each worker goes, by rank; missing in older results."""
    run: RunLength

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RESULT} | by_field(self)
