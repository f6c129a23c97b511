"""Attention in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import named
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.timeline import Direction, OpKind
from tests.gcnsim.evidence.conftest import save_trace, small_graph
from tests.measured_files import measured_file, write_graph


def mapped(
    name: str, *, device: str = "t4", overlap: str = "none", knobs: dict[str, float] | None = None, **workload: object
) -> dict[str, object]:
    return {
        "schema": "gcnsim.scenario/1",
        # Some mini-batches keep the graph in the memory of one server.
        "cluster": {"gpus": 4, "device": device} | ({"gpus_per_server": 4} if name in ("dgl", "pagraph") else {}),
        "workload": {"dataset": "yelp", "model": "gat", "layers": 2, "hidden": 64, **workload},
        "method": {"name": name, "overlap": overlap, **(knobs or {})},
        "run": {"iterations": 3},
    }


def iteration_s(name: str, *, device: str = "t4", overlap: str = "none", **workload: Any) -> float:
    scenario = from_mapping(mapped(name, device=device, overlap=overlap, **workload), "test")
    return simulate_scenario(scenario).metrics.iteration_s


@pytest.mark.parametrize("name", named(lambda kind: kind.supports_gat))
def test_partition_parallel_methods_train_it(name: str) -> None:
    assert iteration_s(name) > 0


@pytest.mark.parametrize(("name", "picked"), [("full-graph", 0), ("bns-gcn", 4)])
def test_inputs_that_stay_do_not_travel(name: str, picked: int) -> None:
    """No row of layer 0 travels; rows of drawn nodes are picked out of those kept, by each of four workers."""
    knobs = {"rate": 0.5} if name == "bns-gcn" else {}
    ops = {}
    for stay in (False, True):
        result = simulate_scenario(from_mapping(mapped(name, knobs=knobs, keep_inputs=stay), "test"))
        ops[stay] = [(op.kind, op.layer) for op in result.run.schedule.ops]
    assert (OpKind.WIRE, 0) in ops[False]
    assert (OpKind.WIRE, 0) not in ops[True]
    assert (OpKind.WIRE, 1) in ops[True]
    assert ops[True].count((OpKind.LOOKUP, 0)) == picked
    assert (OpKind.AGGREGATE, 0) in ops[True], "what stays is summed in every iteration"


def test_only_attention_keeps_inputs_and_joins_heads() -> None:
    with pytest.raises(ScenarioError, match=r"workload.keep_inputs: true is not allowed with gcn, which has"):
        iteration_s("full-graph", model="gcn", keep_inputs=True)
    with pytest.raises(ScenarioError, match=r"workload.keep_inputs: true is not allowed with gcn \(workload.model\)"):
        iteration_s("full-graph", model=None, keep_inputs=True)
    with pytest.raises(
        ScenarioError, match=r"workload.heads_joined: averaged needs workload.heads of at least 2; it is 1"
    ):
        iteration_s("full-graph", heads_joined="averaged")


@pytest.mark.parametrize("name", ["cagnet-1d", "roc", "sancus"])
def test_others_refuse_it(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"workload.model: gat is not modelled with {name}; allowed: full-graph"):
        iteration_s(name)


def test_mini_batches_attend_on_gpus_and_not_on_cores() -> None:
    attends, sums = (iteration_s("dgl", model=model) for model in ("gat", "gcn"))
    assert attends > sums
    with pytest.raises(ScenarioError, match=r"gat is not modelled with dgl on CPU cores; allowed: full-graph.*psc-gcn"):
        iteration_s("dgl", device="cpu-core")


def test_it_needs_measured_cores_and_overlaps_nothing() -> None:
    with pytest.raises(ScenarioError, match=r"python -m runtime.measure .* --model gat .* --heads 1"):
        iteration_s("full-graph", device="cpu-core")
    with pytest.raises(ScenarioError, match=r"method.overlap: central is not allowed with gat"):
        iteration_s("full-graph", overlap="central")
    with pytest.raises(ScenarioError, match=r"workload.heads: 4 is not allowed; only gat has heads"):
        iteration_s("full-graph", model="gcn", heads=4)
    with pytest.raises(ScenarioError, match=r"workload.heads: 8 is not allowed; only gat has heads, not gcn"):
        iteration_s("full-graph", model=None, heads=8)


def make_scenario(folder: Path, name: str) -> Scenario:
    """2 workers on cores that were measured, on a trace."""
    save_trace(folder / "access.trace")
    sizes = {"layers": 2, "hidden": 32, "features": 32, "classes": 8}
    path = measured_file(
        folder,
        write_graph(folder),
        2,
        [(name, {})],
        device={"kind": "cpu", "name": "a core"},
        graph={"name": "small", "hash": small_graph().content_hash(), "features": 32, "classes": 8},
        model={"model": "gat", "hidden": 32, "widths": [32, 32, 8]},
    )
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 2, "gpus_per_server": 1, "measured_compute": str(path)},
        "workload": {"trace": str(folder / "access.trace"), "model": "gat", **sizes},
        "method": {"name": name, "overlap": "none"},
        "run": {"iterations": 3},
    }
    return from_mapping(mapping, "test")


def scheduled(scenario: Scenario) -> Schedule:
    return simulate_scenario(scenario).run.schedule


@pytest.mark.parametrize("name", ["full-graph", "pipegcn"])
def test_a_layer_on_cores_sums_once_after_its_rows_came(tmp_path: Path, name: str) -> None:
    schedule = scheduled(make_scenario(tmp_path, name))
    forward = [op for op in schedule.ops if op.worker == 0 and op.direction is Direction.FORWARD]
    for layer in (0, 1):
        (read,) = (op.index for op in forward if op.layer == layer and op.kind is OpKind.SCATTER)
        sums = [op.index for op in forward if op.layer == layer and op.kind is OpKind.AGGREGATE]
        busy = [op for op in sums if schedule.demand[:, op].any()]
        assert len(busy) == 1
        assert busy[0] > read
