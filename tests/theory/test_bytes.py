"""Bytes on the wire against the published formulas, counted from the facts and not from the schedule.

Per iteration into worker n, with X_n rows needed: forward X_n * sum(d_0 .. d_(L-1)) less the layer-0 hits, backward
X_n * sum(d_1 .. d_(L-1)), 4 bytes a value (BNS-GCN, equation 3; PSC-GCN, section on cost); 4 bytes an id, and 4 more
to say how many are in a list of bns-gcn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.cost import gradient_bytes
from gcnsim.engine import Run, simulate
from gcnsim.engine.fairness import Sharing
from gcnsim.schedule import Schedule
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
