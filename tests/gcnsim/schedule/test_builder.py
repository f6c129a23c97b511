"""Writing a schedule: streams, work, dependencies, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.schedule import Builder
from gcnsim.schedule.schedule import Stream
from gcnsim.timeline import Direction, OpKind

Builders = Callable[..., Builder]


def test_streams_appear_on_first_use(builder: Builders) -> None:
    b = builder(1.0)
    b.compute(OpKind.LOSS, 0, 1.0)
    b.flow(OpKind.WIRE, 0, 1.0, (0,), stream="tx")
    end = b.compute(OpKind.STEP, 0, 1.0)
    schedule = b.close([end])
    assert schedule.streams == (Stream(0, "gpu"), Stream(0, "tx"))
    assert schedule.order == ((0, 2), (1,))
    assert schedule.workers == 1


def test_an_op_keeps_what_it_is_about(builder: Builders) -> None:
    b = builder(2.0, 1.0, latency=0.25, startup=0.125)
    first = b.compute(OpKind.LOSS, 0, 1.0)
    op = b.flow(
        OpKind.WIRE, 0, 3.0, (1, 0), stream="tx", after=[first, (first, 2)], cap=0.5, layer=4,
        direction=Direction.BACKWARD, peer=0,
    )  # fmt: skip
    schedule = b.close([first])
    found = schedule.ops[op]
    assert (found.kind, found.worker, found.layer, found.direction, found.peer) == (OpKind.WIRE, 0, 4, 2, 0)
    assert (found.route, found.cap, found.latency_s, found.startup_s) == ((1, 0), 0.5, 0.375, 0.125)
    assert found.waits == ((first, 0), (first, 2))
    assert schedule.is_flow.tolist() == [False, True]
    assert schedule.demand.tolist() == [[1.0, 3.0]]


def test_late_dependencies_and_reuse_join_the_others(builder: Builders) -> None:
    b = builder(1.0)
    pack = b.compute(OpKind.PACK, 0, 1.0, stream="pack")
    read = b.compute(OpKind.SCATTER, 0, 1.0)
    b.wait_for(pack, (read, 1))
    b.wait_for(read, (pack, 3))
    b.reuse(pack, read)
    schedule = b.close([read])
    assert schedule.ops[pack].after == ((read, 1),)
    assert schedule.ops[pack].reuses == (read,)
    assert schedule.ops[pack].waits == ((read, 1), (read, 0))
    assert schedule.ops[read].waits == ((pack, 3),)
    assert schedule.depth == 3


def test_depth_is_at_least_one(builder: Builders) -> None:
    b = builder(1.0)
    end = b.compute(OpKind.LOSS, 0, 1.0)
    assert b.close([end]).depth == 1


def test_work_is_the_same_every_iteration_or_one_number_each(builder: Builders) -> None:
    b = builder(1.0, iterations=3)
    b.compute(OpKind.LOSS, 0, 2.0)
    end = b.compute(OpKind.STEP, 0, np.array([1.0, 0.0, 4.0]))
    assert b.close([end]).demand.tolist() == [[2.0, 1.0], [2.0, 0.0], [2.0, 4.0]]


@pytest.mark.parametrize("work", [-1e-9, float("nan"), float("inf")])
def test_negative_and_endless_work_is_refused(builder: Builders, work: float) -> None:
    b = builder(1.0)
    end = b.compute(OpKind.LOSS, 0, work)
    with pytest.raises(ValueError, match="test: an op has negative or non-finite work"):
        b.close([end])


def test_a_cycle_within_an_iteration_is_refused(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0, stream="a")
    two = b.compute(OpKind.STEP, 0, 1.0, stream="b", after=[one])
    b.wait_for(one, two)
    with pytest.raises(ValueError, match=r"test: op \d \(\w+, worker 0\) waits for itself"):
        b.close([two])


def test_a_stream_that_waits_for_its_own_later_op_is_refused(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0)
    two = b.compute(OpKind.STEP, 0, 1.0)
    b.wait_for(one, two)
    with pytest.raises(ValueError, match="waits for itself"):
        b.close([two])


def test_a_buffer_read_before_it_is_filled_again_cannot_be_its_own_reader(builder: Builders) -> None:
    b = builder(1.0)
    fill = b.compute(OpKind.PACK, 0, 1.0, stream="pack")
    read = b.compute(OpKind.SCATTER, 0, 1.0, after=[fill])
    b.reuse(fill, read)
    with pytest.raises(ValueError, match="waits for itself"):
        b.close([read])


def test_the_same_cycle_through_an_earlier_iteration_is_fine(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0, stream="a")
    two = b.compute(OpKind.STEP, 0, 1.0, stream="b", after=[one])
    b.wait_for(one, (two, 1))
    assert b.close([two]).depth == 1
