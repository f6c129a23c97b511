"""Sources of accesses: paths, batches, statistics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.methods import create_method
from gcnsim.scenario import SCHEMA, ClusterSpec, Scenario, from_mapping
from gcnsim.scenario.machine_profiles import NVLINK_THERE
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.assumed import DRAWS, other_paths, path_by_draw
from gcnsim.simulation.open_assumptions import DrawnRuns, estimated_s
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.propagation import best_lower_s, factors
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.trace import BatchOrigin, BatchTrace, packed, write_batch_trace
from gcnsim.workload import dataset
from gcnsim.workload.caching import CacheSize


def scenario(method: str = "pipegcn", **cluster: Any) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "10Gbps"} | cluster
    requested = {"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}, "run": {"iterations": 4}}
    return from_mapping(requested, "test")


# A GPU that is sold as a module and as a card, in a server of which neither is known.
OPEN: dict[str, Any] = {"device": "a100-40", "host": "generic-16"}


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        (OPEN, [NVLINK_THERE]),
        (OPEN | {"transport": "direct"}, [NVLINK_THERE]),
        (OPEN | {"transport": "staged"}, []),
        (OPEN | {"nvlink": "none"}, []),
        (OPEN | {"nvlink": "300GB/s"}, []),
        (OPEN | {"implementation": "released"}, []),
        ({"device": "a100-40"}, []),
        ({"device": "a100-40", "host": "p4d.24xlarge"}, []),
        ({"device": "cpu-core"}, []),
        ({}, []),
    ],
)
def test_only_nvlink_in_an_unknown_server_may_be_otherwise(cluster: dict[str, Any], names: list[str]) -> None:
    assert [path.name for path in other_paths(scenario(**cluster))] == names


def test_a_method_that_sends_nothing_over_them_has_no_other_path() -> None:
    assert other_paths(scenario("roc", **OPEN)) == ()


@pytest.mark.parametrize("seed", [0, 7])
def test_a_quarter_of_the_draws_has_the_other_path(seed: int) -> None:
    paths = other_paths(scenario(**OPEN))
    found = path_by_draw(paths, seed)
    assert np.count_nonzero(found == 0) == DRAWS // 4
    assert np.count_nonzero(found == -1) == DRAWS - DRAWS // 4
    assert found.tolist() == path_by_draw(paths, seed).tolist()


def test_draws_of_the_other_path_are_estimated_with_it_and_all_others_as_before() -> None:
    base = scenario("full-graph", gpus_per_server=4, **OPEN)
    accesses = open_source(base)
    found = factors(base, accesses, 0)
    modules, cards = (
        factors(replace(base, cluster=replace(base.cluster, nvlink=rate)), accesses, 0) for rate in (300e9, 0.0)
    )
    assert cards.nominal_s > 1.01 * modules.nominal_s, "the path matters"
    chosen = path_by_draw(other_paths(base), 0)
    assert found.joint[chosen < 0] == pytest.approx(modules.joint[chosen < 0], rel=1e-12)
    at = cards.nominal_s / modules.nominal_s * cards.joint
    assert found.joint[chosen == 0] == pytest.approx(at[chosen == 0], rel=1e-12)
    assert found.alone[NVLINK_THERE] == pytest.approx((cards.nominal_s / modules.nominal_s, 1.0))


@pytest.mark.parametrize("method", ["bns-gcn"])
def test_simulated_draws_have_the_path_of_the_draw(method: str) -> None:
    base = scenario(method, gpus_per_server=4, **OPEN)
    accesses = open_source(base)
    runs = DrawnRuns.of(base, accesses, 0)
    chosen = path_by_draw(other_paths(base), 0)
    modules, cards = (
        DrawnRuns.of(replace(base, cluster=replace(base.cluster, nvlink=rate)), accesses, 0) for rate in (300e9, 0.0)
    )
    other, assumed = int(np.argmax(chosen == 0)), int(np.argmax(chosen < 0))
    assert runs.pace(other) == cards.pace(other) != modules.pace(other)
    assert [runs.pace(draw) for draw in (assumed, DRAWS)] == [modules.pace(draw) for draw in (assumed, DRAWS)]


def test_no_path_that_may_be_there_is_below_the_bound() -> None:
    base = scenario("full-graph", gpus_per_server=4, **OPEN)
    accesses = open_source(base)
    paths = other_paths(base)
    assert paths
    lower = best_lower_s(base, accesses, RangeEnd.LIKELY)
    for item in (base, *(path.scenario for path in paths)):
        assert lower <= estimated_s(item, accesses)


NODES = 12


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Two workers, three batches each of 2 nodes that read 6 and, in the last one, 7 input rows; every third is the
    other's."""
    read = np.zeros((3, NODES), np.bool_)
    read[:, :6] = True
    read[2, 6] = True
    levels = np.array([[[6, 4, 2]] * 2, [[6, 4, 2]] * 2, [[7, 4, 2]] * 2], np.int64)
    trace = BatchTrace(
        BatchOrigin("tiny", "ab12", "graphsage", 0, 5),
        NODES,
        levels,
        np.full((3, 2, 2), 8, np.int64),
        np.full((3, 2), 16, np.int64),
        (packed(read), packed(read)),
        (packed(np.zeros(NODES, np.bool_)),) * 2,
        np.full(2, NODES, np.int64),
        np.arange(NODES, dtype=np.int32) % 3 // 2,
    )
    write_batch_trace(tmp_path / "t", trace)
    return tmp_path / "t"


