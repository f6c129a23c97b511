"""Knobs at their ends are the older methods: every op ends at the same picosecond."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.engine import simulate
from gcnsim.schedule import Builder, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Label = Callable[[Schedule, Op], tuple[object, ...]]


def ends_by_label(schedule: Schedule, label: Label, iterations: int = 8) -> dict[tuple[object, ...], list[int]]:
    run = simulate(schedule, iterations)
    return {label(schedule, op): run.ends[:, op.index].tolist() for op in schedule.ops}


@pytest.mark.parametrize(("name", "tau"), [("full-graph", 0), ("pipegcn", 1)])
@pytest.mark.parametrize("shape", [{"workers": 4, "per_server": 2}, {"workers": 3, "per_server": 2, "slope": 0.3}])
def test_psc_gcn_at_epsilon_one(facts: MakeFacts, label: Label, name: str, tau: int, shape: dict[str, float]) -> None:
    given = facts(tau=tau, sampled=False, rows=3000.0, **shape)
    assert ends_by_label(method("psc-gcn")(given), label) == ends_by_label(method(name)(given), label)


def test_one_worker_runs_alike_in_every_method(facts: MakeFacts, label: Label) -> None:
    given = facts(workers=1, per_server=1, tau=3)
    found = [ends_by_label(method(name)(given), label) for name in ("full-graph", "pipegcn", "psc-gcn")]
    assert found[0] == found[1] == found[2]


def test_the_same_facts_give_the_same_run_to_the_last_byte(facts: MakeFacts) -> None:
    runs = [
        simulate(method("psc-gcn")(facts(tau=2, sampled=True, iterations=5, spread=0.4, slope=0.1)), 10)
        for _ in range(2)
    ]
    assert runs[0].starts.tobytes() == runs[1].starts.tobytes()
    assert runs[0].ends.tobytes() == runs[1].ends.tobytes()


def _lanes(builder: Callable[..., Builder], order: list[int]) -> IntArray:
    """Six independent streams of flows and pauses on two links, written in `order`; ends by stream."""
    b = builder(7.0, 3.0)
    of: dict[int, list[int]] = {}
    for lane in order:
        pause = b.compute(OpKind.PACK, 0, 0.1 * lane, stream=f"p{lane}")
        one = b.flow(OpKind.WIRE, 0, 1.0 + lane / 3, (lane % 2,), stream=f"s{lane}", after=[pause])
        two = b.flow(OpKind.WIRE, 0, 2.0 / (1 + lane), (0, 1), stream=f"s{lane}", after=[(one, 1)])
        of[lane] = [one, two]
    end = b.compute(OpKind.STEP, 0, 0.0, after=[op for pair in of.values() for op in pair])
    for pair in of.values():
        b.wait_for(pair[0], (end, 1))
    run = simulate(b.close([end]), 4)
    return np.array([run.ends[:, of[lane]] for lane in sorted(of)])


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_streams_are_written_does_not_matter(builder: Callable[..., Builder], seed: int) -> None:
    order = list(range(6))
    Random(seed).shuffle(order)
    np.testing.assert_array_equal(_lanes(builder, order), _lanes(builder, list(range(6))))
