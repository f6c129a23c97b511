"""GraphSAGE's pooling in studies: where it is modelled, and in one line where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.methods.pagraph import PaGraph
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import layer_shapes
from tests.gcnsim.evidence.conftest import save_trace, small_graph
from tests.measured_files import measured_file, write_graph


def make_scenario(
    folder: Path,
    name: str = "full-graph",
    overlap: str = "none",
    knobs: Mapping[str, float] = MappingProxyType({}),
    **workload: Any,
) -> Scenario:
    """2 workers on cores that were measured, on a trace."""
    save_trace(folder / "access.trace")
    sizes = {"layers": 2, "hidden": 32, "features": 32, "classes": 8}
    path = measured_file(
        folder,
        write_graph(folder),
        2,
        [(name, {**knobs})],
        device={"kind": "cpu", "name": "a core"},
        graph={"name": "small", "hash": small_graph().content_hash(), "features": 32, "classes": 8},
        model={"model": "graphsage", "sage_aggregator": "pool", "hidden": 32, "widths": [32, 32, 8]},
    )
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 2, "gpus_per_server": 1, "measured_compute": str(path)},
        "workload": {
            "trace": str(folder / "access.trace"),
            "model": "graphsage",
            "sage_aggregator": "pool",
            **sizes,
            **workload,
        },
        "method": {"name": name, "overlap": overlap, **knobs},
        "run": {"iterations": 3},
    }
    return from_mapping(mapping, "test")


def scheduled(scenario: Scenario) -> Schedule:
    return simulate_scenario(scenario).run.schedule


@pytest.mark.parametrize("name", ["full-graph", "pipegcn"])
def test_a_layer_pools_once_after_its_rows_came(tmp_path: Path, name: str) -> None:
    schedule = scheduled(make_scenario(tmp_path, name))
    forward = [op for op in schedule.ops if op.worker == 0 and op.direction is Direction.FORWARD]
    for layer in (0, 1):
        (read,) = (op.index for op in forward if op.layer == layer and op.kind is OpKind.SCATTER)
        pooling = [op.index for op in forward if op.layer == layer and op.kind is OpKind.AGGREGATE]
        busy = [op for op in pooling if schedule.demand[:, op].any()]
        assert len(busy) == 1
        assert busy[0] > read


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"name": "bns-gcn", "knobs": {"rate": 1.0}},
            "pool is not modelled with bns-gcn; allowed: full-graph, pipegcn, psc-gcn, ",
        ),
        (
            {"name": "full-graph", "overlap": "central"},
            "method.overlap: central is not allowed with pooling; none is: a",
        ),
        ({"preaggregate": True}, "workload.preaggregate: true is not allowed with sage_aggregator: pool, whose map"),
        ({"model": "gcn"}, "workload.sage_aggregator: pool is not allowed; only graphsage pools, not gcn"),
        ({"sage_aggregator": "max"}, "workload.sage_aggregator: unknown aggregator 'max'"),
    ],
)
def test_what_cannot_pool_says_so(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(make_scenario(tmp_path, **changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_loader_pools_before_training() -> None:
    shapes = layer_shapes("graphsage", 32, 32, 2, 8, sage_aggregator="pool")
    loader = create_method("pagraph", preprocess="yes")
    assert isinstance(loader, PaGraph)
    with pytest.raises(ScenarioError, match="preprocess: yes is not allowed with sage_aggregator: pool"):
        loader.plan(shapes)


def test_on_gpus_it_is_not_modelled() -> None:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "workload": {"dataset": "yelp", "model": "graphsage", "sage_aggregator": "pool"},
        "method": {"name": "full-graph"},
    }
    with pytest.raises(
        ScenarioError, match=r"sage_aggregator: pool is modelled for workers on CPU cores only; cluster.d"
    ):
        simulate_scenario(from_mapping(mapping, "test"))
