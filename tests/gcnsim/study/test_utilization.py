from __future__ import annotations

import pytest

from gcnsim.planning import Workshop
from gcnsim.scenario import from_mapping
from gcnsim.study import Result, utilization_of


@pytest.fixture(scope="module")
def result() -> Result:
    asked = {"cluster": {"gpus": 4, "bandwidth": "5Gbps"}, "workload": {"dataset": "reddit"}, "run": {"iterations": 4}}
    scenario = from_mapping({"schema": "gcnsim.scenario/1", **asked, "method": {"name": "full-graph"}}, "test")
    return Workshop(scenario, 1).result(scenario)


def test_workers_are_as_busy_as_the_metrics_say(result: Result) -> None:
    workers = utilization_of(result)["workers"]
    assert [each["worker"] for each in workers] == [0, 1, 2, 3]
    assert [each["server"] for each in workers] == [0, 0, 1, 1]
    assert sum(each["gpu"] for each in workers) / 4 == pytest.approx(result.metrics.gpu_utilization)
    slowest, metrics = workers[result.metrics.worker], result.metrics
    assert slowest["waiting"] == pytest.approx(metrics.exposed_comm_s / metrics.iteration_s)
    shares = [each[name] for each in workers for name in ("gpu", "sampler", "copies", "reduce", "waiting")]
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_the_busiest_nic_is_that_of_the_metrics(result: Result) -> None:
    links = utilization_of(result)["links"]
    nics = {each["name"]: each for each in links if each["kind"] == "nic"}
    assert set(nics) == {f"nic{server}.{way}" for server in (0, 1) for way in ("tx", "rx")}
    assert max(each["utilization"] for each in nics.values()) == pytest.approx(result.metrics.nic_utilization)
    assert nics["nic1.rx"]["server"] == 1
    assert {each["name"]: each["server"] for each in links if each["kind"] == "pcie"}["pcie3.up"] == 1
    assert all(0.0 < each["utilization"] <= 1.0 for each in links)
