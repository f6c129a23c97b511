"""The links of a machine: GPU to host, host to host, and the other paths of its cluster.

The published runs of a platform add figures to those of the catalogue (`gcnsim.hardware.catalogue`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, LinkProfile, Platform, platform
from gcnsim.hardware.link_specs import LinkSpec, Paths, Sockets
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.scenario.machine_profiles import Profiles
from gcnsim.scenario.specs import LEAN, ClusterSpec
from gcnsim.workload.reach import DEGREE_SPREAD


def platform_of(spec: ClusterSpec) -> Platform | None:
    """The platform that a cluster names, if any. Raises ScenarioError if its device differs."""
    if spec.platform is None:
        return None
    named = platform(spec.platform)
    if named.device != spec.device:
        raise ScenarioError(f"cluster.platform: {spec.platform} is for {named.device}, cluster.device is {spec.device}")
    return named


def for_workload(profile: DeviceProfile, named: Platform | None, dataset: str | None) -> DeviceProfile:
    """The device on one workload: with the spread of its graph's degrees, and the share of the memory bandwidth that a
    platform's published runs have for rows that miss its last cache. Unchanged if its multiprocessors are unknown.
    """
    if profile.multiprocessors is None or profile.cache_bandwidth is None:
        return profile
    gathering = profile.spmm_efficiency if named is None else named.spmm_efficiency
    return replace(profile, spmm_efficiency=gathering, degree_spread=degree_spread(dataset))


def streaming_share(profile: DeviceProfile, named: Platform | None) -> float:
    """The share of memory bandwidth for reading entries in order, once per column.

    As fitted, otherwise that of any stream.
    """
    fitted = None if named is None else named.stream_efficiency
    return profile.elementwise_efficiency.value if fitted is None else fitted.value


def degree_spread(dataset: str | None) -> float:
    """Standard deviation of the log of a dataset's degrees, by its surrogate."""
    from gcnsim.graph.generate import surrogate_facts, surrogates

    return surrogate_facts(dataset).model.degree_spread if dataset in surrogates() else DEGREE_SPREAD


def staging_of(figures: Profiles, named: Platform | None) -> LinkSpec | None:
    """The capacity of the host side of one worker: fitted to a platform, otherwise from the host.

    None if rows pass from GPU to GPU, and on CPU cores.
    """
    fitted = None if named is None else named.staging_bandwidth
    if fitted is not None:
        return LinkSpec(fitted.value)
    # A calibration fits the rate of copies between a GPU and its host, whatever its cause.
    measured = named is not None or figures.calibration is not None
    staged = figures.kind == "gpu" and not figures.between.direct and not measured
    return LinkSpec(figures.host.staging_bandwidth.value) if staged else None


def copies_within(pcie: LinkSpec, staging: LinkSpec | None) -> LinkSpec:
    """The link between a GPU and its host, limited in each direction by the host side.

    Assumption: copies use pageable memory, which the same threads of the host read and write.
    """
    return pcie if staging is None else replace(pcie, capacity=min(pcie.capacity, staging.capacity / 2))


MESSAGE_PASSES: Final = 4
"""How often a message between two GPUs of a server is read from or written to memory.

It is copied from the sender's buffer to a socket and from there to the receiver's buffer.
"""

GPUS_PER_SWITCH: Final = 2
"""GPUs that share the uplink of a PCIe switch by default."""


def offered(profile: LinkProfile) -> LinkSpec:
    """The link's capacity for payload: its raw bandwidth times the share that payload reaches."""
    return LinkSpec(
        profile.bandwidth.value * profile.efficiency.value,
        profile.latency_s.value,
        # The call, set-up and completion are part of each copy, regardless of the previous one.
        profile.latency_s.value,
        profile.queue.value,
    )


def paths_of(figures: Profiles) -> Paths:
    """The paths of a machine. Raises ScenarioError for workers on CPU cores, which have none."""
    spec, between, on_cores = figures.spec, figures.between, figures.kind == "cpu"
    paths = Paths(
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
    racks = Paths(servers_per_rack=paths.servers_per_rack, oversubscription=paths.oversubscription)
    given = {
        spec.transfers, spec.sockets, spec.rate_beside_copies, spec.sampler_device, spec.sampler_threads, spec.features,
    } - {"concurrent", "free", "cpu", None}  # fmt: skip
    if on_cores and (paths != racks or given or spec.implementation != LEAN):
        raise ScenarioError(
            f"cluster.device: {spec.device} has no nvlink, gpudirect, host_memory, pcie_sharing, transport, transfers, "
            "allreduce, sockets, rate_beside_copies, features, sampler_device, sampler_threads or implementation of "
            "its own: these are modelled for GPUs only"
        )
    if spec.sockets != "free" and (paths.direct or paths.gpudirect):
        raise ScenarioError(
            "cluster.sockets: cores is not allowed with transport: direct or gpudirect, whose messages pass no socket; "
            "allowed: free"
        )
    if spec.sockets == "free":
        return paths
    return replace(paths, sockets=Sockets(figures.host.socket_bandwidth.value, figures.host.message_s.value))


def build_topology(figures: Profiles, paths: Paths, staging: LinkSpec | None) -> Cluster:
    """The links of a machine with their capacities; `staging`, the host side of a worker, limits copies.

    Messages between GPUs of a server use its memory `MESSAGE_PASSES` times; between workers on CPU cores they are one
    copy by one thread. A network message costs CPU time at both ends. With GPU workers that time is part of the
    latency. With workers on CPU cores, or with `cluster.sockets`, it is work for the cores.
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
