"""From a scenario's cluster to links with capacities, by the catalogue's figures."""

from __future__ import annotations

from functools import lru_cache

from gcnsim.cluster import Cluster, LinkSpec, build_cluster
from gcnsim.profile import DeviceProfile, HostProfile, LinkProfile, device, host, link
from gcnsim.scenario import ClusterSpec

HOST_MEMORY = "host-memory"
"""The link that carries traffic between two workers of one server."""


def link_spec(profile: LinkProfile) -> LinkSpec:
    """What the link offers to payload: its raw bandwidth times the share that payload reaches."""
    return LinkSpec(
        profile.bandwidth.value * profile.efficiency.value, profile.latency_s.value, profile.half_size.value
    )


@lru_cache(maxsize=256)
def machine(spec: ClusterSpec) -> tuple[Cluster, DeviceProfile, HostProfile]:
    """The cluster of `spec` with its device and host profile.

    A network message costs CPU time at both ends before and after it travels; that time is counted as latency.
    Raises ScenarioError for a name the catalogue does not have.
    """
    chosen, servers, network = device(spec.device), host(spec.host), link(spec.link)
    wire = network.latency_s.value if spec.latency is None else spec.latency
    cluster = build_cluster(
        gpus=spec.gpus,
        gpus_per_server=spec.gpus_per_server,
        pcie=link_spec(link(spec.pcie or chosen.link)),
        nic=LinkSpec(
            spec.bandwidth * network.efficiency.value, wire + 2 * servers.message_s.value, network.half_size.value
        ),
        memory=link_spec(link(HOST_MEMORY)),
        cores=LinkSpec(servers.cores.value),
    )
    return cluster, chosen, servers
