"""What workers on CPU cores drop, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.cost import VALUE, elementwise_seconds
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.cases import Case, method
from tests.gcnsim.methods.test_core_workers import ahead, on_stream, ops

MakeFacts = Callable[..., Case]
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
WIDTHS = (48, 32, 16)
LINE = ("psc-gcn", "pipegcn", "full-graph", "bns-gcn")


def dropping(facts: Case, rows: int, width: int) -> float:
    """The share of rows dropped: values read and written."""
    return float(elementwise_seconds(facts.device, float(rows * width), 2))


def updates(schedule: Schedule, worker: int, layer: int, direction: Direction) -> list[tuple[Op, float]]:
    """A worker's maps and dropouts of one layer with their core-seconds, in their order."""
    found = [op for op in on_stream(schedule, worker, COMPUTE_STREAM) if op.kind is OpKind.UPDATE]
    chosen = [op for op in found if op.layer == layer and op.direction is direction]
    return [(op, float(schedule.demand[0, op.index])) for op in chosen]


@pytest.mark.parametrize("overlap", [False, True])
def test_own_rows_are_dropped_before_they_leave_and_others_once_they_are_there(
    on_cores: MakeFacts, overlap: bool
) -> None:
    facts = on_cores(workers=2, layers=2, widths=WIDTHS, dropout="exchange-first", overlap=overlap)
    schedule, counts = method("full-graph")(facts), facts.counts
    for layer in (0, 1):
        (own, first), (other, then), _ = updates(schedule, 0, layer, FORWARD)
        assert first == pytest.approx(dropping(facts, int(counts.inner_nodes[0]), WIDTHS[layer]))
        assert then == pytest.approx(dropping(facts, int(counts.rows[0, 0].sum()), WIDTHS[layer]))
        reads = ops(schedule, OpKind.SCATTER, worker=0, layer=layer, direction=FORWARD)
        assert own.index < max(read.index for read in reads if read.after) < other.index
        leaves = ops(schedule, OpKind.PACK, worker=0, layer=layer, direction=FORWARD)
        assert all((own.index, 0) in [tuple(item) for item in op.after] for op in leaves)


def test_gradients_meet_their_masks_others_before_they_leave(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=2, layers=2, widths=WIDTHS, dropout="exchange-first")
    schedule, counts = method("full-graph")(facts), facts.counts
    _, (boundary, given), (_, own) = updates(schedule, 0, 1, BACKWARD)
    assert given == pytest.approx(dropping(facts, int(counts.rows[0, 0].sum()), 32))
    assert own == pytest.approx(dropping(facts, int(counts.inner_nodes[0]), 32))
    packed = ops(schedule, OpKind.PACK, worker=0, layer=1, direction=BACKWARD)
    assert all((boundary.index, 0) in [tuple(item) for item in op.after] for op in packed)
    assert len(updates(schedule, 0, 0, BACKWARD)) == 1, "the input learns nothing"


@pytest.mark.parametrize("name", LINE)
def test_dropout_first_drops_own_rows_alone(on_cores: MakeFacts, name: str) -> None:
    facts = on_cores(workers=4, layers=2, widths=WIDTHS, dropout="dropout-first")
    schedule, plain = method(name)(facts), method(name)(replace(facts, dropout="none"))
    for layer in (0, 1):
        found, before = (updates(item, 1, layer, FORWARD) for item in (schedule, plain))
        assert len(found) == len(before) + 1
        assert found[0][1] == pytest.approx(dropping(facts, int(facts.counts.inner_nodes[1]), WIDTHS[layer]))
    bytes_sent = [sum(float(item.demand[0, op.index]) for op in item.ops if ahead(op)) for item in (schedule, plain)]
    assert bytes_sent[0] == bytes_sent[1] > VALUE


def test_one_worker_drops_its_own_rows(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=1, per_server=1, layers=2, widths=WIDTHS, dropout="exchange-first")
    schedule = method("full-graph")(facts)
    assert [len(updates(schedule, 0, layer, FORWARD)) for layer in (0, 1)] == [2, 2]
    assert [len(updates(schedule, 0, layer, BACKWARD)) for layer in (0, 1)] == [1, 2]


@pytest.mark.parametrize("dropout", ["none", "exchange-first", "dropout-first"])
def test_one_worker_attends_to_its_own_rows(on_cores: MakeFacts, dropout: str) -> None:
    facts = on_cores(workers=1, per_server=1, layers=2, widths=WIDTHS, dropout=dropout)
    facts = replace(facts, shapes=layer_shapes("gat", 48, 32, 2, 16, heads=2))
    schedule = method("full-graph")(facts)
    for layer in (0, 1):
        for direction in (FORWARD, BACKWARD) if layer else (FORWARD,):
            (sums,) = ops(schedule, OpKind.AGGREGATE, worker=0, layer=layer, direction=direction)
            assert schedule.demand[0, sums.index] > 0
    more = 0 if dropout == "none" else 1
    for direction, expected in ((FORWARD, [1 + more, 1 + more]), (BACKWARD, [1, 1 + more])):
        found = [updates(schedule, 0, layer, direction) for layer in (0, 1)]
        assert [sum(seconds > 0 for _, seconds in item) for item in found] == expected


def test_a_sum_made_before_training_is_dropped_beside_the_own_rows(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=2, layers=2, widths=WIDTHS, dropout="exchange-first")
    shapes = (replace(facts.shapes[0], gathers=False), *facts.shapes[1:])
    schedule = method("full-graph")(replace(facts, shapes=shapes))
    (_, first), _ = updates(schedule, 0, 0, FORWARD)
    assert first == pytest.approx(dropping(facts, int(facts.counts.inner_nodes[0]), WIDTHS[0]))
