"""Profiles as a source, another partition, and schedules that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.describe import partition_scatter
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.load import write_npz
from gcnsim.graph.parts import split
from gcnsim.methods import Method, create_method, every_method
from gcnsim.scenario import (
    SCHEMA,
    ClusterSpec,
    PartitionSpec,
    Scenario,
    WorkloadSpec,
    from_mapping,
    scenario_hash,
    to_mapping,
)
from gcnsim.scenario.specs import RunSpec
from gcnsim.schedule import Schedule
from gcnsim.simulation import simulate_scenario, write_schedule
from gcnsim.simulation.graph_source import GraphSource
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_assumptions import estimated_counts, estimated_s
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.placement import partition_factors, scattered, statistics_warning
from gcnsim.simulation.profile_source import ProfileSource
from gcnsim.simulation.propagation import best_lower_s, factors
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.templates import MOST, Templates
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.stored_profile import stored_profile, write_profile

PARTS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn graph, and the profile of its METIS parts."""
    found = tmp_path_factory.mktemp("stored")
    graph = block_model(BlockModel(6_000, 60_000, communities=12), 0, "drawn")
    write_npz(found / "g.npz", graph)
    loaded = load_graph(found / "g.npz")
    cut = partition_graph(loaded, PARTS)
    profile = stored_profile(split(loaded, cut), cut)
    write_profile(found / "g.profile", profile)
    origin = replace(profile.origin, source="surrogate", name="yelp", cross_range=(0.8, 1.25))
    write_profile(found / "yelp.profile", replace(profile, origin=origin))
    return found


def make_scenario(workload: WorkloadSpec, method: Method, gpus: int = PARTS) -> Scenario:
    cluster = ClusterSpec(gpus=gpus, gpus_per_server=1)
    return Scenario("test", cluster, workload, PartitionSpec(), method, RunSpec(iterations=20))


@pytest.mark.parametrize(
    "method",
    [create_method("bns-gcn", rate=0.1), create_method("psc-gcn", epsilon=0.1)],
)
def test_it_answers_as_the_graph_does(folder: Path, method: Method) -> None:
    graph = make_scenario(WorkloadSpec(dataset=None, graph=str(folder / "g.npz")), method)
    stored = make_scenario(WorkloadSpec(dataset=None, profile=str(folder / "g.profile")), method)
    real, accesses = open_source(graph), open_source(stored)
    assert isinstance(real, GraphSource)
    assert isinstance(accesses, ProfileSource)
    assert accesses.graph_hash == real.graph_hash
    assert accesses.assumption_bounds == (RangeEnd.LIKELY,)
    one, other = real.counts(graph, 64, RangeEnd.LIKELY), accesses.counts(stored, 64, RangeEnd.LIKELY)
    assert other.boundary_nodes.tolist() == one.boundary_nodes.tolist()
    assert other.entries.tolist() == one.entries.tolist()
    assert np.mean(other.rows.sum(axis=(1, 2))) == pytest.approx(np.mean(one.rows.sum(axis=(1, 2))), rel=0.03)
    assert simulate_scenario(stored, accesses).metrics.iteration_s == pytest.approx(
        simulate_scenario(graph, real).metrics.iteration_s, rel=0.02
    )


def test_what_a_surrogate_leaves_open_is_covered(folder: Path) -> None:
    path = str(folder / "yelp.profile")
    scenario = make_scenario(WorkloadSpec(dataset=None, profile=path), create_method("psc-gcn", epsilon=0.1))
    accesses = ProfileSource(path)
    rows = [accesses.counts(scenario, 64, bound).rows.sum() for bound in RangeEnd]
    assert rows == sorted(rows)
    assert rows[0] < rows[-1]
    assert (accesses.graph_hash, accesses.declared.features, accesses.declared.classes) == (None, 300, 100)


def test_other_numbers_of_gpus_and_other_questions_are_refused(folder: Path) -> None:
    workload = WorkloadSpec(dataset=None, profile=str(folder / "g.profile"))
    accesses = ProfileSource(workload.profile or "")
    full, batches = create_method("full-graph"), create_method("dgl")
    with pytest.raises(ScenarioError, match=r"cluster\.gpus: 4 is not allowed; .*g\.profile is a profile of 3 parts"):
        accesses.counts(make_scenario(workload, full, 4), 64, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"method\.name: dgl trains mini-batches; .*g\.profile"):
        accesses.counts(make_scenario(workload, batches), 64, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"partition: .*g\.profile is partitioned already"):
        open_source(replace(make_scenario(workload, full), partition=PartitionSpec(seed=1)))
    with pytest.raises(ScenarioError, match=r"workload\.imbalance: cannot be set, it is counted on .*g\.profile"):
        open_source(make_scenario(replace(workload, imbalance=1.5), full))
    with pytest.raises(ScenarioError, match=r"both trace \(t\) and profile \(p\) are given"):
        WorkloadSpec(dataset=None, trace="t", profile="p")


