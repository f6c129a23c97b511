"""Many variants of one schedule in one pass: each is what the estimate says of it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.schedule import Builder, Schedule, estimate
from gcnsim.schedule.joint import Variants, estimates
from gcnsim.timeline import OpKind

Builders = Callable[..., Builder]


def made(b: Builder) -> Schedule:
    """Work, then three transfers side by side, two of them over both links and one capped, then work."""
    first = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = [
        b.flow(OpKind.WIRE, 0, 20.0, (0, 1), stream="x", after=[first]),
        b.flow(OpKind.WIRE, 0, 12.0, (0, 1), stream="y", after=[first]),
        b.flow(OpKind.D2H, 0, 9.0, (1,), stream="z", after=[first], cap=3.0),
    ]
    b.flow(OpKind.ALLREDUCE, 0, 0.0, (0,), stream="r", after=sent[:1])
    return b.close([b.compute(OpKind.LOSS, 0, 2.0, after=sent)])


def variant(schedule: Schedule, demand: float, capacity: tuple[float, float], latency: float) -> Schedule:
    """The schedule with `demand` times as much of everything, other capacities, and another latency."""
    columns = schedule.columns
    columns = columns.with_delays(np.full(len(columns.routes), latency), columns.startup_s, columns.queue)
    return replace(schedule, columns=columns, demand=schedule.demand * demand, capacity=capacity)


CASES = [(1.0, (10.0, 8.0), 0.0), (2.5, (10.0, 8.0), 0.25), (1.0, (3.0, 50.0), 0.5), (0.1, (0.7, 0.9), 1.0)]


def test_each_variant_is_as_estimated_alone(builder: Builders) -> None:
    schedule = made(builder(10.0, 8.0))
    alone = [estimate(variant(schedule, *requested)) for requested in CASES]
    demands, capacities, latencies = zip(*CASES, strict=True)
    routes = len(schedule.columns.routes)
    found = estimates(
        schedule,
        Variants(
            demand=schedule.demand[0][:, None] * np.array(demands),
            capacity=np.array(capacities).T,
            latency_s=np.tile(latencies, (routes, 1)),
            startup_s=np.zeros((routes, len(CASES))),
            queue=np.zeros((routes, len(CASES))),
        ),
    )
    assert found == pytest.approx(alone, rel=1e-12)
    assert len({round(item, 9) for item in alone}) == len(CASES), "the variants differ"


def test_one_by_hand_with_queues(builder: Builders) -> None:
    # Two transfers share both links: 5 and 4 B/s each; the third of the same kind shares none of theirs.
    b = builder(10.0, 8.0)
    first = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = [
        b.flow(OpKind.WIRE, 0, size, (0, 1), stream=name, after=[first]) for name, size in (("x", 20.0), ("y", 12.0))
    ]
    schedule = b.close([b.compute(OpKind.LOSS, 0, 2.0, after=sent)])
    found = estimates(
        schedule,
        Variants(
            demand=np.tile(schedule.demand[0][:, None], 2),
            capacity=np.array([[10.0, 10.0], [8.0, 8.0]]),
            latency_s=np.array([[0.5, 0.5]]),
            startup_s=np.array([[0.0, 0.0]]),
            queue=np.array([[0.0, 4.0]]),
        ),
    )
    # 1 s, 0.5 s, 20 B at 4 B/s, 2 s; and a queue of 4 B of the other one on the slower link.
    assert found.tolist() == pytest.approx([1 + 0.5 + 5 + 2, 1 + 0.5 + 0.5 + 5 + 2])


def test_variants_of_a_schedule_without_flows(builder: Builders) -> None:
    b = builder(1.0)
    first = b.compute(OpKind.UPDATE, 0, 2.0)
    schedule = b.close([b.compute(OpKind.STEP, 0, 3.0, after=[first], stream="other")])
    none = np.zeros((0, 2))
    found = estimates(schedule, Variants(schedule.demand.T * [[1.0, 2.0]], np.ones((1, 2)), none, none, none))
    assert found.tolist() == [5.0, 10.0]


def test_a_variant_alone_is_the_schedule_with_its_amounts_capacities_and_delays(builder: Builders) -> None:
    schedule = made(builder(10.0, 8.0))
    routes = schedule.columns.routes
    place = {route: float(number) for number, route in enumerate(routes)}
    numbers = np.arange(len(routes))
    variants = Variants(
        demand=np.stack([schedule.demand[0], 3.0 * schedule.demand[0]], axis=1),
        capacity=np.array([[10.0, 5.0], [8.0, 6.0]]),
        latency_s=np.stack([0.0 * numbers, 0.5 + numbers], axis=1),
        startup_s=np.stack([0.0 * numbers, 0.25 * numbers], axis=1),
        queue=np.stack([0.0 * numbers, 2.0 * numbers], axis=1),
    )
    alone = variants.of(schedule, 1)
    assert alone.capacity == (5.0, 6.0)
    assert alone.demand.tolist() == [(3.0 * schedule.demand[0]).tolist()]
    for op, before in zip(alone.ops, schedule.ops, strict=True):
        number = None if op.route is None else place[op.route]
        expected = (0.0, 0.0, 0.0) if number is None else (0.5 + number, 0.25 * number, 2.0 * number)
        assert (op.latency_s, op.startup_s, op.queue) == expected
        assert (op.waits, op.route, op.cap, op.stream) == (before.waits, before.route, before.cap, before.stream)
    assert len(routes) > 2
    assert estimates(schedule, variants)[1] == pytest.approx(estimate(alone), rel=1e-12)
