"""A platform's fitted figures: what a cache holds, what the host side of a worker limits, and what is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, Figure, platform
from gcnsim.hardware.catalogue import FOLDER
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.machine_links import for_workload
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.workload.reach import DEGREE_SPREAD
from tests.measured_files import measured_file, write_graph

CLUSTER = {"gpus": 2, "gpus_per_server": 2, "device": "rtx-2080-ti", "platform": "rtx-2080-ti-server"}


def make_scenario(cluster: dict[str, object], workload: dict[str, object], method: dict[str, object]) -> Scenario:
    return from_mapping({"schema": SCHEMA, "cluster": cluster, "workload": workload, "method": method}, "test")


def iteration_s(workload: dict[str, object], method: str = "full-graph") -> float:
    scenario = make_scenario(dict(CLUSTER), {"dataset": "reddit-train", **workload}, {"name": method})
    return simulate_scenario(scenario, open_source(scenario)).metrics.iteration_s


def test_a_platform_and_a_dataset_say_what_sparse_sums_find(gpu: DeviceProfile) -> None:
    found = platform("rtx-2080-ti-server")
    known = replace(gpu, multiprocessors=Figure(10, "given", "", ""), cache_bandwidth=Figure(4e10, "given", "", ""))
    for fitted, efficiency in ((found, found.spmm_efficiency), (None, gpu.spmm_efficiency)):
        made = for_workload(known, fitted, None)
        assert made.spmm_efficiency == efficiency
        assert made.degree_spread == DEGREE_SPREAD
    assert for_workload(gpu, found, None) is gpu, "its multiprocessors are not known"


def test_everything_a_worker_moves_passes_its_host_side() -> None:
    scenario = make_scenario(dict(CLUSTER), {"dataset": "reddit-train"}, {"name": "full-graph"})
    cluster = resolve_machine(scenario.cluster).topology
    route = [cluster.links[link].name for link in cluster.between(0, 1)]
    assert route == ["staging0", "memory0", "staging1"]
    fitted = platform("rtx-2080-ti-server").staging_bandwidth
    assert fitted is not None
    staging = fitted.value
    (down,) = cluster.to_host(0)
    assert cluster.links[down].spec.capacity == pytest.approx(min(staging / 2, 15.754e9 * 0.78))
    plain = resolve_machine(
        make_scenario(CLUSTER | {"platform": None}, {"dataset": "reddit-train"}, {"name": "full-graph"}).cluster
    ).topology
    assert plain.staging == (), "rows pass from GPU to GPU"


def test_a_call_of_the_host_is_as_fitted_to_a_platform_and_given_figures_are_above_it() -> None:
    fitted = platform("rtx-2080-ti-server").operation_s
    assert fitted is not None
    spec = make_scenario(dict(CLUSTER), {"dataset": "reddit-train"}, {"name": "full-graph"}).cluster
    assert resolve_machine(spec).host.operation_s == fitted
    given = {**CLUSTER, "figures": "generic-16.operation_s=1ms"}
    spec = make_scenario(given, {"dataset": "reddit-train"}, {"name": "full-graph"}).cluster
    assert resolve_machine(spec).host.operation_s.value == pytest.approx(1e-3)


def test_a_platform_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    text = (FOLDER / "rtx-2080-ti-server.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    spec = make_scenario(
        {**CLUSTER, "platform": str(path)}, {"dataset": "reddit-train"}, {"name": "full-graph"}
    ).cluster
    before = resolve_machine(spec).platform
    assert resolve_machine(spec).platform is before
    path.write_text(f"# looked at again\n{text}", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    after = resolve_machine(spec).platform
    assert after == before
    assert after is not before


def test_drawn_edges_cannot_be_aggregated_before() -> None:
    scenario = make_scenario(dict(CLUSTER), {"dataset": "reddit-train", "preaggregate": True}, {"name": "psc-gcn"})
    with pytest.raises(ScenarioError, match=r"preaggregate: true is not allowed with method.epsilon 0\.1"):
        simulate_scenario(scenario, open_source(scenario))


def test_workers_on_cores_have_no_dense_layers(tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    file = measured_file(tmp_path, graph, 2, device={"kind": "cpu", "name": "a core"})
    cluster = {"gpus": 2, "gpus_per_server": 2, "device": "cpu-core", "measured_compute": str(file)}
    scenario = make_scenario(cluster, {"graph": str(graph), "dense_layers": 1}, {"name": "full-graph"})
    with pytest.raises(ScenarioError, match=r"dense_layers: 1 is not what .* has measured: 0"):
        simulate_scenario(scenario, open_source(scenario))
