"""Joint draws of the assumptions, simulated: the pace of each over the pace at the stated values.

Both are of the mean graph, simulated until steady, so that nothing but what a draw moves is in their ratio. Unlike the
analytic estimate it knows how links are shared and what a pipeline hides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.engine import simulate
from gcnsim.ids import FloatArray, IntArray, Seconds
from gcnsim.scenario import Scenario
from gcnsim.schedule import Schedule, Variants
from gcnsim.simulation.steady import Steady
from gcnsim.sources import Source
from gcnsim.timeline import PS_PER_S
from gcnsim.uncertainty.assumed import DRAWS
from gcnsim.uncertainty.drawn import LeftOpen, averaged
from gcnsim.uncertainty.open_paths import other_paths, path_by_draw


@dataclass(frozen=True, slots=True)
class DrawnRuns:
    """The joint draws of a scenario, each ready to be simulated, and behind them the stated values. written: by path
    between its GPUs, the assumed one first, a schedule whose graphs are the draws that have it. path: of each draw,
    int64[draws + 1], -1 for the assumed one; graph: of the schedule of its path. measured: the most iterations that a
    pace is the mean of."""

    written: tuple[tuple[Schedule, Variants], ...]
    path: IntArray
    graph: IntArray
    measured: int

    @classmethod
    def of(cls, scenario: Scenario, accesses: Source, seed: int, draws: int = DRAWS) -> DrawnRuns:
        """So many joint draws of `seed` of a scenario whose draws are graphs of one schedule (`at_once`); its faults
        are left out."""
        calm = replace(scenario, faults=())
        paths = other_paths(calm)
        # Behind the draws stand the stated values, those of the assumed path.
        path = np.append(path_by_draw(paths, seed, draws), -1)
        graph, written = np.zeros_like(path), []
        for place, each in enumerate((calm, *(other.scenario for other in paths)), start=-1):
            own = path == place
            kept = own[:draws] | averaged(each)
            graph[own] = (np.cumsum(np.append(kept, True)) - 1)[own]
            left_open = LeftOpen.of(each, accesses)
            written.append(left_open.written(left_open.places(seed, 1, kept), int(kept.sum()) + 1))
        return cls(tuple(written), path, graph, scenario.run.iterations)

    def pace(self, place: int) -> Seconds:
        """Seconds per iteration of the steady state under draw `place`; behind the draws, at the stated values."""
        written, variants = self.written[self.path[place] + 1]
        schedule = variants.of(written, int(self.graph[place]))
        judge = Steady(schedule, self.measured)
        run = simulate(schedule, judge.most, judge.enough, endless=True)
        first = judge.window(run.ends).first
        closing = run.ends[:, list(schedule.ends)].max(axis=1)
        return float(closing[-1] - closing[first - 1]) / ((run.iterations - first) * PS_PER_S)


def paces_to_factors(paces: list[Seconds]) -> FloatArray:
    """Of the paces of all draws, and behind them that at the stated values: times over the time at those,
    float64[draws]; nothing of nothing."""
    return np.array(paces[:-1]) / paces[-1] if paces else np.zeros(0)
