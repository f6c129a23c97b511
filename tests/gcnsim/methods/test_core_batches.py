"""What an iteration of mini-batches on CPU cores consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.cost import rows_seconds
from gcnsim.methods import method_type
from gcnsim.methods.families.cpu_ops import WOKEN_S
from gcnsim.schedule import COMPUTE_STREAM, bounds
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.cases import Case, method
from tests.gcnsim.methods.batches import on, work

MakeFacts = Callable[..., Case]
Pace = Callable[..., float]
WIDTH = 64
PULLING = ("graphsage", "distdgl")
AHEAD = ("dgl", "clustergcn", "graphsaint")


def test_a_batch_is_drawn_then_made_into_matrices(cases: MakeFacts) -> None:
    drawn, made = on(method("graphsage")(cases()), 0, "sampler")
    assert (drawn.kind, made.kind) == (OpKind.SAMPLE, OpKind.INDEX)


def test_what_pools_learns_in_layer_0_too(cases: MakeFacts) -> None:
    given = cases()
    widths = given.shapes[0].d_in, given.shapes[0].d_out, len(given.shapes), given.shapes[-1].d_out
    shapes = layer_shapes("graphsage", *widths, sage_aggregator="pool")
    pooled = replace(given, shapes=shapes)
    mean = replace(given, shapes=layer_shapes("graphsage", *widths))
    for item, learns in ((mean, set(range(1, len(shapes)))), (pooled, set(range(len(shapes))))):
        sums = on(method("graphsage")(item), 0, COMPUTE_STREAM, OpKind.AGGREGATE)
        assert {op.layer for op in sums if op.direction is Direction.BACKWARD} == learns
    schedule = method("graphsage")(pooled)
    for layer in range(len(shapes)):
        (back,) = (op.index for op in on(schedule, 0, COMPUTE_STREAM, OpKind.AGGREGATE)
                   if op.layer == layer and op.direction is Direction.BACKWARD)  # fmt: skip
        begun = [op for op in on(schedule, 0, "reduce.out") if op.layer == layer]
        assert (back, 0) in begun[0].after, "a layer's gradients are summed once the map before pooling has its own"


def test_what_pools_drops_its_rows_all_at_once(cases: MakeFacts) -> None:
    given = cases()
    widths, found = (given.shapes[0].d_in, given.shapes[0].d_out, len(given.shapes), given.shapes[-1].d_out), {}
    for name in ("mean", "pool"):
        shapes = layer_shapes("graphsage", *widths, sage_aggregator=name)
        schedule = method("graphsage")(replace(given, shapes=shapes, dropout="exchange-first"))
        first = on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE)[0]
        back = [op for op in on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE) if op.direction is Direction.BACKWARD]
        found[name] = work(schedule, first), len(back)
    assert found["pool"] == found["mean"]
    assert found["pool"][1] == 2 * len(given.shapes) - 1, "a map of each layer, and a mask of all but the input"


@pytest.mark.parametrize("name", PULLING)
def test_rows_of_others_are_asked_for_picked_out_sent_and_placed(cases: MakeFacts, name: str) -> None:
    given = cases(far=0.25)
    schedule = method(name)(given)
    batches = given.counts.batches
    assert batches is not None
    wanted = batches.wanted[0]
    sent = {stream: work(schedule, on(schedule, 0, f"load.{stream}1")[0]) for stream in ("count", "ids", "rows")}
    assert sent == {"count": 4.0, "ids": 4.0 * wanted[0, 1], "rows": 4.0 * WIDTH * wanted[1, 0]}
    own, others = on(schedule, 0, "load", OpKind.GATHER)
    for op, rows in ((own, wanted[0, 0]), (others, wanted[1, 0])):
        assert work(schedule, op) == pytest.approx(float(rows_seconds(given.device, rows, WIDTH)))
    (placed,) = on(schedule, 0, "load", OpKind.SCATTER)
    assert work(schedule, placed) == pytest.approx(float(rows_seconds(given.device, wanted[0].sum(), WIDTH)))


@pytest.mark.parametrize("name", ["dgl", *AHEAD[1:]])
def test_rows_at_hand_send_no_message(cases: MakeFacts, name: str) -> None:
    given = cases()
    schedule = method(name)(given)
    assert not [op for op in schedule.ops if op.kind is OpKind.WIRE]
    (gathered,) = on(schedule, 0, "load")
    rows = 100 * 10 ** len(given.shapes)
    assert work(schedule, gathered) == pytest.approx(float(rows_seconds(given.device, rows, WIDTH)))


def test_training_goes_forward_and_back_without_the_inputs_gradient(cases: MakeFacts) -> None:
    given = cases()
    schedule = method("graphsage")(given)
    layers = len(given.shapes)
    sums = on(schedule, 0, COMPUTE_STREAM, OpKind.AGGREGATE)
    assert [(op.direction, op.layer) for op in sums] == [
        *((Direction.FORWARD, layer) for layer in range(layers)),
        *((Direction.BACKWARD, layer) for layer in reversed(range(1, layers))),
    ]


def test_in_turn_an_iteration_is_the_sum_of_its_parts(cases: MakeFacts, pace: Pace) -> None:
    schedule = method("graphsage")(cases(far=0.0))
    parts = sum(work(schedule, op) for name in ("sampler", "load", COMPUTE_STREAM) for op in on(schedule, 0, name))
    assert pace(schedule) == pytest.approx(parts, rel=0.03)


@pytest.mark.parametrize("name", AHEAD)
def test_the_next_batch_is_drawn_beneath_training(cases: MakeFacts, pace: Pace, name: str) -> None:
    given = cases()
    schedule = method(name)(given)
    drawn = sum(work(schedule, op) for op in on(schedule, 0, "sampler"))
    train = sum(work(schedule, op) for name in ("load", COMPUTE_STREAM) for op in on(schedule, 0, name))
    assert pace(schedule, 20) == pytest.approx(max(drawn, train), rel=0.05)


def test_a_queue_loads_and_draws_beneath_training(cases: MakeFacts, pace: Pace) -> None:
    schedule = method("pagraph")(cases(queue=2))
    drawn, loaded, train = (
        sum(work(schedule, op) for op in on(schedule, 0, name)) for name in ("sampler", "load", COMPUTE_STREAM)
    )
    assert pace(schedule, 24) == pytest.approx(max(drawn, loaded, train), rel=0.05)
    assert bounds(schedule).lower_s <= pace(schedule, 24) <= bounds(schedule).upper_s


def test_what_runs_ahead_is_of_the_batch_it_prepares(cases: MakeFacts) -> None:
    given = cases(iterations=2, hits=0.5, queue=1)
    schedule = method("pagraph")(given)
    batches = given.counts.batches
    assert batches is not None
    (gathered,) = on(schedule, 0, "load")
    missing = (batches.wanted - batches.hits)[:, 0].sum(axis=1)
    assert [work(schedule, gathered, t) for t in (0, 1)] == pytest.approx(
        [float(rows_seconds(given.device, missing[t], WIDTH)) for t in (1, 0)]
    )
    (taken,) = on(schedule, 0, COMPUTE_STREAM, OpKind.LOOKUP)
    # All rows are put into place, and those out of the cache are picked out before that.
    rows = batches.wanted[0, 0].sum() + batches.hits[0, 0].sum()
    assert work(schedule, taken) == pytest.approx(float(rows_seconds(given.device, rows, WIDTH)) + WOKEN_S)


def test_every_system_of_mini_batches_has_a_schedule_on_cores(cases: MakeFacts) -> None:
    for name in ("graphsage", "clustergcn", "graphsaint", "dgl", "pagraph", "distdgl"):
        assert method_type(name).supports_cpu
        assert len(method(name)(cases()).ends) == 2
