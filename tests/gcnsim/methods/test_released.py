"""What the published systems' own code costs besides, by hand, and in the iterations of every method that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim import simulate
from gcnsim.cost import (
    gradient_bytes,
    host_bound,
    host_work,
    layer_cost,
    layer_gradient_bytes,
    rebuild_seconds,
    sending_seconds,
    step_launch_seconds,
    tensors,
)
from gcnsim.cost.host_work import drawing_core_seconds, receiving_seconds, reduce_seconds
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.scenario import SCHEMA
from gcnsim.schedule import Schedule
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
CALL = 1e-4
LAUNCH = 1e-5
METHODS: dict[str, dict[str, Any]] = {
    "full-graph": {},
    "pipegcn": {"tau": 1},
    "bns-gcn": {"rate": 0.5},
    "psc-gcn": {"tau": 1, "sampled": True},
}


def made(facts: MakeFacts, name: str, *, lean: bool = False, **more: float) -> Schedule:
    return method(name)(replace(facts(**METHODS[name], **more), released=not lean))


def seconds(schedule: Schedule, kind: OpKind, rank: int = 0) -> float:
    """Mean seconds, or bytes, of a worker's ops of one kind in an iteration."""
    chosen = [op.index for op in schedule.ops if op.kind is kind and op.worker == rank]
    return float(schedule.demand[:, chosen].sum(axis=1).mean())


def test_counts_of_the_released_loops() -> None:
    assert host_work.WIDE_ID == 64 // 8
    assert (host_work.REBUILD_LAUNCHES, host_work.STEP_LAUNCHES) == (25, 12)
    assert len(("copy", "message", "copy")) == host_work.ID_OPERATIONS
    assert len(("index", "divide", "copy", "send")) == host_work.SENDING_OPERATIONS
    assert (host_work.RECEIPT_OPERATIONS, host_work.DIVISION_PASSES) == (1, 1 + 1)
    calls = ("dropout", "concatenation", "sum", "division", "product", "norm", "activation")
    assert len(calls) == host_work.LAYER_CALLS


def test_a_graph_is_made_anew_by_device_or_host(gpu: DeviceProfile, server: HostProfile) -> None:
    # 300 bytes an entry at 100 GB/s, and 25 launches; or 8 calls and 2 a peer.
    entries = np.array([1e8, 1e3])
    found = rebuild_seconds(gpu, server, entries, 5)
    assert found == pytest.approx([1e8 * 300 / 100e9 + 25 * LAUNCH, (8 + 2 * 5) * CALL], rel=1e-12)


def test_rounds_over_peers(gpu: DeviceProfile, server: HostProfile) -> None:
    rows, packed = np.array([[1_000_000]]), np.array([[0.5]])
    divided = 2 * 4 * 64 * 1e6 / 100e9 + LAUNCH
    once = sending_seconds(gpu, server, packed, rows, 64, 5, drawn=False)
    assert once == pytest.approx(0.5 + 4 * LAUNCH, rel=1e-12)
    both = sending_seconds(gpu, server, packed, rows, 64, 5, drawn=True)
    assert both == pytest.approx(0.5 + 4 * LAUNCH + divided + 4 * LAUNCH, rel=1e-12)
    nothing = np.zeros((1, 1))
    assert sending_seconds(gpu, server, nothing, rows * 0, 64, 5, drawn=True) == pytest.approx(5 * 4 * CALL)
    assert receiving_seconds(gpu, server, nothing, 5) == pytest.approx(5 * CALL)
    assert receiving_seconds(gpu, server, packed, 5) == pytest.approx(0.5 + 4 * LAUNCH)
    assert drawing_core_seconds(server, 5) == pytest.approx((2 + 3) * 5 * CALL)


def test_a_phase_takes_the_longer_of_host_and_device(gpu: DeviceProfile, server: HostProfile) -> None:
    shape = layer_shapes("graphsage", 64, 64, 2, 16)[0]
    for nodes in (10, 10_000_000):
        entries, rows = np.array([nodes * 5]), np.array([nodes])
        cost = layer_cost(gpu, shape, first=False, inner=nodes, entries=entries, boundary_rows=rows)
        bound = host_bound(cost, server.operation_s.value)
        forward = float((cost.aggregate + cost.update)[0])
        assert float((bound.aggregate + bound.update)[0]) == pytest.approx(max(7 * CALL, forward), rel=1e-12)
        backward = float((cost.update_backward + cost.aggregate_backward)[0])
        found = float((bound.update_backward + bound.aggregate_backward)[0])
        assert found == pytest.approx(max(7 * CALL, backward), rel=1e-12)


