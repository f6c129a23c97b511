"""The order within one iteration, as pipelined and as if every wait were for the same iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.schedule import Builder, Schedule
from gcnsim.schedule.schedule import levels, predecessors
from gcnsim.timeline import OpKind
from tests.cases import Case, method


@pytest.fixture
def pipelined(builder: Callable[..., Builder]) -> Schedule:
    """read waits for the transfer of the iteration before; pack refills the buffer that read has read."""
    b = builder(1.0)
    make = b.compute(OpKind.UPDATE, 0, 1.0)
    read = b.compute(OpKind.SCATTER, 0, 1.0)
    step = b.compute(OpKind.STEP, 0, 1.0)
    pack = b.compute(OpKind.PACK, 0, 1.0, stream="pack", after=[make, (step, 1)])
    b.wait_for(read, (pack, 1))
    b.reuse(pack, read)
    return b.close([step])


def pairs(schedule: Schedule, *, collapse: bool) -> set[tuple[int, int]]:
    """Each op with each that it must follow."""
    ops, before = predecessors(schedule, collapse=collapse)
    return set(zip(ops.tolist(), before.tolist(), strict=True))


def places(schedule: Schedule, *, collapse: bool) -> dict[int, int]:
    """By op its level; all are there once, and nothing that it follows is of its own level or a later one."""
    found = levels(schedule, collapse=collapse)
    by_op = {
        op: number for number, level in enumerate(found.levels) for op in found.order[level.first : level.end].tolist()
    }
    assert sorted(by_op) == list(range(len(schedule.ops)))
    for op, before in pairs(schedule, collapse=collapse):
        assert by_op[before] < by_op[op]
    return by_op


def test_pipelined_reading(pipelined: Schedule) -> None:
    assert pairs(pipelined, collapse=False) == {(1, 0), (2, 1), (3, 0), (3, 1)}
    assert places(pipelined, collapse=False) == {0: 0, 1: 1, 2: 2, 3: 2}


def test_synchronous_reading_waits_for_this_iteration_and_refills_nothing(pipelined: Schedule) -> None:
    assert pairs(pipelined, collapse=True) == {(1, 0), (1, 3), (2, 1), (3, 0)}
    assert places(pipelined, collapse=True) == {0: 0, 3: 1, 1: 2, 2: 3}


def test_longest_chains_of_many_variants(pipelined: Schedule) -> None:
    seconds = np.array([[1.0, 4.0], [2.0, 1.0], [3.0, 1.0], [5.0, 1.0]])
    assert levels(pipelined).longest(seconds).tolist() == [[1.0, 4.0], [3.0, 5.0], [6.0, 6.0], [8.0, 6.0]]
    begin = np.array([-np.inf, 10.0, -np.inf, -np.inf])
    assert levels(pipelined).longest(seconds[:, 0], begin).tolist() == [-np.inf, 12.0, 15.0, 17.0]


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn"])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_both_readings_of_every_method_can_run(facts: Callable[..., Case], name: str, tau: int) -> None:
    schedule = method(name)(facts(tau=tau, sampled=True, hits=0.5))
    for collapse in (False, True):
        places(schedule, collapse=collapse)


def test_levels_are_found_once_and_kept_for_fewer_graphs(pipelined: Schedule) -> None:
    found = levels(pipelined, collapse=True)
    assert levels(pipelined, collapse=True) is found
    first = pipelined.of_graphs(np.array([0]))
    assert first.demand.shape == (1, pipelined.demand.shape[1])
    assert np.array_equal(first.demand[0], pipelined.demand[0])
    assert levels(first, collapse=True) is found
