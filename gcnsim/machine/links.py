"""What a scenario's cluster has besides its GPUs' own links and NICs, and which methods use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gcnsim.cluster import RING, LinkSpec, Paths
from gcnsim.errors import ScenarioError, plural
from gcnsim.machine.replaced import with_given
from gcnsim.methods import Method, named
from gcnsim.profile import DeviceProfile, LinkProfile, device, link
from gcnsim.scenario import ClusterSpec

NVLINK: Final = "nvlink"
"""The link of the catalogue whose bandwidth `cluster.nvlink` sets."""

GPUS_PER_SWITCH: Final = 2
"""GPUs that share the uplink of a PCIe switch where nobody says how many."""


def offered(profile: LinkProfile) -> LinkSpec:
    """What the link offers to payload: its raw bandwidth times the share that payload reaches."""
    return LinkSpec(
        profile.bandwidth.value * profile.efficiency.value,
        profile.latency_s.value,
        # The call, the set-up and the completion of a copy are part of each one, whatever came before it.
        profile.latency_s.value,
        profile.queue.value,
    )


def paths_of(spec: ClusterSpec) -> Paths:
    """The paths of `spec`. Raises ScenarioError for workers on CPU cores, which have none of them."""
    found = Paths(
        nvlink=None if spec.nvlink is None else _nvlink(spec, spec.nvlink),
        gpus_per_switch=(spec.gpus_per_switch or GPUS_PER_SWITCH) if spec.pcie_sharing == "switch" else 0,
        servers_per_rack=spec.servers_per_rack or 0,
        oversubscription=spec.oversubscription,
        host_memory=None if spec.host_memory is None else LinkSpec(spec.host_memory),
        direct=spec.transport == "direct",
        gpudirect=spec.gpudirect,
        allreduce=spec.allreduce,
    )
    if device(spec.device).kind == "cpu" and spec.payload != "fp32":
        raise ScenarioError(
            f"cluster.payload: {spec.payload} is modelled for GPUs only; cluster.device is {spec.device}"
        )
    racks = Paths(servers_per_rack=found.servers_per_rack, oversubscription=found.oversubscription)
    asked = {spec.transfers, spec.sockets, spec.rate_beside_copies, spec.sampler_device} - {
        "concurrent", "free", None, "cpu",
    }  # fmt: skip
    asked |= {spec.sampler_threads} - {1}
    if device(spec.device).kind == "cpu" and (found != racks or asked):
        raise ScenarioError(
            f"cluster.device: {spec.device} has no nvlink, gpudirect, host_memory, pcie_sharing, transport, transfers, "
            "allreduce, sockets, rate_beside_copies, sampler_device or sampler_threads of its own: these are modelled "
            "for GPUs only"
        )
    if spec.sockets != "free" and (found.direct or found.gpudirect):
        raise ScenarioError(
            "cluster.sockets: cores is not allowed with transport: direct or gpudirect, whose messages pass no socket; "
            "allowed: free"
        )
    return found


def _nvlink(spec: ClusterSpec, bandwidth: float) -> LinkSpec:
    profile = with_given(link(NVLINK), spec)
    return replace(offered(profile), capacity=bandwidth * profile.efficiency.value)


def devices_of(spec: ClusterSpec) -> tuple[DeviceProfile, ...]:
    """The device of each rank where `spec` names them by server; empty where all are cluster.device.

    The last one named is that of all further servers. Raises ScenarioError for a CPU core among GPUs.
    """
    if spec.devices is None:
        return ()
    found = [with_given(device(name), spec) for name in spec.devices]
    for each in found:
        if each.kind != "gpu":
            raise ScenarioError(
                f"cluster.devices: {each.name} is not allowed; unequal servers are modelled for GPUs only"
            )
    return tuple(found[min(rank // spec.gpus_per_server, len(found) - 1)] for rank in range(spec.gpus))


def refuse_idle(clusters: Sequence[ClusterSpec]) -> None:
    """Raises ScenarioError for racks that hold all servers of every one of `clusters`: nothing passes their uplinks."""
    largest = max(clusters, key=lambda each: each.servers)
    held = largest.servers_per_rack
    if held is not None and held >= largest.servers:
        allowed = "null" if largest.servers == 1 else f"less than {largest.servers}, or null"
        raise ScenarioError(
            f"cluster.servers_per_rack: {held} is all of {plural(largest.servers, 'server')}, so nothing passes the "
            f"rack's uplink; allowed: {allowed}"
        )


def refuse_unused(spec: ClusterSpec, method: Method) -> None:
    """Raises ScenarioError for a path, a device or an order of transfers that the method's schedule does not have."""
    asked = {
        "devices": spec.devices is not None,
        "transfers": spec.transfers != "concurrent",
        "payload": spec.payload != "fp32",
        "sockets": spec.sockets != "free",
        "rate_beside_copies": spec.rate_beside_copies is not None,
        "sampler_device": spec.sampler_device != "cpu",
        "sampler_threads": spec.sampler_threads != 1,
        "nvlink": spec.nvlink is not None,
        "transport": spec.transport != "staged",
        "gpudirect": spec.gpudirect,
        "allreduce": spec.allreduce != RING,
    }
    for name, given in asked.items():
        if given and name not in method.uses:
            having = ", ".join(_using(name))
            raise ScenarioError(f"cluster.{name}: not modelled with {method.name}; methods with it: {having}")


def _using(option: str) -> list[str]:
    return named(lambda kind: option in kind.uses)
