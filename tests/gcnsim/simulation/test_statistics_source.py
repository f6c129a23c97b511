"""Published accesses: what is kept is of one layout and one cut, and datasets of which no cut is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.scenario import ClusterSpec, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.workload import dataset
from gcnsim.workload.caching import CacheSize

ENDS = ("low", "value", "high")


def make_scenario(name: str, method: str, per_server: int = 2) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "gpus_per_server": per_server},
        "workload": {"dataset": name},
        "method": {"name": method},
    }
    return from_mapping(mapping, "test")


def test_servers_decide_who_owns_rows() -> None:
    accesses = StatisticsSource(dataset("reddit"))
    one, two = (accesses.counts(make_scenario("reddit", "full-graph", size), 602, RangeEnd.LIKELY) for size in (4, 2))
    assert one.rows.sum() == pytest.approx(two.rows.sum(), rel=1e-4)
    assert not np.allclose(one.rows, two.rows, rtol=0.05)


@pytest.mark.parametrize("method", ["cagnet-1d", "cagnet-1.5d", "sancus"])
def test_whole_blocks_need_no_published_boundary(method: str) -> None:
    counts = StatisticsSource(dataset("reddit-saint")).counts(
        make_scenario("reddit-saint", method), 602, RangeEnd.LIKELY
    )
    assert counts.boundary_edges.sum() / counts.entries.sum() == pytest.approx(0.75, rel=0.01)
    assert np.ptp(counts.entries) == 0
    assert simulate_scenario(make_scenario("reddit-saint", method)).metrics.iteration_s > 0


def test_other_methods_do() -> None:
    scenario = make_scenario("reddit-saint", "sancus")
    accesses = StatisticsSource(dataset("reddit-saint"))
    accesses.counts(scenario, 602, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match="no boundary of reddit-saint is published"):
        accesses.counts(replace(scenario, method=create_method("full-graph")), 602, RangeEnd.LIKELY)


@pytest.mark.parametrize("bound", RangeEnd)
@pytest.mark.parametrize("sampler", ["uniform", "vr"])
def test_a_rate_towards_one_asks_for_every_row(sampler: str, bound: RangeEnd) -> None:
    whole, nearly = (
        StatisticsSource(dataset("reddit")).counts(sampled(sampler, rate), 602, bound) for rate in (1.0, 0.999999)
    )
    for field in ("rows", "hits", "inner_edges", "boundary_edges"):
        assert getattr(nearly, field).mean(axis=0).sum() == pytest.approx(getattr(whole, field).sum(), rel=1e-4)


def sampled(sampler: str, rate: float) -> Scenario:
    method = create_method("psc-gcn", epsilon=rate, sampler=sampler, cache=CacheSize(fraction=0.3))
    return replace(make_scenario("reddit", "full-graph"), method=method)


@pytest.mark.parametrize("name", ["reddit", "ogbn-products", "yelp"])
def test_more_parts_than_any_published_run_have_a_range_of_boundaries(name: str) -> None:
    scenario = replace(make_scenario(name, "full-graph"), cluster=ClusterSpec(gpus=300))
    accesses = StatisticsSource(dataset(name))
    assumeds = {assumption.name: assumption for assumption in accesses.assumptions(scenario, [scenario])}
    low, likely, high = (float(getattr(assumeds["boundary_nodes"], end).replace(",", "")) for end in ENDS)
    assert low < likely <= high
    assert assumeds["boundary_nodes"].in_interval
    ends = [accesses.profile(scenario, bound).boundary_nodes for bound in RangeEnd]
    assert ends[0].mean() < ends[1].mean()
    assert ends[0].max() < ends[1].max() < ends[2].max()
    counts = accesses.counts(scenario, 100, RangeEnd.LIKELY)
    assert counts.rows.shape == (1, 300, 300)
    assert (counts.rows.sum(axis=2) <= counts.boundary_edges).all()
    assert counts.entries.sum() == pytest.approx(dataset(name).entries, rel=1e-3)


@pytest.mark.parametrize("gpus", [2, 5, 6, 33, 64])
def test_among_counted_numbers_of_parts_the_boundary_is_the_counted_one(gpus: int) -> None:
    scenario = replace(make_scenario("reddit", "full-graph"), cluster=ClusterSpec(gpus=gpus))
    accesses = StatisticsSource(dataset("reddit"))
    assert {accesses.boundary_by(scenario, bound) for bound in RangeEnd} == {1.0}
    assert "boundary_nodes" not in {assumption.name for assumption in accesses.assumptions(scenario, [scenario])}
