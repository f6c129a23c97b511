"""What of each link's raw bandwidth is payload: others' traffic is told on the wire, capacities in payload."""

from __future__ import annotations

from gcnsim.cluster import Cluster, Link
from gcnsim.hardware import link
from gcnsim.ids import Rank
from gcnsim.machine.machine import Machine
from gcnsim.machine.profiles import HOST_MEMORY, NVLINK


def payload_shares(machine: Machine) -> dict[str, float]:
    """By link, payload over the raw bandwidth that carries it; a link without framing is not named."""
    cluster = machine.topology
    network = machine.network.efficiency.value
    shares = {"nic": network, "rack": network, "nvlink": link(NVLINK).efficiency.value}
    found = {each.name: shares[each.kind] for each in cluster.links if each.kind in shares}
    for each in cluster.links:
        if each.kind == "pcie":
            found[each.name] = machine.copies_of(_rank(cluster, each)).efficiency.value
        elif machine.kind == "cpu" and each.kind == "memory":
            found[each.name] = link(HOST_MEMORY).efficiency.value
    return found


def _rank(cluster: Cluster, copies: Link) -> Rank:
    """A GPU behind a PCIe link: its own, or the first of the server whose switch it is."""
    device = copies.target if copies.name.endswith(".down") else copies.source
    if device.startswith("gpu"):
        return int(device.removeprefix("gpu"))
    return cluster.server_of.index(int(device.removeprefix("pcie-switch").partition(".")[0]))
