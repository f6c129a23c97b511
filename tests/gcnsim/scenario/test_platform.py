"""A platform's fitted figures: what a cache holds, what the host side of a worker limits, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, Figure, platform
from gcnsim.hardware.catalogue import FOLDER
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.machine_links import cached_share, with_l2_cache
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.workload.reach import DEGREE_SPREAD
from tests.cases import Case
from tests.measured_files import measured_file, write_graph

CLUSTER = {"gpus": 2, "gpus_per_server": 2, "device": "rtx-2080-ti", "platform": "rtx-2080-ti-server"}


def make_scenario(cluster: dict[str, object], workload: dict[str, object], method: dict[str, object]) -> Scenario:
    return from_mapping({"schema": SCHEMA, "cluster": cluster, "workload": workload, "method": method}, "test")


def iteration_s(workload: dict[str, object], method: str = "full-graph") -> float:
    scenario = make_scenario(dict(CLUSTER), {"dataset": "reddit-train", **workload}, {"name": method})
    return simulate_scenario(scenario, open_source(scenario)).metrics.iteration_s


def test_a_cache_of_all_columns_holds_all_and_of_equal_columns_its_share() -> None:
    assert cached_share(100.0, 100.0, 1.2) == 1.0
    assert cached_share(25.0, 100.0, 0.0) == pytest.approx(0.25)
    assert cached_share(25.0, 100.0, 1.0) > 0.5
    assert cached_share(1.0, 1e9, 1.0) < 1e-5
    sizes = np.array([25.0, 100.0])
    assert cached_share(sizes, 100.0, 1.0).tolist() == [cached_share(25.0, 100.0, 1.0), 1.0], "an assumed size, drawn"


def test_a_sparse_sum_reads_from_memory_the_rows_that_the_cache_does_not_hold(
    facts: Callable[..., Case], gpu: DeviceProfile
) -> None:
    counts, found = facts(inner=100_000).counts, platform("rtx-2080-ti-server")
    columns = float(np.mean(counts.inner_nodes) + np.mean(counts.boundary_nodes))
    cached = replace(gpu, l2_cache=Figure(5.5e6, "given", "", ""), cache_rate=Figure(2.0, "given", "", ""))
    held = cached_share(5.5e6 / 128, columns, DEGREE_SPREAD)
    assert 0.0 < held < 1.0
    for fitted, efficiency in ((found, found.spmm_efficiency), (None, gpu.spmm_efficiency)):
        made = with_l2_cache(cached, fitted, None, counts)
        assert made.spmm_efficiency.value == pytest.approx(1.0 / ((1.0 - held) / efficiency.value + 1.0 / 2.0))
    assert with_l2_cache(gpu, found, None, counts) is gpu, "its cache is not known"


def test_a_cache_that_holds_all_rows_is_faster_than_memory(facts: Callable[..., Case], gpu: DeviceProfile) -> None:
    """Reddit's columns fit the 40 MB of an A100: more than the DRAM's bandwidth is read of them."""
    cached = replace(gpu, l2_cache=Figure(40e6, "given", "", ""), cache_rate=Figure(2.2, "given", "", ""))
    made = with_l2_cache(cached, None, None, facts(inner=1_000).counts)
    assert made.spmm_efficiency.value == pytest.approx(2.2)


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
