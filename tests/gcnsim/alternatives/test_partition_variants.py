"""Other seeds and other settings of the partitioner, tried on one graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.alternatives import SeedSpread, partition_seconds, partition_variants, seeds_of
from gcnsim.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.scenario import ClusterSpec, PartitionSpec, RunSpec, Scenario, WorkloadSpec
from gcnsim.simulation import study
from gcnsim.sources import GraphSource


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A graph of 300 nodes whose degrees differ, on 4 GPUs."""
    draw = np.random.default_rng(1)
    ends = (draw.random((2000, 2)) ** 2 * 300).astype(int)
    path = tmp_path_factory.mktemp("graph") / "skewed.txt"
    path.write_text("".join(f"{one} {other}\n" for one, other in [*ends.tolist(), *((i, i + 1) for i in range(299))]))
    workload = WorkloadSpec(dataset=None, graph=str(path), features=64, classes=8, layers=2, hidden=64)
    cluster = ClusterSpec(gpus=4, gpus_per_server=1, bandwidth=1.25e8)
    return Scenario("test", cluster, workload, PartitionSpec(), create_method("pipegcn"), RunSpec(iterations=3))


def test_seeds_are_distinct_and_begin_with_the_scenarios_own(asked: Scenario) -> None:
    found = seeds_of(asked, 4)
    # Seed 1 cuts as seed 0 does: the C library's generator makes the same numbers of both.
    assert [each.partition.seed for each in found] == [0, 2, 3, 4]
    later = replace(asked, partition=PartitionSpec(seed=7))
    assert [each.partition.seed for each in seeds_of(later, 3)] == [7, 8, 9]
    random = replace(asked, partition=PartitionSpec(method="random"))
    assert [each.partition.seed for each in seeds_of(random, 3)] == [0, 1, 2]


def test_partitions_of_one_graph_are_kept_by_seed_and_setting(asked: Scenario) -> None:
    accesses = GraphSource(str(asked.workload.graph))
    scenarios = [*seeds_of(asked, 3), *(variant.scenario for variant in partition_variants(asked))]
    owners = [accesses.partition(each)[0].owner for each in scenarios]
    assert len({each.tobytes() for each in owners}) == len(scenarios)
    assert all(accesses.partition(each)[0].owner is owner for each, owner in zip(scenarios, owners, strict=True))
    times = [study(each, accesses).metrics.iteration_s for each in scenarios[:3]]
    spread = SeedSpread.of(scenarios[:3], times)
    assert spread.low_s == min(times) < spread.mean_s < spread.high_s == max(times)
    assert spread.best == scenarios[times.index(min(times))].partition.seed


def test_variants_name_every_setting_but_the_scenarios_own(asked: Scenario) -> None:
    assert [each.setting for each in partition_variants(asked)] == [
        "metis-vol-by-edges",
        "metis-cut-by-edges",
        "metis-cut",
        "metis-cut-recursive",
        "metis-vol-10%",
    ]
    random = replace(asked, partition=PartitionSpec(method="random", seed=3))
    found = partition_variants(random)
    assert found[0].setting == "metis-vol"
    assert all(each.scenario.partition.seed == 3 for each in found)
    cut = replace(asked, partition=PartitionSpec(objective="cut", algorithm="recursive"))
    assert "metis-cut-recursive" not in [each.setting for each in partition_variants(cut)]


def test_nothing_is_tried_where_nothing_can_be_cut(asked: Scenario) -> None:
    assert partition_variants(replace(asked, workload=WorkloadSpec())) == []
    assert partition_variants(replace(asked, partition=PartitionSpec(file="my.part"))) == []
    assert partition_variants(replace(asked, cluster=ClusterSpec(gpus=1))) == []


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
    asked: Scenario, change: dict[str, object], count: int, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        seeds_of(replace(asked, **change), count)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_volume_takes_longer_to_cut_than_edges_and_nothing_else_takes_time() -> None:
    assert partition_seconds(10**7, PartitionSpec()) > 5 * partition_seconds(10**7, PartitionSpec(objective="cut")) > 1
    assert partition_seconds(10**7, PartitionSpec(method="random")) == 0.0
