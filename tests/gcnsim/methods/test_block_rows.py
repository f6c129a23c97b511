"""`cagnet-1d`, `cagnet-1.5d`, `sancus`: whole blocks broadcast one after the other, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.engine import simulate
from gcnsim.methods.cagnet_1_5d import Cagnet15d
from gcnsim.methods.families.block_broadcast import grid_of
from gcnsim.scenario import from_mapping
from gcnsim.scenario.specs import MOST_GPUS
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.simulation import answering
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.staleness import BlockRule
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Label = Callable[[Schedule, Op], tuple[object, ...]]
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
WIDTHS = {FORWARD: (64, 64, 64), BACKWARD: (64, 64, 16)}


def received(schedule: Schedule, rank: int, layer: int, direction: Direction) -> float:
    """Mean bytes of blocks that a worker gets for one layer's sum."""
    chosen = [
        op.index
        for op in schedule.ops
        if op.kind is OpKind.WIRE and (op.peer, op.layer, op.direction) == (rank, layer, direction)
    ]
    return float(schedule.demand[:, chosen].sum(axis=1).mean())


@pytest.mark.parametrize("workers", [2, 4, 6])
def test_every_worker_gets_every_other_block_whatever_the_boundary(facts: MakeFacts, workers: int) -> None:
    for rows in (10.0, 4000.0):
        schedule = method("cagnet-1d")(facts(workers=workers, rows=rows))
        for direction, widths in WIDTHS.items():
            for layer, width in enumerate(widths):
                wanted = (workers - 1) * 20_000 * 4 * width
                assert received(schedule, 1, layer, direction) == pytest.approx(wanted)


def test_blocks_come_one_after_the_other(facts: MakeFacts) -> None:
    run = simulate(method("cagnet-1d")(facts(workers=4, slope=0.2)), 2)
    of_root: dict[tuple[int, int], list[int]] = {}
    wires = [op for op in run.schedule.ops if op.kind is OpKind.WIRE and op.layer == 1 and op.direction is FORWARD]
    for op in wires:
        of_root.setdefault((op.worker, op.peer), []).append(op.index)
    for links in of_root.values():
        ends, starts = run.ends[1, links], run.starts[1, links]
        assert (starts[1:] >= ends[:-1]).all()
    products = [op.index for op in run.schedule.ops if op.kind is OpKind.AGGREGATE and op.worker == 2]
    assert len(products) == 2 * 3 * 4


def test_replicas_share_the_stages(facts: MakeFacts) -> None:
    given = facts(workers=8)
    grid = grid_of(given.counts, 2)
    assert grid.blocks == 4
    assert [list(grid.stages(member)) for member in (0, 1)] == [[0, 1], [2, 3]]
    assert [grid.ring(member) for member in (0, 1)] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    whole = given.counts.inner_edges.sum() + given.counts.boundary_edges.sum() + given.counts.inner_nodes.sum()
    assert grid.entries.sum() == pytest.approx(float(whole))
    assert grid.rows.tolist() == [40_000] * 4


def test_of_two_workers_with_one_block_one_does_everything(facts: MakeFacts) -> None:
    """As in the released code: the first replica has no stage, the second has them all, then both add up."""
    schedule = method("cagnet-1.5d")(facts(workers=2, per_server=2))
    assert {op.worker for op in schedule.ops if op.kind is OpKind.AGGREGATE} == {1}
    assert not [op for op in schedule.ops if op.kind is OpKind.WIRE]
    added = [op for op in schedule.ops if op.kind is OpKind.ALLREDUCE and op.direction is FORWARD]
    assert sum(schedule.demand[0, op.index] for op in added) == pytest.approx(2 * 40_000 * 4 * 192)


def test_replicas_that_do_not_divide_the_workers_are_refused(facts: MakeFacts) -> None:
    assert Cagnet15d(replication=MOST_GPUS).replication == MOST_GPUS
    with pytest.raises(ScenarioError, match=r"method.replication: 4 does not divide the 6 workers; allowed: 2, 3, 6"):
        method("cagnet-1.5d")(replace(facts(workers=6), replicas=4))


@pytest.mark.parametrize("rule", [BlockRule("fixed", 0.0), BlockRule("fixed", 4.0, warmup=1.0)])
@pytest.mark.parametrize("shape", [{"workers": 4}, {"workers": 3, "slope": 0.3}, {"workers": 1, "per_server": 1}])
def test_sancus_with_every_flag_active_is_cagnet(
    facts: MakeFacts, label: Label, rule: BlockRule, shape: dict[str, float]
) -> None:
    given = replace(facts(**shape), block_rule=rule)
    ends = []
    for name in ("sancus", "cagnet-1d"):
        run = simulate(method(name)(given), 3)
        ends.append({label(run.schedule, op): run.ends[:, op.index].tolist() for op in run.schedule.ops})
    assert ends[0] == ends[1]


def test_a_skipped_block_is_not_sent_forward_and_its_gradient_is(facts: MakeFacts) -> None:
    given = replace(facts(), block_rule=BlockRule("fixed", 2.0))
    every, some = method("cagnet-1d")(given), method("sancus")(given)
    assert some.demand.shape[0] == 3
    assert received(some, 1, 1, FORWARD) == pytest.approx(received(every, 1, 1, FORWARD) / 3)
    assert received(some, 1, 1, BACKWARD) == pytest.approx(received(every, 1, 1, BACKWARD))
    both = method("sancus")(replace(given, block_rule=BlockRule("fixed", 2.0, skips_backward=True)))
    assert received(both, 1, 1, BACKWARD) == pytest.approx(received(every, 1, 1, BACKWARD) / 3)


def test_the_same_is_multiplied_whether_sent_or_kept(facts: MakeFacts) -> None:
    given = replace(facts(slope=0.2), block_rule=BlockRule("gap", 0.03))
    every, some = method("cagnet-1d")(given), method("sancus")(given)

    def multiplied(schedule: Schedule) -> list[float]:
        chosen = [op.index for op in schedule.ops if op.kind is OpKind.AGGREGATE and op.worker == 2]
        return sorted(set(np.round(schedule.demand[:, chosen].sum(axis=1), 12).tolist()))

    assert multiplied(every) == multiplied(some)


@pytest.mark.parametrize("name", ["cagnet-1d", "cagnet-1.5d", "sancus", "roc"])
def test_what_is_not_modelled_is_refused(facts: MakeFacts, name: str) -> None:
    given = {"cluster": {"gpus": 2, "device": "cpu-core"}, "method": {"name": name}}
    with pytest.raises(
        ScenarioError, match=f"method.name: {name} is modelled for GPUs only; cluster.device is cpu-core"
    ):
        answering(from_mapping({"schema": "gcnsim.scenario/1", **given}, "test"))
    with pytest.raises(ScenarioError, match=f"method.overlap: central is not allowed; {name} at tau 0 does not wait"):
        method(name)(replace(facts(), overlap=True))
