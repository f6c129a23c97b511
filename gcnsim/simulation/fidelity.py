"""How closely a run is simulated: exactly, or coarsely, and what the latter may be wrong by.

Coarsely, links that many routes cross are shared once per grain of time, not at every instant
(`gcnsim.engine.kernel.coarse`). The grain is a share of the schedule's lower bound, so that an iteration has about the
same number of them whatever it takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.engine import engine
from gcnsim.errors import ScenarioError
from gcnsim.ids import Seconds
from gcnsim.scenario import AUTO, COARSE, COARSE_FROM, EXACT, Scenario
from gcnsim.schedule import Schedule

GRAIN: Final = 1e-4
"""The grain, as a share of the lower bound of an iteration."""

WRONG: Final = 3.5e-3
"""What the pace of a coarse run may be wrong by, either way, at this grain: assumed for large clusters, twice the most
measured on 24 to 96 GPUs where exact runs agree (`studies.coarse_error`, docs/design.md)."""


def fidelity(scenario: Scenario) -> str:
    """EXACT or COARSE, as asked for; where it was left open, coarse from `COARSE_FROM` GPUs on."""
    asked = scenario.run.fidelity
    if asked != AUTO:
        return asked
    return COARSE if scenario.cluster.gpus >= COARSE_FROM else EXACT


def as_closely(schedule: Schedule, scenario: Scenario, lower_s: Seconds) -> Schedule:
    """`schedule` with the grain that `scenario` asks for; lower_s: its lower bound.

    Raises ScenarioError for a coarse run without the compiled engine, which alone has that mode.
    """
    if fidelity(scenario) == EXACT:
        return schedule
    found = engine()
    if found.kernel is None:
        said = f"{AUTO} is {COARSE} from {COARSE_FROM} GPUs" if scenario.run.fidelity == AUTO else COARSE
        raise ScenarioError(f"run.fidelity: {said}, which needs the compiled engine ({found.why}); allowed: {EXACT}")
    return replace(schedule, grain_s=GRAIN * lower_s)


def wrong_by(schedule: Schedule) -> float:
    """What the pace of a run of `schedule` may be wrong by for its grain, as a share of it."""
    return WRONG if schedule.grain_s > 0.0 else 0.0
