"""How long a sweep will take and how much memory, before it runs: by a law fitted to this engine's own sweeps.

Ops grow with the pairs of workers. Like that of `gcnsim.planning.patience` it is for whoever waits, not for a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.ids import Seconds
from gcnsim.scenario import Scenario
from gcnsim.simulation.templates import MOST_GPUS
from gcnsim.sweeps.points import Point
from gcnsim.sweeps.question import NONE, Question

FIRST_S: Final = 0.002
"""Seconds of a point, whatever its size."""

PAIR_S: Final = 0.33e-3
"""Seconds for each pair of workers and four layers, with what-if's interval: measured 16 ms of a core at 6 GPUs, 24 at
8, 66 at 12 and 125 at 16, where half of the points saturate their links; 48 in the mean of a sweep over all four."""

PLAIN: Final = 0.78
"""Share of it that is left without an interval."""

PROCESS_BYTES: Final = 110e6
"""Of a process with the libraries."""

PAIR_BYTES: Final = 0.1e6
"""Of the schedules that are kept, for each pair of workers and four layers."""

ALONE_BYTES: Final = 5e3
"""The same of more workers, of whom no schedule is kept beside that of the point under way."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a sweep is expected to take: points, seconds on so many processes, bytes of all of them together."""

    points: int
    refused: int
    seconds: Seconds
    nbytes: float
    processes: int


def expected(question: Question, points: Sequence[Point], processes: int) -> Expected:
    """What these points take on `processes` cores."""
    scenarios = [each.scenario for each in points if each.scenario is not None]
    share = PLAIN if question.interval == NONE else 1.0
    seconds = sum(FIRST_S + PAIR_S * share * _pairs(each) for each in scenarios) / processes
    most = max(map(_held, scenarios), default=0.0)
    nbytes = (processes + 1) * PROCESS_BYTES + processes * most
    return Expected(len(points), len(points) - len(scenarios), seconds, nbytes, processes)


def _held(scenario: Scenario) -> float:
    return _pairs(scenario) * (PAIR_BYTES if scenario.cluster.gpus <= MOST_GPUS else ALONE_BYTES)


def _pairs(scenario: Scenario) -> float:
    return scenario.cluster.gpus * (scenario.cluster.gpus + 4) * (scenario.workload.layers or 4) / 4.0
