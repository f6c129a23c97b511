"""The order within one iteration, as pipelined and as if every wait were for the same iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.schedule import Builder, Schedule, predecessors, topological
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


def test_pipelined_reading(pipelined: Schedule) -> None:
    assert predecessors(pipelined, collapse=False) == [[], [0], [1], [0, 1]]
    done, before = topological(pipelined)
    assert sorted(done) == [0, 1, 2, 3]
    assert all(done.index(dep) < done.index(op) for op, deps in enumerate(before) for dep in deps)


def test_synchronous_reading_waits_for_this_iteration_and_refills_nothing(pipelined: Schedule) -> None:
    before = predecessors(pipelined, collapse=True)
    assert [sorted(deps) for deps in before] == [[], [0, 3], [1], [0]]
    done, _ = topological(pipelined, collapse=True)
    assert done.index(3) < done.index(1)


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn"])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_both_readings_of_every_method_can_run(facts: Callable[..., Case], name: str, tau: int) -> None:
    schedule = method(name)(facts(tau=tau, sampled=True, hits=0.5))
    for collapse in (False, True):
        done, before = topological(schedule, collapse=collapse)
        place = {op: index for index, op in enumerate(done)}
        assert len(place) == len(schedule.ops)
        assert all(place[dep] < place[op] for op, deps in enumerate(before) for dep in deps)


def test_an_order_is_found_once_and_kept_for_fewer_graphs(pipelined: Schedule) -> None:
    found = topological(pipelined, collapse=True)
    assert topological(pipelined, collapse=True) is found
    first = pipelined.of_graphs(np.array([0]))
    assert first.demand.shape == (1, pipelined.demand.shape[1])
    assert np.array_equal(first.demand[0], pipelined.demand[0])
    assert topological(first, collapse=True) is found
    assert first.ops is pipelined.ops
