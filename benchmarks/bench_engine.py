"""The reference engine: finished ops per second, beside a SimPy loop of as many bare timeouts.

The difference between the two is the price of the model: shared links, dependencies across iterations, a span per op.
Six workers in three servers share three NICs, the default scenario; full-graph waits for everything, psc-gcn is
pipelined and sampled. Beside them 48 workers in 24 servers, where all pairs of servers have flows under way and no two
ops are equal: each op's work is its own times a number of its own between a half and one and a half.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from statistics import median

import numpy as np
import simpy

from benchmarks.measuring import Figure, report
from gcnsim.engine import simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.simulation import study
from gcnsim.streams import stream

ITERATIONS = 100
RUNS = 5
MANY = {"cluster": {"gpus": 48}, "run": {"iterations": 1}}
MANY_ITERATIONS = 2


def main() -> int:
    """Measure; return the exit code."""
    figures = []
    for method in ("psc-gcn", "full-graph"):
        schedule = schedule_of(method)
        expected = ITERATIONS * len(schedule.ops)
        assert schedule.workers == 6
        assert len(schedule.ops) > 500

        def engine(schedule: Schedule = schedule, expected: int = expected) -> None:
            assert simulate(schedule, ITERATIONS).finished_ops == expected

        def bare(expected: int = expected) -> None:
            assert timeouts(expected) == expected

        ours, theirs = per_second(engine, expected), per_second(bare, expected)
        figures += [
            Figure(f"{method}: ops", expected, ""),
            Figure(f"{method}: finished ops", ours, "1/s", ">= 40000"),
            Figure(f"{method}: bare SimPy timeouts", theirs, "1/s"),
            Figure(f"{method}: timeouts per finished op", theirs / ours, ""),
        ]
    for method in ("psc-gcn", "full-graph"):
        for workers, iterations, extra in ((6, ITERATIONS, {}), (48, MANY_ITERATIONS, MANY)):
            figures += unequal_figures(method, workers, iterations, extra)
    return report("engine", f"{ITERATIONS} iterations ({MANY_ITERATIONS} of 48 workers), median of {RUNS}", figures)


def unequal_figures(method: str, workers: int, iterations: int, extra: dict[str, dict[str, int]]) -> list[Figure]:
    """Finished ops per second where no two ops are equal."""
    schedule = unequal(schedule_of(method, **extra))
    expected = iterations * len(schedule.ops)
    assert schedule.workers == workers

    def engine() -> None:
        assert simulate(schedule, iterations).finished_ops == expected

    limit = ">= 40000" if workers == 6 else ">= 25000"
    name = f"{method}, {workers} workers, unequal"
    return [
        Figure(f"{name}: ops", expected, ""),
        Figure(f"{name}: finished ops", per_second(engine, expected), "1/s", limit),
    ]


def unequal(schedule: Schedule) -> Schedule:
    """`schedule` with the work of each op times a number of its own, drawn once."""
    factors = stream(0, "bench_engine").uniform(0.5, 1.5, len(schedule.ops))
    return replace(schedule, demand=schedule.demand * np.asarray(factors))


def schedule_of(method: str, **sections: dict[str, int]) -> Schedule:
    """The schedule of `method` on the default cluster and dataset, or as `sections` say."""
    given = {"schema": SCHEMA, "method": {"name": method}, **sections}
    return study(from_mapping(given, "benchmark")).run.schedule


def timeouts(count: int) -> int:
    """Run `count` timeouts through SimPy, one after the other; return how many came back."""
    env = simpy.Environment()
    seen = 0

    def process() -> Generator[simpy.Event, None, None]:
        nonlocal seen
        for _ in range(count):
            yield env.timeout(1)
            seen += 1

    env.process(process())
    env.run()
    return seen


def per_second(work: Callable[[], None], count: int) -> float:
    """Median of `count` / wall time over RUNS runs of `work`, after one that is not timed."""
    work()
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        rates.append(count / (time.perf_counter() - start))
    return median(rates)


if __name__ == "__main__":
    sys.exit(main())
