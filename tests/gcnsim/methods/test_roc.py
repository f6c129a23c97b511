"""`roc`: everything lives in host memory; each layer's piece is copied to the GPU and back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from gcnsim.engine import simulate
from gcnsim.schedule import Schedule
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]


def copied(schedule: Schedule, kind: OpKind, rank: int = 0) -> float:
    return float(sum(schedule.demand[0, op.index] for op in schedule.ops if (op.kind, op.worker) == (kind, rank)))


def test_what_is_swapped(facts: MakeFacts) -> None:
    """Widths 64, 64, 64, 16: rows of 20,000 inner nodes, pieces of those and 6,000 more, each way through 3 layers."""
    schedule = method("roc")(facts(workers=4, per_server=4))
    row, graph = 4 * 20_000, 8 * (1_000_000 + 20_000)
    inputs, outputs = 3 * 64, 2 * 64 + 16
    assert copied(schedule, OpKind.D2H) == pytest.approx(row * (2 * outputs + 16 + 2 * 64))
    assert copied(schedule, OpKind.H2D) == pytest.approx(2 * (4 * 26_000 * outputs + 3 * graph) + 2 * row * inputs)


def test_nothing_is_reduced_and_nothing_crosses_the_network_of_one_server(facts: MakeFacts) -> None:
    schedule = method("roc")(facts(workers=4, per_server=4))
    assert not {OpKind.ALLREDUCE, OpKind.WIRE} & {op.kind for op in schedule.ops}


def test_rows_of_another_server_come_over_the_network(facts: MakeFacts) -> None:
    schedule = method("roc")(facts(workers=4, per_server=2))
    assert copied(schedule, OpKind.WIRE, 0) == pytest.approx(2 * 4 * (64 + 64 + 16) * 2 * 2000)


def test_a_worker_copies_or_computes(facts: MakeFacts) -> None:
    run = simulate(method("roc")(facts(workers=2, per_server=2, slope=0.3)), 2)
    busy = [
        op.index
        for op in run.schedule.ops
        if op.worker == 1 and op.kind in (OpKind.H2D, OpKind.D2H, OpKind.AGGREGATE, OpKind.UPDATE)
    ]
    order = sorted(busy, key=lambda op: (int(run.starts[1, op]), int(run.ends[1, op])))
    assert all(run.starts[1, later] >= run.ends[1, earlier] for earlier, later in pairwise(order))