def test_tensors_and_their_bytes(gpu: DeviceProfile, server: HostProfile) -> None:
    for model, heads, count in (("gcn", 1, 2), ("graphsage", 1, 4), ("gat", 8, 4)):
        shapes = layer_shapes(model, 64, 64, 3, 16, heads=heads)
        assert [tensors(shape, norm=False) for shape in shapes] == [count] * 3
        assert tensors(shapes[0], norm=True) == count + 2
        assert sum(map(layer_gradient_bytes, shapes)) == gradient_bytes(shapes)
    dense = layer_shapes("graphsage", 64, 64, 3, 16, dense=1)[-1]
    assert tensors(dense, norm=False) == 2
    assert step_launch_seconds(gpu, 10) == pytest.approx((12 * 10 - 1) * LAUNCH)
    assert reduce_seconds(server, 4, 6, 1e-3) == pytest.approx(4 * CALL + 3 * 10 * 1e-3)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("workers", [2, 4])
def test_released_code_is_never_quicker_and_sums_the_same_bytes(
    facts: MakeFacts, pace: Callable[..., float], name: str, workers: int
) -> None:
    lean, own = (made(facts, name, lean=lean, workers=workers) for lean in (True, False))
    assert pace(own) > pace(lean)
    rings = [
        sum(
            float(schedule.demand[:, op.index].mean())
            for op in schedule.ops
            if op.kind is OpKind.ALLREDUCE and op.route
        )
        for schedule in (lean, own)
    ]
    assert rings[0] == pytest.approx(rings[1], rel=1e-12)
    assert seconds(own, OpKind.STEP) > seconds(lean, OpKind.STEP)


@pytest.mark.parametrize("workers", [2, 4])
def test_without_rows_an_iteration_is_as_long_as_its_calls(facts: MakeFacts, workers: int) -> None:
    """At hardly any rows the floor of packing and of taking in is P - 1 rounds of calls, whatever the device."""
    own = made(facts, "bns-gcn", workers=workers, rows=1.0)
    layers, peers = 3, workers - 1
    for kind, calls in ((OpKind.PACK, 4), (OpKind.SCATTER, 1)):
        chosen = [op.index for op in own.ops if op.kind is kind and op.worker == 0]
        assert len(chosen) == 2 * layers - 1
        assert own.demand[:, chosen] == pytest.approx(calls * peers * CALL)
    drawn = [op.index for op in own.ops if op.kind is OpKind.SAMPLE and op.worker == 0]
    assert own.demand[:, drawn].min() > (2 + 3) * peers * CALL


@pytest.mark.parametrize("name", ["bns-gcn", "psc-gcn"])
def test_ids_are_twice_as_wide_and_leave_in_rounds(facts: MakeFacts, name: str) -> None:
    ids = []
    for lean in (True, False):
        schedule = made(facts, name, lean=lean, workers=4)
        streams = [schedule.streams[op.stream].name for op in schedule.ops]
        sent = [op for op, stream in zip(schedule.ops, streams, strict=True) if stream.startswith("ids.tx")]
        ids.append((sum(float(schedule.demand[:, op.index].sum()) for op in sent), {streams[op.index] for op in sent}))
    counts = 4 * 4 * 3 * facts(**METHODS[name], workers=4).counts.iterations if name == "bns-gcn" else 0
    assert ids[1][0] - counts == pytest.approx(2 * (ids[0][0] - counts), rel=1e-12)
    assert ids[1][1] == {"ids.tx"} < ids[0][1] | {"ids.tx"}


def test_gradients_are_summed_layer_by_layer_as_they_are_ready(facts: MakeFacts) -> None:
    own = made(facts, "full-graph", workers=4)
    started = [op for op in own.ops if own.streams[op.stream].name == "reduce.host" and op.worker == 0]
    assert len(started) == 3
    for op in started:
        (before,) = {dep for dep, _ in op.after}
        assert own.ops[before].direction is Direction.BACKWARD


def test_its_figures_are_assumptions_where_it_runs_and_the_answer_says_so() -> None:
    for chosen in ("lean", "released"):
        given = {"schema": SCHEMA, "cluster": {"gpus": 2, "implementation": chosen}, "run": {"iterations": 4}}
        found = simulate(given).payload["provenance"]
        names = {assumption["name"] for assumption in found["assumptions"]}
        own = {"generic-16.operation_s", "generic-16.rebuild_bytes"}
        assert names & own == (own if chosen == "released" else set())
        text = [words for words in found["warnings"] if words.startswith("implementation released: ")]
        assert len(text) == (chosen == "released")
