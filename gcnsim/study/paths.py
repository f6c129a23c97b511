"""What a scenario's cluster has besides its GPUs' own links and NICs, and which methods use it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.cluster import LinkSpec, Paths
from gcnsim.errors import ScenarioError
from gcnsim.profile import DeviceProfile, LinkProfile, device, link
from gcnsim.scenario import ClusterSpec, MethodSpec

NVLINK: Final = "nvlink"
"""The link of the catalogue whose bandwidth `cluster.nvlink` sets."""

ROWS: Final = ("full-graph", "pipegcn", "pipegcn-g", "pipegcn-f", "pipegcn-gf", "bns-gcn", "psc-gcn")
"""Methods that exchange boundary rows: they use every path, and know unequal GPUs and serial transfers."""

BLOCKS: Final = ("cagnet-1d", "cagnet-1.5d", "sancus")
"""Methods that broadcast blocks of rows: their rings use the paths from GPU to GPU."""


def offered(profile: LinkProfile) -> LinkSpec:
    """What the link offers to payload: its raw bandwidth times the share that payload reaches."""
    return LinkSpec(
        profile.bandwidth.value * profile.efficiency.value,
        profile.latency_s.value,
        profile.half_size.value,
        profile.queue.value,
    )


def paths_of(spec: ClusterSpec) -> Paths:
    """The paths of `spec`. Raises ScenarioError for workers on CPU cores, which have none of them."""
    found = Paths(
        nvlink=None if spec.nvlink is None else _nvlink(spec.nvlink),
        gpus_per_switch=spec.gpus_per_switch if spec.pcie_sharing == "switch" else 0,
        servers_per_rack=spec.servers_per_rack or 0,
        oversubscription=spec.oversubscription,
        host_memory=None if spec.host_memory is None else LinkSpec(spec.host_memory),
        direct=spec.transport == "direct",
        gpudirect=spec.gpudirect,
    )
    if device(spec.device).kind == "cpu" and spec.payload != "fp32":
        raise ScenarioError(
            f"cluster.payload: {spec.payload} is modelled for GPUs only; cluster.device is {spec.device}"
        )
    racks = Paths(servers_per_rack=found.servers_per_rack, oversubscription=found.oversubscription)
    if device(spec.device).kind == "cpu" and (found != racks or spec.transfers != "concurrent"):
        raise ScenarioError(
            f"cluster.device: {spec.device} has no nvlink, gpudirect, host_memory, pcie_sharing, transport or "
            "transfers of its own: these are modelled for GPUs only"
        )
    return found


def _nvlink(bandwidth: float) -> LinkSpec:
    spec = offered(link(NVLINK))
    return replace(spec, capacity=bandwidth * link(NVLINK).efficiency.value)


def devices_of(spec: ClusterSpec) -> tuple[DeviceProfile, ...]:
    """The device of each rank where `spec` names them by server; empty where all are cluster.device.

    The last one named is that of all further servers. Raises ScenarioError for a CPU core among GPUs.
    """
    if spec.devices is None:
        return ()
    found = [device(name) for name in spec.devices]
    for each in found:
        if each.kind != "gpu":
            raise ScenarioError(
                f"cluster.devices: {each.name} is not allowed; unequal servers are modelled for GPUs only"
            )
    return tuple(found[min(rank // spec.gpus_per_server, len(found) - 1)] for rank in range(spec.gpus))


def refuse_unused(spec: ClusterSpec, method: MethodSpec) -> None:
    """Raises ScenarioError for a path, a device or an order of transfers that the method's schedule does not have."""
    if method.name in ROWS:
        return
    asked = {
        "devices": spec.devices is not None,
        "transfers": spec.transfers != "concurrent",
        "payload": spec.payload != "fp32",
    }
    if method.name not in BLOCKS:
        asked |= {
            "nvlink": spec.nvlink is not None,
            "transport": spec.transport != "staged",
            "gpudirect": spec.gpudirect,
        }
    for name in (name for name, given in asked.items() if given):
        allowed = ROWS if name in ("devices", "transfers", "payload") else ROWS + BLOCKS
        raise ScenarioError(f"cluster.{name}: not modelled with {method.name}; methods with it: {', '.join(allowed)}")
