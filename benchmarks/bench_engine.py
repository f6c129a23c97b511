"""Finished ops per second of both engines on the same schedules, one after the other in the same process.

6 to 48 GPUs, two in a server, of the default cluster and dataset: full-graph waits for everything, pipegcn is
pipelined, psc-gcn is pipelined and sampled. The reference runs fewer iterations, since it is slower; each engine's time
has all that a run needs, from the schedule to the ends. Beside them `unequal` work, each op's its own times a number
between a half and one and a half, of which the reference can remember nothing. How long the compiled kernel takes to
load is measured in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np

from benchmarks.measuring import Figure, report
from gcnsim.core.streams import stream
from gcnsim.engine import Run, compile_now
from gcnsim.engine.kernel import store
from gcnsim.engine.kernel.driver import simulate_by
from gcnsim.engine.kernel.store import LoadedKernel
from gcnsim.engine.reference import simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd

RUNS = 5
METHODS = ("full-graph", "pipegcn", "psc-gcn")
SIZES = {6: (200, 40, 2.0), 12: (80, 10, 1.0), 24: (30, 3, 0.5), 48: (8, 1, None)}
"""Iterations of the compiled and the reference engine, and million ops a second to reach, by GPUs."""

TIMES = 15.0
"""How many times as fast as the reference the compiled engine should be."""

LOAD = """
import time
import gcnsim.engine
begin = time.process_time()
from gcnsim.engine.kernel import store
from gcnsim.engine.kernel.store import LoadedKernel
LoadedKernel(*store.read(store.path()))
print(time.process_time() - begin)
"""


def main() -> int:
    """Measure; return the exit code."""
    problem = compile_now()
    if problem:
        raise SystemExit(problem)
    compiled = partial(simulate_by, LoadedKernel(*store.read(store.path())))
    figures = [Figure("loading the compiled kernel", 1e3 * median(loading() for _ in range(RUNS)), "ms", "<= 100")]
    for gpus, (iterations, fewer, least) in SIZES.items():
        for method in METHODS:
            schedule = schedule_of(method, gpus)
            figures += compared(f"{method}, {gpus} GPUs", schedule, compiled, (iterations, fewer), least)
    figures += compared("psc-gcn, 48 GPUs, unequal", unequal(schedule_of("psc-gcn", 48)), compiled, (8, 1), None)
    return report("engine", f"median of {RUNS}", figures)


def compared(
    name: str,
    schedule: Schedule,
    compiled: Callable[[Schedule, int], Run],
    iterations: tuple[int, int],
    least: float | None,
) -> list[Figure]:
    """Both engines' rates on `schedule`; iterations: of the compiled one, of the reference."""
    fast = per_second(compiled, schedule, iterations[0], RUNS)
    slow = per_second(simulate, schedule, iterations[1], 1 + RUNS // 2)
    return [
        Figure(f"{name}: compiled", fast / 1e6, "M ops/s", f">= {least:g}" if least else ""),
        Figure(f"{name}: reference", slow / 1e6, "M ops/s"),
        Figure(f"{name}: times as fast", fast / slow, "", f">= {TIMES:g}" if least else ""),
    ]


def per_second(engine: Callable[[Schedule, int], Run], schedule: Schedule, iterations: int, runs: int) -> float:
    """Median of finished ops over processor time, which other processes hardly change, after a run not timed."""
    rates = []
    for _ in range(1 + runs):
        start = time.process_time()
        finished = engine(schedule, iterations).finished_ops
        rates.append(finished / (time.process_time() - start))
        assert finished == iterations * len(schedule.ops)
    return median(rates[1:])


def loading() -> float:
    """Processor seconds in which a process that has imported the engine gets the compiled kernel, llvmlite with it."""
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    return float(done.stdout)


def unequal(schedule: Schedule) -> Schedule:
    """`schedule` with the work of each op times a number of its own, drawn once."""
    factors = stream(0, "bench_engine").uniform(0.5, 1.5, len(schedule.ops))
    return replace(schedule, demand=schedule.demand * np.asarray(factors))


def schedule_of(method: str, gpus: int) -> Schedule:
    """The schedule of `method` on the default cluster and dataset."""
    scenario = from_mapping({"schema": SCHEMA, "method": {"name": method}, "cluster": {"gpus": gpus}}, "benchmark")
    accesses = open_source(scenario)
    features = resolve_model(scenario.workload, accesses.declared).features
    return write_schedule(scenario, accesses.counts(scenario, features, RangeEnd.LIKELY), accesses)


if __name__ == "__main__":
    sys.exit(main())
