"""Dropping edges instead of nodes: as many of them, and rows are still sent while one of their edges is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gcnsim.methods import create_method
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.counts import AccessCounts


def make_scenario(sample: str, rate: float, **workload: object) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4},
        "workload": {"dataset": "reddit", **workload},
        "method": {"name": "bns-gcn", "rate": rate, "sample": sample},
        "run": {"iterations": 4},
    }
    return from_mapping(mapping, "test")


def counts(scenario: Scenario) -> AccessCounts:
    return open_source(scenario).counts(scenario, 602, RangeEnd.LIKELY)


@pytest.mark.parametrize("extra", [{}, {"imbalance": 1.2}], ids=["surrogate", "statistics"])
def test_as_many_edges_are_dropped_as_with_nodes(extra: dict[str, object]) -> None:
    every, nodes = (counts(replace(make_scenario("nodes", 0.1, **extra), method=method)) for method in (
        create_method("full-graph"), create_method("bns-gcn", rate=0.1)))  # fmt: skip
    dropped = every.boundary_edges.sum() - nodes.boundary_edges.sum()
    some, of_all = (counts(make_scenario(sample, 0.1, **extra)) for sample in ("boundary-edges", "edges"))
    assert (some.inner_edges == every.inner_edges).all()
    assert every.boundary_edges.sum() - some.boundary_edges.mean(axis=0).sum() == pytest.approx(dropped, rel=0.05)
    kept = (of_all.inner_edges + of_all.boundary_edges).mean(axis=0).sum()
    assert (every.inner_edges + every.boundary_edges).sum() - kept == pytest.approx(dropped, rel=0.05)
    rows = [found.rows.mean(axis=0).sum() for found in (nodes, some, of_all, every)]
    assert rows[0] < rows[1] < rows[2] <= rows[3]


def test_the_ends_of_the_rate() -> None:
    every = counts(make_scenario("edges", 1.0))
    assert counts(make_scenario("boundary-edges", 1.0)).rows.tolist() == every.rows.tolist()
    none = counts(make_scenario("boundary-edges", 0.0))
    assert none.rows.sum() == none.boundary_edges.sum() == 0
    assert (none.inner_edges == every.inner_edges).all()


def test_edges_of_a_graph_are_really_drawn(data_dir: Path) -> None:
    graph = {"dataset": None, "graph": str(data_dir / "amazon_cs.npz")}
    some, nodes = counts(make_scenario("boundary-edges", 0.1, **graph)), counts(make_scenario("nodes", 0.1, **graph))
    assert some.iterations == 4
    assert some.rows.mean() > 1.5 * nodes.rows.mean()
    assert some.boundary_edges.mean() == pytest.approx(nodes.boundary_edges.mean(), rel=0.1)


def test_an_epoch_of_edge_sampling_is_slower_than_one_of_nodes() -> None:
    seconds = [
        simulate_scenario(make_scenario(sample, 0.1)).metrics.iteration_s
        for sample in ("nodes", "boundary-edges", "edges")
    ]
    assert seconds[0] < seconds[1] < seconds[2]
