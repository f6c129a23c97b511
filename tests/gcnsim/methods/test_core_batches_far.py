"""What mini-batches on CPU cores take longer where their rows come from memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gcnsim.hardware import MAP_TERMS, FarFigures, Figure, MapFigures, SumFigures
from gcnsim.hardware.profiles import TERMS
from gcnsim.methods.families.cpu_batches import CALLS, INTERPRETER_HELD
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method
from tests.gcnsim.methods.batches import FIGURES, on, work

MakeFacts = Callable[..., Case]
FORWARD = Direction.FORWARD
AHEAD = ("dgl", "clustergcn", "graphsaint")


def test_a_rows_drawing_and_a_loads_call_cost_what_was_measured(cases: MakeFacts) -> None:
    given = cases()
    more: dict[str, Any] = {
        name: Figure(value, "fitted", "a test", "2026")
        for name, value in {"batch_row_s": 1e-6, "load_s": 1e-4, "load_row_s": 1e-7}.items()
    }
    batches = given.counts.batches
    assert batches is not None
    for name, made in (
        ("graphsage", int(batches.levels[0, 0, 1:].sum())),
        ("clustergcn", int(batches.levels[0, 0, 1])),
    ):
        plain, known = (method(name)(replace(given, host=host)) for host in (given.host, replace(given.host, **more)))
        drawn = [work(schedule, on(schedule, 0, "sampler")[0]) for schedule in (plain, known)]
        assert drawn[1] - drawn[0] == pytest.approx(made * 1e-6)
        loaded = [work(schedule, on(schedule, 0, "load", OpKind.GATHER)[0]) for schedule in (plain, known)]
        rows = int((batches.wanted - batches.hits)[0, 0, 0])
        assert loaded[1] - loaded[0] == pytest.approx(1e-4 + rows * 1e-7)


def test_what_comes_from_memory_slows_down_a_batch_that_touches_much(cases: MakeFacts) -> None:
    given = cases()
    figures: dict[str, Any] = {name: Figure(value, "fitted", "a test", "2026") for name, value in FIGURES.items()}
    far = FarFigures(1.0, 1e-9, 1.5, 2.0, 3.0, {"batch_s": 5e-3, "gather_bandwidth": 1e6})
    launch = replace(given.device.launch_s, source="fitted")
    gather = Figure(1e9, "fitted", "a test", "2026")
    near = replace(
        given,
        device=replace(given.device, maps=MapFigures(dict.fromkeys(MAP_TERMS, 1e-9), ((5.0, 1e-7),)), launch_s=launch),
        host=replace(given.host, **figures, gather_bandwidth=gather),
    )
    batches = given.counts.batches
    assert batches is not None
    schedules = [method("graphsage")(replace(near, device=replace(near.device, far=item))) for item in (None, far)]
    drawn = [work(schedule, on(schedule, 0, "sampler")[0]) for schedule in schedules]
    assert drawn[1] - drawn[0] == pytest.approx(5e-3 - 1e-3)
    loaded = [work(schedule, on(schedule, 0, "load", OpKind.GATHER)[0]) for schedule in schedules]
    assert loaded[1] == pytest.approx(1e3 * loaded[0])
    ahead, behind = (
        [work(schedule, next(op for op in on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE) if op.direction is way))
         for schedule in schedules]
        for way in (FORWARD, Direction.BACKWARD)
    )  # fmt: skip
    shape, made = given.shapes[0], int(batches.levels[0, 0, 1])
    assert ahead[1] - ahead[0] > 4 * made * (shape.update_in + shape.d_out) * 1e-9, "passes and launches too"
    assert behind[0] == behind[1]


def test_by_records_that_know_distances_all_lose_alike_beside_busy_cores(
    on_cores: MakeFacts, batched: MakeFacts
) -> None:
    """What the last cache holds, too: what it saves is in what kernels take alone."""
    given, counts = on_cores(workers=2, per_server=2), batched(workers=2, per_server=2).counts
    figures: dict[str, Any] = {name: Figure(value, "fitted", "a test", "2026") for name, value in FIGURES.items()}
    count, rate = (replace(given.host.cores, value=value) for value in (2.0, 0.5))
    host = replace(given.host, cores=count, busy_core_rate=rate, **figures)
    sums = SumFigures((2e2, 5e2, 1e15), dict.fromkeys(TERMS, 1e-9))
    maps = MapFigures(dict.fromkeys(MAP_TERMS, 1e-9), ((5.0, 1e-7),))
    case = replace(given, counts=counts, host=host, device=replace(given.device, sums=sums, maps=maps))
    far = FarFigures(1e15, 0.0, 1.0, 1.0, 1.0, {})
    plain, knows = (method("graphsage")(replace(case, device=replace(case.device, far=item))) for item in (None, far))
    before, after = (work(schedule, on(schedule, 0, COMPUTE_STREAM, OpKind.UPDATE)[0]) for schedule in (plain, knows))
    assert before == pytest.approx(0.5 * after)


@pytest.mark.parametrize("name", AHEAD)
def test_records_that_know_distances_count_fewer_calls_and_stalls(cases: MakeFacts, name: str) -> None:
    given = cases()
    far = FarFigures(1e15, 0.0, 1.0, 1.0, 1.0, {})
    schedule = method(name)(replace(given, device=replace(given.device, far=far)))
    *steps, _optimizer, last_stall, last = on(schedule, 0, COMPUTE_STREAM, OpKind.STEP)
    stalls = [work(schedule, op) for op in (*steps, last_stall) if not schedule.is_flow[op.index]]
    calls = [work(schedule, op) for op in (*steps, last) if schedule.is_flow[op.index]]
    sampled = work(schedule, on(schedule, 0, "sampler")[0])
    beside = sum(given.cluster.cores(rank) == given.cluster.cores(0) for rank in range(given.cluster.gpus))
    rate = given.host.busy_core_rate.value if 2 * beside > given.host.cores.value else 1.0
    assert sum(stalls) == pytest.approx(INTERPRETER_HELD * sampled / rate, rel=1e-6)
    assert sum(calls) == pytest.approx(CALLS * given.device.launch_s.value, rel=1e-6)