def test_a_scenario_keeps_it_and_others_are_written_as_before(folder: Path) -> None:
    raw = {"schema": "gcnsim.scenario/1", "workload": {"profile": str(folder / "g.profile")}}
    scenario = from_mapping(raw, "s")
    assert scenario.workload.dataset is None
    assert from_mapping(to_mapping(scenario), "s") == scenario
    assert scenario_hash(scenario) != scenario_hash(from_mapping({"schema": "gcnsim.scenario/1"}, "s"))
    assert "profile" not in to_mapping(from_mapping({"schema": "gcnsim.scenario/1"}, "s"))["workload"]


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


@pytest.mark.parametrize("dataset", ["yelp"])
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


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
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


BANDWIDTHS = (1.25e8, 1.875e9, 1.25e10)


def scenario_of(method: str, **cluster: Any) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}}, "test")


def written(scenario: Scenario, accesses: Source) -> Schedule:
    features = resolve_model(scenario.workload, accesses.declared).features
    return write_schedule(scenario, accesses.counts(scenario, features, RangeEnd.LIKELY), accesses)


def same(one: Schedule, other: Schedule) -> bool:
    delays = ("latency_s", "startup_s", "queue", "way", "wait", "cap")
    return (
        one.capacity == other.capacity
        and np.array_equal(one.demand, other.demand)
        and all(np.array_equal(getattr(one.columns, name), getattr(other.columns, name)) for name in delays)
        and one.columns.routes == other.columns.routes
    )


@pytest.mark.parametrize("method", sorted(every_method()))
def test_another_bandwidth_is_other_capacities_alone(method: str) -> None:
    alone = getattr(every_method()[method], "one_server", False)
    base = scenario_of(method, gpus_per_server=4 if alone else 2)
    accesses, templates = open_source(base), Templates()
    for bandwidth in BANDWIDTHS:
        moved = replace(base, cluster=replace(base.cluster, bandwidth=bandwidth))
        expected = written(moved, accesses)
        with templates.used():
            assert same(written(moved, accesses), expected)


@pytest.mark.parametrize("method", ["psc-gcn", "distdgl"])
def test_what_the_assumptions_leave_open_is_the_same(method: str) -> None:
    base = scenario_of(method)
    accesses, templates = open_source(base), Templates()
    for bandwidth in BANDWIDTHS:
        moved = replace(base, cluster=replace(base.cluster, bandwidth=bandwidth))
        expected = factors(moved, accesses, 0)
        lower = best_lower_s(moved, accesses, RangeEnd.LIKELY)
        with templates.used():
            found = factors(moved, accesses, 0)
            assert best_lower_s(moved, accesses, RangeEnd.LIKELY) == lower
        assert np.array_equal(found.joint, expected.joint)
        assert (found.nominal_s, found.alone) == (expected.nominal_s, expected.alone)


def test_kernels_that_slow_down_beside_transfers_are_written_anew() -> None:
    base = scenario_of("psc-gcn", rate_beside_copies="50%")
    accesses, templates = open_source(base), Templates()
    schedules = []
    with templates.used():
        for bandwidth in BANDWIDTHS:
            schedules.append(written(replace(base, cluster=replace(base.cluster, bandwidth=bandwidth)), accesses))
    assert not np.array_equal(schedules[0].demand, schedules[-1].demand)


def test_few_things_are_kept_and_none_where_nobody_asked() -> None:
    templates, made = Templates(), []
    base = scenario_of("pipegcn")
    accesses = open_source(base)
    several, turns = MOST + 6, MOST + 16
    for turn in range(turns):
        templates.get(turn % several, (accesses,), lambda turn=turn: made.append(turn))  # type: ignore[misc]
    assert made == list(range(turns))
    templates.get((turns - 1) % several, (accesses,), lambda: made.append(-1))
    assert made[-1] == turns - 1
    assert written(base, accesses) is not written(base, accesses)
