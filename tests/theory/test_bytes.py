"""Bytes and times against closed forms and an exact solver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.ids import IntArray, Iteration
from gcnsim.cost import gradient_bytes
from gcnsim.engine import Run, simulate
from gcnsim.engine.fairness import Sharing
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import link_units
from gcnsim.timeline import PS_PER_S, Direction, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]

CASES: dict[str, dict[str, Any]] = {
    "full-graph": {"tau": 0},
    "pipegcn": {"tau": 1, "slope": 0.2},
    "psc-gcn": {"tau": 2, "sampled": True, "iterations": 6, "spread": 0.5, "hits": 0.3},
    "bns-gcn": {"iterations": 6, "spread": 0.5, "rate": 0.3},
    "psc-gcn fresh": {"tau": 0, "sampled": True, "iterations": 6, "spread": 0.5, "workers": 5},
}


def case(facts: MakeFacts, name: str) -> tuple[Case, Schedule]:
    given = facts(**CASES[name])
    return given, method(name.split()[0])(given)


def moved(schedule: Schedule, kind: OpKind, direction: Direction = Direction.NONE) -> float:
    """Bytes of one kind per iteration, over all workers."""
    chosen = [op.index for op in schedule.ops if op.kind is kind and op.direction == direction and op.route]
    return float(schedule.demand[:, chosen].sum(axis=1).mean())


@pytest.mark.parametrize("name", CASES)
def test_rows_and_gradients_on_the_wire(facts: MakeFacts, name: str) -> None:
    given, schedule = case(facts, name)
    rows = given.counts.rows.sum() / given.counts.iterations
    hits = given.counts.hits.sum() / given.counts.iterations
    widths = [shape.d_in for shape in given.shapes]
    forward, backward = rows * sum(widths) - hits * widths[0], rows * sum(widths[1:])
    assert moved(schedule, OpKind.WIRE, Direction.FORWARD) == pytest.approx(4 * forward)
    assert moved(schedule, OpKind.WIRE, Direction.BACKWARD) == pytest.approx(4 * backward)


@pytest.mark.parametrize("name", CASES)
def test_the_all_reduce_moves_twice_all_but_one_share_per_worker(facts: MakeFacts, name: str) -> None:
    given, schedule = case(facts, name)
    workers, gradient = given.cluster.gpus, gradient_bytes(given.shapes)
    ring = 2 * (workers - 1) / workers * gradient
    assert moved(schedule, OpKind.ALLREDUCE) == pytest.approx(workers * (ring + 2 * gradient))


def test_ids_and_sampled_graphs(facts: MakeFacts) -> None:
    given, schedule = case(facts, "psc-gcn")
    counts = given.counts
    ids = 4 * counts.rows.sum() / counts.iterations
    kept = (counts.inner_edges + counts.boundary_edges).sum() / counts.iterations
    graphs = 8 * kept + 8 * counts.inner_nodes.sum()
    assert moved(schedule, OpKind.INDEX) == pytest.approx(ids + graphs)


def by_hand(given: Case, name: str) -> dict[str, float]:
    """Units per iteration on the NIC links, from the facts alone."""
    counts, widths, cluster = given.counts, [shape.d_in for shape in given.shapes], given.cluster
    rows, hits = (array.mean(axis=0) for array in (counts.rows, counts.hits))
    gradient, workers = gradient_bytes(given.shapes), cluster.gpus
    units = dict.fromkeys((f"nic{s}.{side}" for s in range(cluster.servers) for side in ("tx", "rx")), 0.0)

    def send(source: int, target: int, nbytes: float) -> None:
        a, b = cluster.server_of[source], cluster.server_of[target]
        if a != b:
            units[f"nic{a}.tx"] += nbytes
            units[f"nic{b}.rx"] += nbytes

    for n in range(workers):
        send(n, (n + 1) % workers, 2 * (workers - 1) * gradient / workers)
        for m in range(workers):
            send(m, n, 4 * (rows[n, m] * sum(widths) - hits[n, m] * widths[0]))
            send(n, m, 4 * rows[n, m] * sum(widths[1:]))
            send(n, m, 4 * rows[n, m] * given.sampled)
            if given.rate < 1.0:
                send(m, n, 4 + 4 * rows[n, m])
    return units


@pytest.mark.parametrize("name", CASES)
def test_units_on_every_nic(facts: MakeFacts, name: str) -> None:
    given, schedule = case(facts, name)
    run = simulate(schedule, 2 * given.counts.iterations + 1)
    found = link_units(run, run.iterations - given.counts.iterations)
    expected = by_hand(given, name)
    assert {link: found[link] for link in expected} == pytest.approx(expected)


def first_bytes(run: Run) -> IntArray:
    """When every flow's first byte leaves, int64[T, ops]: its latency after its start, and behind its connection's."""
    latency, startup = (
        np.array([round(seconds * PS_PER_S) for seconds in item])
        for item in zip(*((op.latency_s, op.startup_s) for op in run.schedule.ops), strict=True)
    )
    begun: IntArray = run.starts + latency
    sent = [(t, op.index) for t in range(run.iterations) for op in run.schedule.ops if op.connection >= 0]
    for _, group in itertools.groupby(
        sorted(sent, key=lambda at: (run.schedule.ops[at[1]].connection, run.ends[at])),
        key=lambda at: run.schedule.ops[at[1]].connection,
    ):
        for before, after in itertools.pairwise(group):
            begun[after] = max(begun[after], run.ends[before] + startup[after[1]])
    return begun


def integrate(run: Run) -> tuple[list[float], list[float]]:
    """Units that max-min fair rates give every flow between its first byte and its end, and each link's largest load.

    Rates are found again from the flows under way between any two neighbouring starts and ends.
    """
    schedule = run.schedule
    begun = first_bytes(run)
    flows = [
        (int(begun[t, op.index]), int(run.ends[t, op.index]), op)
        for t in range(run.iterations)
        for op in schedule.ops
        if op.route and run.ends[t, op.index] > run.starts[t, op.index]
    ]
    edges = sorted({edge for start, end, _ in flows for edge in (start, end)})
    received, load = [0.0] * len(flows), [0.0] * len(schedule.capacity)
    for left, right in itertools.pairwise(edges):
        now = [k for k, (start, end, _) in enumerate(flows) if start <= left and right <= end]
        routes = [flows[k][2].route or () for k in now]
        rates = Sharing(schedule.capacity, routes, [flows[k][2].cap for k in now]).rates((1,) * len(now))
        used = [0.0] * len(load)
        for k, rate, route in zip(now, rates, routes, strict=True):
            received[k] += rate * (right - left) / PS_PER_S
            for link in route:
                used[link] += rate
        load = [max(pair) for pair in zip(load, used, strict=True)]
    return received, load


@pytest.mark.parametrize("name", CASES)
def test_flows_receive_exactly_their_bytes_and_no_link_more_than_its_capacity(facts: MakeFacts, name: str) -> None:
    given, schedule = case(lambda **more: facts(startup=1e-5, layers=2, **more), name)
    run = simulate(schedule, 4)
    received, load = integrate(run)
    demand = [
        float(schedule.demand[t % len(schedule.demand), op.index])
        for t in range(run.iterations)
        for op in schedule.ops
        if op.route and run.ends[t, op.index] > run.starts[t, op.index]
    ]
    assert given.counts.workers == schedule.workers
    assert received == pytest.approx(demand, rel=1e-6)
    assert (np.array(load) <= np.array(schedule.capacity) * (1 + 1e-9)).all()


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
