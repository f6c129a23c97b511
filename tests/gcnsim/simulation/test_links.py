"""Links of a run: time on the wire, payload, use."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.api import simulate
from gcnsim.core.errors import ScenarioError
from gcnsim.planning.measured import beside_measured, read_measurement
from gcnsim.planning.study import Studies
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.simulation import Result, simulate_scenario
from gcnsim.simulation.diagnosis import impossible, impossible_time, least_wire_s, utilization_of


def make_scenario(dataset: str = "reddit", **cluster: object) -> Scenario:
    question = {
        "schema": SCHEMA,
        "cluster": {"gpus": 4, "gpus_per_server": 2, "bandwidth": "1Gbps", **cluster},
        "workload": {"dataset": dataset},
        "method": {"name": "pipegcn"},
        "run": {"iterations": 2},
    }
    return from_mapping(question, "test")


def test_the_busiest_card_moves_its_bytes_at_its_raw_rate() -> None:
    result = simulate_scenario(make_scenario())
    units = {name: 0.0 for name in result.run.schedule.link_names if name.startswith("nic")}
    columns = result.run.schedule.columns
    for op, link in zip(*columns.crossings, strict=True):
        name = result.run.schedule.link_names[link]
        if name in units:
            units[name] += float(result.run.schedule.demand[:, op].mean())
    assert least_wire_s(result) == pytest.approx(max(units.values()) / 1.25e8, rel=1e-9)
    assert least_wire_s(simulate_scenario(make_scenario(gpus_per_server=4))) == 0.0


def test_a_quarter_less_is_allowed_and_the_fewest_rows_count() -> None:
    assert impossible_time(1.0, 0.75, 1.25e8) is None
    text = impossible_time(1.0, 0.74, 1.25e8)
    assert text is not None
    assert "its bytes need 1.00 s on the busiest network card" in text
    result = simulate_scenario(make_scenario())
    half = 0.5 * least_wire_s(result)
    assert impossible(result, half) is not None
    assert impossible(result, half, 0.6) is None


def test_a_time_that_a_smaller_boundary_allows_is_not_called_impossible() -> None:
    """Of a graph that is known by its sizes the boundary may be little more than half of the likely one."""
    for dataset, share, wrong in (("ogbn-arxiv", 0.5, False), ("ogbn-arxiv", 0.1, True), ("reddit", 0.5, True)):
        scenario = make_scenario(dataset)
        shop = Studies(scenario)
        row = shop.candidate(scenario)
        seconds = share * least_wire_s(row.result)
        (content,) = beside_measured(shop, [read_measurement(f"{seconds * 1e3:.6f}ms")], [row])
        assert ("impossible as described" in content.text) is wrong, (dataset, share)


REDDIT: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 4, "bandwidth": "10Gbps"},
    "workload": {"dataset": "reddit"},
    "run": {"iterations": 4},
}


def result_with(payload: str, name: str = "full-graph", **cluster: Any) -> dict[str, Any]:
    given = {"cluster": REDDIT["cluster"] | {"payload": payload} | cluster, "method": {"name": name}}
    return dict(simulate(REDDIT | given).payload)


def test_fewer_bits_are_fewer_bytes_on_every_path() -> None:
    whole, half = result_with("fp32"), result_with("fp16")
    for name in ("nic0.tx", "pcie0.up", "pcie3.down"):
        ratio = half["links"][name]["bytes"] / whole["links"][name]["bytes"]
        assert 0.5 <= ratio < 0.51, "all but the weights' gradients is halved"
    assert half["result"]["iteration_s"] < whole["result"]["iteration_s"]
    assert half["result"]["compute_s"] == pytest.approx(whole["result"]["compute_s"], rel=1e-9)


def test_fp32_changes_no_question() -> None:
    plain = from_mapping(REDDIT, "test")
    scenario = from_mapping(REDDIT | {"cluster": REDDIT["cluster"] | {"payload": "fp32"}}, "test")
    assert scenario_hash(plain) == scenario_hash(scenario)
    assert "payload" not in to_mapping(plain)["cluster"]


@pytest.mark.parametrize(
    ("payload", "name", "cluster", "says"),
    [
        ("fp8", "full-graph", {}, "unknown payload 'fp8'"),
        ("int8", "sancus", {}, "not modelled with sancus"),
    ],
)
def test_refused_where_it_is_not_modelled(payload: str, name: str, cluster: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        result_with(payload, name, **cluster)


@pytest.fixture(scope="module")
def result() -> Result:
    return simulated(gpus=4)


def simulated(**cluster: Any) -> Result:
    requested = {"workload": {"dataset": "reddit"}, "run": {"iterations": 4}, "method": {"name": "full-graph"}}
    machine = {"cluster": {"bandwidth": "5Gbps"} | cluster}
    scenario = from_mapping({"schema": "gcnsim.scenario/1", **requested, **machine}, "test")
    return Studies(scenario, 1).result(scenario)


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
