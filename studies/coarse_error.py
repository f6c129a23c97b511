"""How far coarse runs are from exact ones: `python -m studies.coarse_error [--gpus 24,48,96]`.

The pace of exact and of coarse runs of the same schedule, at several grains (as shares of the lower bound), over the
later half of `ITERATIONS` iterations: a state in which pipelines have settled. A saturated pipeline may wander for
hundreds of iterations before that, and a last bit decides how. So each pace is a mean over `DRAWS` runs whose amounts
are disturbed by up to 1e-9, and beside the errors stands by how much exact ones differ. An hour with 96 GPUs.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.engine import compile_now, simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Schedule, bounds
from gcnsim.simulation import write_schedule
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import PS_PER_S

GRAINS: Final = (1e-5, 1e-4, 1e-3)
ITERATIONS: Final = {"full-graph": 6, "pipegcn": 240, "psc-gcn": 240}
DRAWS: Final = 3
METHODS: Final[Sequence[dict[str, Any]]] = (
    {"name": "full-graph"},
    {"name": "pipegcn"},
    {"name": "psc-gcn", "tau": 2},
    {"name": "psc-gcn", "tau": 3},
)
BANDWIDTHS: Final[dict[int, Sequence[str]]] = {96: ("15Gbps",)}
"""Where they are not 5, 15 and 50 Gbit/s."""
DATASETS: Final = {96: "ogbn-papers100M"}
"""Where it is not reddit."""


say: Final = functools.partial(print, flush=True)


@dataclass(frozen=True, slots=True)
class Compared:
    """A schedule's exact pace over its lower bound, by how much exact runs differ, and of each grain the relative
    difference from the exact pace and how many times as fast a run is."""

    label: str
    pace: float
    spread: float
    errors: tuple[float, ...]
    faster: tuple[float, ...]


def main() -> int:
    """Print a line for each setting as it is known, and the most of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="24,48,96")
    gpus = [int(word) for word in parser.parse_args().gpus.split(",")]
    problem = compile_now()
    if problem:
        raise SystemExit(problem)
    say(f"{'':36} {'pace':>7} {'spread':>8} " + " ".join(f"{grain:>16.0e}" for grain in GRAINS))
    worst = np.zeros(len(GRAINS))
    for item in compared(gpus):
        content = " ".join(f"{error:+9.1e} x{fast:5.1f}" for error, fast in zip(item.errors, item.faster, strict=True))
        say(f"{item.label:36} {item.pace:7.4f} {item.spread:8.1e} {content}")
        worst = np.maximum(worst, np.abs(item.errors))
    say(f"{'most':53} " + " ".join(f"{error:9.1e}       " for error in worst))
    return 0


def compared(gpus: Sequence[int]) -> Iterator[Compared]:
    """Every setting on so many GPUs."""
    for count in gpus:
        for bandwidth in BANDWIDTHS.get(count, ("5Gbps", "15Gbps", "50Gbps")):
            for method in METHODS:
                label = f"{count} GPUs, {bandwidth}, " + " ".join(map(str, method.values()))
                yield beside_exact(label, written(count, bandwidth, method), ITERATIONS[method["name"]])


def beside_exact(label: str, schedule: Schedule, iterations: int) -> Compared:
    """One schedule, exactly and at every grain."""
    lower = bounds(schedule).lower_s
    exact, took = paces(schedule, iterations)
    runs = [paces(replace(schedule, grain_s=grain * lower), iterations) for grain in GRAINS]
    errors = tuple(float(found.mean() / exact.mean()) - 1.0 for found, _ in runs)
    spread = float(np.ptp(exact) / exact.mean())
    return Compared(label, float(exact.mean()) / lower, spread, errors, tuple(took / value for _, value in runs))


def paces(schedule: Schedule, iterations: int) -> tuple[FloatArray, float]:
    """Seconds per iteration over the later half of `iterations` of each draw, and of simulating an iteration."""
    half, found, took = iterations // 2, [], []
    for draw in range(DRAWS):
        factors = 1.0 + 1e-9 * stream(draw, "coarse_error").uniform(-1.0, 1.0, schedule.columns.size)
        disturbed = replace(schedule, demand=schedule.demand * factors)
        begin = time.process_time()
        run = simulate(disturbed, iterations, endless=True)
        took.append((time.process_time() - begin) / run.simulated)
        ends = run.ends_of(list(schedule.ends)).max(axis=1)
        found.append(float(ends[-1] - ends[half - 1]) / (iterations - half) / PS_PER_S)
    return np.array(found), min(took)


def written(gpus: int, bandwidth: str, method: dict[str, Any]) -> Schedule:
    """The schedule of `method` on so many GPUs with such network cards."""
    question: dict[str, Any] = {
        "schema": SCHEMA,
        "cluster": {"gpus": gpus, "bandwidth": bandwidth},
        "workload": {"dataset": DATASETS.get(gpus, "reddit")},
        "method": method,
    }
    scenario = from_mapping(question, "study")
    accesses = open_source(scenario)
    features = resolve_model(scenario.workload, accesses.declared).features
    return write_schedule(scenario, accesses.counts(scenario, features, RangeEnd.LIKELY), accesses)


if __name__ == "__main__":
    sys.exit(main())
