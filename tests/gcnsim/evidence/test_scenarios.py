"""A shipped scenario and the table it is of: `simulate` and `reproduce` answer alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.api import simulate
from gcnsim.evidence.published_answers import answer
from gcnsim.evidence.published_systems import System
from gcnsim.evidence.row_scenario import RowScenario, setting
from gcnsim.graph.generate import outline
from gcnsim.methods import create_method
from gcnsim.scenario import load_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.published_tables import TableSource
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.workload import dataset

FOLDER = Path(__file__).parents[3] / "scenarios"


@pytest.mark.parametrize(
    ("name", "method", "parts"),
    [
        ("psc_gcn-ogbn-products", "psc-gcn", None),
        pytest.param("pipegcn-ogbn-papers100M", "full-graph", None, marks=pytest.mark.slow),
        ("bns_gcn-reddit-gat", "bns-gcn", None),
        ("sancus-1", "sancus", None),
        ("pipegcn-reddit-full", "roc", None),
        ("pagraph-reddit", "pagraph", None),
    ],
)
def test_one_answer_by_two_doors(name: str, method: str, parts: int | None) -> None:
    one = _make_row_scenario(name, method, parts)
    content = answer([one])[one]
    overrides = [] if one.scenario.method.name == _shipped(name) else [f"method.name={method}"]
    found = simulate(FOLDER / f"{name}.yaml", overrides).payload["result"]
    assert found["iteration_s"] == pytest.approx(content.likely.iteration_s, rel=1e-6)
    assert found["iteration_s_low"] <= content.likely.iteration_s <= found["iteration_s_high"]


@pytest.mark.slow
def test_where_one_door_asks_analysis_the_answers_overlap() -> None:
    """192 workers, for whom 24 stand: `reproduce` estimates, a scenario is simulated."""
    one = _make_row_scenario("bns_gcn-ogbn-papers100M", "bns-gcn", 192)
    content = answer([one])[one]
    found = simulate(FOLDER / "bns_gcn-ogbn-papers100M.yaml", ["run.iterations=4"]).payload["result"]
    assert found["iteration_s_low"] <= content.likely.iteration_s <= found["iteration_s_high"]
    assert content.low.low_s <= found["iteration_s"] <= content.high.high_s
    assert found["iteration_s"] == pytest.approx(content.likely.iteration_s, rel=0.5)


@pytest.mark.parametrize(("name", "parts"), [("pipegcn-ogbn-papers100M", None), ("bns_gcn-ogbn-papers100M", 192)])
def test_both_doors_take_the_same_parts_of_the_largest_graph(name: str, parts: int | None) -> None:
    row = load_scenario(FOLDER / f"{name}.yaml")
    source, table = open_source(row), TableSource(dataset("ogbn-papers100M"), row.cluster.gpus, parts=parts)
    for bound in RangeEnd:
        mine, theirs = (item.counts(row, 128, bound) for item in (source, table))
        assert np.array_equal(mine.rows, theirs.rows)
        assert np.array_equal(mine.boundary_nodes, theirs.boundary_nodes)
        ratio = float(mine.boundary_nodes.sum() / mine.inner_nodes.sum())
        assert ratio == pytest.approx(mean_ratio(outline("ogbn-papers100M"), parts or 32, bound.value), rel=1e-3)


def _shipped(name: str) -> str:
    found = setting(name)
    assert found is not None
    return found.method.name


def _make_row_scenario(name: str, method: str, parts: int | None) -> RowScenario:
    row = setting(name)
    assert row is not None
    own = row.method if row.method.name == method else create_method(method)
    at_random = method in ("sancus", "roc")
    workers, nodes = row.cluster.gpus, 232_965
    boundary = nodes * (1.0 - 1.0 / workers) if at_random else None
    return RowScenario(replace(row, method=own), System(method, at_random=at_random), boundary=boundary, parts=parts)
