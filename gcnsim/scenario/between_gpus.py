"""The paths between the GPUs of a machine: what its servers have, and what the software uses.

NVLink is a property of the host if the host is an instance type. Other hosts have it if the device is a module that is
sold with it. Software that moves rows `direct` (NCCL) uses NVLink, otherwise PCIe, and the NIC reads GPU memory if the
host allows it. Software that moves them `staged` (gloo, the published releases) copies everything through host memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.hardware import DeviceProfile, Figure, HostProfile
from gcnsim.scenario.specs import DIRECT, RELEASED, STAGED, ClusterSpec

TRANSPORT: Final = "cluster.transport"
NVLINK_THERE: Final = "cluster.nvlink"
"""The possible open facts: how the software moves rows, and whether the GPUs are modules with NVLink or cards without.
"""


@dataclass(frozen=True, slots=True)
class BetweenGpus:
    """The paths between GPUs. transport: `staged` or `direct`; why: the reason. nvlink: bytes/s per direction of one
    GPU to the others of its server; None: absent, or unused by the software. generation: of that NVLink, if known.
    peer_to_peer: whether direct copies within a server bypass host memory. gpudirect: whether those between servers do.
    open: the facts that were not given and are assumed.
    """

    transport: str
    why: str
    nvlink: Figure | None
    generation: int | None
    peer_to_peer: bool
    gpudirect: bool
    open: frozenset[str]

    @property
    def direct(self) -> bool:
        """Whether rows are streamed from GPU to GPU."""
        return self.transport == DIRECT


def between_gpus(spec: ClusterSpec, devices: Sequence[DeviceProfile], host: HostProfile) -> BetweenGpus:
    """The paths between the GPUs of `spec`. devices: of its servers."""
    transport, why, assumed = _transport(spec, devices)
    direct = transport == DIRECT
    peers = all(device.peer_to_peer is None or device.peer_to_peer.value for device in devices)
    if host.peer_to_peer is not None:
        peers = peers and host.peer_to_peer.value
    rate, generation, certain = _nvlink(spec, devices, host) if direct or spec.nvlink else (None, None, True)
    own_nics = host.gpudirect is not None and host.gpudirect.value
    return BetweenGpus(
        transport=transport,
        why=why,
        nvlink=rate,
        generation=generation,
        peer_to_peer=peers,
        gpudirect=(direct and own_nics) if spec.gpudirect is None else spec.gpudirect,
        open=frozenset({TRANSPORT} if assumed else ()) | frozenset(() if certain else {NVLINK_THERE}),
    )


def _transport(spec: ClusterSpec, devices: Sequence[DeviceProfile]) -> tuple[str, str, bool]:
    """How the software moves rows, why, and whether that is an assumption."""
    if spec.transport is not None:
        return spec.transport, "as asked", False
    if devices[0].kind == "cpu":
        return STAGED, "workers on CPU cores have host memory alone", False
    if spec.gpudirect:
        return DIRECT, "with cluster.gpudirect", False
    if spec.platform is not None or spec.implementation == RELEASED:
        return STAGED, "as the published releases do", False
    if spec.sockets != "free":
        return STAGED, "cluster.sockets: messages pass the sockets of hosts", False
    return DIRECT, "as with NCCL, the usual library on GPUs", spec.gpus > 1


def _nvlink(
    spec: ClusterSpec, devices: Sequence[DeviceProfile], host: HostProfile
) -> tuple[Figure | None, int | None, bool]:
    """The rate between GPUs of a server, its generation, and whether that is certain."""
    if spec.nvlink is not None:
        return (Figure(spec.nvlink, "given", "cluster.nvlink of the question", "") if spec.nvlink else None), None, True
    rates = [device.nvlink for device in devices if device.nvlink is not None]
    alone = min(spec.gpus, spec.gpus_per_server) == 1
    if len(rates) < len(devices) or alone:
        return None, None, True
    instance = host.device is not None
    if instance and host.nvlink is None:
        return None, None, True
    slowest = min([*rates, *([host.nvlink] if host.nvlink is not None else [])], key=lambda rate: rate.value)
    generations = {round(device.nvlink_generation.value) for device in devices if device.nvlink_generation is not None}
    return slowest, generations.pop() if len(generations) == 1 else None, instance
