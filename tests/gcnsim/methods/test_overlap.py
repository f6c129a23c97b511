"""`overlap: central` on GPU workers: the inner columns are summed beneath this iteration's transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
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


def test_one_worker_has_nothing_to_overlap(facts: MakeFacts) -> None:
    none, central = both(facts(workers=1, per_server=1))
    assert none.ops == central.ops
    np.testing.assert_array_equal(none.demand, central.demand)


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
