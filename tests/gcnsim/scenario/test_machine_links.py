"""What a scenario's cluster may have besides: it changes links, routes and ops, and nothing where it is not asked."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

import gcnsim
from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.hardware import device, host, link, platform
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.scenario.machine import refuse_no_effect, resolve_machine
from gcnsim.simulation import Result, link_units, simulate_scenario
from gcnsim.timeline import OpKind


def scenario(method: str = "full-graph", **cluster: Any) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "25Gbps"} | cluster
    requested = {"schema": SCHEMA, "cluster": given, "method": {"name": method}, "run": {"iterations": 4}}
    # One order of the parts, so that machines differ in nothing else.
    return from_mapping(requested | {"partition": {"placement": "as-numbered"}}, "test")


def ran(method: str = "full-graph", **cluster: Any) -> Result:
    return simulate_scenario(scenario(method, **cluster))


SETTINGS: dict[str, dict[str, Any]] = {
    "nvlink": {"nvlink": "300GB/s"},
    "direct": {"transport": "direct"},
    "gpudirect": {"gpudirect": True},
    "serial": {"transfers": "serial"},
    "switch": {"pcie_sharing": "switch"},
    "racks": {"servers_per_rack": 1, "oversubscription": 3},
    "memory": {"host_memory": "4GB/s"},
    "devices": {"devices": "t4,v100-16"},
    "tree": {"allreduce": "tree"},
    "sockets": {"sockets": "cores"},
    "beside": {"rate_beside_copies": "68%"},
    "released": {"implementation": "released"},
}


@pytest.mark.parametrize("question", SETTINGS.values(), ids=SETTINGS)
def test_what_is_asked_is_written_read_again_and_simulated_within_its_bounds(question: dict[str, Any]) -> None:
    given = scenario("pipegcn", **question)
    assert from_mapping(to_mapping(given), "again") == given
    assert scenario_hash(given) != scenario_hash(scenario("pipegcn"))
    result = simulate_scenario(given)
    assert result.bounds.lower_s <= result.metrics.iteration_s * 1.005
    assert result.metrics.iteration_s <= result.bounds.upper_s * 1.005


def test_a_scenario_that_asks_for_nothing_is_the_one_it_was() -> None:
    written = to_mapping(scenario())["cluster"]
    assert not set(written) & {"devices", "nvlink", "transport", "gpudirect", "transfers", "host_memory"}
    same: dict[str, Any] = {
        "transport": None,
        "nvlink": None,
        "transfers": "concurrent",
        "pcie_sharing": "none",
        "gpudirect": None,
        "allreduce": "ring",
        "sockets": "free",
        "implementation": "lean",
    }
    assert scenario_hash(scenario(**same)) == scenario_hash(scenario())


def test_rows_on_a_direct_path_are_not_copied() -> None:
    direct, staged = (ran(transport=text).run.schedule for text in ("direct", "staged"))
    assert not {op.kind for op in direct.ops} & {OpKind.D2H, OpKind.H2D}
    moved = [sum(run.demand[:, op.index].sum() for op in run.ops if op.kind is OpKind.WIRE) for run in (direct, staged)]
    assert moved[0] == moved[1] > 0


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "bns-gcn", "cagnet-1d", "sancus", "distdgl"])
def test_every_method_that_reduces_has_the_all_reduce_asked_for(name: str) -> None:
    streams = []
    for requested in ({}, SETTINGS["tree"]):
        schedule = ran(name, **requested).run.schedule
        sums = {schedule.streams[op.stream].name for op in schedule.ops if op.kind is OpKind.ALLREDUCE}
        streams.append(sums & {"reduce.ring", "reduce.tree"})
    assert streams == [{"reduce.ring"}, {"reduce.tree"}]


def test_sockets_matter_where_the_network_is_faster_than_a_core() -> None:
    for bandwidth, least, most in (("25Gbps", -1e-3, 1e-3), ("400Gbps", 0.01, 0.2)):
        # The host side of a worker, which is slower than such a network too, is left out.
        question: dict[str, Any] = {
            "transport": "staged",
            "gpus_per_server": 1,
            "figures": "generic-16.staging_bandwidth=100GB/s",
        }
        free, cores = (ran(bandwidth=bandwidth, sockets=text, **question) for text in ("free", "cores"))
        assert least < cores.metrics.iteration_s / free.metrics.iteration_s - 1.0 < most
    units = link_units(cores.run, 2)
    assert units["cpu0"] > 0.0
    assert link_units(free.run, 2)["cpu0"] == 0.0
    # Each byte between workers at both of its ends, each call too.
    socket = host("generic-16").socket_bandwidth.value
    moved = sum(value for name, value in units.items() if name.endswith(".tx") or name.startswith("memory"))
    on_cores = sum(value for name, value in units.items() if name.startswith("cpu"))
    assert on_cores == pytest.approx(2 * moved / socket, rel=0.05)


def test_sockets_and_samplers_take_cores_from_each_other() -> None:
    schedule = ran("psc-gcn", sockets="cores").run.schedule
    on_cores = {op.kind for op in schedule.ops if op.route and schedule.link_kinds[op.route[0]] == "cpu"}
    assert on_cores == {OpKind.SAMPLE, OpKind.INDEX, OpKind.WIRE, OpKind.ALLREDUCE}


def test_compute_beside_copies_is_slower_as_asked_and_only_where_it_is_beside() -> None:
    paces = [
        ran("pipegcn", **requested).metrics for requested in ({}, {"rate_beside_copies": "100%"}, SETTINGS["beside"])
    ]
    assert paces[0] == paces[1]
    # Transfers take part of the iteration, so kernels are slower by part of 1 / 68 %.
    assert 1.0 < paces[2].compute_s / paces[0].compute_s <= 1 / 0.68 + 1e-9
    assert ran(**SETTINGS["beside"]).metrics == ran().metrics, "nothing is beside in a synchronous method"


def test_released_block_rows_go_column_by_column_and_swapping_knows_no_calls() -> None:
    lean, released = (ran("cagnet-1d", implementation=text).metrics for text in ("lean", "released"))
    assert released.compute_s > 2 * lean.compute_s
    assert ran("roc", implementation="released").metrics.compute_s <= ran("roc").metrics.compute_s


def test_what_is_asked_goes_before_what_a_platform_says() -> None:
    fitted = scenario(platform="psc-gcn-t4").cluster
    requested = scenario(platform="psc-gcn-t4", rate_beside_copies="90%").cluster
    assert resolve_machine(fitted).rate_beside_copies == platform("psc-gcn-t4").rate_beside_copies.value
    assert resolve_machine(requested).rate_beside_copies == 0.9


def test_nvlink_takes_the_rows_within_a_server_off_pcie() -> None:
    runs = [ran(transport="staged", **requested).run for requested in ({}, SETTINGS["nvlink"])]
    before, after = (link_units(run, 2) for run in runs)
    assert after["pcie0.up"] < before["pcie0.up"]
    assert after["nic0.tx"] == before["nic0.tx"]
    assert after["nvlink0.tx"] > 0
    assert after["memory0"] < before["memory0"]


def test_nvlink_offers_the_share_of_the_catalogue() -> None:
    cluster = resolve_machine(scenario(nvlink="300GB/s").cluster).topology
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


@pytest.mark.parametrize("method", ["cagnet-1d", "cagnet-1.5d", "sancus"])
def test_block_rows_are_multiplied_at_the_rate_of_their_own_server(method: str) -> None:
    slow, fast, mixed = (
        ran(method, **requested) for requested in ({"device": "t4"}, {"device": "v100-16"}, SETTINGS["devices"])
    )

    def multiplying(result: Result, rank: int) -> float:
        ops = [op.index for op in result.run.schedule.ops if op.worker == rank and op.kind is OpKind.AGGREGATE]
        return float(result.run.schedule.demand[0, ops].sum())

    assert multiplying(mixed, 0) == multiplying(slow, 0) > multiplying(fast, 0)
    assert multiplying(mixed, 3) == multiplying(fast, 3) < multiplying(slow, 3)
    assert fast.metrics.iteration_s < mixed.metrics.iteration_s < slow.metrics.iteration_s


def test_the_last_device_named_is_that_of_all_further_servers() -> None:
    named = [ran(devices=names).metrics.iteration_s for names in ("v100-16", "v100-16,v100-16")]
    assert named[0] == named[1] == ran(device="v100-16").metrics.iteration_s


def test_gpus_of_unequal_servers_have_the_links_of_their_device() -> None:
    cluster = resolve_machine(scenario(devices="t4,a100-40").cluster).topology
    found = [cluster.links[cluster.to_host(rank)[0]].spec.capacity for rank in (0, 3)]
    assert found == [link(device(name).link).bandwidth.value * 0.78 for name in ("t4", "a100-40")]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"nvlink": "0GB/s"}, "is not allowed; a bandwidth"),
        ({"nvlink": 300}, "cluster.nvlink: 300 has no unit"),
        ({"oversubscription": 4}, "cluster.oversubscription: 4 needs cluster.servers_per_rack"),
        ({"servers_per_rack": 2, "oversubscription": 0.5}, "cluster.oversubscription: 0.5 is not allowed"),
        ({"gpus_per_switch": 4}, "cluster.gpus_per_switch: 4 needs cluster.pcie_sharing: switch"),
        ({"nvlink_gpus": 2}, "cluster.nvlink_gpus: 2 needs cluster.nvlink"),
        ({"nvlink": "50GB/s", "nvlink_gpus": 1}, "cluster.nvlink_gpus: 1 is not allowed"),
        ({"transport": "rdma"}, "cluster.transport: unknown transport 'rdma'"),
        ({"devices": "t4,t4,t4"}, "cluster.devices: 3 devices for 2 servers"),
        ({"devices": []}, "cluster.devices: nothing is named"),
        ({"devices": "t4,cpu-core"}, "cluster.devices: cpu-core is not allowed"),
        ({"devices": "t4", "platform": "psc-gcn-t4"}, "cluster.devices: not allowed with cluster.platform"),
        ({"sockets": "cores", "transport": "direct"}, "cluster.sockets: cores is not allowed with transport: direct"),
        ({"rate_beside_copies": "0%"}, "cluster.rate_beside_copies: 0"),
        ({"device": "a100-40", "devices": "t4,v100-16"}, "cluster.device: a100-40 is not the first of cluster.devices"),
        ({"gpudirect": True, "transport": "staged"}, "cluster.transport: staged is not allowed with cluster.gpudirect"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(question: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        ran(**question)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"nvlink": "300GB/s"}, "cluster.device: cpu-core has no nvlink"),
        ({"transfers": "serial"}, "modelled for GPUs only"),
        ({"implementation": "released"}, "modelled for GPUs only"),
        ({"allreduce": "tree"}, "modelled for GPUs only"),
        ({"sockets": "cores"}, "modelled for GPUs only"),
        ({"rate_beside_copies": "50%"}, "modelled for GPUs only"),
    ],
    ids=str,
)
def test_paths_that_cores_do_not_have_are_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        assert resolve_machine(scenario(device="cpu-core", **question).cluster).topology


@pytest.mark.parametrize("question", [{"device": "t4"}, {"transport": "direct", "gpudirect": True}])
def test_what_agrees_is_not_refused(question: dict[str, Any]) -> None:
    found = scenario(**({"devices": "t4,v100-16"} | question)).cluster
    assert found.devices == ("t4", "v100-16")
    assert {name: getattr(found, name) for name in question} == question


@pytest.mark.parametrize("racks", [2, 1000])
def test_racks_that_hold_every_server_are_refused_where_no_machine_asked_for_has_more(racks: int) -> None:
    cluster = {"gpus": 4, "servers_per_rack": racks, "oversubscription": 1000}
    requested = {"schema": SCHEMA, "cluster": cluster, "method": {"name": "full-graph"}, "run": {"iterations": 2}}
    with pytest.raises(
        GcnsimError, match=f"servers_per_rack: {racks} is all of 2 servers.*allowed: less than 2, or null"
    ):
        gcnsim.simulate(requested)
    given = [f"cluster.servers_per_rack={racks}", "cluster.oversubscription=4"]
    with pytest.raises(GcnsimError, match=r"servers_per_rack: \d+ is all of 2 servers"):
        gcnsim.what_if(gpus=[2, 4], method="full-graph", iterations=2, overrides=given, processes=1)
    with nullcontext() if racks == 2 else pytest.raises(GcnsimError):
        refuse_no_effect([scenario(gpus=gpus, servers_per_rack=racks).cluster for gpus in (4, 8)])


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("distdgl", "devices"),
        ("cagnet-1d", "serial"),
        ("roc", "nvlink"),
        ("sancus", "sockets"),
        ("distdgl", "sockets"),
        ("cagnet-1d", "beside"),
        ("roc", "tree"),
    ],
)
def test_a_method_that_has_no_such_path_says_which_have(method: str, name: str) -> None:
    with pytest.raises(GcnsimError, match=f"not modelled with {method}; methods with it: full-graph"):
        ran(method, **SETTINGS[name])
