"""The least time that an iteration's bytes need on the network: a time below it was not measured of this question."""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.ids import Seconds
from gcnsim.schedule import resource_loads
from gcnsim.simulation import Result
from gcnsim.units import format_bandwidth, format_seconds

COUNTED: Final = 0.75
"""What remains of the bytes where the partition has as few boundary nodes as another one may have: a quarter less."""


def least_wire_s(result: Result) -> Seconds:
    """Seconds in which the busiest network card of the result moves its bytes of one iteration at its raw rate; 0 of
    one server."""
    schedule = result.run.schedule
    cards = [index for index, kind in enumerate(schedule.link_kinds) if kind == "nic"]
    seconds = resource_loads(schedule).seconds.mean(axis=0)[schedule.columns.streams :]
    return float(np.max(seconds[cards], initial=0.0)) * result.machine.network.efficiency.value


def impossible(result: Result, measured_s: Seconds, least: float = 1.0) -> str | None:
    """Why no run of this question took `measured_s` per iteration; None where one may have. least: of the bytes, the
    share that there are where the workload leaves them open."""
    return impossible_time(least * least_wire_s(result), measured_s, result.scenario.cluster.bandwidth)


def impossible_time(needed_s: Seconds, measured_s: Seconds, bandwidth: float) -> str | None:
    """As `impossible`, of `needed_s` seconds on network cards of `bandwidth` bytes/s."""
    if measured_s >= COUNTED * needed_s:
        return None
    return (
        f"impossible as described: its bytes need {format_seconds(needed_s)} on the busiest network card at "
        f"{format_bandwidth(bandwidth)}, {needed_s / measured_s:.1f} times the measured {format_seconds(measured_s)}"
    )
