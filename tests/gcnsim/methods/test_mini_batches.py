"""Mini-batches: their iteration, where they are drawn and where rows lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import gpu_draw_seconds, row_bytes, uva_graph_bytes, uva_row_bytes
from gcnsim.engine import simulate
from gcnsim.hardware import Figure
from gcnsim.methods import FEATURES, HOST, ON_GPU, UVA, MiniBatch, Placement, create_method, named
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MINI_BATCH = named(lambda kind: kind.mini_batches)


MakeFacts = Callable[..., Case]
Pace = Callable[..., float]
IN_HOST = Placement(threads=1)
"""One thread draws ahead, cores pick rows: the loader that PaGraph compares with."""
LOADS = (OpKind.GATHER, OpKind.H2D)


def quick_draws(facts: Case) -> Case:
    """The same where drawing takes no time worth the name."""
    soon = Figure(1e15, "assumed", "chosen for a test", "2026", 1e15, 1e15)
    free = replace(soon, value=0.0)
    quick = replace(facts.host, sample_edges_per_s=soon, build_entries_per_s=soon, neighbour_draws_per_s=soon)
    return replace(facts, host=replace(quick, operation_s=free))


def of(schedule: Schedule, *kinds: OpKind, rank: int = 0) -> list[Op]:
    return [op for op in schedule.ops if op.kind in kinds and op.worker == rank]


def alone(schedule: Schedule, ops: list[Op]) -> float:
    """Seconds of ops one after the other, each with its links to itself."""
    seconds = 0.0
    for op in ops:
        work = float(schedule.demand[0, op.index])
        if op.route is None:
            seconds += work
        elif work:
            rate = min(schedule.capacity[link] for link in op.route)
            seconds += op.latency_s + work / min(rate, op.cap or rate)
    return seconds


def parts(schedule: Schedule) -> tuple[float, float]:
    """Seconds in which worker 0 loads a batch, and in which it trains one."""
    streams = [stream.name for stream in schedule.streams]
    graph = [op for op in of(schedule, OpKind.INDEX) if streams[op.stream] == "graph.h2d"]
    load = max(alone(schedule, of(schedule, *LOADS)), alone(schedule, graph))
    train = [op for op in schedule.ops if op.worker == 0 and streams[op.stream] == "gpu"]
    return load, alone(schedule, train)


def test_dgl_loads_and_trains_in_turn(batched: MakeFacts, pace: Pace) -> None:
    schedule = method("dgl")(replace(quick_draws(batched(workers=1, per_server=1)), placement=IN_HOST))
    load, train = parts(schedule)
    assert load > 0.1 * train
    assert pace(schedule) == pytest.approx(load + train, rel=1e-6)


@pytest.mark.parametrize("pcie", [1e8, 1e9, 1e11])
def test_pagraph_takes_the_longer_of_loading_and_training(batched: MakeFacts, pace: Pace, pcie: float) -> None:
    schedule = method("pagraph")(quick_draws(batched(workers=1, per_server=1, pcie=pcie)))
    load, train = parts(schedule)
    assert pace(schedule, 20) == pytest.approx(max(load, train), rel=1e-6)


def test_a_longer_queue_evens_out_batches_of_different_size(batched: MakeFacts, pace: Pace) -> None:
    case = quick_draws(batched(workers=1, per_server=1, iterations=2, cores=2.0))
    short, long = (pace(method("pagraph")(replace(case, queue=queue)), 40) for queue in (1, 3))
    assert long <= short * 1.005


def test_pagraph_with_everything_cached_loads_nothing(batched: MakeFacts, pace: Pace) -> None:
    schedule = method("pagraph")(quick_draws(batched(workers=1, per_server=1, hits=1.0)))
    moving = [op.index for op in of(schedule, *LOADS)]
    assert schedule.demand[:, moving].sum() == 0.0
    assert pace(schedule, 12) == pytest.approx(parts(schedule)[1], rel=1e-6)


def test_pagraph_without_a_cache_loads_what_dgl_loads(batched: MakeFacts) -> None:
    sums = []
    for name in ("dgl", "pagraph"):
        schedule = method(name)(replace(batched(iterations=3), placement=IN_HOST))
        sums.append([float(schedule.demand[:, [op.index for op in of(schedule, kind)]].sum()) for kind in LOADS])
    assert sums[0] == sums[1]
    batches = batched(iterations=3).counts.batches
    assert batches is not None
    assert sums[0][1] == pytest.approx(batches.wanted[:, 0].sum() * 64 * 4)


def test_drawing_is_hidden_but_sets_the_pace_where_it_takes_longest(batched: MakeFacts, pace: Pace) -> None:
    given = replace(batched(workers=1, per_server=1), placement=IN_HOST)
    slow = replace(given.host, neighbour_draws_per_s=replace(given.host.neighbour_draws_per_s, value=1e5))
    drawn = method("dgl")(replace(given, host=slow))
    (sample,) = of(drawn, OpKind.SAMPLE)
    assert pace(drawn, 12) == pytest.approx(float(drawn.demand[0, sample.index]), rel=0.35)
    assert pace(method("dgl")(given)) < pace(drawn) / 2


@pytest.mark.parametrize("name", ["distdgl", "graphsage"])
def test_rows_of_other_servers_are_asked_for_and_sent(batched: MakeFacts, name: str) -> None:
    given = batched(workers=4, per_server=2, far=0.1)
    schedule = method(name)(given)
    batches = given.counts.batches
    assert batches is not None
    wires = of(schedule, OpKind.WIRE)
    assert {op.peer for op in wires} == {2, 3}
    rows = batches.wanted[0, 0, 2:].sum()
    assert schedule.demand[0, [op.index for op in wires]].sum() == rows * (64 * 4 + 4)
    run = simulate(schedule, 3)
    (drawn,), (copied,) = of(schedule, OpKind.SAMPLE), of(schedule, OpKind.H2D)
    assert (run.starts[:, copied.index] >= run.ends[:, [op.index for op in wires]].max(axis=1)).all()
    assert (run.starts[1:, drawn.index] >= run.ends[:-1, schedule.ends[0]]).all()


@pytest.mark.parametrize("name", MINI_BATCH)
def test_every_worker_trains_its_batch_layer_by_layer(batched: MakeFacts, name: str) -> None:
    schedule = method(name)(batched(iterations=2))
    for rank in range(4):
        work = schedule.demand[:, [op.index for op in of(schedule, OpKind.AGGREGATE, OpKind.UPDATE, rank=rank)]]
        assert (work[:, :6] > 0).all()
        assert work.shape[1] == 3 * 2 + 3 + 2
        assert (work[1] > work[0]).sum() >= 6, "the second batch is twice as large"


def test_a_gather_uses_its_share_of_the_servers_cores(batched: MakeFacts) -> None:
    for workers, cap in ((1, 3.0), (2, 1.0), (4, 1.0)):
        schedule = method("dgl")(replace(batched(workers=workers, per_server=workers), placement=IN_HOST))
        assert [op.cap for op in of(schedule, OpKind.GATHER)] == [cap]


def test_workers_of_empty_batches_do_nothing(batched: MakeFacts) -> None:
    given = batched()
    batches = given.counts.batches
    assert batches is not None
    levels = batches.levels.copy()
    levels[:, 1] = 0
    none = replace(batches, levels=levels, entries=batches.entries * (levels[:, :, 1:] > 0), wanted=batches.wanted * 0)
    schedule = method("dgl")(replace(given, counts=replace(given.counts, batches=none)))
    work = schedule.demand[:, [op.index for op in of(schedule, OpKind.AGGREGATE, OpKind.UPDATE, rank=1)]]
    assert work.sum() == 0.0


PULLING = ("distdgl", "graphsage")
CALL = 1e-4


def written(batched: MakeFacts, name: str, placement: Placement | None, **more: float) -> Schedule:
    return method(name)(replace(batched(**more), placement=placement))


def placed(schedule: Schedule, kind: OpKind) -> list[Op]:
    return [op for op in schedule.ops if op.kind is kind and op.worker == 0]


def moved(schedule: Schedule, kind: OpKind) -> float:
    return float(schedule.demand[:, [op.index for op in placed(schedule, kind)]].sum())


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_rows_are_picked_read_or_there(batched: MakeFacts, features: str, on_gpu: bool) -> None:
    given = batched(workers=1, per_server=1)
    batches, host = given.counts.batches, given.host
    assert batches is not None
    schedule = written(batched, "dgl", Placement(on_gpu, 1, features), workers=1, per_server=1)
    wanted = batches.wanted[0, 0]
    expected = {HOST: row_bytes(wanted, 64), UVA: uva_row_bytes(host, wanted, 64), ON_GPU: np.zeros(1)}[features]
    assert bool(placed(schedule, OpKind.GATHER)) == (features == HOST)
    assert moved(schedule, OpKind.H2D) == pytest.approx(float(expected.sum()), rel=1e-12)
    streams = [stream.name for stream in schedule.streams]
    graph = [op for op in placed(schedule, OpKind.INDEX) if streams[op.stream] == "graph.h2d"]
    assert bool(graph) == (not on_gpu or features != ON_GPU), "only a GPU that holds the graph reads it nowhere"
    if on_gpu and graph:
        rows, kept = batches.levels[0, :, 1:].sum(axis=1), batches.entries[0].sum(axis=1)
        read = uva_graph_bytes(host, kept, kept, rows, subgraph=False)
        assert schedule.demand[0, graph[0].index] == pytest.approx(float(read[0]), rel=1e-12)


def test_a_gpu_draws_in_turn_with_its_training(batched: MakeFacts, pace: Pace) -> None:
    given = replace(batched(workers=1, per_server=1), placement=Placement(True, 1, ON_GPU))
    schedule = method("dgl")(given)
    (op,) = placed(schedule, OpKind.SAMPLE)
    assert schedule.streams[op.stream].name == "gpu"
    entries = given.counts.batches.entries[0, 0].sum()  # type: ignore[union-attr]
    seconds = float(gpu_draw_seconds(given.device, given.host, entries, 3))
    assert schedule.demand[0, op.index] == pytest.approx(seconds, rel=1e-12)
    on_gpu = [op.index for op in schedule.ops if op.worker == 0 and schedule.streams[op.stream].name == "gpu"]
    assert pace(schedule) == pytest.approx(float(schedule.demand[0, on_gpu].sum()), rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_more_host_threads_draw_as_many_times_as_much(batched: MakeFacts, pace: Pace, threads: int) -> None:
    given = batched(workers=1, per_server=1, cores=8.0)
    slow = replace(given.host, neighbour_draws_per_s=replace(given.host.neighbour_draws_per_s, value=1e5))
    schedule = method("dgl")(replace(given, host=slow, placement=Placement(False, threads, ON_GPU)))
    (op,) = placed(schedule, OpKind.SAMPLE)
    assert op.cap == threads
    assert pace(schedule, 12) == pytest.approx(float(schedule.demand[0, op.index]) / threads, rel=0.02)


def test_without_threads_the_trainer_draws_each_batch_before_it_loads_it(batched: MakeFacts, pace: Pace) -> None:
    ahead, in_turn = (
        pace(written(batched, "dgl", Placement(False, threads, HOST), workers=1, per_server=1)) for threads in (1, 0)
    )
    (drawn,) = placed(written(batched, "dgl", Placement(False, 0, HOST), workers=1, per_server=1), OpKind.SAMPLE)
    assert drawn.cap == 1.0
    assert in_turn > ahead


@pytest.mark.parametrize("name", MINI_BATCH)
def test_what_is_usual_is_written_where_nobody_says_otherwise(batched: MakeFacts, name: str) -> None:
    made = create_method(name)
    assert isinstance(made, MiniBatch)
    usual = made.usual
    stated = replace(usual, features=usual.features or ON_GPU)
    default, text = (written(batched, name, item) for item in (None, stated))
    assert default.demand.tolist() == text.demand.tolist()
    assert usual.features in (None, *made.rows_in)
    assert made.scripts.features in (None, *made.rows_in)


@pytest.mark.parametrize("name", PULLING)
@pytest.mark.parametrize("features", [HOST, UVA])
def test_rows_of_other_servers_are_picked_by_their_cores_wherever_own_rows_lie(
    batched: MakeFacts, name: str, features: str
) -> None:
    given = batched(workers=4, per_server=2, far=0.1)
    schedule = method(name)(replace(given, placement=Placement(False, 0, features)))
    batches = given.counts.batches
    assert batches is not None
    wanted = batches.wanted[0, 0]
    own = row_bytes(wanted[:2].sum(), 64) if features == HOST else uva_row_bytes(given.host, wanted[:2].sum(), 64)
    assert moved(schedule, OpKind.H2D) == pytest.approx(float(own + row_bytes(wanted[2:].sum(), 64)), rel=1e-12)
    assert {op.peer for op in placed(schedule, OpKind.WIRE)} == {2, 3}
    assert len(placed(schedule, OpKind.GATHER)) == 2 + (features == HOST)


@pytest.mark.parametrize("name", ["graphsaint", "clustergcn"])
def test_a_graph_that_all_layers_share_is_drawn_and_copied_once(batched: MakeFacts, name: str) -> None:
    given = batched(workers=1, per_server=1)
    schedule = method(name)(given)
    batches = given.counts.batches
    assert batches is not None
    streams = [stream.name for stream in schedule.streams]
    (graph,) = [op for op in placed(schedule, OpKind.INDEX) if streams[op.stream] == "graph.h2d"]
    entries, rows = int(batches.entries[0, 0, 0]), int(batches.levels[0, 0, 1])
    assert schedule.demand[0, graph.index] == entries * 8 + rows * 8
    (drawn,) = placed(schedule, OpKind.SAMPLE)
    work = int(batches.looked[0, 0]) / 1e8 + entries / 2e7 + 10 * CALL
    assert schedule.demand[0, drawn.index] == pytest.approx(work, rel=1e-12)


@pytest.mark.parametrize("name", MINI_BATCH)
def test_an_iteration_is_at_least_its_calls(batched: MakeFacts, pace: Pace, name: str) -> None:
    """Of a tiny batch: 5 calls of the batch, 7 of a layer's pass, forward and backward."""
    given = batched(workers=1, per_server=1)
    batches = given.counts.batches
    assert batches is not None
    tiny = replace(
        batches,
        levels=np.ones_like(batches.levels),
        entries=np.ones_like(batches.entries),
        looked=np.ones_like(batches.looked),
        wanted=np.ones_like(batches.wanted),
    )
    found = pace(method(name)(replace(given, counts=replace(given.counts, batches=tiny))))
    assert found > (5 + 2 * 3 * 7) * CALL


