"""What an iteration of mini-batches on CPU cores consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.cost import batch_core_cost, rows_seconds, with_busy_sums
from gcnsim.cost.core import RESULT_PASSES, result_seconds, sum_seconds
from gcnsim.cost.device import elementwise_seconds
from gcnsim.cost.maps import map_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import POOLING_TERMS, FarFigures, Figure, PoolingFigures, SumFigures
from gcnsim.hardware.profiles import TERMS
from gcnsim.methods import method_type
from gcnsim.methods.families.cpu_batches import NEAR_CALLS, NEAR_HELD
from gcnsim.methods.families.cpu_ops import WOKEN_S
from gcnsim.schedule import COMPUTE_STREAM, bounds
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.cases import Case, method
from tests.gcnsim.methods.batches import FIGURES, on, work

MakeFacts = Callable[..., Case]
Pace = Callable[..., float]
WIDTH = 64
PULLING = ("graphsage", "distdgl")
FORWARD = Direction.FORWARD
AHEAD = ("dgl", "clustergcn", "graphsaint")


def test_a_batch_is_drawn_built_and_made_into_matrices(cases: MakeFacts) -> None:
    given = cases()
    schedule = method("graphsage")(given)
    batches = given.counts.batches
    assert batches is not None
    entries, levels = batches.entries[0, 0], batches.levels[0, 0]
    drawn, made = on(schedule, 0, "sampler")
    assert (drawn.kind, made.kind) == (OpKind.SAMPLE, OpKind.INDEX)
    total = float(entries.sum())
    assert work(schedule, drawn) == pytest.approx(1e-3 + total / 1e7 + total / 2e7 + total / 5e6)
    stored = entries + levels[1:]
    # Layer 0's matrix has no transpose.
    assert work(schedule, made) == pytest.approx(
        entries.size * 1e-5 + stored.sum() / 1e8 + stored[1:].sum() / 2e7, rel=1e-9
    )


@pytest.mark.parametrize("name", ["clustergcn", "graphsaint"])
def test_all_layers_of_a_sub_graph_have_one_matrix(cases: MakeFacts, name: str) -> None:
    given = cases()
    schedule = method(name)(given)
    batches = given.counts.batches
    assert batches is not None
    entries, looked = int(batches.entries[0, 0, 0]), int(batches.looked[0, 0])
    drawn, made = on(schedule, 0, "sampler")
    assert work(schedule, drawn) == pytest.approx(1e-3 + looked / 1e7 + entries / 5e6)
    stored = entries + int(batches.levels[0, 0, 1])
    assert work(schedule, made) == pytest.approx(1e-5 + stored / 1e8 + stored / 2e7)


def test_what_pools_learns_in_layer_0_too_and_needs_no_transpose(cases: MakeFacts) -> None:
    given = cases()
    pooling = PoolingFigures(dict.fromkeys(POOLING_TERMS, 1e-9), dict.fromkeys(POOLING_TERMS, 2e-9))
    widths = given.shapes[0].d_in, given.shapes[0].d_out, len(given.shapes), given.shapes[-1].d_out
    shapes = layer_shapes("graphsage", *widths, sage_aggregator="pool")
    pooled = replace(given, shapes=shapes, device=replace(given.device, pooling=pooling))
    mean = replace(given, shapes=layer_shapes("graphsage", *widths))
    for item, learns in ((mean, set(range(1, len(shapes)))), (pooled, set(range(len(shapes))))):
        sums = on(method("graphsage")(item), 0, COMPUTE_STREAM, OpKind.AGGREGATE)
        assert {op.layer for op in sums if op.direction is Direction.BACKWARD} == learns
    schedule, batches = method("graphsage")(pooled), given.counts.batches
    assert batches is not None
    for layer in range(len(shapes)):
        (back,) = (op.index for op in on(schedule, 0, COMPUTE_STREAM, OpKind.AGGREGATE)
                   if op.layer == layer and op.direction is Direction.BACKWARD)  # fmt: skip
        begun = [op for op in on(schedule, 0, "reduce.out") if op.layer == layer]
        assert (back, 0) in begun[0].after, "a layer's gradients are summed once the map before pooling has its own"
    _, made = on(schedule, 0, "sampler")
    entries, levels = batches.entries[0, 0], batches.levels[0, 0]
    assert work(schedule, made) == pytest.approx(entries.size * 1e-5 + (entries + levels[1:]).sum() / 1e8)


def test_what_pools_drops_its_rows_all_at_once(cases: MakeFacts) -> None:
    given = cases()
    pooling = PoolingFigures(dict.fromkeys(POOLING_TERMS, 1e-9), dict.fromkeys(POOLING_TERMS, 2e-9))
    widths = given.shapes[0].d_in, given.shapes[0].d_out, len(given.shapes), given.shapes[-1].d_out
    host = replace(given.host, dropout_values_per_s=Figure(1e6, "fitted", "a test", "2026"))
    device = replace(given.device, pooling=pooling)
    batches, found = given.counts.batches, {}
    assert batches is not None
    for name in ("mean", "pool"):
        shapes = layer_shapes("graphsage", *widths, sage_aggregator=name)
        facts = replace(given, shapes=shapes, device=device, host=host, dropout="exchange-first")
        schedule = method("graphsage")(facts)
        first = on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE)[0]
        back = [op for op in on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE) if op.direction is Direction.BACKWARD]
        found[name] = work(schedule, first), len(back)
    values = float(batches.levels[0, 0, 0]) * widths[0]
    assert found["pool"] == found["mean"]
    assert found["pool"][0] == pytest.approx(values / 1e6)
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
    assert work(schedule, own) == pytest.approx(4 * WIDTH * wanted[0, 0] / 1e9)
    assert work(schedule, others) == pytest.approx(4 * WIDTH * wanted[1, 0] / 1e9)
    (placed,) = on(schedule, 0, "load", OpKind.SCATTER)
    assert work(schedule, placed) == pytest.approx(float(rows_seconds(given.device, wanted[0].sum(), WIDTH)))


@pytest.mark.parametrize("name", ["dgl", *AHEAD[1:]])
def test_rows_at_hand_send_no_message(cases: MakeFacts, name: str) -> None:
    schedule = method(name)(cases())
    assert not [op for op in schedule.ops if op.kind is OpKind.WIRE]
    (gathered,) = on(schedule, 0, "load")
    rows = 100 * 10 ** len(cases().shapes)
    assert work(schedule, gathered) == pytest.approx(4 * WIDTH * rows / 1e9)


def test_training_goes_forward_and_back_without_the_inputs_gradient(cases: MakeFacts) -> None:
    given = cases()
    schedule = method("graphsage")(given)
    layers = len(given.shapes)
    sums = on(schedule, 0, COMPUTE_STREAM, OpKind.AGGREGATE)
    assert [(op.direction, op.layer) for op in sums] == [
        *((Direction.FORWARD, layer) for layer in range(layers)),
        *((Direction.BACKWARD, layer) for layer in reversed(range(1, layers))),
    ]
    batches = given.counts.batches
    assert batches is not None
    for op in sums:
        read, made = batches.levels[0, 0, op.layer], batches.levels[0, 0, op.layer + 1]
        width, kept = given.shapes[op.layer].d_in, batches.entries[0, 0, op.layer]
        into, out_of = (made, read) if op.direction is Direction.FORWARD else (read, made)
        wanted = sum_seconds(given.device, float(kept), float(into), width, float(out_of))
        assert work(schedule, op) == pytest.approx(
            float(wanted) + float(result_seconds(given.device, float(made * width))) / RESULT_PASSES
        )


def test_a_layers_map_is_of_the_rows_it_makes(cases: MakeFacts) -> None:
    given = cases()
    shape, device = given.shapes[0], given.device
    cost = batch_core_cost(
        device,
        shape,
        rows_in=np.array([50]),
        rows_out=np.array([7]),
        entries=np.array([0]),
        first=True,
        last=False,
        norm=False,
    )
    values = 7.0 * shape.d_out
    forward = map_seconds(device, 7.0, shape.update_in, shape.d_out) + elementwise_seconds(device, values, 2)
    backward = map_seconds(device, shape.update_in, 7.0, shape.d_out) + elementwise_seconds(device, values, 3)
    assert cost.update[0] == pytest.approx(float(forward))
    assert cost.update_backward[0] == pytest.approx(float(backward))
    assert cost.aggregate_backward[0] == 0.0


def test_sums_of_drawn_rows_follow_the_law_that_knows_the_caches(cases: MakeFacts) -> None:
    """1,000 entries read 100 rows of 64 values in any order, 40 rows are made: 25.6 kB are read again and again."""
    given = cases()
    shape = replace(given.shapes[0], d_in=WIDTH)

    def cost(between: float, caches: tuple[float, ...], first: bool = False, **seconds: float) -> tuple[float, float]:
        far = FarFigures(1e6, 0.0, 1.0, 1.0, 1.0, {})
        device = replace(given.device, far=far, sums=SumFigures(caches, dict.fromkeys(TERMS, 0.0) | seconds))
        core_cost = batch_core_cost(
            device,
            shape,
            rows_in=np.array([100]),
            rows_out=np.array([40]),
            entries=np.array([960]),
            first=first,
            last=False,
            norm=False,
            between=between,
        )
        return float(core_cost.aggregate[0]), float(core_cost.aggregate_backward[0])

    large, small = (1e6, 2e6, 4e6), (1.0, 2.0, 4.0)
    assert cost(0.0, large, entry=1e-9) == pytest.approx((1e-6, 1e-6)), "self-loops are entries too"
    assert cost(0.0, large, row=1e-9) == pytest.approx((40e-9, 100e-9))
    assert cost(0.0, large, first=True, row=1e-9) == pytest.approx((40e-9, 0.0)), "nothing learns of the input"
    far = 4 * WIDTH * 1e-9
    assert cost(0.0, large, far_row_byte=1e-9) == (0.0, 0.0)
    assert cost(1e9, large, far_row_byte=1e-9) == pytest.approx((40 * far, 100 * far)), "results an iteration ago"
    assert cost(1e9, small, first_miss=1e-9) == pytest.approx((1e-6, 1e-6), rel=1e-3), "no cache holds a row"
    new = 100 * 4 * WIDTH * 1e-9
    assert cost(0.0, large, last_miss_byte=1e-9) == (0.0, 0.0)
    assert cost(0.0, large, first=True, last_miss_byte=1e-9)[0] == pytest.approx(new), "another thread's rows"
    assert cost(1e9, large, last_miss_byte=1e-9)[0] == pytest.approx(new), "rows just made lie where old ones did"
    missed = cost(1e9, large, first_miss=1e-9)
    assert missed == pytest.approx((100e-9, 40e-9), rel=0.01), "each row is new once"
    between = cost(1e9, (6e3, 2e6, 4e6), first_miss=1e-9)[0]
    assert missed[0] < between < 1e-6, "some rows come back before they have left the first cache"


def test_in_turn_an_iteration_is_the_sum_of_its_parts(cases: MakeFacts, pace: Pace) -> None:
    schedule = method("graphsage")(cases(far=0.0))
    parts = sum(work(schedule, op) for name in ("sampler", "load", COMPUTE_STREAM) for op in on(schedule, 0, name))
    assert pace(schedule) == pytest.approx(parts, rel=0.03)


@pytest.mark.parametrize("name", [*AHEAD, "pagraph"])
def test_the_training_thread_stands_still_for_a_share_of_the_drawing(cases: MakeFacts, name: str) -> None:
    given = cases()
    schedule = method(name)(given)
    passes = 2 * len(given.shapes)
    *steps, _optimizer, last_stall, last = on(schedule, 0, COMPUTE_STREAM, OpKind.STEP)
    stalls = [work(schedule, op) for op in (*steps, last_stall) if not schedule.is_flow[op.index]]
    calls = [work(schedule, op) for op in (*steps, last) if schedule.is_flow[op.index]]
    sampled = work(schedule, on(schedule, 0, "sampler")[0])
    beside = sum(given.cluster.cores(rank) == given.cluster.cores(0) for rank in range(given.cluster.gpus))
    busy = 2 * beside > given.host.cores.value
    rate = given.host.busy_core_rate.value if busy else 1.0
    assert (len(stalls), len(calls)) == (passes, passes)
    assert sum(stalls) == pytest.approx(NEAR_HELD * sampled / rate, rel=1e-6)
    assert sum(calls) == pytest.approx(NEAR_CALLS * given.device.launch_s.value, rel=1e-6)


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
        [4 * WIDTH * missing[1] / 1e9, 4 * WIDTH * missing[0] / 1e9]
    )
    (taken,) = on(schedule, 0, COMPUTE_STREAM, OpKind.LOOKUP)
    # All rows are put into place, and those out of the cache are picked out before that.
    rows = batches.wanted[0, 0].sum() + batches.hits[0, 0].sum()
    assert work(schedule, taken) == pytest.approx(float(rows_seconds(given.device, rows, WIDTH)) + WOKEN_S)


def test_figures_that_no_calibration_told_are_asked_for_in_one_line(on_cores: MakeFacts, batched: MakeFacts) -> None:
    given = replace(on_cores(workers=2, per_server=1), counts=batched(workers=2, per_server=1).counts)
    with pytest.raises(ScenarioError, match=r"^cluster.calibration: has no batch_s; .*runtime.profile") as content:
        method("graphsage")(given)
    assert "\n" not in str(content.value)


def test_every_system_of_mini_batches_has_a_schedule_on_cores(cases: MakeFacts) -> None:
    for name in ("graphsage", "clustergcn", "graphsaint", "dgl", "pagraph", "distdgl"):
        assert method_type(name).supports_cpu
        assert len(method(name)(cases()).ends) == 2


def test_what_pools_goes_through_more_than_a_mean_beside_busy_cores(on_cores: MakeFacts, batched: MakeFacts) -> None:
    """A last cache that just holds what a mean reads and makes does not hold the mapped rows besides."""
    cores, given = on_cores(workers=2, per_server=2), batched(workers=2, per_server=2)
    batches, widths = given.counts.batches, (cores.shapes[0].d_in, cores.shapes[0].d_out)
    assert batches is not None
    read, made = (int(item) for item in batches.levels[0, 0, :2])
    figures: dict[str, Any] = {name: Figure(value, "fitted", "a test", "2026") for name, value in FIGURES.items()}
    pooling = PoolingFigures(*(dict.fromkeys(POOLING_TERMS, 0.0) for _ in range(2)))
    host = replace(cores.host, cores=Figure(2.0, "fitted", "a test", "2026"), **figures)
    rate, took = host.busy_core_rate.value, {}
    for name in ("mean", "pool"):
        shapes = layer_shapes("graphsage", *widths, len(cores.shapes), cores.shapes[-1].d_out, sage_aggregator=name)
        # Half of it: less loses nothing, twice as much all.
        held = 2.0 * 4 * (read * widths[0] + made * widths[1])
        sums = SumFigures((2e2, 5e2, held), dict.fromkeys(TERMS, 1e-9))
        device = replace(cores.device, sums=sums, pooling=pooling)
        schedule = method("graphsage")(replace(cores, counts=given.counts, shapes=shapes, device=device, host=host))
        (op,) = [
            op for op in on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE) if op.layer == 0 and op.direction is FORWARD
        ]
        took[name] = work(schedule, op)
    assert rate < 1.0
    assert took["pool"] > took["mean"] * (1.0 + 0.5 * (1.0 / rate - 1.0)), "the same map, most of it from memory"


@pytest.mark.parametrize(("last_cache", "lost"), [(1e3, 1.0), (1e9, 0.0)], ids=["from memory", "from caches"])
def test_layers_that_caches_hold_lose_nothing_beside_busy_cores(
    on_cores: MakeFacts, batched: MakeFacts, last_cache: float, lost: float
) -> None:
    """Neither the ratio of sums nor what the engine takes off the rate of a core that is beside busy ones."""
    cores, given = on_cores(workers=2, per_server=2), batched(workers=2, per_server=2)
    figures: dict[str, Any] = {name: Figure(value, "fitted", "a test", "2026") for name, value in FIGURES.items()}
    sums = SumFigures((2e2, 5e2, last_cache), dict.fromkeys(TERMS, 1e-9))
    alone = replace(cores.device, sums=sums)
    ratio, count = (Figure(value, "fitted", "a test", "2026") for value in (1.44, 2.0))
    host = replace(cores.host, cores=count, busy_sums_ratio=ratio, **figures)
    case = replace(cores, counts=given.counts, device=alone, host=host)
    schedule = method("graphsage")(case)
    batches, shape = case.counts.batches, case.shapes[0]
    assert batches is not None
    rows, entries = batches.levels[0, 0], batches.entries[:1, 0, 0]
    read, made = rows[:1], rows[1:2]
    rate = host.busy_core_rate.value
    device = with_busy_sums(alone, 1.44) if lost else alone
    expected = float(sum_seconds(device, entries, made, shape.d_in, read)[0])
    expected += float(result_seconds(device, made * shape.d_in)[0]) / RESULT_PASSES
    (op,) = [op for op in on(schedule, 0, COMPUTE_STREAM, OpKind.AGGREGATE) if op.layer == 0]
    assert rate < 1.0
    assert work(schedule, op) == pytest.approx(expected * (1.0 if lost else rate))
