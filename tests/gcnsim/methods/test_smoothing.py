"""PipeGCN's smoothed variants: the same messages as `pipegcn`, and a moving average of what arrives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gcnsim.cost import average_seconds
from gcnsim.schedule import Schedule
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
VARIANTS = {
    "pipegcn-g": (Direction.BACKWARD,),
    "pipegcn-f": (Direction.FORWARD,),
    "pipegcn-gf": (Direction.FORWARD, Direction.BACKWARD),
}


def moved(schedule: Schedule) -> float:
    return float(sum(schedule.demand[0, op.index] for op in schedule.ops if op.kind is OpKind.WIRE))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_moving_average_of_what_arrives_in_its_directions(facts: MakeFacts, name: str) -> None:
    given = facts(slope=0.1)
    plain, smoothed = method("pipegcn")(given), method(name)(given)
    assert moved(smoothed) == moved(plain)
    rows = given.counts.rows[:, 2].sum(axis=1), given.counts.rows[:, :, 2].sum(axis=1)
    expected = sum(
        float(average_seconds(given.device, rows[0 if direction is Direction.FORWARD else 1], 64)[0])
        * (3 if direction is Direction.FORWARD else 2)
        for direction in VARIANTS[name]
    )
    seconds = [
        sum(schedule.demand[0, op.index] for op in schedule.ops if (op.kind, op.worker) == (OpKind.AGGREGATE, 2))
        for schedule in (plain, smoothed)
    ]
    assert seconds[1] - seconds[0] == pytest.approx(expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_on_cores_the_thread_that_trains_averages(on_cores: MakeFacts, name: str) -> None:
    plain, smoothed = method("pipegcn")(on_cores()), method(name)(on_cores())
    chosen = [op.index for op in plain.ops if op.kind is OpKind.SCATTER]
    assert [op.index for op in smoothed.ops if op.kind is OpKind.SCATTER] == chosen
    assert smoothed.demand[:, chosen].sum() > plain.demand[:, chosen].sum()
    others = [op.index for op in plain.ops if op.kind is not OpKind.SCATTER]
    assert (smoothed.demand[:, others] == plain.demand[:, others]).all()


def test_one_worker_receives_nothing_to_average(facts: MakeFacts) -> None:
    given = facts(workers=1, per_server=1)
    assert (method("pipegcn-gf")(given).demand == method("pipegcn")(given).demand).all()
