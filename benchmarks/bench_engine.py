"""The reference engine: finished ops per second, beside a SimPy loop of as many bare timeouts.

The difference between the two is the price of the model: shared links, dependencies across iterations, a span per op.
Six workers in three servers share three NICs, the default scenario; full-graph waits for everything, psc-gcn is
pipelined and sampled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from statistics import median

import simpy

from benchmarks.measuring import Figure, report
from gcnsim.engine import simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.study import study

ITERATIONS = 100
RUNS = 5


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
    return report("engine", f"6 workers, {ITERATIONS} iterations, median of {RUNS} runs", figures)


def schedule_of(method: str) -> Schedule:
    """The schedule of `method` on the default cluster and dataset."""
    return study(from_mapping({"schema": SCHEMA, "method": {"name": method}}, "benchmark")).run.schedule


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
