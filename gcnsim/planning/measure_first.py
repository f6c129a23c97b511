"""Which unmeasured figure an answer hangs on most, and the command that measures it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from gcnsim.machine import TRANSPORT, resolve_machine
from gcnsim.results import MEASURE_CORES, AssumptionEffect
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import PARTITION, WORKLOAD
from gcnsim.units import format_seconds

LEAST_SHARE: Final = 0.2
"""Share of all squared spreads from which on one figure is worth measuring first."""

LEAST_SPAN: Final = 1.05
"""Time at one end of its range over that at the other, from which on a figure is worth measuring."""

MEASURE: Final = "python -m runtime.measure --device cuda"
"""What measures one's own workload on one GPU."""

SURVEY: Final = "python -m runtime.survey --device cuda"
"""What measures a GPU, its host and the copies between them."""

OF_GRAPH: Final = frozenset({WORKLOAD, PARTITION})
"""What a real graph says."""


def measure_first(scenario: Scenario, effects: Sequence[AssumptionEffect]) -> str:
    """The figure that moves the time most, by how much, and how it is measured; empty where none stands out.

    effects: what each assumption alone does to the time of `scenario`.
    """
    most = max(effects, key=span_of, default=None)
    if most is None or most.share < LEAST_SHARE or span_of(most) < log(LEAST_SPAN):
        return ""
    low, high = sorted((most.iteration_s_low, most.iteration_s_high))
    ends = f"{format_seconds(low)} to {format_seconds(high)}"
    return f"{most.name} ({ends}, {100 * most.share:.0f} % of the uncertainty): {how_to_measure(scenario, most.name)}"


def how_to_measure(scenario: Scenario, name: str) -> str:
    """How an assumption of a question is put to the test."""
    cluster = scenario.cluster
    if name == TRANSPORT:
        return "say what your software does, --transport direct or --transport staged"
    if name in OF_GRAPH:
        return "partition your own graph (--graph)" if scenario.workload.graph is None else "try --partition-seeds 5"
    machine = resolve_machine(cluster)
    if machine.kind == "cpu":
        return MEASURE_CORES
    profile = name.rpartition(".")[0]
    if profile in {device.name for device in machine.devices or (machine.device,)}:
        return f"{MEASURE} on one {profile}, then --measured-compute"
    if profile == machine.network.name and cluster.servers > 1:
        return f"{SURVEY} on two servers (torchrun --nnodes 2), then gcnsim calibrate"
    return f"{SURVEY} on one server, then gcnsim calibrate"


def span_of(effect: AssumptionEffect) -> float:
    """How far an assumption moves the time, in logarithms."""
    return abs(log(effect.iteration_s_high / effect.iteration_s_low))
