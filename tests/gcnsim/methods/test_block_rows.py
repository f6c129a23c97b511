"""Methods that move blocks, swap, or come from another package; large machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.engine import simulate
from gcnsim.methods.cagnet import Cagnet15d
from gcnsim.methods.families.block_broadcast import grid_of
from gcnsim.scenario import from_mapping
from gcnsim.scenario.specs import MOST_GPUS
from gcnsim.schedule import Schedule, bounds, estimate
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
@pytest.mark.parametrize("shape", [{"workers": 3, "slope": 0.3}, {"workers": 1, "per_server": 1}])
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


def copied(schedule: Schedule, kind: OpKind, rank: int = 0) -> float:
    return float(sum(schedule.demand[0, op.index] for op in schedule.ops if (op.kind, op.worker) == (kind, rank)))


def test_what_is_swapped(facts: MakeFacts) -> None:
    """Widths 64, 64, 64, 16: rows of 20,000 inner nodes, pieces of those and 6,000 more, each way through 3 layers."""
    schedule = method("roc")(facts(workers=4, per_server=4))
    row, graph = 4 * 20_000, 8 * (1_000_000 + 20_000)
    inputs, outputs = 3 * 64, 2 * 64 + 16
    assert copied(schedule, OpKind.D2H) == pytest.approx(row * (2 * outputs + 16 + 2 * 64))
    assert copied(schedule, OpKind.H2D) == pytest.approx(2 * (4 * 26_000 * outputs + 3 * graph) + 2 * row * inputs)


def test_nothing_is_reduced_and_nothing_crosses_the_network_of_one_server(facts: MakeFacts) -> None:
    schedule = method("roc")(facts(workers=4, per_server=4))
    assert not {OpKind.ALLREDUCE, OpKind.WIRE} & {op.kind for op in schedule.ops}


def test_rows_of_another_server_come_over_the_network(facts: MakeFacts) -> None:
    schedule = method("roc")(facts(workers=4, per_server=2))
    assert copied(schedule, OpKind.WIRE, 0) == pytest.approx(2 * 4 * (64 + 64 + 16) * 2 * 2000)


def test_a_worker_copies_or_computes(facts: MakeFacts) -> None:
    run = simulate(method("roc")(facts(workers=2, per_server=2, slope=0.3)), 2)
    busy = [
        op.index
        for op in run.schedule.ops
        if op.worker == 1 and op.kind in (OpKind.H2D, OpKind.D2H, OpKind.AGGREGATE, OpKind.UPDATE)
    ]
    order = sorted(busy, key=lambda op: (int(run.starts[1, op]), int(run.ends[1, op])))
    assert all(run.starts[1, later] >= run.ends[1, earlier] for earlier, later in pairwise(order))


TOY = Path(__file__).resolve().parents[2] / "toy"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def gcnsim(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`gcnsim` in an environment that the toy was installed into."""
    place = tmp_path_factory.mktemp("toy")
    for name in ("local_gcn.py", "pyproject.toml"):
        (place / name).write_text((TOY / name).read_text(encoding="utf-8"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(place / "site"), str(place)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(place / "site")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gcnsim", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def row_of_toy(gcnsim: Run, *more: str) -> dict[str, Any]:
    done = gcnsim("what-if", "--method", "full-graph,local-gcn", "--gpus", "4", "--iterations", "4", "--json", *more)
    assert done.returncode == 0, done.stderr
    rows = {row["method"]: row for row in json.loads(done.stdout)["results"]}
    row: dict[str, Any] = rows["local-gcn"]
    assert row["iteration_s"] < rows["full-graph"]["iteration_s"]
    return row


def test_it_is_simulated_with_its_knob(gcnsim: Run) -> None:
    usual, often = row_of_toy(gcnsim), row_of_toy(gcnsim, "--set", "method.local_steps=1")
    assert often["setting"] == "local_steps 1"
    assert often["nic_bytes"] == pytest.approx(4 * usual["nic_bytes"])
    assert often["iteration_s"] > usual["iteration_s"]


def test_the_catalogue_and_messages_know_it(gcnsim: Run) -> None:
    assert "no boundary rows, gradients summed every few iterations" in gcnsim("catalog", "show", "local-gcn").stdout
    refused = gcnsim("what-if", "--method", "local-gcn", "--set", "method.local_steps=0")
    assert refused.returncode == 2
    assert "method.local_steps: 0 is not allowed; a whole number of at least 1" in refused.stderr
    other = gcnsim("what-if", "--method", "local-gcn", "--set", "cluster.nvlink=100GB/s")
    assert "cluster.nvlink: not modelled with local-gcn" in other.stderr


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "cagnet-1d"])
def test_large_schedules_say_the_same(facts: MakeFacts, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given = facts(workers=6, per_server=2)
    whole = method(name)(given)
    assert whole.columns.worker.dtype == np.int64
    schedule_bounds, guess, run = bounds(whole), estimate(whole), simulate(whole, 5)
    for module in ("columns", "assembly"):
        monkeypatch.setattr(f"gcnsim.schedule.{module}.LARGE", 1)
    monkeypatch.setattr("gcnsim.schedule.assembly._KEPT", {})
    monkeypatch.setattr("gcnsim.schedule.assembly.MOST_KEPT", 0)
    narrow = method(name)(given)
    for column in ("kind", "worker", "stream", "peer", "way", "wait_at", "wait", "lag"):
        assert getattr(narrow.columns, column).dtype == np.int32
        assert np.array_equal(getattr(narrow.columns, column), getattr(whole.columns, column))
    assert (bounds(narrow), estimate(narrow)) == (schedule_bounds, guess)
    again = simulate(narrow, 5)
    assert np.array_equal(again.starts, run.starts)
    assert np.array_equal(again.ends, run.ends)
