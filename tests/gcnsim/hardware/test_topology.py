"""Which links a byte crosses, and what the cluster refuses."""

from __future__ import annotations

import math

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware.link_specs import LinkSpec
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


def test_the_topology_is_a_graph_of_devices() -> None:
    topology = cluster(2, 1).topology
    assert topology.number_of_edges() == len(cluster(2, 1).links)
    assert set(topology["switch"]) == {"host0", "host1"}


@pytest.mark.parametrize(("gpus", "per_server"), [(0, 2), (4, 0), (-1, 1)])
def test_counts_below_one_are_refused(gpus: int, per_server: int) -> None:
    with pytest.raises(ScenarioError, match="at least 1"):
        cluster(gpus, per_server)


@pytest.mark.parametrize("capacity", [0.0, -1.0, math.nan])
def test_a_link_without_capacity_is_refused(capacity: float) -> None:
    with pytest.raises(ScenarioError, match="nic capacity must be > 0"):
        build_cluster(gpus=2, gpus_per_server=1, pcie=PCIE, nic=LinkSpec(capacity), memory=MEMORY, cores=CORES)
