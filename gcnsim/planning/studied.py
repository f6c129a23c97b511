"""One study of a question: what it gave, how long it takes, and whether it is estimated as another one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gcnsim.ids import Seconds
from gcnsim.planning.candidate import INTERVAL
from gcnsim.planning.drawn_times import Key
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result
from gcnsim.uncertainty import Factors

PRECISION: Final = 0.01
"""Changes of less than 1 % are below what a simulation of a few iterations can tell."""


class Studied(NamedTuple):
    """What a study gave. lower: the least seconds of an iteration where these were asked for. paths: the same setting's
    studies with other paths between its GPUs."""

    result: Result | None = None
    left_open: Factors | None = None
    lower: Seconds | None = None
    refused: bool = False
    paths: tuple[tuple[Key, Result], ...] = ()


def estimated_alike(one: Factors, other: Factors) -> bool:
    """Whether two settings are estimated alike at the stated values and in nearly every draw of the assumptions."""
    ratio = one.nominal_s * one.joint / (other.nominal_s * other.joint)
    apart = np.quantile(np.abs(ratio - 1.0), INTERVAL[1], method="hazen")
    return bool(max(apart, abs(one.nominal_s / other.nominal_s - 1.0)) < PRECISION)


def effort_of(scenario: Scenario) -> int:
    """How long a study takes, in no unit: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = scenario.method
    return scenario.cluster.gpus**2 * (1 if method.sampling().whole else 4 + method.tau)
