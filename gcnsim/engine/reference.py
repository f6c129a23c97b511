"""The reference engine: SimPy keeps the event queue, and an op starts when all its dependencies have ended.

An op of iteration t waits for the previous op of its stream and for its dependencies of iteration t - lag. An op that
ends notifies its followers, and an op without remaining dependencies starts at that instant. Exclusive work ends after
its seconds; a transfer first spends its latency, then flows. Time is in integer picoseconds. Streams are in order and
rates depend only on the current flows, so the order of simultaneous events does not matter. With queues or full cores
it may matter; there the order is fixed, so equal input gives equal output.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from simpy.core import Environment
from simpy.events import Event

from gcnsim.core.ids import Iteration
from gcnsim.engine.cores import Cores
from gcnsim.engine.fluid import Call, Fluid, FluidGroup
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import Stop, StopCondition
from gcnsim.schedule import Schedule
from gcnsim.timeline import PS_PER_S


class _Engine:
    def __init__(self, schedule: Schedule, stop: Stop) -> None:
        self.schedule = schedule
        self.stop = stop
        self.env = Environment(initial_time=0)
        self.stopped = Event(self.env)
        self.work = _work(schedule)
        self.graphs = len(self.work)
        self.latency = [round(op.latency_s * PS_PER_S) for op in schedule.ops]
        self.startup = [round(op.startup_s * PS_PER_S) for op in schedule.ops]
        self.connection = [op.connection for op in schedule.ops]
        self.messages: dict[int, deque[tuple[Iteration, int]]] = {item: deque() for item in set(self.connection)}
        self.following = dict.fromkeys(self.messages, 0.0)
        """Units of the messages queued on a connection behind the current one."""
        self.queue = [op.queue for op in schedule.ops]
        self.may_wait = [op.queue > 0 for op in schedule.ops]
        machines = {
            link: Cores(
                self.env,
                own.cores,
                schedule.capacity[link],
                round(own.slice_s * PS_PER_S),
                round(own.wake_s * PS_PER_S),
                self.end,
            )
            for link, own in schedule.cores.items()
        }
        self.threads = [op.thread for op in schedule.ops]
        self.cores = [machines[op.route[0]] if op.thread >= 0 and op.route else None for op in schedule.ops]
        flows = [(op.route, op.cap) for op in schedule.ops if op.route is not None and op.thread < 0]
        fluid = Fluid(self.env, schedule.capacity, flows, self.arrived)
        self.place: list[tuple[FluidGroup, int] | None] = [
            fluid.place[op.route, op.cap] if op.route is not None and op.thread < 0 else None for op in schedule.ops
        ]
        self.waits = _all_waits(schedule)
        self.followers: list[list[tuple[int, int]]] = [[] for _ in schedule.ops]
        for op, waits in enumerate(self.waits):
            for dep, lag in waits:
                self.followers[dep].append((op, lag))
        self.starts: list[list[int]] = []
        self.ends: list[list[int]] = []
        self.missing: list[list[int]] = []
        self.running: list[int] = []
        self.begun, self.closed = np.empty((2, stop.opened, len(schedule.ops)), dtype=np.int64)
        self.complete = 0
        self.ended: deque[tuple[Iteration, int]] = deque()
        self.telling = False

    def run(self) -> Run:
        self.open()
        self.env.run(until=self.stopped)
        return self.stop.run(self.begun, self.closed, self.complete)

    def open(self) -> None:
        """Allocate the next iteration and start its ops without remaining dependencies."""
        iteration = len(self.ends)
        count = len(self.schedule.ops)
        self.starts.append([-1] * count)
        self.ends.append([-1] * count)
        self.running.append(count)
        # A dependency on an iteration before the first is satisfied.
        self.missing.append(
            [
                sum([lag <= iteration and self.ends[iteration - lag][dep] < 0 for dep, lag in waits])
                for waits in self.waits
            ]
        )
        for op in [op for op, left in enumerate(self.missing[iteration]) if left == 0]:
            self.begin(iteration, op)

    def begin(self, iteration: Iteration, op: int) -> None:
        """Start an op: its work is a delay or a transfer."""
        self.starts[iteration][op] = int(self.env.now)
        amount = self.work[iteration % self.graphs][op]
        if amount <= 0:
            self.end((iteration, op))
        elif (cores := self.cores[op]) is not None:
            cores.join(self.threads[op], amount, (iteration, op))
        elif self.place[op] is None:
            Call(self.env, self.after_delay, int(amount), (iteration, op))
        else:
            connection = self.connection[op]
            if connection >= 0:
                self.messages[connection].append((iteration, op))
                if len(self.messages[connection]) > 1:
                    self.following[connection] += amount
                    return
            delay = self.latency[op] + (self.queued(op) if self.may_wait[op] else 0)
            if delay:
                Call(self.env, self.after_latency, delay, (iteration, op))
            else:
                self.flow(iteration, op)

    def after_delay(self, event: Event) -> None:
        """End an op of exclusive work."""
        which: tuple[Iteration, int] = event._value
        self.end(which)

    def after_latency(self, event: Event) -> None:
        """Start a flow after its latency."""
        which: tuple[Iteration, int] = event._value
        self.flow(*which)

    def queued(self, op: int) -> int:
        """Picoseconds that a flow waits in the queues of its links."""
        place = self.place[op]
        if place is None:
            return 0
        group, bundle = place
        return group.backlog(bundle, self.queue[op], self.behind)

    def behind(self, which: tuple[Iteration, int]) -> float:
        """Units of the messages that follow a flow on its connection."""
        connection = self.connection[which[1]]
        return 0.0 if connection < 0 else self.following[connection]

    def flow(self, iteration: Iteration, op: int) -> None:
        place = self.place[op]
        assert place is not None
        group, bundle = place
        group.join(bundle, self.work[iteration % self.graphs][op], (iteration, op))

    def arrived(self, which: tuple[Iteration, int]) -> None:
        """End a flow whose last byte arrived; the next message of its connection skips the queue.

        That message follows after its start-up, and not before its latency since it was ready.
        """
        connection = self.connection[which[1]]
        if connection >= 0:
            waiting = self.messages[connection]
            waiting.popleft()
            if waiting:
                iteration, op = waiting[0]
                self.following[connection] -= self.work[iteration % self.graphs][op]
                ready = self.starts[iteration][op] + self.latency[op]
                delay = max(self.startup[op], ready - int(self.env.now))
                if delay > 0:
                    Call(self.env, self.after_latency, delay, (iteration, op))
                else:
                    self.flow(iteration, op)
        self.end(which)

    def end(self, which: tuple[Iteration, int]) -> None:
        """Note the end of an op and notify its followers; further ops that end are queued to avoid recursion."""
        self.ended.append(which)
        if self.telling:
            return
        self.telling = True
        now = int(self.env.now)
        while self.ended:
            iteration, op = self.ended.popleft()
            self.ends[iteration][op] = now
            self.tell(iteration, op)
            self.running[iteration] -= 1
            if self.running[iteration] == 0:
                self.close()
        self.telling = False

    def tell(self, iteration: Iteration, op: int) -> None:
        """Remove one dependency from every follower of an op; open an iteration when an op first reaches it."""
        missing = self.missing
        known = len(missing)
        for follower, lag in self.followers[op]:
            target = iteration + lag
            if target < known:
                left = missing[target]
                left[follower] -= 1
                if left[follower] == 0:
                    self.begin(target, follower)
            elif target < self.stop.opened:
                # A new iteration already accounts for ops that have ended.
                while len(missing) <= target:
                    self.open()

    def close(self) -> None:
        """Count complete iterations, up to the last or until they are enough."""
        while self.complete < len(self.running) and self.running[self.complete] == 0:
            self.begun[self.complete] = self.starts[self.complete]
            self.closed[self.complete] = self.ends[self.complete]
            self.complete += 1
            if not self.stopped.triggered and self.stop.over(self.begun, self.closed, self.complete):
                self.stopped.succeed()


def _work(schedule: Schedule) -> list[list[float]]:
    """Per iteration and op: whole picoseconds of exclusive work, or link units of a flow."""
    seconds = np.rint(schedule.demand * PS_PER_S)
    in_units = np.array([op.route is not None and op.thread < 0 for op in schedule.ops], dtype=np.bool_)
    work: list[list[float]] = np.where(in_units, schedule.demand, seconds).tolist()
    return work


def _all_waits(schedule: Schedule) -> list[list[tuple[int, int]]]:
    """Per op, all (op, lag) pairs it waits for, including its stream's previous op."""
    waits = [list(op.waits) for op in schedule.ops]
    for queue in schedule.order:
        for earlier, later in zip((queue[-1], *queue), queue, strict=False):
            waits[later].append((earlier, 1 if later == queue[0] else 0))
    return waits


def simulate(schedule: Schedule, iterations: int, enough: StopCondition | None = None, *, endless: bool = False) -> Run:
    """Run `schedule` for at most `iterations` iterations, or until `enough` returns true; every op becomes a span.

    endless: see `gcnsim.engine.stopping`.
    """
    return _Engine(schedule, Stop(schedule, iterations, enough, endless=endless)).run()
