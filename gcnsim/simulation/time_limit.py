"""Fidelity of a run: exact or coarse, the error of a coarse run, and runs too long for the engine's clock.

In a coarse run, links that many routes cross are shared once per grain of time, not at every instant
(`gcnsim.engine.kernel.coarse`). The grain is a share of the schedule's lower bound, so every iteration has about the
same number of grains, however long it is. A run that is too long for the clock is refused, with the fields of the
scenario that cause it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Seconds
from gcnsim.core.units import BANDWIDTH, SECONDS
from gcnsim.engine import engine
from gcnsim.scenario import AUTO, COARSE, COARSE_FROM, EXACT, ClusterSpec, Scenario, SlowGpu
from gcnsim.schedule import Schedule, ScheduleBounds, bounds, resource_loads
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S

GRAIN: Final = 1e-4
"""The grain, as a share of the lower bound of an iteration."""

WRONG: Final = 3.5e-3
"""The relative error of the pace of a coarse run at this grain, in either direction.

Assumed for large clusters: twice the largest error measured on 24 to 96 GPUs against exact runs
(`studies.coarse_error`, docs/design.md).
"""


def fidelity(scenario: Scenario) -> str:
    """EXACT or COARSE as requested; by default coarse from `COARSE_FROM` GPUs on."""
    requested = scenario.run.fidelity
    if requested != AUTO:
        return requested
    return COARSE if scenario.cluster.gpus >= COARSE_FROM else EXACT


def as_closely(schedule: Schedule, scenario: Scenario, lower_s: Seconds) -> Schedule:
    """`schedule` with the grain that `scenario` asks for; lower_s: its lower bound.

    Raises ScenarioError for a coarse run without the compiled engine, the only one with that mode.
    """
    if fidelity(scenario) == EXACT:
        return schedule
    found = engine()
    if found.kernel is None:
        text = f"{AUTO} is {COARSE} from {COARSE_FROM} GPUs" if scenario.run.fidelity == AUTO else COARSE
        raise ScenarioError(f"run.fidelity: {text}, which needs the compiled engine ({found.why}); allowed: {EXACT}")
    return replace(schedule, grain_s=GRAIN * lower_s)


def wrong_by(schedule: Schedule) -> float:
    """The relative error of the pace of a run of `schedule` that comes from its grain."""
    return WRONG if schedule.grain_s > 0.0 else 0.0


CLOCK_S: Final = 2.0**62 / PS_PER_S
"""Simulated seconds that integer picoseconds can represent, with room to add two of them."""


def checked_bounds(scenario: Scenario, calm: Schedule, schedule: Schedule, judge: Steady) -> ScheduleBounds:
    """The bounds of `schedule`, checked against the clock; calm: the same without the scenario's faults.

    Raises ScenarioError with the cause if the run may outlast the clock.
    """
    limits = bounds(schedule)
    longest = limits.upper_s
    if longest * judge.most <= CLOCK_S:
        return limits
    ends = f"too long to simulate (the clock ends after {CLOCK_S:.0f} s"
    if schedule is not calm and bounds(calm).upper_s * judge.most <= CLOCK_S:
        raise ScenarioError(f"{_worst(scenario, schedule)} makes iterations {ends} of {judge.most} iterations)")
    spare = int((CLOCK_S / longest - (judge.most - 2 * judge.settling)) / 2)
    if judge.measured == judge.settling and spare >= judge.cycle:
        raise ScenarioError(
            f"run.iterations: {scenario.run.iterations} iterations of up to {longest:.3g} s are {ends}, settling "
            f"included); allowed here: at most {spare // judge.cycle * judge.cycle}"
        )
    raise ScenarioError(f"{_slowest(scenario.cluster, calm)} makes iterations {ends} of {judge.most} iterations)")


def refuse_too_long(schedule: Schedule, path: str) -> None:
    """Raise ScenarioError if all iterations of `schedule`, with the fault at `path`, outlast the clock."""
    count = schedule.demand.shape[0]
    if bounds(schedule).upper_s * count > CLOCK_S:
        raise ScenarioError(
            f"{path}: makes iterations too long to simulate (the clock ends after {CLOCK_S:.0f} s of {count} "
            "iterations)"
        )


def _worst(scenario: Scenario, schedule: Schedule) -> str:
    """The fault that costs most, by its field: of the busiest link, otherwise of a slow GPU."""
    name = _link(schedule)[0]
    at_link = [fault for fault in scenario.faults if getattr(fault, "link", None) in (name, name.rpartition(".")[0])]
    slow = [fault for fault in scenario.faults if isinstance(fault, SlowGpu)]
    worst = (at_link or slow or list(scenario.faults))[0]
    for field in ("factor", "lost", "rate"):
        if hasattr(worst, field):
            return f"{worst.path}.{field}: {getattr(worst, field):g}"
    return worst.path


def _link(schedule: Schedule) -> tuple[str, str, float]:
    """The busiest link: its name, its kind and its seconds per iteration."""
    seconds = resource_loads(schedule).mean(axis=0)[schedule.columns.streams :]
    busiest = int(np.argmax(seconds))
    return schedule.link_names[busiest], schedule.link_kinds[busiest], float(seconds[busiest])


def _slowest(spec: ClusterSpec, schedule: Schedule) -> str:
    """The cluster's field, with its value, that iterations spend most time on."""
    name, kind, carrying = _link(schedule)
    columns, work = schedule.columns, schedule.demand.mean(axis=0)
    latency = columns.of_route(columns.latency_s) * (work > 0)
    waiting = np.bincount(columns.stream, weights=latency, minlength=columns.streams)
    computing = np.bincount(columns.stream, weights=np.where(columns.is_flow, 0.0, work), minlength=columns.streams)
    device = f"cluster.device: {spec.device}"
    fields = {
        "nic": f"cluster.bandwidth: {BANDWIDTH.exact(spec.bandwidth)}",
        "rack": f"cluster.oversubscription: {spec.oversubscription:g}",
        "nvlink": "cluster.nvlink" if spec.nvlink is None else f"cluster.nvlink: {BANDWIDTH.exact(spec.nvlink)}",
        "pcie": device if spec.pcie is None else f"cluster.pcie: {spec.pcie}",
    }
    if name.startswith("dram") and spec.host_memory is not None:
        fields["memory"] = f"cluster.host_memory: {BANDWIDTH.exact(spec.host_memory)}"
    named = "cluster.link" if spec.latency is None else f"cluster.latency: {SECONDS.exact(spec.latency)}"
    lines = [
        (carrying, fields.get(kind, f"cluster.host: {spec.host}")),
        (float(waiting.max()), named),
        (float(computing.max()), device),
    ]
    return max(lines)[1]