def test_training_takes_the_longer_of_its_kernels_and_its_calls(batched: MakeFacts) -> None:
    given = replace(batched(workers=1, per_server=1), placement=Placement(False, 1, ON_GPU))
    trained = []
    for call in (0.0, 1e-6, 1.0):
        host = replace(given.host, operation_s=replace(given.host.operation_s, value=call))
        schedule = method("dgl")(replace(given, host=host))
        steps = {op.index for op in placed(schedule, OpKind.STEP)}
        on_gpu = [op.index for op in schedule.ops if schedule.streams[op.stream].name == "gpu"]
        trained.append(float(schedule.demand[0, [index for index in on_gpu if index not in steps]].sum()))
    free, short, long = trained
    assert free > (5 + 2 * 3 * 7) * 1e-6
    assert short == free, "the host is done before the GPU"
    assert long == pytest.approx(5 + 2 * 3 * 7, rel=1e-9)


def test_pagraphs_gpu_draws_beside_its_training(batched: MakeFacts) -> None:
    schedule = written(batched, "pagraph", Placement(True, 1, UVA), workers=1, per_server=1, iterations=2)
    (drawn,) = placed(schedule, OpKind.SAMPLE)
    assert schedule.streams[drawn.stream].name == "sampler"
    (read,) = [op for op in placed(schedule, OpKind.INDEX) if schedule.streams[op.stream].name == "graph.h2d"]
    (copied,) = placed(schedule, OpKind.H2D)
    assert (drawn.index, 0) in read.after
    assert (read.index, 0) in copied.after
