"""Partition-parallel iterations, with and without overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import rows_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.methods import create_method
from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.methods.families.gpu_workers import GpuWriter
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.cases import Case, method, method_of

MakeFacts = Callable[..., Case]
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def ops(schedule: Schedule, kind: OpKind, **wanted: int) -> list[Op]:
    return [
        op for op in schedule.ops if op.kind is kind and all(getattr(op, key) == value for key, value in wanted.items())
    ]


def gpu_kinds(schedule: Schedule, worker: int) -> list[str]:
    return [
        f"{op.kind}{'' if op.layer < 0 else op.layer}{'b' if op.direction is BACKWARD else ''}"
        for op in schedule.ops
        if op.worker == worker and schedule.streams[op.stream].name == "gpu"
    ]


def test_the_compute_stream_of_the_vanilla_iteration(facts: MakeFacts) -> None:
    assert gpu_kinds(method("full-graph")(facts(layers=2)), 1) == [
        "scatter0", "aggregate0", "update0", "scatter1", "aggregate1", "update1", "loss",
        "update1b", "aggregate1b", "scatter1b", "update0b", "step",
    ]  # fmt: skip


def test_the_compute_stream_of_a_sampled_iteration_with_a_cache(facts: MakeFacts) -> None:
    found = gpu_kinds(method("psc-gcn")(facts(layers=2, tau=2, sampled=True, hits=0.5)), 1)
    assert found[:3] == ["index", "scatter0", "lookup0"]
    assert Counter(found)["lookup0"] == Counter(found)["index"] == 1


def test_one_worker_sends_nothing_and_samples_alone(facts: MakeFacts) -> None:
    for name in ("full-graph", "pipegcn", "psc-gcn"):
        assert not method(name)(facts(workers=1, per_server=1, tau=1)).is_flow.any()
    sampled = method("psc-gcn")(facts(workers=1, per_server=1, tau=1, sampled=True))
    assert [op.kind for op in sampled.ops if op.route is not None] == [OpKind.SAMPLE, OpKind.INDEX]


def test_one_message_per_peer_layer_and_direction(facts: MakeFacts) -> None:
    schedule = method("full-graph")(facts(workers=4, layers=3))
    keys = Counter((op.layer, op.direction, op.worker, op.peer) for op in ops(schedule, OpKind.WIRE))
    expected = {(layer, FORWARD, n, m) for layer in range(3) for n in range(4) for m in range(4) if n != m}
    expected |= {(layer, BACKWARD, n, m) for layer in (1, 2) for n in range(4) for m in range(4) if n != m}
    assert set(keys) == expected
    assert set(keys.values()) == {1}


def test_serial_transfers_begin_with_different_receivers(facts: MakeFacts) -> None:
    given = replace(facts(workers=5, per_server=1), serial=True)
    sent = {
        rank: [op.peer for op in ops(method("full-graph")(given), OpKind.WIRE, layer=0, worker=rank)]
        for rank in range(5)
    }
    assert sent == {rank: [(rank + step) % 5 for step in range(1, 5)] for rank in range(5)}


@pytest.mark.parametrize("transport", ["staged", "direct"])
def test_rows_and_gradients_of_a_pair_share_a_connection_and_nothing_else_does(
    facts: MakeFacts, transport: str
) -> None:
    given = facts(workers=3, per_server=1, tau=2, sampled=True)
    given = replace(given, cluster=replace(given.cluster, direct_network=transport == "direct"))
    schedule = method("psc-gcn")(given)
    pairs: dict[int, set[tuple[int, int]]] = {}
    directions: dict[int, set[Direction]] = {}
    for op in ops(schedule, OpKind.WIRE):
        pairs.setdefault(op.connection, set()).add((op.worker, op.peer))
        directions.setdefault(op.connection, set()).add(op.direction)
    assert sorted(pairs.values(), key=min) == [{(n, m)} for n in range(3) for m in range(3) if n != m]
    assert all(both == {FORWARD, BACKWARD} for both in directions.values())
    assert {op.connection for op in schedule.ops if op.kind is not OpKind.WIRE} == {-1}


def test_rows_go_from_their_owner_and_gradients_back_to_it(facts: MakeFacts) -> None:
    given = facts(iterations=3, spread=0.5, slope=0.2, sampled=True, tau=0)
    schedule = method("psc-gcn")(given)
    for n, m in ((0, 3), (3, 0), (2, 1)):
        wanted = given.counts.rows[:, n, m]
        (forward,) = ops(schedule, OpKind.WIRE, layer=1, direction=FORWARD, worker=m, peer=n)
        (backward,) = ops(schedule, OpKind.WIRE, layer=1, direction=BACKWARD, worker=n, peer=m)
        assert schedule.demand[:, forward.index].tolist() == (wanted * 4 * 64).tolist()
        assert schedule.demand[:, backward.index].tolist() == (wanted * 4 * 64).tolist()


@pytest.mark.parametrize("tau", [0, 1, 2, 4, 7])
def test_what_is_sent_ahead_is_what_is_read_then(facts: MakeFacts, gpu: DeviceProfile, tau: int) -> None:
    given = facts(iterations=5, spread=0.5, slope=0.2, sampled=True, tau=tau, hits=0.25)
    schedule, rows, hits = method("psc-gcn")(given), given.counts.rows, given.counts.hits
    for t in range(5):
        for n in range(4):
            then = (t - tau) % 5
            (up,) = ops(schedule, OpKind.H2D, layer=0, direction=FORWARD, worker=n)
            (read,) = ops(schedule, OpKind.SCATTER, layer=0, direction=FORWARD, worker=n)
            misses = int((rows - hits)[t, n].sum())
            assert (up.index, tau) in read.after
            assert schedule.demand[then, up.index] == misses * 4 * 64
            assert schedule.demand[t, read.index] == pytest.approx(float(rows_seconds(gpu, misses, 64)))
            (down,) = ops(schedule, OpKind.H2D, layer=2, direction=BACKWARD, worker=n)
            assert schedule.demand[t, down.index] == rows[t, :, n].sum() * 4 * 64
            (add,) = ops(schedule, OpKind.SCATTER, layer=2, direction=BACKWARD, worker=n)
            arrived = float(rows_seconds(gpu, int(rows[then, :, n].sum()), 64))
            assert schedule.demand[t, add.index] == pytest.approx(arrived)


def test_a_copy_from_the_gpu_carries_what_its_messages_carry(facts: MakeFacts) -> None:
    schedule = method("psc-gcn")(facts(iterations=3, spread=0.5, sampled=True, tau=1, hits=0.25))
    for copy, side in ((OpKind.D2H, "worker"), (OpKind.H2D, "peer")):
        for op in ops(schedule, copy):
            wires = ops(schedule, OpKind.WIRE, layer=op.layer, direction=op.direction, **{side: op.worker})
            assert schedule.demand[:, op.index] == pytest.approx(
                schedule.demand[:, [w.index for w in wires]].sum(axis=1)
            )


def test_owners_answer_when_the_ids_and_the_rows_are_there(facts: MakeFacts) -> None:
    schedule = method("psc-gcn")(facts(sampled=True, tau=2))
    for rank in range(4):
        first, second, _ = ops(schedule, OpKind.PACK, worker=rank, direction=FORWARD)
        ids = {op.index for op in ops(schedule, OpKind.INDEX, peer=rank)}
        (update,) = ops(schedule, OpKind.UPDATE, worker=rank, layer=0, direction=FORWARD)
        assert len(ids) == 3
        assert ids <= {dep for dep, lag in first.after if lag == 0}
        assert (update.index, 0) in second.after


def test_ids_are_four_bytes_a_row_of_the_graph_drawn_ahead(facts: MakeFacts) -> None:
    given = facts(iterations=5, spread=0.5, sampled=True, tau=2)
    schedule = method("psc-gcn")(given)
    for op in ops(schedule, OpKind.INDEX):
        if op.peer >= 0:
            ahead = np.roll(given.counts.rows[:, op.worker, op.peer], -2)
            assert schedule.demand[:, op.index].tolist() == (4 * ahead).tolist()


def test_the_sampler_is_one_thread_of_the_servers_cores(facts: MakeFacts) -> None:
    schedule = method("psc-gcn")(facts(sampled=True, tau=1, weighted=True))
    drawn = ops(schedule, OpKind.SAMPLE)
    assert [op.cap for op in drawn] == [1.0] * 4
    assert [schedule.link_names[op.route[0]] for op in drawn if op.route] == ["cpu0", "cpu0", "cpu1", "cpu1"]
    assert schedule.demand[0, [op.index for op in drawn]] == pytest.approx([0.01 + 0.1 / 20] * 4)


@pytest.mark.parametrize("tau", [0, 1, 3])
def test_nothing_of_a_worker_starts_before_its_previous_iteration_ended(facts: MakeFacts, tau: int) -> None:
    schedule = method("psc-gcn")(facts(sampled=True, tau=tau))
    free = {
        op.index
        for op in schedule.ops
        if not any(lag == 0 for _, lag in op.waits) and schedule.order[op.stream][0] == op.index
    }
    for op in free:
        found = schedule.ops[op]
        on_gpu = schedule.streams[found.stream].name == "gpu"
        assert on_gpu or (schedule.ends[found.worker], 1) in found.after


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "bns-gcn"])
@pytest.mark.parametrize(("model", "heads"), [("graphsage", 1), ("gat", 4)])
def test_every_kernel_of_the_layers_is_scheduled_once(facts: MakeFacts, name: str, model: str, heads: int) -> None:
    given = facts(model=model, slope=0.2, tau=1)
    given = replace(given, shapes=layer_shapes(model, 64, 64, 3, 16, heads=heads))
    schedule, exchanging = method(name)(given), method_of(name, given)
    assert isinstance(exchanging, BoundaryRows)
    writer = GpuWriter(exchanging, given)
    for rank in range(4):
        found = ops(schedule, OpKind.AGGREGATE, worker=rank) + ops(schedule, OpKind.UPDATE, worker=rank)
        scheduled = schedule.demand[:, [op.index for op in found]].sum(axis=1)
        expected = sum(cost.seconds[:, rank] for cost in writer.costs)
        np.testing.assert_allclose(scheduled, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["psc-gcn", "bns-gcn", "cagnet-1.5d", "roc"])
@pytest.mark.parametrize("model", ["graphsage", "gat"])
@pytest.mark.parametrize("released", [False, True])
def test_what_is_dropped_costs_passes_over_the_rows_that_lose_values(
    facts: MakeFacts, name: str, model: str, released: bool
) -> None:
    if model == "gat" and name not in ("full-graph", "psc-gcn", "bns-gcn"):
        pytest.skip(f"{name} has no schedule for attention")
    given = facts(model=model, slope=0.2)
    given = replace(given, shapes=layer_shapes(model, 64, 64, 3, 16, heads=2), released=released)

    def seconds(dropout: str) -> float:
        schedule = method(name)(replace(given, dropout=dropout))
        kernels = (OpKind.AGGREGATE, OpKind.UPDATE)
        return float(sum(schedule.demand[:, op.index].sum() for op in schedule.ops if op.kind in kernels))

    nothing, own, every = (seconds(text) for text in ("none", "dropout-first", "exchange-first"))
    assert nothing < own <= every
    assert own < every or name in ("cagnet-1d", "cagnet-1.5d", "sancus", "roc"), "others' rows are dropped too"


def test_weights_that_act_before_the_sum_are_reduced_after_it_is_undone(facts: MakeFacts) -> None:
    given = facts(model="gat")
    schedule = method("full-graph")(given)
    for rank in range(4):
        (undone,) = ops(schedule, OpKind.AGGREGATE, worker=rank, layer=0, direction=BACKWARD)
        first = ops(schedule, OpKind.ALLREDUCE, worker=rank)[0]
        assert (undone.index, 0) in first.after
    assert not ops(schedule, OpKind.WIRE, layer=0, direction=BACKWARD), "nobody asks for the input's gradient"


Pace = Callable[..., float]
LAUNCH = 1e-5


def both(facts: Case) -> tuple[Schedule, Schedule]:
    """Without overlap, and with it."""
    build = method("full-graph")
    return build(facts), build(replace(facts, overlap=True))


def total(schedule: Schedule, kind: OpKind, **wanted: int) -> float:
    found = [op.index for op in schedule.ops if op.kind is kind and matches(op, wanted)]
    return float(schedule.demand[0, found].sum())


def matches(op: Op, wanted: dict[str, int]) -> bool:
    return all(getattr(op, key) == value for key, value in wanted.items())


def gpu_words(schedule: Schedule, worker: int) -> list[str]:
    return [
        f"{op.kind}{'' if op.layer < 0 else op.layer}{'b' if op.direction is Direction.BACKWARD else ''}"
        for op in schedule.ops
        if op.worker == worker and schedule.streams[op.stream].name == "gpu"
    ]


def test_the_compute_stream(facts: MakeFacts) -> None:
    _, central = both(facts(layers=2))
    assert gpu_words(central, 1) == [
        "aggregate0", "scatter0", "aggregate0", "update0", "aggregate1", "scatter1", "aggregate1", "update1", "loss",
        "update1b", "aggregate1b", "aggregate1b", "scatter1b", "update0b", "step",
    ]  # fmt: skip


def test_gradients_of_the_boundary_leave_before_the_inner_sum(facts: MakeFacts) -> None:
    _, central = both(facts(layers=2))
    for rank in range(4):
        wanted = {"worker": rank, "layer": 1, "direction": Direction.BACKWARD}
        boundary, inner = (op for op in central.ops if op.kind is OpKind.AGGREGATE and matches(op, wanted))
        (pack,) = (op for op in central.ops if op.kind is OpKind.PACK and matches(op, wanted))
        assert pack.after == ((boundary.index, 0),)
        assert inner.index == boundary.index + 1


def test_the_same_bytes_travel(facts: MakeFacts) -> None:
    for schedules in (both(facts()), both(facts(slope=0.3, workers=3, per_server=1))):
        for kind in (OpKind.PACK, OpKind.D2H, OpKind.WIRE, OpKind.H2D, OpKind.SCATTER, OpKind.ALLREDUCE):
            none, central = (total(schedule, kind) for schedule in schedules)
            assert none == central


def test_two_products_cost_a_launch_and_a_second_write_more_than_one(facts: MakeFacts) -> None:
    none, central = both(facts(inner=20_000, widths=(64, 64, 16)))
    written = 20_000 * 64 * 4 / 50e9
    for layer in range(3):
        for rank in range(4):
            wanted = {"layer": layer, "worker": rank, "direction": Direction.FORWARD}
            extra = total(central, OpKind.AGGREGATE, **wanted) - total(none, OpKind.AGGREGATE, **wanted)
            assert extra == pytest.approx(LAUNCH + written, rel=1e-6)
    for layer in (1, 2):
        wanted = {"layer": layer, "worker": 0, "direction": Direction.BACKWARD}
        extra = total(central, OpKind.AGGREGATE, **wanted) - total(none, OpKind.AGGREGATE, **wanted)
        assert extra == pytest.approx(LAUNCH, rel=1e-6)
    for kind in (OpKind.UPDATE, OpKind.LOSS, OpKind.STEP):
        assert total(none, kind) == total(central, kind)


@settings(deadline=None, max_examples=12)
@given(
    machine=st.fixed_dictionaries(
        {
            "workers": st.integers(2, 4),
            "per_server": st.integers(1, 2),
            "nic": st.sampled_from([1e7, 1e8, 1e9, 2e9]),
            "rows": st.sampled_from([1000.0, 2000.0, 5000.0]),
        }
    ),
    slope=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_central_is_never_slower_than_none(
    facts: MakeFacts, pace: Pace, machine: dict[str, float], slope: float
) -> None:
    none, central = (pace(schedule, 4) for schedule in both(facts(layers=2, slope=slope, **machine)))
    # Of unequal workers one gets ahead, and its gradients share the link with rows that the last one still waits for.
    assert central <= none * (1.05 if slope else 1 + 1e-9)


def test_where_the_network_takes_no_time_only_the_second_product_is_left(facts: MakeFacts, pace: Pace) -> None:
    given = facts(layers=2, nic=1e15, nic_latency=0.0, pcie=1e15, per_server=1, rows=1.0)
    none, central = (pace(schedule, 4) for schedule in both(given))
    extra = 3 * LAUNCH + 2 * 20_000 * 64 * 4 / 50e9
    assert none < central <= none + extra


def test_stale_rows_leave_nothing_to_overlap() -> None:
    for name, knobs in (("pipegcn", {}), ("psc-gcn", {"tau": 1})):
        with pytest.raises(ScenarioError, match=r"method.overlap: central is not allowed; .* at tau 1 does not wait"):
            create_method(name, overlap="central", **knobs)


def test_sums_beneath_transfers_are_slowed_by_copies_as_long_as_these_run(facts: MakeFacts) -> None:
    slow, fast = facts(nic=1e7), facts(nic=1e15, pcie=1e15, per_server=1)
    for machine, factor in ((slow, 1 / 0.68), (fast, 1.0)):
        _, alone = both(machine)
        _, beside = both(replace(machine, rate_beside_copies=0.68))
        for layer, direction in ((0, Direction.FORWARD), (2, Direction.BACKWARD)):
            wanted = {"worker": 1, "layer": layer, "direction": direction}
            sums = [op.index for op in alone.ops if op.kind is OpKind.AGGREGATE and matches(op, wanted)]
            # The inner columns are summed first on the way forward, last on the way back.
            inner, boundary = sums if direction is Direction.FORWARD else sums[::-1]
            assert beside.demand[0, inner] == pytest.approx(factor * alone.demand[0, inner], rel=1e-3)
            assert beside.demand[0, boundary] == alone.demand[0, boundary]
    none, waiting = (method("full-graph")(replace(slow, rate_beside_copies=rate)) for rate in (1.0, 0.68))
    np.testing.assert_array_equal(none.demand, waiting.demand)
