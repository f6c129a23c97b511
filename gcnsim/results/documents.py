"""The two documents that people and programs read: the answer of a what-if, and one simulated scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gcnsim.breakdown import Parts
from gcnsim.ids import Rank, Seconds
from gcnsim.results.advice import LeftOutRow, NoEffect, Recommendation, Step
from gcnsim.results.asked import FaultFree, MeasuredReport, PartitionSeeds, PricesReport, TargetReport
from gcnsim.results.grounds import Certainty, Provenance
from gcnsim.results.loads import LinkTraffic, MemoryReport, StragglerReport, Utilization
from gcnsim.results.plain import ONLY_IF_SAID, by_field
from gcnsim.results.row import Row

WHAT_IF: Final = "gcnsim.what-if/1"
RESULT: Final = "gcnsim.result/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """All that a what-if found, in the shape of the JSON schema `gcnsim.what-if/1`.

    scenario: the question, every field resolved, as plain data. results: the rows that were asked for; memory: of each,
    what its GPUs hold. utilization, fault_free, partition_seeds: of the recommended setting.
    """

    scenario: Mapping[str, Any]
    provenance: Provenance
    results: tuple[Row, ...]
    memory: tuple[MemoryReport | None, ...] = ()
    recommendation: Recommendation
    next_steps: tuple[Step, ...]
    no_effect: tuple[NoEffect, ...]
    straggler: StragglerReport | None
    certainty: Certainty
    utilization: Utilization | None = field(default=None, metadata=ONLY_IF_SAID)
    left_out: tuple[LeftOutRow, ...] | None = field(default=None, metadata=ONLY_IF_SAID)
    fault_free: FaultFree | None = field(default=None, metadata=ONLY_IF_SAID)
    measured: tuple[MeasuredReport, ...] | None = field(default=None, metadata=ONLY_IF_SAID)
    partition_seeds: PartitionSeeds | None = field(default=None, metadata=ONLY_IF_SAID)
    target: TargetReport | None = field(default=None, metadata=ONLY_IF_SAID)
    prices: PricesReport | None = field(default=None, metadata=ONLY_IF_SAID)

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
    """Iterations of the run, how many of them were measured, and whether they had settled by then.

    simulated, by_period: how many of them were simulated, and how many more repeat these picosecond by picosecond and
    were not; None and 0 in older files, where all were simulated. fidelity: exact, or coarse, where links that many
    routes cross are shared once per grain_s seconds, which may be wrong by the share error.
    """

    iterations: int
    measured: int
    settled: bool
    simulated: int | None = None
    by_period: int = 0
    fidelity: str = "exact"
    grain_s: Seconds | None = field(default=None, metadata=ONLY_IF_SAID)
    error: float | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """One simulated scenario, in the shape of the JSON schema `gcnsim.result/1`.

    scenario: every field resolved, as plain data. links: those in use, by name. slowest: the worker that the others
    wait for, workers: what an iteration of each consists of; None and empty in older files.
    """

    scenario: Mapping[str, Any]
    provenance: Provenance
    result: Row
    links: Mapping[str, LinkTraffic]
    slowest: Rank | None = None
    memory: MemoryReport | None = None
    workers: tuple[Parts, ...] = ()
    run: RunLength

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RESULT} | by_field(self)
