from __future__ import annotations

from typing import Any

import pytest

from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import from_mapping
from gcnsim.simulation import Result
from gcnsim.simulation.diagnosis import utilization_of


@pytest.fixture(scope="module")
def result() -> Result:
    return simulated(gpus=4)


def simulated(**cluster: Any) -> Result:
    requested = {"workload": {"dataset": "reddit"}, "run": {"iterations": 4}, "method": {"name": "full-graph"}}
    machine = {"cluster": {"bandwidth": "5Gbps"} | cluster}
    scenario = from_mapping({"schema": "gcnsim.scenario/1", **requested, **machine}, "test")
    return StudyCache(scenario, 1).result(scenario)


def test_workers_are_as_busy_as_the_metrics_say(result: Result) -> None:
    workers = utilization_of(result).workers
    assert [worker.worker for worker in workers] == [0, 1, 2, 3]
    assert [worker.server for worker in workers] == [0, 0, 1, 1]
    assert sum(worker.gpu for worker in workers) / 4 == pytest.approx(result.metrics.gpu_utilization)
    slowest, metrics = workers[result.metrics.worker], result.metrics
    assert slowest.waiting == pytest.approx(metrics.exposed_comm_s / metrics.iteration_s)
    shares = [getattr(worker, name) for worker in workers for name in ("gpu", "sampler", "copies", "reduce", "waiting")]
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_the_busiest_nic_is_that_of_the_metrics(result: Result) -> None:
    links = utilization_of(result).links
    nics = {link.name: link for link in links if link.kind == "nic"}
    assert set(nics) == {f"nic{server}.{way}" for server in (0, 1) for way in ("tx", "rx")}
    assert max(nic.utilization for nic in nics.values()) == pytest.approx(result.metrics.nic_utilization)
    assert nics["nic1.rx"].server == 1
    assert {link.name: link.server for link in links if link.kind == "pcie"}["pcie3.up"] == 1
    assert all(0.0 < link.utilization <= 1.0 for link in links)


def test_only_uplinks_of_racks_are_in_no_server() -> None:
    links = utilization_of(
        simulated(
            gpus=8,
            host_memory="20GB/s",
            servers_per_rack=2,
            pcie_sharing="switch",
            gpus_per_switch=1,
            gpus_per_server=2,
        )
    ).links
    servers = {link.name: link.server for link in links}
    assert servers["dram3"] == 3
    assert servers["pcie7.up"] == servers["pcie-switch3.0.up"] == 3
    assert {name for name, server in servers.items() if server is None} == {
        f"rack{rack}.{way}" for rack in (0, 1) for way in ("up", "down")
    }


def test_what_the_host_side_of_a_worker_moves_is_in_its_server() -> None:
    machine = {"device": "rtx-2080-ti", "platform": "rtx-2080-ti-server", "gpus_per_server": 2}
    links = utilization_of(simulated(gpus=4, **machine)).links
    servers = {link.name: link.server for link in links if link.name.startswith("staging")}
    assert servers == {"staging0": 0, "staging1": 0, "staging2": 1, "staging3": 1}
