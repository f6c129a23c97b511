"""The reference engine: one SimPy process per stream, one event per thing that happens. Readable first.

A stream process runs its ops in order, iteration after iteration: wait for the dependencies that have not ended, do the
work (a timeout for exclusive work; latency, then a fluid flow, for bytes), note start and end, wake whoever waits. Time is
in integer picoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from simpy.core import Environment
from simpy.events import Event

from gcnsim.engine.fluid import Fluid, FluidGroup
from gcnsim.ids import IntArray
from gcnsim.schedule import Schedule
from gcnsim.timeline import PS_PER_S

Enough = Callable[[IntArray], bool]
"""Asked after each iteration with the ends so far, int64[T, ops]; True stops the run there."""


@dataclass(frozen=True, slots=True)
class Run:
    """What happened: starts and ends of every op, int64[T, ops] picoseconds, T whole iterations of all workers."""

    schedule: Schedule
    starts: IntArray
    ends: IntArray

    @property
    def iterations(self) -> int:
        """T, the number of simulated iterations."""
        return int(self.ends.shape[0])

    @property
    def finished_ops(self) -> int:
        """Compute ops and flows that ended."""
        return int(self.ends.size)


class _Engine:
    def __init__(self, schedule: Schedule, iterations: int, enough: Enough | None) -> None:
        self.schedule = schedule
        self.iterations = iterations
        self.enough = enough
        self.env = Environment(initial_time=0)
        self.starts: list[list[int]] = []
        self.ends: list[list[int]] = []
        self.waiting: list[dict[int, list[Event]]] = []
        self.pending: list[int] = []
        self.work = _work(schedule)
        fluid = Fluid(
            self.env, schedule.capacity, [(op.route, op.cap) for op in schedule.ops if op.route is not None]
        )
        self.place: list[tuple[FluidGroup, int] | None] = [
            fluid.place[op.route, op.cap] if op.route is not None else None for op in schedule.ops
        ]
        self.latency = [round(op.latency_s * PS_PER_S) for op in schedule.ops]
        self.stopped = Event(self.env)
        self.complete = 0

    def open(self, iteration: int) -> None:
        """Make room for the records of the iterations up to `iteration`."""
        count = len(self.schedule.ops)
        while len(self.ends) <= iteration:
            self.starts.append([-1] * count)
            self.ends.append([-1] * count)
            self.waiting.append({})
            self.pending.append(count)

    def run(self) -> Run:
        for queue in self.schedule.order:
            self.env.process(self.stream(queue))
        self.env.run(until=self.stopped)
        done = slice(0, self.complete)
        return Run(self.schedule, np.array(self.starts[done]), np.array(self.ends[done]))

    def stream(self, queue: tuple[int, ...]) -> Generator[Event, None, None]:
        env, ops, place, latency = self.env, self.schedule.ops, self.place, self.latency
        steps = [(op, ops[op].waits, place[op], latency[op]) for op in queue]
        for iteration in range(self.iterations):
            if len(self.ends) <= iteration:
                self.open(iteration)
            starts, ends = self.starts[iteration], self.ends[iteration]
            waiting, work = self.waiting[iteration], self.work[iteration % len(self.work)]
            for op, after, flow, delay in steps:
                for dep, lag in after:
                    if iteration >= lag and self.ends[iteration - lag][dep] < 0:
                        yield self.end_of(iteration - lag, dep)
                starts[op] = env.now
                amount = work[op]
                if flow is None:
                    yield env.timeout(int(amount))
                elif amount > 0:
                    if delay:
                        yield env.timeout(delay)
                    yield flow[0].join(flow[1], amount)
                ends[op] = env.now
                sleepers = waiting.pop(op, None)
                if sleepers:
                    for sleeper in sleepers:
                        sleeper.succeed()
                self.finished(iteration)

    def end_of(self, iteration: int, op: int) -> Event:
        event = Event(self.env)
        self.waiting[iteration].setdefault(op, []).append(event)
        return event

    def finished(self, iteration: int) -> None:
        self.pending[iteration] -= 1
        if self.pending[iteration] or iteration != self.complete:
            return
        while self.complete < len(self.pending) and self.pending[self.complete] == 0:
            self.complete += 1
            last = self.complete == self.iterations
            if not self.stopped.triggered and (last or (self.enough is not None and self.ask())):
                self.stopped.succeed()
                return

    def ask(self) -> bool:
        assert self.enough is not None
        return self.enough(np.array(self.ends[: self.complete]))


def _work(schedule: Schedule) -> list[list[float]]:
    """Per iteration and op: whole picoseconds of exclusive work, or link units of a flow."""
    seconds = np.rint(schedule.occupied * PS_PER_S)
    work: list[list[float]] = np.where(schedule.is_flow, schedule.occupied, seconds).tolist()
    return work


def simulate(schedule: Schedule, iterations: int, enough: Enough | None = None) -> Run:
    """Run `schedule` for at most `iterations` iterations, or until `enough` says so; every op becomes a span."""
    return _Engine(schedule, iterations, enough).run()
