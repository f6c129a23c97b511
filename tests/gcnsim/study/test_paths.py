"""What a scenario's cluster may have besides: it changes links, routes and ops, and nothing where it is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.errors import GcnsimError
from gcnsim.profile import device, link
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.study import Result, link_units, study
from gcnsim.study.machine import machine
from gcnsim.timeline import OpKind


def scenario(method: str = "full-graph", **cluster: Any) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "25Gbps"} | cluster
    asked = {"schema": SCHEMA, "cluster": given, "method": {"name": method}, "run": {"iterations": 4}}
    return from_mapping(asked, "test")


def ran(method: str = "full-graph", **cluster: Any) -> Result:
    return study(scenario(method, **cluster))


ASKED: dict[str, dict[str, Any]] = {
    "nvlink": {"nvlink": "300GB/s"},
    "direct": {"transport": "direct"},
    "gpudirect": {"gpudirect": True},
    "serial": {"transfers": "serial"},
    "switch": {"pcie_sharing": "switch"},
    "racks": {"servers_per_rack": 1, "oversubscription": 3},
    "memory": {"host_memory": "4GB/s"},
    "devices": {"devices": "t4,v100-16"},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_is_asked_is_written_read_again_and_simulated_within_its_bounds(asked: dict[str, Any]) -> None:
    given = scenario("pipegcn", **asked)
    assert from_mapping(to_mapping(given), "again") == given
    assert scenario_hash(given) != scenario_hash(scenario("pipegcn"))
    result = study(given)
    assert result.bounds.lower_s <= result.metrics.iteration_s * 1.005
    assert result.metrics.iteration_s <= result.bounds.upper_s * 1.005


def test_a_scenario_that_asks_for_nothing_is_the_one_it_was() -> None:
    written = to_mapping(scenario())["cluster"]
    assert not set(written) & {"devices", "nvlink", "transport", "gpudirect", "transfers", "host_memory"}
    same: dict[str, Any] = {
        "transport": "staged",
        "transfers": "concurrent",
        "pcie_sharing": "none",
        "gpudirect": False,
    }
    assert scenario_hash(scenario(**same)) == scenario_hash(scenario())


@pytest.mark.parametrize("asked", ["nvlink", "direct", "gpudirect"])
def test_faster_paths_are_never_slower(asked: str) -> None:
    for method in ("full-graph", "pipegcn", "bns-gcn"):
        # Within what a pipeline's window may still drift.
        assert ran(method, **ASKED[asked]).metrics.iteration_s <= ran(method).metrics.iteration_s * 1.001


@pytest.mark.parametrize("asked", ["switch", "racks", "memory"])
def test_narrower_ones_are_never_faster(asked: str) -> None:
    assert ran(**ASKED[asked]).metrics.iteration_s > ran().metrics.iteration_s


def test_rows_on_a_direct_path_are_not_copied() -> None:
    direct, staged = ran(transport="direct").run.schedule, ran().run.schedule
    assert not {op.kind for op in direct.ops} & {OpKind.D2H, OpKind.H2D}
    moved = [sum(run.demand[:, op.index].sum() for op in run.ops if op.kind is OpKind.WIRE) for run in (direct, staged)]
    assert moved[0] == moved[1] > 0


def test_nvlink_takes_the_rows_within_a_server_off_pcie() -> None:
    runs = [ran(**asked).run for asked in ({}, ASKED["nvlink"])]
    before, after = (link_units(run, 2) for run in runs)
    assert after["pcie0.up"] < before["pcie0.up"]
    assert after["nic0.tx"] == before["nic0.tx"]
    assert after["nvlink0.tx"] > 0
    assert after["memory0"] < before["memory0"]


def test_nvlink_offers_the_share_of_the_catalogue() -> None:
    cluster, _, _ = machine(scenario(nvlink="300GB/s").cluster)
    (send, _) = cluster.direct(0, 1) or ()
    assert cluster.links[send].spec.capacity == 300e9 * link("nvlink").efficiency.value


def test_serial_transfers_are_one_stream_per_worker_and_direction() -> None:
    schedule = ran(transfers="serial").run.schedule
    streams = {(op.worker, op.direction, op.stream) for op in schedule.ops if op.kind is OpKind.WIRE}
    assert len(streams) == 4 * 2
    assert ran(transfers="serial").bounds.lower_s > ran().bounds.lower_s


def test_unequal_servers_compute_at_their_own_rate() -> None:
    slow, fast, mixed = (ran(device=name) for name in ("t4", "v100-16", "t4"))
    mixed = ran(devices=["t4", "v100-16"])

    def computing(result: Result, rank: int) -> float:
        ops = [op.index for op in result.run.schedule.ops if op.worker == rank and op.kind is OpKind.UPDATE]
        return float(result.run.schedule.demand[0, ops].sum())

    assert computing(mixed, 0) == computing(slow, 0) > computing(fast, 0)
    assert computing(mixed, 3) == computing(fast, 3) < computing(slow, 3)
    assert mixed.metrics.worker in (0, 1)
    assert fast.metrics.iteration_s < mixed.metrics.iteration_s < slow.metrics.iteration_s
    assert mixed.scenario.cluster.device == "t4"


def test_the_last_device_named_is_that_of_all_further_servers() -> None:
    named = [ran(devices=names).metrics.iteration_s for names in ("v100-16", "v100-16,v100-16")]
    assert named[0] == named[1] == ran(device="v100-16").metrics.iteration_s


def test_gpus_of_unequal_servers_have_the_links_of_their_device() -> None:
    cluster, _, _ = machine(scenario(devices="t4,a100-40").cluster)
    found = [cluster.links[cluster.to_host(rank)[0]].spec.capacity for rank in (0, 3)]
    assert found == [link(device(name).link).bandwidth.value * 0.78 for name in ("t4", "a100-40")]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"nvlink": "0GB/s"}, "is not allowed; a bandwidth"),
        ({"nvlink": 300}, "cluster.nvlink: 300: a bare number"),
        ({"bandwidth": "0Gbps"}, "is not allowed; a bandwidth"),
        ({"host_memory": "0GB/s"}, "cluster.host_memory: 0"),
        ({"oversubscription": 4}, "cluster.oversubscription: 4 needs cluster.servers_per_rack"),
        ({"servers_per_rack": 2, "oversubscription": 0.5}, "cluster.oversubscription: 0.5 is not allowed"),
        ({"gpus_per_switch": 4}, "cluster.gpus_per_switch: 4 needs cluster.pcie_sharing: switch"),
        ({"transport": "rdma"}, "cluster.transport: unknown transport 'rdma'"),
        ({"devices": "t4,t4,t4"}, "cluster.devices: names 3 devices, cluster has 2 server"),
        ({"devices": "t4,t5"}, "cluster.devices: unknown device 't5'"),
        ({"devices": []}, "cluster.devices: nothing is named"),
        ({"devices": "t4,cpu-core"}, "cluster.devices: cpu-core is not allowed"),
        ({"devices": "t4", "platform": "psc-gcn-t4"}, "cluster.devices: not with cluster.platform"),
        ({"device": "cpu-core", "nvlink": "300GB/s"}, "cluster.device: cpu-core has no nvlink"),
        ({"device": "cpu-core", "transfers": "serial"}, "modelled for GPUs only"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        ran(**asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("method", "asked"), [("cagnet-1d", "devices"), ("cagnet-1d", "serial"), ("roc", "nvlink")])
def test_a_method_that_has_no_such_path_says_which_have(method: str, asked: str) -> None:
    with pytest.raises(GcnsimError, match=f"not modelled with {method}; methods with it: full-graph"):
        ran(method, **ASKED[asked])
