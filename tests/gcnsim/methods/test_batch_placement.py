"""Who draws mini-batches of GPUs, and where their rows lie: which ops there are, what they move, what they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import gpu_draw_seconds, row_bytes, uva_graph_bytes, uva_row_bytes
from gcnsim.methods import FEATURES, HOST, ON_GPU, UVA, MiniBatch, Placement, create_method, named
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MINI_BATCH = named(lambda kind: kind.mini_batches)
PULLING = ("distdgl", "graphsage")
CALL = 1e-4

MakeFacts = Callable[..., Case]
Pace = Callable[..., float]


def written(batched: MakeFacts, name: str, placement: Placement | None, **more: float) -> Schedule:
    return method(name)(replace(batched(**more), placement=placement))


def of(schedule: Schedule, kind: OpKind) -> list[Op]:
    return [op for op in schedule.ops if op.kind is kind and op.worker == 0]


def moved(schedule: Schedule, kind: OpKind) -> float:
    return float(schedule.demand[:, [op.index for op in of(schedule, kind)]].sum())


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_rows_are_picked_read_or_there(batched: MakeFacts, features: str, on_gpu: bool) -> None:
    given = batched(workers=1, per_server=1)
    batches, host = given.counts.batches, given.host
    assert batches is not None
    schedule = written(batched, "dgl", Placement(on_gpu, 1, features), workers=1, per_server=1)
    wanted = batches.wanted[0, 0]
    expected = {HOST: row_bytes(wanted, 64), UVA: uva_row_bytes(host, wanted, 64), ON_GPU: np.zeros(1)}[features]
    assert bool(of(schedule, OpKind.GATHER)) == (features == HOST)
    assert moved(schedule, OpKind.H2D) == pytest.approx(float(expected.sum()), rel=1e-12)
    streams = [stream.name for stream in schedule.streams]
    graph = [op for op in of(schedule, OpKind.INDEX) if streams[op.stream] == "graph.h2d"]
    assert bool(graph) == (not on_gpu or features != ON_GPU), "only a GPU that holds the graph reads it nowhere"
    if on_gpu and graph:
        rows, kept = batches.levels[0, :, 1:].sum(axis=1), batches.entries[0].sum(axis=1)
        read = uva_graph_bytes(host, kept, kept, rows, subgraph=False)
        assert schedule.demand[0, graph[0].index] == pytest.approx(float(read[0]), rel=1e-12)


def test_a_gpu_draws_in_turn_with_its_training(batched: MakeFacts, pace: Pace) -> None:
    given = replace(batched(workers=1, per_server=1), placement=Placement(True, 1, ON_GPU))
    schedule = method("dgl")(given)
    (op,) = of(schedule, OpKind.SAMPLE)
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
    (op,) = of(schedule, OpKind.SAMPLE)
    assert op.cap == threads
    assert pace(schedule, 12) == pytest.approx(float(schedule.demand[0, op.index]) / threads, rel=0.02)


def test_without_threads_the_trainer_draws_each_batch_before_it_loads_it(batched: MakeFacts, pace: Pace) -> None:
    ahead, in_turn = (
        pace(written(batched, "dgl", Placement(False, threads, HOST), workers=1, per_server=1)) for threads in (1, 0)
    )
    (drawn,) = of(written(batched, "dgl", Placement(False, 0, HOST), workers=1, per_server=1), OpKind.SAMPLE)
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
    assert {op.peer for op in of(schedule, OpKind.WIRE)} == {2, 3}
    assert len(of(schedule, OpKind.GATHER)) == 2 + (features == HOST)


@pytest.mark.parametrize("name", ["graphsaint", "clustergcn"])
def test_a_graph_that_all_layers_share_is_drawn_and_copied_once(batched: MakeFacts, name: str) -> None:
    given = batched(workers=1, per_server=1)
    schedule = method(name)(given)
    batches = given.counts.batches
    assert batches is not None
    streams = [stream.name for stream in schedule.streams]
    (graph,) = [op for op in of(schedule, OpKind.INDEX) if streams[op.stream] == "graph.h2d"]
    entries, rows = int(batches.entries[0, 0, 0]), int(batches.levels[0, 0, 1])
    assert schedule.demand[0, graph.index] == entries * 8 + rows * 8
    (drawn,) = of(schedule, OpKind.SAMPLE)
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
        steps = {op.index for op in of(schedule, OpKind.STEP)}
        on_gpu = [op.index for op in schedule.ops if schedule.streams[op.stream].name == "gpu"]
        trained.append(float(schedule.demand[0, [index for index in on_gpu if index not in steps]].sum()))
    free, short, long = trained
    assert free > (5 + 2 * 3 * 7) * 1e-6
    assert short == free, "the host is done before the GPU"
    assert long == pytest.approx(5 + 2 * 3 * 7, rel=1e-9)


def test_pagraphs_gpu_draws_beside_its_training(batched: MakeFacts) -> None:
    schedule = written(batched, "pagraph", Placement(True, 1, UVA), workers=1, per_server=1, iterations=2)
    (drawn,) = of(schedule, OpKind.SAMPLE)
    assert schedule.streams[drawn.stream].name == "sampler"
    (read,) = [op for op in of(schedule, OpKind.INDEX) if schedule.streams[op.stream].name == "graph.h2d"]
    (copied,) = of(schedule, OpKind.H2D)
    assert (drawn.index, 0) in read.after
    assert (read.index, 0) in copied.after
