"""Servers emulated on one machine have its cores in common, and nothing else."""

from __future__ import annotations

from gcnsim.hardware.link_specs import LinkSpec
from gcnsim.hardware.topology import Cluster, build_cluster


def cluster(*, shared: bool) -> Cluster:
    spec = LinkSpec(1e9)
    return build_cluster(
        gpus=6, gpus_per_server=2, pcie=spec, nic=spec, memory=spec, cores=LinkSpec(2.0), shared_cores=shared
    )


def test_there_is_one_cpu_link_for_all_servers() -> None:
    found = cluster(shared=True)
    assert [link.spec.capacity for link in found.links if link.kind == "cpu"] == [2.0]
    assert {found.cores(rank) for rank in range(6)} == {found.cores(0)}


def test_servers_of_their_own_have_cores_of_their_own() -> None:
    found = cluster(shared=False)
    assert len({found.cores(rank) for rank in range(6)}) == 3
    assert found.cores(0) == found.cores(1) != found.cores(2)


def test_networks_and_memory_are_those_of_each_server() -> None:
    shared, apart = cluster(shared=True), cluster(shared=False)
    others = [[link for link in found.links if link.kind != "cpu"] for found in (shared, apart)]
    assert others[0] == others[1]
    for pair in ((0, 1), (1, 2), (5, 0)):
        names = [[found.links[link].name for link in found.between(*pair)] for found in (shared, apart)]
        assert names[0] == names[1]


def test_shared_cores_stand_where_those_of_the_first_server_would() -> None:
    """Link ids order what is equally tight, so a machine must not change them for the network."""
    assert [link.kind for link in cluster(shared=True).links[:5]] == ["nic", "nic", "memory", "cpu", "nic"]
    first = [link.name for link in cluster(shared=False).links[:4]]
    assert [link.name for link in cluster(shared=True).links[:3]] == first[:3]
