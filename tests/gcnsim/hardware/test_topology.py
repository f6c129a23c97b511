"""Links: networks, names, between GPUs, and the topology of servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim import hardware
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.hardware import NETWORK
from gcnsim.hardware.link_specs import LinkName, LinkSpec, Paths
from gcnsim.hardware.topology import Cluster, build_cluster

PCIE, NIC = LinkSpec(12e9, 1e-5, 1e-5), LinkSpec(1e9, 5e-5, 2e-5)
MEMORY, CORES = LinkSpec(10e9, 1e-6, 1e-6), LinkSpec(16.0)


def cluster(gpus: int = 5, per_server: int = 2) -> Cluster:
    return build_cluster(gpus=gpus, gpus_per_server=per_server, pcie=PCIE, nic=NIC, memory=MEMORY, cores=CORES)


def names(found: Cluster, route: tuple[int, ...]) -> list[str]:
    return [found.links[link].name for link in route]


def test_ranks_fill_the_servers_in_order_and_the_last_may_hold_fewer() -> None:
    found = cluster()
    assert found.server_of == (0, 0, 1, 1, 2)
    assert (found.gpus, found.servers) == (5, 3)


def test_every_server_has_its_links_and_every_gpu_two_directions() -> None:
    found = cluster()
    kinds = [link.kind for link in found.links]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"nic": 6, "memory": 3, "cpu": 3, "pcie": 10}
    assert len({link.name for link in found.links}) == len(found.links)


def test_routes() -> None:
    found = cluster()
    assert names(found, found.to_host(3)) == ["pcie3.up"]
    assert names(found, found.to_device(3)) == ["pcie3.down"]
    assert names(found, found.between(0, 1)) == ["memory0"]
    assert names(found, found.between(0, 4)) == ["nic0.tx", "nic2.rx"]
    assert names(found, found.between(4, 0)) == ["nic2.tx", "nic0.rx"]
    assert names(found, found.cores(2)) == names(found, found.cores(3)) == ["cpu1"]


def test_both_gpus_of_a_server_share_its_nic() -> None:
    found = cluster()
    assert found.between(0, 2) == found.between(1, 3)


def test_the_network_latency_counts_once_per_message() -> None:
    found = cluster()
    assert found.latency(found.between(0, 2)) == NIC.latency_s
    assert found.latency(found.between(0, 1)) == MEMORY.latency_s
    assert found.latency(found.to_host(0)) == PCIE.latency_s


def test_one_call_starts_all_links_of_a_route() -> None:
    found = cluster()
    way = found.to_host(0) + found.between(0, 2) + found.to_device(2)
    assert found.startup(way) == max(PCIE.startup_s, NIC.startup_s) > 0
    delays = [spec.latency_s - spec.startup_s for spec in (PCIE, NIC, PCIE)]
    assert found.latency(way) == pytest.approx(sum(delays) + found.startup(way))
    assert found.startup(()) == found.latency(()) == 0.0


def test_unconnected_devices_have_no_route() -> None:
    with pytest.raises(ScenarioError, match="no path from gpu0 to cores0"):
        cluster().route("gpu0", "cores0")
    with pytest.raises(ScenarioError, match="no path from gpu0 to gpu9"):
        cluster().route("gpu0", "gpu9")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ndr400", "infiniband-ndr"),
        ("hdr200", "infiniband-hdr"),
        ("ib-hdr", "infiniband-hdr"),
        ("EDR", "infiniband-edr"),
    ],
)
def test_a_generation_suggests_its_network(text: str, meant: str) -> None:
    with pytest.raises(ScenarioError, match=f"nor a network; did you mean '{meant}'. known: efa, "):
        NETWORK.read(text, "--bandwidth")


@pytest.mark.parametrize("text", ["HDR100", "ndr200", "FDR"])
def test_another_rate_or_generation_suggests_no_network(text: str) -> None:
    with pytest.raises(ScenarioError, match="nor a network; known: efa, "):
        NETWORK.read(text, "--bandwidth")


SPEC = LinkSpec(1e9)


def everything() -> Cluster:
    """Eight GPUs in two servers and two racks, with every path that there is."""
    paths = Paths(nvlink=SPEC, gpus_per_switch=2, servers_per_rack=1, host_memory=SPEC)
    return build_cluster(
        gpus=8, gpus_per_server=4, pcie=SPEC, nic=SPEC, memory=SPEC, cores=SPEC, staging=SPEC, paths=paths
    )


def read(name: str) -> LinkName:
    found = LinkName.of(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "server", "worker", "inside", "text"),
    [
        ("nic3.rx", 3, None, 3, "NIC of server 3"),
        ("pcie-switch1.0.up", 1, None, 1, "PCIe switch 0 of server 1"),
        ("dram2", 2, None, 2, "host memory of server 2"),
        ("staging6", None, 6, 1, "host memory copies of worker 6"),
        ("pcie5.down", None, 5, 1, "PCIe of worker 5"),
        ("nvlink3.tx", None, 3, 0, "NVLink of worker 3"),
        ("rack1.up", None, None, None, "uplink of rack 1"),
        ("cpu0", 0, None, 0, "CPU cores of server 0"),
    ],
)
def test_whose_a_link_is(name: str, server: int | None, worker: int | None, inside: int | None, text: str) -> None:
    link_name = read(name)
    assert (link_name.of_server, link_name.of_worker, link_name.in_server(4), link_name.text) == (
        server,
        worker,
        inside,
        text,
    )


@pytest.mark.parametrize("name", ["", "nic", "core5", "nic0 tx", "nic0.tx.1", "Nic0.tx"])
def test_what_no_cluster_names_is_unknown(name: str) -> None:
    assert LinkName.of(name) is None


WITH_NVLINK = {"p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"}
WITH_NVLINK |= {"a2-highgpu-8g", "Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4"}
WITH_NVLINK |= {"dgx-1-v100", "dgx-a100-320", "dgx-a100", "dgx-station-a100", "dgx-h100", "dgx-h200", "dgx-b200"}
WITH_NVLINK |= {
    "dgx-1-p100",
    "dgx-b300",
    "gb200-nvl72-tray",
    "hgx-h20-8",
    "hgx-h100-8",
    "server-4x-a100",
    "server-8x-mi300x",
}


def test_the_instances_with_nvlink_are_those_whose_makers_say_so() -> None:
    found = {name for name in hardware.hosts() if hardware.host(name).nvlink is not None}
    assert found == WITH_NVLINK


@pytest.mark.parametrize("name", sorted(WITH_NVLINK))
def test_a_host_has_no_faster_nvlink_than_its_device(name: str) -> None:
    host = hardware.host(name)
    assert host.device is not None
    device = hardware.device(host.device)
    assert host.nvlink is not None
    assert device.nvlink is not None
    assert host.nvlink.value <= device.nvlink.value
    if device.nvlink_generation is None:
        assert host.nvlink_generation is None, "Infinity Fabric"
        return
    assert host.nvlink_generation is not None
    assert host.nvlink_generation.value == device.nvlink_generation.value


@pytest.mark.parametrize(
    ("name", "rate", "generation"),
    [
        ("p100", 80e9, 1),
        ("v100-16", 150e9, 2),
        ("a100-40", 300e9, 3),
        ("a100-80", 300e9, 3),
        ("h100", 450e9, 4),
        ("h200", 450e9, 4),
        ("gh200", 450e9, 4),
        ("b200", 900e9, 5),
        ("b300", 900e9, 5),
    ],
)
def test_rates_are_of_one_direction(name: str, rate: float, generation: int) -> None:
    device = hardware.device(name)
    assert device.nvlink is not None
    assert device.nvlink_generation is not None
    assert (device.nvlink.value, device.nvlink_generation.value) == (rate, generation)


@pytest.mark.parametrize(
    "name", ["t4", "a10g", "l4", "l40s", "rtx-4090", "m40", "p100-pcie", "rtx-a6000", "h100-nvl", "mi210"]
)
def test_cards_have_no_nvlink(name: str) -> None:
    assert hardware.device(name).nvlink is None


def test_adapters_together_are_the_network_of_the_instance() -> None:
    hosts = {name: hardware.host(name) for name in ("p4d.24xlarge", "p5.48xlarge", "Standard_ND96asr_v4", "dgx-h100")}
    each = {name: host.nic.value / host.nics.value for name, host in hosts.items() if host.nic and host.nics}
    assert each == {"p4d.24xlarge": 12.5e9, "p5.48xlarge": 12.5e9, "Standard_ND96asr_v4": 25e9, "dgx-h100": 50e9}
    assert all(host.gpudirect is not None and host.gpudirect.value for host in hosts.values())
    assert hardware.host("g5.48xlarge").gpudirect is None


@pytest.mark.parametrize(
    ("name", "gbps"),
    [
        ("infiniband-edr", 100),
        ("infiniband-hdr", 200),
        ("infiniband-ndr", 400),
        ("roce-100g", 100),
        ("roce-200g", 200),
        ("roce-400g", 400),
        ("efa", 100),
        ("ethernet-200g", 200),
        ("ethernet-400g", 400),
    ],
)
def test_links_of_data_centers_are_there(name: str, gbps: int) -> None:
    assert hardware.link(name).bandwidth.value * 8 / 1e9 == gbps


CARD = """title: "A card"
kind: gpu
link: pcie4-x16
memory: {value: 24GB, source: datasheet, reference: sheet, date: 2024}
memory_bandwidth: {value: 900GB/s, source: datasheet, reference: sheet, date: 2024}
flops_fp32: {value: 30TFLOP/s, source: datasheet, reference: sheet, date: 2024}
"""


def test_a_device_file_may_say_what_its_gpus_have_between_them(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    more = "nvlink: {value: 56.25GB/s, source: datasheet, reference: sheet, date: 2024}\n"
    more += "peer_to_peer: {value: false, source: datasheet, reference: sheet, date: 2024}\n"
    path.write_text(CARD + more)
    profile = hardware.device(str(path))
    assert profile.nvlink is not None
    assert profile.nvlink.value == 56.25e9
    assert profile.peer_to_peer is not None
    assert not profile.peer_to_peer.value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("peer_to_peer: {value: maybe, source: datasheet, reference: sheet, date: 2024}", "is not true or false"),
        ("peer_to_peer: true", "is not {value: true or false"),
        ("peer_to_peer: {value: true, source: hearsay, reference: sheet, date: 2024}", "unknown source"),
        ("nvlink: {value: 0GB/s, source: datasheet, reference: sheet, date: 2024}", "above 0"),
    ],
)
def test_what_a_device_file_says_wrong_is_refused_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(CARD + line + "\n")
    with pytest.raises(FileError, match=r"card\.yaml, ") as caught:
        hardware.device(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
