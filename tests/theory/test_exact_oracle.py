"""The engine against an oracle in exact fractions, written from the definition of a schedule and of max-min fairness.

Random schedules: ops on in-order streams, dependencies with lags, flows on shared links with caps, latencies and
connections, on which they follow one another. The
oracle rounds nothing, the engine rounds to picoseconds, so ends may differ by a few picoseconds per op and no more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.ids import Iteration
from gcnsim.engine import simulate
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import PS_PER_S, OpKind

Which = tuple[Iteration, int]


def exact_rates(schedule: Schedule, flows: list[Which]) -> dict[Which, Fraction]:
    """Progressive filling, one flow at a time, in fractions of units per second."""
    left = [Fraction(value) for value in schedule.capacity]
    rates: dict[Which, Fraction] = {}
    rest = list(flows)
    while rest:
        limits: dict[Which, Fraction] = {}
        for which in rest:
            op = schedule.ops[which[1]]
            shares = [
                left[link] / sum(link in (schedule.ops[other].route or ()) for _, other in rest)
                for link in op.route or ()
            ]
            limits[which] = min([*shares, Fraction(op.cap)] if op.cap is not None else shares)
        level = min(limits.values())
        for which, limit in limits.items():
            if limit == level:
                rates[which] = level
                rest.remove(which)
                for link in schedule.ops[which[1]].route or ():
                    left[link] -= level
    return rates


class Oracle:
    """All ops of all iterations as one graph of waits; steps from one end to the next."""

    def __init__(self, schedule: Schedule, iterations: int) -> None:
        self.schedule, self.iterations = schedule, iterations
        self.now = Fraction(0)
        self.ends: dict[Which, Fraction] = {}
        self.quiet: dict[Which, Fraction] = {}
        """When exclusive work, or a latency, is over."""
        self.left: dict[Which, Fraction] = {}
        self.lines: dict[int, list[tuple[Which, Fraction]]] = {}
        """Per connection, the message under way and those behind it, each with when it could move by itself."""
        self.waiting = [(t, op.index) for t in range(iterations) for op in schedule.ops]

    def free(self, which: Which) -> bool:
        iteration, index = which
        queue = self.schedule.order[self.schedule.ops[index].stream]
        place = queue.index(index)
        before = (iteration, queue[place - 1]) if place else (iteration - 1, queue[-1])
        waits = [before, *((iteration - lag, dep) for dep, lag in self.schedule.ops[index].waits)]
        return all(wait[0] < 0 or wait in self.ends for wait in waits)

    def amount(self, which: Which) -> Fraction:
        iteration, index = which
        return Fraction(float(self.schedule.demand[iteration % len(self.schedule.demand), index]))

    def start(self) -> None:
        started = True
        while started:
            started = False
            for which in [w for w in self.waiting if self.free(w)]:
                self.waiting.remove(which)
                started = True
                amount, op = self.amount(which), self.schedule.ops[which[1]]
                if amount == 0:
                    self.ends[which] = self.now
                elif op.route is None:
                    self.quiet[which] = self.now + amount
                else:
                    self.send(which)

    def send(self, which: Which) -> None:
        op = self.schedule.ops[which[1]]
        moves = self.now + Fraction(op.latency_s)
        line = self.lines.setdefault(op.connection, []) if op.connection >= 0 else []
        line.append((which, moves))
        if len(line) == 1:
            self.quiet[which] = moves

    def sent(self, which: Which) -> None:
        self.ends[which] = self.now
        line = self.lines.get(self.schedule.ops[which[1]].connection)
        if line:
            assert line.pop(0)[0] == which
            for after, moves in line[:1]:
                startup = Fraction(self.schedule.ops[after[1]].startup_s)
                self.quiet[after] = max(moves, self.now + startup)

    def step(self) -> None:
        rates = exact_rates(self.schedule, sorted(self.left))
        nexts = list(self.quiet.values()) + [self.now + self.left[w] / rates[w] for w in self.left]
        then = min(nexts)
        for which in list(self.left):
            self.left[which] -= rates[which] * (then - self.now)
        self.now = then
        for which in [w for w, amount in self.left.items() if amount == 0]:
            del self.left[which]
            self.sent(which)
        for which in [w for w, end in self.quiet.items() if end == then]:
            del self.quiet[which]
            if self.schedule.ops[which[1]].route is None:
                self.ends[which] = then
            else:
                self.left[which] = self.amount(which)

    def run(self) -> dict[Which, Fraction]:
        self.start()
        while self.quiet or self.left:
            self.step()
            self.start()
        return self.ends


@st.composite
def schedules(draw: st.DrawFn, cluster: Callable[..., Cluster]) -> Schedule:
    capacity = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 10.0]), min_size=1, max_size=3))
    workers = draw(st.integers(1, 2))
    latency = draw(st.sampled_from([0.0, 0.25]))
    iterations = draw(st.integers(1, 2))
    wires = cluster(*capacity, latency=latency, workers=workers, startup=latency / 2)
    b = Builder("random", wires, iterations)
    count, depth = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    amounts = st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.0])
    route = st.lists(st.integers(0, len(capacity) - 1), min_size=1, unique=True).map(tuple)
    ops: list[int] = []
    for index in range(count):
        lags = st.tuples(st.integers(0, count - 1), st.integers(1, depth))
        same = st.integers(0, index - 1) if index else st.nothing()
        after = draw(st.lists(lags | same if index else lags, max_size=2))
        worker = index % workers
        work = np.array(draw(st.lists(amounts, min_size=iterations, max_size=iterations)))
        if draw(st.booleans()):
            stream = draw(st.sampled_from(["x", "y", "z"]))
            cap = draw(st.none() | st.just(1.0))
            way, connection = draw(route), draw(st.none() | st.just("line"))
            if connection:
                # Ready at a moment of its own: which of two messages goes first is then no question of order.
                stream = f"line{index}"
                ops.append(b.compute(OpKind.LOSS, worker, 2**index / 997, after=after, stream=f"ready{index}"))
                after = [ops[-1]]
            ops.append(
                b.flow(OpKind.WIRE, worker, work, way, stream=stream, after=after, cap=cap, connection=connection)
            )
        else:
            ops.append(b.compute(OpKind.LOSS, worker, work, after=after))
    # As in every method: an iteration closes when the one `depth` before is through, and the next starts after that.
    closing = [b.compute(OpKind.STEP, worker, 0.125, after=[(op, depth) for op in ops]) for worker in range(workers)]
    for op, worker in itertools.product(ops, range(workers)):
        b.wait_for(op, (closing[worker], 1))
    return b.close(closing)


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_every_end_equals_the_oracle(data: st.DataObject, wires: Callable[..., Cluster]) -> None:
    compare(data, wires)


@pytest.mark.slow
@settings(deadline=None, max_examples=2000)
@given(data=st.data())
def test_every_end_of_many_schedules_equals_the_oracle(data: st.DataObject, wires: Callable[..., Cluster]) -> None:
    compare(data, wires)


def compare(data: st.DataObject, wires: Callable[..., Cluster]) -> None:
    """Draw a schedule and simulate it."""
    schedule = data.draw(schedules(wires))
    iterations = data.draw(st.integers(1, 5))
    run = simulate(schedule, iterations)
    exact = Oracle(schedule, iterations).run()
    assert run.iterations == iterations
    slack = 2 * len(exact)
    for (iteration, op), end in exact.items():
        assert abs(int(run.ends[iteration, op]) - end * PS_PER_S) <= slack
