"""Other seeds and other settings of the partitioner, tried on one graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.planning.alternatives import SeedSpread, partition_seconds, partition_variants, seeds_of
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.graph_source import GraphSource


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A graph of 300 nodes whose degrees differ, on 4 GPUs."""
    draw = np.random.default_rng(1)
    ends = (draw.random((2000, 2)) ** 2 * 300).astype(int)
    path = tmp_path_factory.mktemp("graph") / "skewed.txt"
    path.write_text("".join(f"{one} {other}\n" for one, other in [*ends.tolist(), *((i, i + 1) for i in range(299))]))
    workload = WorkloadSpec(dataset=None, graph=str(path), features=64, classes=8, layers=2, hidden=64)
    cluster = ClusterSpec(gpus=4, gpus_per_server=1, bandwidth=1.25e8)
    return Scenario("test", cluster, workload, PartitionSpec(), create_method("pipegcn"), RunSpec(iterations=3))


def test_seeds_are_distinct_and_begin_with_the_scenarios_own(scenario: Scenario) -> None:
    scenarios = seeds_of(scenario, 4)
    # Seed 1 cuts as seed 0 does: the C library's generator makes the same numbers of both.
    assert [scenario.partition.seed for scenario in scenarios] == [0, 2, 3, 4]
    later = replace(scenario, partition=PartitionSpec(seed=7))
    assert [seed.partition.seed for seed in seeds_of(later, 3)] == [7, 8, 9]
    random = replace(scenario, partition=PartitionSpec(method="random"))
    assert [seed.partition.seed for seed in seeds_of(random, 3)] == [0, 1, 2]


def test_partitions_of_one_graph_are_kept_by_seed_and_setting(scenario: Scenario) -> None:
    accesses = GraphSource(str(scenario.workload.graph))
    scenarios = [*seeds_of(scenario, 3), *(variant.scenario for variant in partition_variants(scenario))]
    owners = [accesses.partition(scenario)[0].owner for scenario in scenarios]
    assert len({owner.tobytes() for owner in owners}) == len(scenarios)
    assert all(
        accesses.partition(scenario)[0].owner is owner for scenario, owner in zip(scenarios, owners, strict=True)
    )
    times = [simulate_scenario(scenario, accesses).metrics.iteration_s for scenario in scenarios[:3]]
    spread = SeedSpread.of(scenarios[:3], times)
    assert spread.low_s == min(times) < spread.mean_s < spread.high_s == max(times)
    assert spread.best == scenarios[times.index(min(times))].partition.seed


def test_variants_name_every_setting_but_the_scenarios_own(scenario: Scenario) -> None:
    assert [variant.setting for variant in partition_variants(scenario)] == [
        "metis-vol-by-edges",
        "metis-cut-by-edges",
        "metis-cut",
        "metis-cut-recursive",
        "metis-vol-10%",
    ]
    random = replace(scenario, partition=PartitionSpec(method="random", seed=3))
    found = partition_variants(random)
    assert found[0].setting == "metis-vol"
    assert all(partition_variant.scenario.partition.seed == 3 for partition_variant in found)
    cut = replace(scenario, partition=PartitionSpec(objective="cut", algorithm="recursive"))
    assert "metis-cut-recursive" not in [variant.setting for variant in partition_variants(cut)]


def test_nothing_is_tried_where_nothing_can_be_cut(scenario: Scenario) -> None:
    assert partition_variants(replace(scenario, workload=WorkloadSpec())) == []
    assert partition_variants(replace(scenario, partition=PartitionSpec(file="my.part"))) == []
    assert partition_variants(replace(scenario, cluster=ClusterSpec(gpus=1))) == []


@pytest.mark.parametrize(
    ("change", "count", "message"),
    [
        ({"workload": WorkloadSpec()}, 3, "--partition-seeds: 3 is not allowed; needs a graph of your own (--graph)"),
        ({"partition": PartitionSpec(file="a.part")}, 3, "3 is not allowed; not with partition.file: a.part"),
        ({"partition": PartitionSpec(method="block")}, 3, "3 is not allowed; not with partition.method: block"),
        ({}, 0, "--partition-seeds: 0 is not allowed; 1 to 100"),
        ({}, 101, "--partition-seeds: 101 is not allowed; 1 to 100"),
    ],
    ids=str,
)
def test_seeds_that_decide_nothing_are_refused(
    scenario: Scenario, change: dict[str, object], count: int, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        seeds_of(replace(scenario, **change), count)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_volume_takes_longer_to_cut_than_edges_and_nothing_else_takes_time() -> None:
    assert partition_seconds(10**7, PartitionSpec()) > 5 * partition_seconds(10**7, PartitionSpec(objective="cut")) > 1
    assert partition_seconds(10**7, PartitionSpec(method="random")) == 0.0
