"""Partitions and hosts of a question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.planning.alternatives import (
    SeedSpread,
    cores_used,
    gpu_sampler,
    host_steps,
    more_cores,
    more_sampler_threads,
    partition_seconds,
    partition_variants,
    sampler_decides,
    seeds_of,
    why_cores_do_not_matter,
)
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
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.graph_source import GraphSource


def scenario(method: dict[str, Any] | None = None, **cluster: Any) -> Scenario:
    machine = {"gpus": 2, "bandwidth": "15Gbps"} | cluster
    requested = {
        "schema": SCHEMA,
        "cluster": machine,
        "method": method or {"name": "psc-gcn"},
        "run": {"iterations": 4},
    }
    return from_mapping(requested, "test")


def iteration_s(base: Scenario) -> float:
    return simulate_scenario(base).metrics.iteration_s


def test_where_the_sampler_decides_more_threads_or_the_gpu_help_and_cores_do_not() -> None:
    base = scenario(device="a100-40", host="generic-16")
    now = simulate_scenario(base)
    text = sampler_decides(now.limit, base)
    assert text is not None
    assert text.startswith("at the stated values the host's CPU sampler decides")
    assert "sampling uses 2 of a server's 16 cores" in text
    assert iteration_s(more_cores(base)) == now.metrics.iteration_s
    assert iteration_s(more_sampler_threads(base)) < 0.3 * now.metrics.iteration_s
    on_gpu = simulate_scenario(gpu_sampler(base))
    assert on_gpu.metrics.iteration_s < 0.3 * now.metrics.iteration_s
    assert sampler_decides(on_gpu.limit, gpu_sampler(base)) is None


def test_where_samplers_outnumber_cores_more_of_them_help() -> None:
    base = scenario(gpus=4, gpus_per_server=4, device="a100-40", host="generic-16", figures="generic-16.cores=1")
    assert cores_used(base) == (4, 1)
    assert why_cores_do_not_matter(base) is None
    assert resolve_machine(more_cores(base).cluster).host.cores.value == 2
    assert iteration_s(more_cores(base)) < 0.7 * iteration_s(base)


def test_sampling_on_the_gpu_takes_its_time_and_is_named() -> None:
    # Recomputing the probabilities every iteration sorts every entry: nothing else takes as long.
    base = gpu_sampler(scenario({"name": "psc-gcn", "tau": 0, "epsilon": 0.01, "refresh": 1}, bandwidth="400Gbps"))
    result = simulate_scenario(base)
    assert result.metrics.sampling_s > 0.4 * result.metrics.iteration_s
    assert result.limit.text == "sampling on the GPU of all workers"
    assert result.limit.kind == "sampling"
    assert sampler_decides(result.limit, base) is None


@pytest.mark.parametrize(
    ("base", "knobs"),
    [
        (scenario(), ["host cores", "sampler threads", "sampler"]),
        (scenario({"name": "full-graph"}), ["host cores"]),
        (scenario({"name": "distdgl"}), ["host cores", "sampler threads", "sampler"]),
        (scenario({"name": "dgl"}, gpus_per_server=2), ["host cores"]),
        (
            scenario({"name": "dgl"}, gpus_per_server=2, sampler_device="cpu"),
            ["host cores", "sampler threads", "sampler"],
        ),
        (scenario({"name": "psc-gcn", "epsilon": 1}), ["host cores"]),
        (scenario(sampler_device="gpu"), ["host cores"]),
        (scenario(device="cpu-core"), ["host cores"]),
    ],
    ids=str,
)
def test_only_steps_that_change_something_are_offered(base: Scenario, knobs: list[str]) -> None:
    steps = host_steps(base)
    assert [step.knob for step in steps] == knobs
    assert all(step.scenario != base for step in steps)
    assert (steps[0].start, steps[0].end) == (16, 32)


def test_a_scenario_with_the_usual_sampler_is_written_as_before() -> None:
    plain = scenario()
    assert not {"sampler_device", "sampler_threads"} & set(to_mapping(plain)["cluster"])
    assert scenario_hash(scenario(sampler_device=None, sampler_threads=None)) == scenario_hash(plain)
    assert iteration_s(scenario(sampler_device="cpu", sampler_threads=1)) == iteration_s(plain)
    chosen = scenario(sampler_threads=4)
    assert to_mapping(chosen)["cluster"]["sampler_threads"] == 4
    assert from_mapping(to_mapping(chosen), "again") == chosen


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"sampler_device": "tpu"}, "cluster.sampler_device: unknown device of samplers 'tpu'"),
        (
            {"sampler_device": "gpu", "sampler_threads": 4},
            "cluster.sampler_threads: 4 needs cluster.sampler_device: cpu",
        ),
        ({"sampler_threads": 0}, "cluster.sampler_threads: 0 is not allowed"),
        (
            {"sampler_device": "gpu", "device": "cpu-core"},
            "cluster.measured_compute: null is not allowed on CPU cores",
        ),
    ],
)
def test_samplers_that_cannot_be_are_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(scenario(**question))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("threads", "words"),
    [
        (1, "uses 2 of a server's 16 cores (1 thread per worker)"),
        (4, "uses 8 of a server's 16 cores (4 threads per worker)"),
    ],
)
def test_the_threads_that_draw_are_counted(threads: int, words: str) -> None:
    text = why_cores_do_not_matter(scenario(sampler_threads=threads))
    assert text is not None
    assert text.endswith(words)


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A graph of 300 nodes whose degrees differ, on 4 GPUs."""
    draw = np.random.default_rng(1)
    ends = (draw.random((2000, 2)) ** 2 * 300).astype(int)
    path = tmp_path_factory.mktemp("graph") / "skewed.txt"
    path.write_text("".join(f"{one} {other}\n" for one, other in [*ends.tolist(), *((i, i + 1) for i in range(299))]))
    workload = WorkloadSpec(dataset=None, graph=str(path), features=64, classes=8, layers=2, hidden=64)
    cluster = ClusterSpec(gpus=4, gpus_per_server=1, bandwidth=1.25e8)
    return Scenario("test", cluster, workload, PartitionSpec(), create_method("pipegcn"), RunSpec(iterations=3))


