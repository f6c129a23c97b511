"""Paths of messages, shared cores, and platforms of papers."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.hardware import devices, platform, platforms
from gcnsim.hardware.catalogue import FOLDER
from gcnsim.hardware.link_specs import LinkSpec, Paths
from gcnsim.hardware.topology import Cluster, build_cluster

PCIE, NIC = LinkSpec(12e9, 1e-5, 1e-5), LinkSpec(1e9, 5e-5, 2e-5)
MEMORY, CORES = LinkSpec(10e9, 1e-6, 1e-6), LinkSpec(16.0)
NVLINK = LinkSpec(100e9, 2e-6, 2e-6)


def cluster(paths: Paths | None = None, gpus: int = 8, per_server: int = 4) -> Cluster:
    return build_cluster(
        gpus=gpus, gpus_per_server=per_server, pcie=PCIE, nic=NIC, memory=MEMORY, cores=CORES, paths=paths
    )


def names(found: Cluster, route: tuple[int, ...] | None) -> list[str]:
    assert route is not None
    return [found.links[link].name for link in route]


def test_without_paths_the_links_are_those_they_were() -> None:
    assert cluster(Paths()) == cluster()
    assert all(cluster().direct(0, peer) is None for peer in range(1, 8))


def test_nvlink_is_a_route_between_the_gpus_of_a_server_alone() -> None:
    found = cluster(Paths(nvlink=NVLINK))
    assert names(found, found.direct(0, 3)) == ["nvlink0.tx", "nvlink3.rx"]
    assert found.direct(0, 4) is None
    assert names(found, found.to_host(0)) == ["pcie0.up"]
    assert found.latency(found.direct(0, 3) or ()) == NVLINK.latency_s


def test_a_direct_transport_passes_all_links_as_one_flow() -> None:
    found = cluster(Paths(direct=True))
    assert names(found, found.direct(0, 1)) == ["pcie0.up", "pcie1.down"]
    assert names(found, found.direct(0, 4)) == ["pcie0.up", "nic0.tx", "nic1.rx", "pcie4.down"]


def test_gpus_under_a_switch_share_its_uplink_and_reach_each_other_below_it() -> None:
    found = cluster(Paths(gpus_per_switch=2, direct=True))
    assert names(found, found.to_host(0)) == ["pcie0.up", "pcie-switch0.0.up"]
    assert names(found, found.to_device(5)) == ["pcie-switch1.0.down", "pcie5.down"]
    assert names(found, found.direct(0, 1)) == ["pcie0.up", "pcie1.down"]
    assert names(found, found.direct(0, 2)) == ["pcie0.up", "pcie-switch0.0.up", "pcie-switch0.1.down", "pcie2.down"]
    assert len({link.name for link in found.links}) == len(found.links)


def test_a_bridge_joins_pairs_and_others_pass_pcie() -> None:
    direct = cluster(Paths(nvlink=NVLINK, nvlink_gpus=2, direct=True))
    assert names(direct, direct.direct(0, 1)) == ["nvlink0.tx", "nvlink1.rx"]
    assert names(direct, direct.direct(4, 5)) == ["nvlink4.tx", "nvlink5.rx"]
    assert names(direct, direct.direct(1, 2)) == ["pcie1.up", "pcie2.down"]
    staged = cluster(Paths(nvlink=NVLINK, nvlink_gpus=2))
    assert names(staged, staged.direct(2, 3)) == ["nvlink2.tx", "nvlink3.rx"]
    assert staged.direct(0, 2) is None
    assert staged.direct(0, 4) is None


def test_racks_share_an_oversubscribed_uplink() -> None:
    found = cluster(Paths(servers_per_rack=2, oversubscription=4.0), gpus=6, per_server=1)
    assert names(found, found.between(0, 1)) == ["nic0.tx", "nic1.rx"]
    assert names(found, found.between(1, 4)) == ["nic1.tx", "rack0.up", "rack2.down", "nic4.rx"]
    uplinks = [link.spec.capacity for link in found.links if link.kind == "rack"]
    assert uplinks == [2 * NIC.capacity / 4.0] * 6
    assert found.latency(found.between(1, 4)) == NIC.latency_s


@pytest.mark.parametrize(("servers", "held"), [(3, [2, 1]), (4, [2, 2]), (5, [2, 2, 1]), (1, [1])])
def test_a_rack_that_is_not_full_has_the_uplink_of_the_servers_it_holds(servers: int, held: list[int]) -> None:
    found = cluster(Paths(servers_per_rack=2, oversubscription=4.0), gpus=servers, per_server=1)
    uplinks = {link.name: link.spec.capacity for link in found.links if link.kind == "rack"}
    expected = {f"rack{rack}.{way}": n * NIC.capacity / 4.0 for rack, n in enumerate(held) for way in ("up", "down")}
    assert uplinks == expected


def test_host_memory_is_passed_by_copies_and_by_the_network_but_not_by_gpudirect() -> None:
    staged = cluster(Paths(host_memory=LinkSpec(5e9)))
    assert names(staged, staged.to_host(0)) == ["pcie0.up", "dram0"]
    assert names(staged, staged.between(0, 1)) == ["memory0", "dram0"]
    assert names(staged, staged.between(0, 4)) == ["nic0.tx", "nic1.rx", "dram0", "dram1"]
    direct = cluster(Paths(host_memory=LinkSpec(5e9), direct=True))
    assert sorted(names(direct, direct.direct(0, 4))) == [
        "dram0",
        "dram1",
        "nic0.tx",
        "nic1.rx",
        "pcie0.up",
        "pcie4.down",
    ]
    beside = cluster(Paths(host_memory=LinkSpec(5e9), gpudirect=True, gpus_per_switch=2))
    assert names(beside, beside.direct(0, 4)) == ["pcie0.up", "nic0.tx", "nic1.rx", "pcie4.down"]
    assert beside.direct(0, 1) is None


@pytest.mark.parametrize("paths", [Paths(direct=True), Paths(gpudirect=True, nvlink=NVLINK, host_memory=LinkSpec(5e9))])
def test_no_route_crosses_a_link_twice_and_both_ways_are_alike(paths: Paths) -> None:
    found = cluster(paths)
    for source in range(8):
        for target in range(8):
            if source != target:
                there, back = found.direct(source, target), found.direct(target, source)
                assert (there is None) == (back is None)
                for route in (there or (), found.between(source, target), found.to_host(source)):
                    assert len(set(route)) == len(route)


def test_gpus_may_have_links_of_their_own() -> None:
    own = [LinkSpec(1e9 * (1 + rank)) for rank in range(4)]
    found = build_cluster(gpus=4, gpus_per_server=2, pcie=own, nic=NIC, memory=MEMORY, cores=CORES)
    assert [found.links[found.to_host(rank)[0]].spec.capacity for rank in range(4)] == [1e9, 2e9, 3e9, 4e9]
    with pytest.raises(ScenarioError, match="4 PCIe links for 3 GPUs"):
        build_cluster(gpus=3, gpus_per_server=2, pcie=own, nic=NIC, memory=MEMORY, cores=CORES)


@pytest.mark.parametrize("capacity", [0.0, -1.0, math.nan])
def test_a_path_without_capacity_is_refused(capacity: float) -> None:
    with pytest.raises(ScenarioError, match="nvlink capacity must be > 0"):
        Paths(nvlink=LinkSpec(capacity))
    with pytest.raises(ScenarioError, match="host_memory capacity must be > 0"):
        Paths(host_memory=LinkSpec(capacity))


@pytest.mark.parametrize("bad", [{"oversubscription": 0.5}, {"servers_per_rack": -1}, {"gpus_per_switch": -1}])
def test_shares_that_cannot_be_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ScenarioError, match="must be at least"):
        Paths(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "paths", [Paths(), Paths(servers_per_rack=3, host_memory=LinkSpec(30e9)), Paths(nvlink=NVLINK)]
)
def test_routes_from_a_server_to_all_others_are_those_of_each_pair(paths: Paths) -> None:
    found = cluster(paths, gpus=20, per_server=2)
    for source, target in itertools.product(range(20), repeat=2):
        ends = dict.fromkeys((found.server_of[source], found.server_of[target]))
        hosts = [f"host{found.server_of[rank]}" for rank in (source, target)]
        own = tuple(found.memories[server] for server in ends) if found.memories else ()
        assert found.between(source, target) == found.route(*hosts) + own


def cluster_of_cores(*, shared: bool) -> Cluster:
    spec = LinkSpec(1e9)
    return build_cluster(
        gpus=6, gpus_per_server=2, pcie=spec, nic=spec, memory=spec, cores=LinkSpec(2.0), shared_cores=shared
    )


def test_there_is_one_cpu_link_for_all_servers() -> None:
    found = cluster_of_cores(shared=True)
    assert [link.spec.capacity for link in found.links if link.kind == "cpu"] == [2.0]
    assert {found.cores(rank) for rank in range(6)} == {found.cores(0)}


def test_servers_of_their_own_have_cores_of_their_own() -> None:
    found = cluster_of_cores(shared=False)
    assert len({found.cores(rank) for rank in range(6)}) == 3
    assert found.cores(0) == found.cores(1) != found.cores(2)


def test_networks_and_memory_are_those_of_each_server() -> None:
    shared, apart = cluster_of_cores(shared=True), cluster_of_cores(shared=False)
    others = [[link for link in found.links if link.kind != "cpu"] for found in (shared, apart)]
    assert others[0] == others[1]
    for pair in ((0, 1), (1, 2), (5, 0)):
        names = [[found.links[link].name for link in found.between(*pair)] for found in (shared, apart)]
        assert names[0] == names[1]


def test_shared_cores_stand_where_those_of_the_first_server_would() -> None:
    """Link ids order what is equally tight, so a machine must not change them for the network."""
    assert [link.kind for link in cluster_of_cores(shared=True).links[:5]] == ["nic", "nic", "memory", "cpu", "nic"]
    first = [link.name for link in cluster_of_cores(shared=False).links[:4]]
    assert [link.name for link in cluster_of_cores(shared=True).links[:3]] == first[:3]


def test_every_platform_is_of_a_device_of_the_catalogue_and_within_its_bounds() -> None:
    assert {platform(name).device for name in platforms()} <= set(devices())
    for found in map(platform, platforms()):
        assert 0.0 < found.spmm_efficiency.value <= 1.0
        assert 0.0 < found.rate_beside_copies.value <= 1.0
        assert found.staging_bandwidth is None or found.staging_bandwidth.value > 0.0
        assert 0.0 <= found.error.value < 1.0
        assert found.spmm_efficiency.source in ("fitted", "assumed")


def test_a_device_has_one_share_of_its_bandwidth_for_each_family_of_kernels() -> None:
    by_device: dict[str, set[tuple[float, float | None]]] = {}
    for found in map(platform, platforms()):
        streamed = None if found.stream_efficiency is None else found.stream_efficiency.value
        by_device.setdefault(found.device, set()).add((found.spmm_efficiency.value, streamed))
    assert len(by_device) < len(platforms())
    assert all(len(shares) == 1 for shares in by_device.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("device: t4", "gpu: t4", "a platform has the keys"),
        ("100%", "120%", "above 0% and at most 100%"),
        ("100%", "fast", "rate_beside_copies"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / "psc-gcn-t4.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "own.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FileError, match=message):
        platform(str(tmp_path / "own.yaml"))
