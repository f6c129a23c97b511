"""The links of a machine: GPU to host, host to host, and the other paths of its cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.cluster import Cluster, LinkSpec, Paths, Sockets, build_cluster
from gcnsim.errors import ScenarioError
from gcnsim.hardware import LinkProfile
from gcnsim.machine.platform import copies_within
from gcnsim.machine.profiles import Profiles
from gcnsim.scenario import LEAN

MESSAGE_PASSES: Final = 4
"""Times that a message between two GPUs of a server, copied from the sender's buffer into a socket and from there into
the receiver's, is read from memory or written to it."""

GPUS_PER_SWITCH: Final = 2
"""GPUs that share the uplink of a PCIe switch by default."""


def offered(profile: LinkProfile) -> LinkSpec:
    """What the link offers to payload: its raw bandwidth times the share that payload reaches."""
    return LinkSpec(
        profile.bandwidth.value * profile.efficiency.value,
        profile.latency_s.value,
        # The call, the set-up and the completion of a copy are part of each one, whatever came before it.
        profile.latency_s.value,
        profile.queue.value,
    )


def paths_of(figures: Profiles) -> Paths:
    """The paths of a machine. Raises ScenarioError for workers on CPU cores, which have none of them."""
    spec, between, on_cores = figures.spec, figures.between, figures.kind == "cpu"
    found = Paths(
        nvlink=None if between.nvlink is None else offered(figures.nvlink),
        nvlink_gpus=spec.nvlink_gpus or 0,
        gpus_per_switch=(spec.gpus_per_switch or GPUS_PER_SWITCH) if spec.pcie_sharing == "switch" else 0,
        servers_per_rack=spec.servers_per_rack or 0,
        oversubscription=spec.oversubscription,
        host_memory=None if spec.host_memory is None else LinkSpec(spec.host_memory),
        direct=between.direct,
        gpudirect=between.gpudirect,
        peer_to_peer=between.peer_to_peer,
        allreduce=spec.allreduce,
    )
    if on_cores and spec.payload != "fp32":
        raise ScenarioError(
            f"cluster.payload: {spec.payload} is modelled for GPUs only; cluster.device is {spec.device}"
        )
    racks = Paths(servers_per_rack=found.servers_per_rack, oversubscription=found.oversubscription)
    asked = {
        spec.transfers, spec.sockets, spec.rate_beside_copies, spec.sampler_device, spec.sampler_threads, spec.features,
    } - {"concurrent", "free", "cpu", None}  # fmt: skip
    if on_cores and (found != racks or asked or spec.implementation != LEAN):
        raise ScenarioError(
            f"cluster.device: {spec.device} has no nvlink, gpudirect, host_memory, pcie_sharing, transport, transfers, "
            "allreduce, sockets, rate_beside_copies, features, sampler_device, sampler_threads or implementation of "
            "its own: these are modelled for GPUs only"
        )
    if spec.sockets != "free" and (found.direct or found.gpudirect):
        raise ScenarioError(
            "cluster.sockets: cores is not allowed with transport: direct or gpudirect, whose messages pass no socket; "
            "allowed: free"
        )
    if spec.sockets == "free":
        return found
    return replace(found, sockets=Sockets(figures.host.socket_bandwidth.value, figures.host.message_s.value))


def build_topology(figures: Profiles, paths: Paths, staging: LinkSpec | None) -> Cluster:
    """The links of a machine with their capacities, copies no faster than `staging`, the host side of a worker.

    Messages between GPUs of a server pass its memory `MESSAGE_PASSES` times; between workers on CPU cores they are one
    copy by one thread.
    A network message costs CPU time at both ends before and after it travels; with GPU workers that time is counted as
    latency, with workers on CPU cores, or where the scenario says so (`cluster.sockets`), it is work for the cores.
    """
    spec, host, network = figures.spec, figures.host, figures.network
    wire = network.latency_s.value if spec.latency is None else spec.latency
    on_cores = figures.kind == "cpu"
    memory = offered(figures.host_memory)
    if not on_cores:
        memory = replace(memory, capacity=host.memory_bandwidth.value / MESSAGE_PASSES)
    message_s = 0.0 if on_cores or paths.sockets else host.message_s.value
    return build_cluster(
        gpus=spec.gpus,
        gpus_per_server=spec.gpus_per_server,
        pcie=[copies_within(offered(figures.copies_of(rank)), staging) for rank in range(spec.gpus)],
        nic=LinkSpec(spec.bandwidth * network.efficiency.value, wire + 2 * message_s, message_s, network.queue.value),
        memory=memory,
        cores=LinkSpec(
            host.cores.value * (host.busy_core_rate.value if on_cores else 1.0),
            cores=round(host.cores.value) if on_cores else 0,
            slice_s=host.slice_s.value,
            wake_s=None if host.wake_s is None else min(host.wake_s.value, host.slice_s.value),
        ),
        shared_cores=spec.shared_cores,
        staging=staging,
        paths=paths,
    )
