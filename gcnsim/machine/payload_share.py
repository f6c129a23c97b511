"""What of each link's raw bandwidth is payload: others' traffic is told on the wire, capacities in payload."""

from __future__ import annotations

from gcnsim.cluster import Cluster, Link
from gcnsim.machine.links import NVLINK, devices_of
from gcnsim.machine.resolve import HOST_MEMORY, device_link, machine, profiles
from gcnsim.profile import link
from gcnsim.scenario import ClusterSpec


def payload_shares(spec: ClusterSpec) -> dict[str, float]:
    """By link, payload over the raw bandwidth that carries it; a link without framing is not named."""
    cluster, _, _ = machine(spec)
    network = profiles(spec)[2].efficiency.value
    shares = {"nic": network, "rack": network, "nvlink": link(NVLINK).efficiency.value}
    found = {each.name: shares[each.kind] for each in cluster.links if each.kind in shares}
    own = () if spec.pcie is not None else devices_of(spec)
    for each in cluster.links:
        if each.kind == "pcie":
            copies = link(own[_rank(cluster, each)].link) if own else device_link(spec)
            found[each.name] = copies.efficiency.value
        elif each.kind == "memory" and each.source == each.target:
            found[each.name] = link(HOST_MEMORY).efficiency.value
    return found


def _rank(cluster: Cluster, copies: Link) -> int:
    """A GPU behind a PCIe link: its own, or the first of the server whose switch it is."""
    device = copies.target if copies.name.endswith(".down") else copies.source
    if device.startswith("gpu"):
        return int(device.removeprefix("gpu"))
    return cluster.server_of.index(int(device.removeprefix("pcie-switch").partition(".")[0]))
