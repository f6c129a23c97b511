"""A hundred bandwidths, a thousand iterations each: six GPUs on Reddit, from scenario to mean iteration.

Full-graph training and pipegcn do the same work in every iteration, so most of their iterations repeat a period;
psc-gcn draws every one of its thousand graphs anew, so all are simulated. Timed is all that such a sweep needs: the
graphs drawn once, a schedule written for each bandwidth, the runs, the mean of their later halves, on all cores.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.measuring import Figure, report
from gcnsim.core.ids import FloatArray
from gcnsim.core.processes import cores, parallel_map
from gcnsim.engine import compile_now, simulate
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import write_schedule
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import PS_PER_S

CONFIGURATIONS, ITERATIONS, GPUS = 100, 1000, 6

BANDWIDTHS = (125e6, 12.5e9)
"""Bytes per second of the slowest and the fastest network: 1 and 100 Gbit/s."""

SWEEPS = {"full-graph": (5, "<= 1"), "pipegcn": (5, "<= 3"), "psc-gcn": (1, "<= 30")}
"""How often each is measured, and seconds to keep, by method."""


class Found(NamedTuple):
    """Of one configuration: seconds of an iteration, iterations simulated, processor seconds of schedule and run."""

    iteration_s: float
    simulated: int
    schedule_s: float
    run_s: float


def main() -> int:
    """Measure; return the exit code."""
    problem = compile_now()
    if problem:
        raise SystemExit(problem)
    figures: list[Figure] = []
    for method, (runs, limit) in SWEEPS.items():
        if runs > 1:
            sweep(method)  # what is imported and remembered once
        walls = []
        for _ in range(runs):
            start = time.perf_counter()
            founds = sweep(method)
            walls.append(time.perf_counter() - start)
        checked(method, founds)
        figures += [
            Figure(f"{method}: wall", median(walls), "s", limit),
            Figure(f"{method}: processor time of schedules", sum(item.schedule_s for item in founds), "s"),
            Figure(f"{method}: processor time of runs", sum(item.run_s for item in founds), "s"),
            Figure(f"{method}: simulated of 100,000 iterations", sum(item.simulated for item in founds), ""),
            Figure(f"{method}: without a period", sum(item.simulated == ITERATIONS for item in founds), "of 100"),
        ]
    question = f"{CONFIGURATIONS} bandwidths, {ITERATIONS} iterations, {GPUS} GPUs, {cores()} processes"
    return report("periods", question, figures)


def sweep(method: str) -> list[Found]:
    """All configurations of a method, simulated in as many processes as there are cores."""
    cluster = {"gpus": GPUS, "bandwidth": "1Gbps"}
    requested = {"schema": SCHEMA, "method": {"name": method}, "cluster": cluster, "run": {"iterations": ITERATIONS}}
    given = from_mapping(requested, "benchmark")
    accesses = open_source(given)
    counts = accesses.counts(given, resolve_model(given.workload, accesses.declared).features, RangeEnd.LIKELY)

    def one(scenario: Scenario) -> Found:
        begin = time.process_time()
        schedule = write_schedule(scenario, counts, accesses)
        written = time.process_time()
        run = simulate(schedule, ITERATIONS, endless=True)
        ends = run.ends_of(list(schedule.ends)).max(axis=1)
        mean_s = float(ends[-1] - ends[ITERATIONS // 2 - 1]) / (ITERATIONS - ITERATIONS // 2) / PS_PER_S
        return Found(mean_s, run.simulated, written - begin, time.process_time() - written)

    bandwidths: FloatArray = np.geomspace(*BANDWIDTHS, CONFIGURATIONS)
    scenarios = [replace(given, cluster=replace(given.cluster, bandwidth=value)) for value in bandwidths.tolist()]
    return parallel_map(one, scenarios, cores())


def checked(method: str, found: list[Found]) -> None:
    """Fails where the work was not done: each iteration takes time, and on a faster network no more than before."""
    means = np.array([item.iteration_s for item in found])
    assert means.size == CONFIGURATIONS
    assert (means > 0).all()
    assert (np.diff(means) <= 2e-3 * means[1:]).all(), method
    assert (method == "psc-gcn") == all(item.simulated == ITERATIONS for item in found)


if __name__ == "__main__":
    sys.exit(main())
