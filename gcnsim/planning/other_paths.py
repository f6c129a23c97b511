"""Settings under the other paths that may be between their GPUs (`gcnsim.uncertainty.other_paths`): which simulations
these are, and the times of all joint draws with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gcnsim.ids import FloatArray, Seconds
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import Factors, OtherPath, Placement, other_paths, path_by_draw

if TYPE_CHECKING:
    from gcnsim.planning.drawn_times import Key
    from gcnsim.planning.study_cache import StudyCache


def on_other_paths(key: Key) -> dict[OtherPath, Key]:
    """The simulations of the same setting with other paths between its GPUs; none of stale settings, whose estimates
    are as exact as a simulation: nothing waits for a transfer there."""
    scenario, order, even = key
    if scenario.method.tau:
        return {}
    return {path: (path.scenario, order, even) for path in other_paths(scenario)}


def estimated_times(studies: StudyCache, key: Key, left_open: Factors, seconds: Seconds) -> FloatArray:
    """Seconds per iteration under every joint draw, as estimated from the simulated time `seconds`, float64[draws].

    Estimates of synchronous schedules are up to 2.6 times the simulated time, and on one path more than on another: so
    a draw of another path is estimated from the simulation of that path.
    """
    times, others = left_open.scaled(seconds, left_open.joint), on_other_paths(key)
    if not others:
        return times
    chosen = path_by_draw(list(others), studies.seed, left_open.joint.size)
    for place, (other, moved) in enumerate(zip(others.values(), left_open.others, strict=True)):
        scenario, order, even = other
        there = moved.scaled(studies.result(scenario, order, even=even).metrics.iteration_s, moved.joint)
        times = np.where(chosen == place, there, times)
    return times


def seconds_on(studies: StudyCache, scenario: Scenario, path: OtherPath) -> Seconds:
    """Seconds per iteration of the canonical `scenario` at the stated values, with another path between its GPUs."""
    if path in on_other_paths((scenario, Placement.NUMBERED, False)):
        return studies.result(path.scenario).metrics.iteration_s
    left_open = studies.factors(scenario)
    return float(left_open.scaled(studies.result(scenario).metrics.iteration_s, left_open.alone[path.name][0]))