def make_scenario(path: Path, *, gpus: int = 2, layers: int = 2, **method: Any) -> Scenario:
    return from_mapping(
        {
            "schema": SCHEMA,
            "name": "t",
            "cluster": {"gpus": gpus, "gpus_per_server": 1},
            "workload": {"trace": str(path), "layers": layers, "hidden": 16, "features": 8, "classes": 3},
            "method": {"name": "graphsage", "batch": 2} | method,
        },
        "t",
    )


def test_counts_are_those_that_were_recorded(recorded: Path) -> None:
    scenario = make_scenario(recorded)
    source = open_source(scenario)
    counts = source.counts(scenario, 8, RangeEnd.LIKELY)
    batches = counts.batches
    assert batches is not None
    assert batches.levels[:, 0, 0].tolist() == [6, 6, 7]
    assert batches.wanted[:, 0].tolist() == [[4, 2], [4, 2], [5, 2]]
    assert (batches.per_epoch, counts.rows.sum(), source.name, source.graph_hash) == (5, 0, "tiny", "ab12")
    assert "3 mini-batches of tiny for each of 2 workers" in source.describe(scenario)["text"]
    again = batches.repeated(2)
    assert (again.iterations, again.levels[:, 0, 0].tolist()) == (6, [6, 6, 7] * 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "distdgl"}, "method.name: distdgl is not allowed; {path} has mini-batches of graphsage"),
        ({"gpus": 3}, "{path}: has 2 workers, the cluster has 3 GPUs"),
        ({"layers": 3}, "{path}: has mini-batches of 2 layers, the model has 3"),
        ({"batch": 1}, "method.batch: 1 is not allowed; {path} has batches of 2"),
    ],
)
def test_what_was_not_recorded_is_refused_in_one_line(recorded: Path, changed: dict[str, Any], message: str) -> None:
    scenario = make_scenario(recorded, **changed)
    with pytest.raises(GcnsimError) as content:
        open_source(scenario).counts(scenario, 8, RangeEnd.LIKELY)
    assert str(content.value) == message.format(path=recorded)


def test_a_trace_of_exchanges_is_no_trace_of_batches(recorded: Path) -> None:
    scenario = make_scenario(recorded)
    with pytest.raises(GcnsimError, match="batch-trace"):
        open_source(replace(scenario, method=create_method("full-graph")))


ENDS = ("low", "value", "high")


def statistics_scenario(name: str, method: str, per_server: int = 2) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "gpus_per_server": per_server},
        "workload": {"dataset": name},
        "method": {"name": method},
    }
    return from_mapping(mapping, "test")


def test_servers_decide_who_owns_rows() -> None:
    accesses = StatisticsSource(dataset("reddit"))
    one, two = (
        accesses.counts(statistics_scenario("reddit", "full-graph", size), 602, RangeEnd.LIKELY) for size in (4, 2)
    )
    assert one.rows.sum() == pytest.approx(two.rows.sum(), rel=1e-4)
    assert not np.allclose(one.rows, two.rows, rtol=0.05)


@pytest.mark.parametrize("method", ["cagnet-1.5d"])
def test_whole_blocks_need_no_published_boundary(method: str) -> None:
    counts = StatisticsSource(dataset("reddit-saint")).counts(
        statistics_scenario("reddit-saint", method), 602, RangeEnd.LIKELY
    )
    assert counts.boundary_edges.sum() / counts.entries.sum() == pytest.approx(0.75, rel=0.01)
    assert np.ptp(counts.entries) == 0
    assert simulate_scenario(statistics_scenario("reddit-saint", method)).metrics.iteration_s > 0


def test_other_methods_do() -> None:
    scenario = statistics_scenario("reddit-saint", "sancus")
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
    return replace(statistics_scenario("reddit", "full-graph"), method=method)


@pytest.mark.parametrize("name", ["yelp"])
def test_more_parts_than_any_published_run_have_a_range_of_boundaries(name: str) -> None:
    scenario = replace(statistics_scenario(name, "full-graph"), cluster=ClusterSpec(gpus=300))
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


@pytest.mark.parametrize(("gpus", "counted"), [(8, True), (32, True), (5, False), (33, False)])
def test_only_at_counted_numbers_of_parts_the_boundary_is_certain(gpus: int, counted: bool) -> None:
    scenario = replace(statistics_scenario("reddit", "full-graph"), cluster=ClusterSpec(gpus=gpus))
    accesses = StatisticsSource(dataset("reddit"))
    low, likely, high = (accesses.boundary_by(scenario, bound) for bound in RangeEnd)
    assert (low, likely, high) == (1.0, 1.0, 1.0) if counted else low < likely == 1.0 < high
    named = {assumption.name for assumption in accesses.assumptions(scenario, [scenario])}
    assert ("boundary_nodes" not in named) == counted
