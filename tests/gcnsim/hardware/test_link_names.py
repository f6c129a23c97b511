"""Names of links, read again: every link that a cluster can have is known, whose it is, and which are like it."""

from __future__ import annotations

import pytest

from gcnsim.hardware.link_specs import FAMILIES, LinkName, LinkSpec, Paths
from gcnsim.hardware.topology import Cluster, build_cluster

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


def test_every_link_of_a_cluster_is_known_and_every_family_is_of_some_cluster() -> None:
    assert {read(link.name).family for link in everything().links} == set(FAMILIES)


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