def test_seeds_are_distinct_and_begin_with_the_scenarios_own(partitioned: Scenario) -> None:
    scenarios = seeds_of(partitioned, 4)
    # Seed 1 cuts as seed 0 does: the C library's generator makes the same numbers of both.
    assert [partitioned.partition.seed for partitioned in scenarios] == [0, 2, 3, 4]
    later = replace(partitioned, partition=PartitionSpec(seed=7))
    assert [seed.partition.seed for seed in seeds_of(later, 3)] == [7, 8, 9]
    random = replace(partitioned, partition=PartitionSpec(method="random"))
    assert [seed.partition.seed for seed in seeds_of(random, 3)] == [0, 1, 2]


def test_partitions_of_one_graph_are_kept_by_seed_and_setting(partitioned: Scenario) -> None:
    accesses = GraphSource(str(partitioned.workload.graph))
    scenarios = [
        *seeds_of(partitioned, 3),
        *(variant.scenario for variant in partition_variants(partitioned)),
    ]
    owners = [accesses.partition(partitioned)[0].owner for partitioned in scenarios]
    assert len({owner.tobytes() for owner in owners}) == len(scenarios)
    assert all(
        accesses.partition(partitioned)[0].owner is owner for partitioned, owner in zip(scenarios, owners, strict=True)
    )
    times = [simulate_scenario(partitioned, accesses).metrics.iteration_s for partitioned in scenarios[:3]]
    spread = SeedSpread.of(scenarios[:3], times)
    assert spread.low_s == min(times) < spread.mean_s < spread.high_s == max(times)
    assert spread.best == scenarios[times.index(min(times))].partition.seed


def test_seeds_numberings_and_placement_are_told_apart(partitioned: Scenario) -> None:
    def seeds(per_server: int) -> dict[str, Any]:
        found = gcnsim.what_if(
            graph=str(partitioned.workload.graph),
            gpus=4,
            gpus_per_server=per_server,
            bandwidth="1Gbps",
            method="full-graph",
            iterations=2,
            partition_seeds=2,
            processes=1,
        )
        return dict(found.payload["partition_seeds"])

    found, alone = seeds(2), seeds(1)
    assert found["placed_s"] <= found["numbered_low_s"] * 1.001
    assert found["numbered_low_s"] <= found["numbered_high_s"]
    assert [alone[name] for name in ("numbered_low_s", "numbered_high_s", "placed_s")] == [None] * 3


def test_variants_name_every_setting_but_the_scenarios_own(partitioned: Scenario) -> None:
    assert [variant.setting for variant in partition_variants(partitioned)] == [
        "metis-vol-by-edges",
        "metis-cut-by-edges",
        "metis-cut",
        "metis-cut-recursive",
        "metis-vol-10%",
    ]
    random = replace(partitioned, partition=PartitionSpec(method="random", seed=3))
    found = partition_variants(random)
    assert found[0].setting == "metis-vol"
    assert all(partition_variant.scenario.partition.seed == 3 for partition_variant in found)
    cut = replace(partitioned, partition=PartitionSpec(objective="cut", algorithm="recursive"))
    assert "metis-cut-recursive" not in [variant.setting for variant in partition_variants(cut)]


def test_nothing_is_tried_where_nothing_can_be_cut(partitioned: Scenario) -> None:
    assert partition_variants(replace(partitioned, workload=WorkloadSpec())) == []
    assert partition_variants(replace(partitioned, partition=PartitionSpec(file="my.part"))) == []
    assert partition_variants(replace(partitioned, cluster=ClusterSpec(gpus=1))) == []


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
    partitioned: Scenario, change: dict[str, object], count: int, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        seeds_of(replace(partitioned, **change), count)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_volume_takes_longer_to_cut_than_edges_and_nothing_else_takes_time() -> None:
    assert partition_seconds(10**7, PartitionSpec()) > 5 * partition_seconds(10**7, PartitionSpec(objective="cut")) > 1
    assert partition_seconds(10**7, PartitionSpec(method="random")) == 0.0
