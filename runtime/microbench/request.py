"""What is to be measured, and how long it may take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final, TypeVar

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.fields import Number
from runtime.options import CHOICES, RULES

T = TypeVar("T")

LEVELS: Final = ("tiny", "quick", "full")
AT_ONCE: Final = Number(True, 1, 64)
"""Each is a process that imports torch."""

AGGREGATORS: Final = tuple(name for name in CHOICES["aggregator"] if name != "auto")
"""What is measured has one name: what `auto` takes depends on the graph."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How thoroughly to measure.

    level: which sizes. sample_s, samples: each kernel is repeated until it has at least both, in seconds and in number.
    window_s: how long processes run at once to measure what they cost one another. rounds: in how many parts, minutes
    apart, those of one process alone are taken: one slow minute is not all that is known of a kernel.
    """

    level: str
    sample_s: float
    samples: int
    window_s: float
    rounds: int = 1

    def of(self, tiny: T, quick: T, full: T) -> T:
        """The one of three that belongs to this level."""
        return (tiny, quick, full)[LEVELS.index(self.level)]

    def of_a_round(self) -> TimeBudget:
        """What one of the rounds may take."""
        return replace(self, sample_s=self.sample_s / self.rounds, samples=ceil(self.samples / self.rounds))


TINY: Final = TimeBudget("tiny", 0.002, 5, 0.02)
"""For tests: the smallest sizes, too few repeats to mean anything."""

QUICK: Final = TimeBudget("quick", 0.05, 5, 0.25)
FULL: Final = TimeBudget("full", 0.2, 5, 0.8, rounds=3)


@dataclass(frozen=True, slots=True)
class MicrobenchRequest:
    """One run of the micro-benchmarks; raises ScenarioError for what is not allowed.

    threads: of each process. workers: numbers of processes to run at once, ascending. network: whether to measure
    transfers between processes. aggregator: one of AGGREGATORS, which kernels sum neighbours. kernels: whether to
    measure those of one process alone; else only what processes cost one another.
    """

    budget: TimeBudget = FULL
    device: str = "cpu"
    threads: int = 1
    workers: tuple[int, ...] = (1, 2, 3, 4, 6)
    network: bool = True
    aggregator: str = "plain"
    kernels: bool = True

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.device not in CHOICES["device"]:
            raise ScenarioError(f"--device: unknown {self.device!r}; {nearest(self.device, CHOICES['device'])}")
        if self.aggregator not in AGGREGATORS:
            raise ScenarioError(f"--aggregator: unknown {self.aggregator!r}; {nearest(self.aggregator, AGGREGATORS)}")
        if self.aggregator == "numba" and self.device != "cpu":
            raise ScenarioError("--aggregator: numba sums on CPUs, --device is cuda; allowed: plain, dgl")
        RULES["threads"].check(self.threads, "--threads")
        for count in self.workers:
            AT_ONCE.check(count, "--workers")
        if not self.workers:
            raise ScenarioError("--workers: an empty list; give numbers separated by commas, e.g. 1,2,4")

    @property
    def members(self) -> int:
        """Processes to start: as many as ever run at once, two at least where transfers are measured."""
        return max(*self.workers, 2 if self.network else 1)

    def options(self) -> dict[str, Any]:
        """What was asked, as plain JSON values."""
        return {
            **asdict(self),
            "budget": self.budget.level,
            "rounds": self.budget.rounds,
            "workers": list(self.workers),
        }

    def to_json(self) -> str:
        """Everything, for a member."""
        return json.dumps(asdict(self))


def from_json(text: str) -> MicrobenchRequest:
    """What `to_json` wrote."""
    raw: Mapping[str, Any] = json.loads(text)
    return MicrobenchRequest(**{**raw, "budget": TimeBudget(**raw["budget"]), "workers": tuple(raw["workers"])})
