"""What rungs of a limited wait change in intervals: `python -m studies.precision_costs [--gpus 4,8]`.

Every setting is answered for as closely as without a limit, and then with its draws of the assumptions estimated, and
with fewer graphs drawn. `needed`: by what share of themselves the ends of the less precise 90 % interval have to move
outwards to hold the precise one. What nine of ten settings need is in `gcnsim/planning/rungs.py` (docs/scale.md).
Published datasets; fewer graphs only of methods that draw edges. Two minutes of
a core.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gcnsim.planning import StudyCache
from gcnsim.planning.candidate import Estimate
from gcnsim.planning.drawn_times import orders_of
from gcnsim.planning.rungs import FEW_GRAPHS, FEWER_GRAPHS, MEAN_OF, Rung
from gcnsim.planning.study_cache import canonical
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.uncertainty import DRAWS, DrawnRuns, paces_to_factors

DATASETS: Final = ("reddit", "ogbn-products", "yelp")
BANDWIDTHS: Final = ("5Gbps", "15Gbps", "50Gbps")
METHODS: Final[Sequence[Mapping[str, Any]]] = (
    {"name": "full-graph"},
    {"name": "pipegcn"},
    {"name": "psc-gcn", "tau": 0},
    {"name": "psc-gcn", "tau": 1},
    {"name": "psc-gcn", "tau": 2},
    {"name": "psc-gcn", "tau": 2, "epsilon": 0.5},
)
RUNGS: Final = {
    "draws estimated": Rung(draws=False),
    f"{FEW_GRAPHS} graphs": Rung(graphs=FEW_GRAPHS),
    f"{FEWER_GRAPHS} graphs": Rung(graphs=FEWER_GRAPHS),
    f"mean of {MEAN_OF} graphs": Rung(graphs=MEAN_OF, mean=True),
}

say: Final = functools.partial(print, flush=True)


def settings(sizes: Sequence[int]) -> Iterator[Scenario]:
    """What is answered for."""
    for dataset, gpus, bandwidth, method in itertools.product(DATASETS, sizes, BANDWIDTHS, METHODS):
        cluster = {"gpus": gpus, "bandwidth": bandwidth}
        given = {"schema": SCHEMA, "workload": {"dataset": dataset}, "cluster": cluster, "method": dict(method)}
        yield from_mapping(given, "study")


def estimate(scenario: Scenario, rung: Rung) -> Estimate:
    """The setting as this rung answers for it, its interval as it is before it is made wider."""
    scenario = rung.applied(scenario)
    studies = StudyCache(scenario)
    studies.rung = Rung(graphs=None, mean=rung.mean)
    studies.prepare([], [scenario])
    if rung.draws:
        for key in orders_of(canonical(scenario)):
            runs = DrawnRuns.of(canonical(scenario), studies.accesses_of(key), studies.seed)
            studies.keep_drawn({key: paces_to_factors([runs.pace(draw) for draw in range(DRAWS + 1)])})
    return studies.estimate(scenario)


def needed(less: Estimate, precise: Estimate) -> float:
    """By what share of themselves the ends of `less` have to move outwards to hold the interval of `precise`."""
    if precise.low_s is None or precise.high_s is None or less.low_s is None or less.high_s is None:
        raise ValueError("the settings of this study have intervals")
    return max(0.0, 1.0 - precise.low_s / less.low_s, precise.high_s / less.high_s - 1.0)


def main() -> int:
    """Print what each rung needs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", default="4,8")
    sizes = [*map(int, parser.parse_args().gpus.split(","))]
    found: dict[str, list[float]] = {name: [] for name in RUNGS}
    times: dict[str, list[float]] = {name: [] for name in RUNGS}
    for scenario in settings(sizes):
        precise = estimate(scenario, Rung())
        line = f"{scenario.workload.dataset} {scenario.cluster.gpus} {scenario.cluster.bandwidth:g}"
        line += f" {scenario.method.name} {scenario.method.tau}:"
        for name, rung in RUNGS.items():
            if rung.graphs is None or scenario.method.sampling().by_edge:
                less = estimate(scenario, rung)
                found[name].append(needed(less, precise))
                times[name].append(abs(less.iteration_s / precise.iteration_s - 1.0))
                line += f" {name} {found[name][-1]:.4f} {times[name][-1]:.4f}"
        say(line)
    say("| rung | settings | needed: median | nine of ten | most | the time itself: nine of ten |")
    say("|---|---|---|---|---|---|")
    for name, values in found.items():
        middle, nine, most = (f"{100 * float(np.quantile(values, each)):.1f} %" for each in (0.5, 0.9, 1.0))
        moved = f"{100 * float(np.quantile(times[name], 0.9)):.1f} %"
        say(f"| {name} | {len(values)} | {middle} | {nine} | {most} | {moved} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
