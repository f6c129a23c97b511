"""What other partitions of a published dataset leave open of its iteration time."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.graph.partition_facts import partition_scatter
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_assumptions import estimated_counts, estimated_s
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.placement import partition_factors, scattered, statistics_warning
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts


def scenario(method: str = "psc-gcn", dataset: str = "reddit", **more: Any) -> Scenario:
    requested = {
        "schema": SCHEMA,
        "method": {"name": method},
        "workload": {"dataset": dataset},
        "run": {"iterations": 3},
    }
    return from_mapping(requested | more, "test")


def counts_of(base: Scenario, accesses: Source) -> AccessCounts:
    return accesses.counts(base, resolve_model(base.workload, accesses.declared).features, RangeEnd.LIKELY)


def factors_of(base: Scenario, accesses: Source) -> tuple[float, float] | None:
    counts = estimated_counts(base, accesses)
    return partition_factors(base, accesses, counts, estimated_s(base, accesses))


@pytest.mark.parametrize("dataset", ["reddit", "yelp", "ogbn-products"])
def test_the_largest_worker_is_as_much_larger_as_the_scatter_says(dataset: str) -> None:
    base = scenario(dataset=dataset)
    counts = counts_of(base, open_source(base))
    scatter = partition_scatter(dataset, 6)
    for end, side in ((RangeEnd.LOW, 0), (RangeEnd.HIGH, 1)):
        moved = scattered(counts, scatter, end, 2)
        for name, figure in (("boundary_nodes", "boundary_largest"), ("entries", "entries_largest")):
            wanted = getattr(counts, name).max() * scatter.factors(figure)[side]
            # The largest part is no smaller than the mean one.
            least = getattr(moved, name).mean()
            assert getattr(moved, name).max() == pytest.approx(max(wanted, least), rel=0.01)
        mean = moved.boundary_nodes.mean() / counts.boundary_nodes.mean()
        assert mean == pytest.approx(scatter.factors("boundary_mean")[side], rel=0.02)
        assert (moved.hits <= moved.rows).all()
        assert not moved.rows[:, range(6), range(6)].any()
        assert min(moved.rows.min(), moved.inner_edges.min()) >= 0
    assert scattered(counts, scatter, RangeEnd.LIKELY) is counts


@pytest.mark.parametrize("method", ["full-graph", "pipegcn", "bns-gcn", "psc-gcn"])
def test_the_time_moves_both_ways_and_within_reason(method: str) -> None:
    base = scenario(method)
    found = factors_of(base, open_source(base))
    assert found is not None
    low, high = found
    assert 0.75 < low < 0.99
    assert 1.01 < high < 1.35


@pytest.mark.parametrize(
    "base",
    [
        scenario(cluster={"gpus": 1}),
        scenario("distdgl"),
        scenario(partition={"statistics": "published"}),
        scenario(workload={"dataset": "reddit", "imbalance": 1.5}),
        scenario(dataset="ogbn-papers100M", cluster={"gpus": 32}),
    ],
    ids=["one worker", "mini-batches", "published", "own imbalance", "outline"],
)
def test_where_no_profile_of_one_partition_answers_nothing_is_added(base: Scenario) -> None:
    accesses = open_source(base)
    assert accesses.scatter(base) is None
    assert factors_of(base, accesses) is None
    assert accesses.partition_note(base) is None


def test_the_note_names_the_partition_and_its_scatter() -> None:
    base = scenario(dataset="ogbn-products")
    note = open_source(base).partition_note(base)
    assert note is not None
    assert note.startswith(
        "of one partition: METIS k-way, objective volume, seed 2, of 25 % of the nodes; with other seeds"
    )
    assert "6 seeds at" in note


def test_both_statistics_say_why_they_differ() -> None:
    published = statistics_warning(scenario(partition={"statistics": "published"}))
    assert published is not None
    assert "all workers send alike" in published
    measured = statistics_warning(scenario())
    assert measured is not None
    assert "one partition of a drawn graph" in measured
    for other in (scenario(cluster={"gpus": 1}), scenario("distdgl"), scenario(cluster={"gpus": 7})):
        assert statistics_warning(other) is None


def test_the_published_interval_holds_the_profiles_answer() -> None:
    published, measured = scenario(partition={"statistics": "published"}), scenario()
    accesses = open_source(published)
    low, likely, high = (estimated_s(published, accesses, bound) for bound in RangeEnd)
    assert low < likely < high
    assert low < estimated_s(measured, open_source(measured)) < high
