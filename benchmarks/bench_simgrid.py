"""The engine beside SimGrid: the same flows and the same schedules, the time of each, and how far their ends differ.

One exchange of all pairs of workers, all flows started together by one actor of SimGrid, sizes each its own: this
compares how links are shared. Then whole iterations of methods, in SimGrid an actor for each stream; its Python runs
every actor on a thread, and changing between these is more than half of its time. Times are processor time of
simulating: SimGrid's start and the building of its platform are not in them, what the engines lay out first is. Where
the system's Python has no SimGrid nothing is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from benchmarks.bench_engine import schedule_of, unequal
from benchmarks.measuring import Figure, report
from gcnsim.core.ids import IntArray
from gcnsim.engine import Run, compile_now
from gcnsim.engine.kernel import store
from gcnsim.engine.kernel.driver import simulate_by
from gcnsim.engine.kernel.store import LoadedKernel
from gcnsim.engine.reference import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import PS_PER_S, Direction, OpKind
from tests.simgrid_peer import ABSENT, Answer, Flow, Route, ask_flows, ask_schedule, available

RUNS = 3
GPUS = (6, 24)
METHODS = ("full-graph", "psc-gcn")
ITERATIONS = 2
LAYER = 1
"""Whose forward exchange is the one of flows alone."""

DIFFERENCE = "<= 1e-9"
"""Of ends, over the time of an iteration (of the exchange, where there is none)."""

Engines = Sequence[tuple[str, Callable[[Schedule, int], Run]]]


def main() -> int:
    """Measure; return the exit code."""
    if not available():
        sys.stdout.write(f"simgrid: not measured: {ABSENT}\n")
        return 0
    if problem := compile_now():
        raise SystemExit(problem)
    compiled = partial(simulate_by, LoadedKernel(*store.read(store.path())))
    engines: Engines = (("compiled engine", compiled), ("reference engine", simulate))
    figures = []
    for gpus in GPUS:
        schedule = exchange(schedule_of("full-graph", gpus))
        sent = np.flatnonzero(schedule.is_flow)
        figures += compared(f"one exchange, {gpus} GPUs", schedule, 1, engines, partial(ask_exchange, schedule), sent)
        for method in METHODS:
            schedule = schedule_of(method, gpus)
            peer = partial(ask_schedule, schedule, ITERATIONS)
            figures += compared(
                f"{method}, {gpus} GPUs", schedule, ITERATIONS, engines, peer, np.arange(len(schedule.ops))
            )
    return report("simgrid", f"median of {RUNS}", figures)


def compared(
    name: str,
    schedule: Schedule,
    iterations: int,
    engines: Engines,
    peer: Callable[[], Answer],
    ops: IntArray,
) -> list[Figure]:
    """What each takes, and how far the ends of `ops` are apart."""
    figures = [Figure(f"{name}: ops", iterations * len(ops), "")]
    for engine, run in engines:
        run(schedule, iterations)
        figures.append(Figure(f"{name}: {engine}", 1e3 * median(seconds(run, schedule, iterations)), "ms"))
    answers = [peer() for _ in range(RUNS)]
    figures.append(Figure(f"{name}: SimGrid", 1e3 * median(answer.seconds for answer in answers), "ms"))
    found = engines[0][1](schedule, iterations).ends[:, ops] / PS_PER_S
    apart = np.abs(found - answers[0].ends).max() / (found.max() / iterations)
    return [*figures, Figure(f"{name}: largest difference", float(apart), "", DIFFERENCE)]


def seconds(engine: Callable[[Schedule, int], Run], schedule: Schedule, iterations: int) -> list[float]:
    """Processor time of several runs."""
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        engine(schedule, iterations)
        times.append(time.process_time() - begin)
    return times


def exchange(schedule: Schedule) -> Schedule:
    """What one layer of `schedule` sends, all at once and without latency, each size times a number of its own."""
    links = zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
    cluster = Cluster((0,), tuple(Link(name, kind, name, name, LinkSpec(item)) for name, kind, item in links))
    builder = Builder("exchange", cluster, 1)
    flows = []
    for op in schedule.ops:
        if op.kind is OpKind.WIRE and op.layer == LAYER and op.direction is Direction.FORWARD and op.route:
            work = float(schedule.demand[0, op.index])
            flows.append(builder.flow(OpKind.WIRE, 0, work, op.route, stream=f"flow{op.index}", cap=op.cap))
    return unequal(builder.close([builder.compute(OpKind.STEP, 0, 0.0, after=flows)]))


def ask_exchange(schedule: Schedule) -> Answer:
    """SimGrid's ends of the flows of `exchange`."""
    flows = [op for op in schedule.ops if op.route]
    routes = list(dict.fromkeys(Route(op.route or (), op.cap) for op in flows))
    place = {route: position for position, route in enumerate(routes)}
    sent = [Flow(0.0, place[Route(op.route or (), op.cap)], float(schedule.demand[0, op.index])) for op in flows]
    return ask_flows(schedule.capacity, routes, sent, full=False)


if __name__ == "__main__":
    sys.exit(main())
