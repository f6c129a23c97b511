"""Block rows on CPU cores: what waits for what, what travels, and a time that can be said beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.methods.families.block_broadcast import grid_of
from gcnsim.schedule import COMPUTE_STREAM, Op, Schedule
from gcnsim.staleness import BlockRule
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method
from tests.gcnsim.methods.test_core_workers import ahead, on_stream, ops, stream

MakeFacts = Callable[..., Case]
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def sent(schedule: Schedule, worker: int, layer: int, direction: Direction) -> list[float]:
    """Bytes of rows that a worker sends in each iteration."""
    found = [
        op.index for op in ops(schedule, OpKind.WIRE, worker=worker, layer=layer, direction=direction) if ahead(op)
    ]
    totals: list[float] = schedule.demand[:, found].sum(axis=1).tolist()
    return totals


@pytest.mark.parametrize("workers", [2, 4])
def test_every_member_of_the_ring_but_the_last_passes_each_block_on(on_cores: MakeFacts, workers: int) -> None:
    facts = on_cores(workers=workers, layers=2, widths=(48, 32, 16))
    schedule, rows = method("cagnet-1d")(facts), grid_of(facts.counts, 1).rows
    for layer, direction, width in ((0, FORWARD, 48), (1, FORWARD, 32), (1, BACKWARD, 16)):
        for worker in range(workers):
            # All blocks but that of the next on the ring, which has its own.
            blocks = rows.sum() - rows[(worker + 1) % workers]
            assert sent(schedule, worker, layer, direction) == pytest.approx([4.0 * width * blocks])


def test_nothing_overlaps_a_block_is_waited_for_then_multiplied(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=2, per_server=1, layers=1)
    schedule = method("cagnet-1d")(facts)
    main = on_stream(schedule, 0, COMPUTE_STREAM)
    names = [str(op.kind) for op in main if op.layer == 0 and op.direction is FORWARD]
    assert names == ["scatter", "scatter", "aggregate", "scatter", "scatter", "aggregate", "update"]
    for read, product in ((1, 2), (4, 5)):
        first, then = ([op for op in main if op.layer == 0 and op.direction is FORWARD][at] for at in (read, product))
        assert first.after
        assert then.index > first.index


def test_two_workers_take_products_blocks_and_calls_one_after_the_other(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=2, per_server=1, layers=1, nic=1e9)
    facts = replace(facts, host=replace(facts.host, message_s=replace(facts.host.message_s, value=0.0)))
    schedule = method("cagnet-1d")(facts)
    run = simulate(schedule, 4)
    period = float(np.diff(run.ends[:, schedule.ends[0]])[-1]) * 1e-12
    busy = [
        float(schedule.demand[0, [op.index for op in on_stream(schedule, rank, COMPUTE_STREAM)]].sum())
        for rank in (0, 1)
    ]
    width = facts.shapes[0]
    rows = grid_of(facts.counts, 1).rows
    wire = 4.0 * (width.d_in + width.d_out) * float(rows.sum()) / 1e9
    assert period >= max(busy) + wire
    assert period <= 1.5 * (max(busy) + wire) + 20 * 5e-5


def test_a_block_that_is_kept_does_not_travel_and_is_multiplied_first(on_cores: MakeFacts) -> None:
    given = on_cores(workers=2, per_server=1, layers=2)
    every = method("cagnet-1d")(given)
    some = method("sancus")(replace(given, block_rule=BlockRule("fixed", 2.0)))
    assert some.periodic
    assert not every.periodic
    forward = [np.mean(sent(item, 0, 1, FORWARD)) for item in (every, some)]
    assert forward[1] == pytest.approx(forward[0] / 3)
    assert sent(some, 0, 1, BACKWARD) == pytest.approx([sent(every, 0, 1, BACKWARD)[0]] * some.demand.shape[0])


def test_the_same_is_multiplied_whether_sent_or_kept(on_cores: MakeFacts) -> None:
    given = on_cores(workers=2, per_server=1, layers=2)
    every = method("cagnet-1d")(given)
    some = method("sancus")(replace(given, block_rule=BlockRule("fixed", 2.0)))

    def multiplied(schedule: Schedule) -> list[float]:
        chosen = [op.index for op in ops(schedule, OpKind.AGGREGATE, worker=1)]
        return sorted(set(np.round(schedule.demand[:, chosen].sum(axis=1), 12).tolist()))

    assert multiplied(every) == multiplied(some)


def test_a_gap_test_reads_rows_and_tells_everybody(on_cores: MakeFacts) -> None:
    given = replace(on_cores(layers=2), block_rule=BlockRule("gap", 0.03))
    schedule = method("sancus")(given)
    flags = [op for op in ops(schedule, OpKind.INDEX) if ahead(op)]
    assert {(op.worker, op.peer) for op in flags} == {(a, b) for a in range(4) for b in range(4) if a != b}
    assert {float(schedule.demand[0, op.index]) for op in flags} == {4.0}
    assert not ops(method("cagnet-1d")(on_cores(layers=2)), OpKind.INDEX)


def test_replicas_add_up_their_sums_around_their_ring(on_cores: MakeFacts) -> None:
    facts = on_cores(workers=4, layers=1)
    schedule = method("cagnet-1.5d")(facts)
    added = [op for op in ops(schedule, OpKind.ALLREDUCE, layer=0, direction=FORWARD) if ahead(op)]
    assert {(op.worker, op.peer) for op in added} == {(0, 1), (1, 0), (2, 3), (3, 2)}
    rows = grid_of(facts.counts, 2).rows
    total = sum(float(schedule.demand[0, op.index]) for op in added if op.worker == 0)
    assert total == pytest.approx(4.0 * facts.shapes[0].d_in * float(rows[0]))


@pytest.mark.parametrize("name", ["cagnet-1d", "cagnet-1.5d", "sancus"])
def test_whatever_a_worker_does_is_one_thread_on_its_servers_cores(on_cores: MakeFacts, name: str) -> None:
    facts = on_cores(layers=2)
    schedule = method(name)(facts)

    def works(op: Op) -> bool:
        return op.route is not None and not ahead(op)

    assert all((op.route, op.cap) == (facts.cluster.cores(op.worker), 1.0) for op in schedule.ops if works(op))
    assert {stream(schedule, op) for op in schedule.ops if op.kind is OpKind.UPDATE} == {COMPUTE_STREAM}
