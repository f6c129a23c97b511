"""The figures of a machine, from the catalogue, a calibration or the question, and the paths between its GPUs.

A calibration, a question (`cluster.figures`) or a joint draw replaces figures of the catalogue.

NVLink is a property of the host if the host is an instance type. Other hosts have it if the device is a module that is
sold with it. Software that moves rows `direct` (NCCL) uses NVLink, otherwise PCIe, and the NIC reads GPU memory if the
host allows it. Software that moves them `staged` (gloo, the published releases) copies everything through host memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Rank
from gcnsim.core.stamps import Stamp, stamp_of
from gcnsim.core.units import FRACTION
from gcnsim.hardware import (
    PLAIN_KERNELS,
    CoreKernels,
    Curve,
    DeviceProfile,
    Figure,
    HostProfile,
    LinkProfile,
    above_limit,
    device,
    figures_of,
    host,
    link,
    platform,
)
from gcnsim.records.calibration import Calibration, Fitted, read_calibration
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.compute_reading import measured_compute
from gcnsim.scenario.specs import DIRECT, RELEASED, STAGED, ClusterSpec

GIVEN: Final = "cluster.figures of the question"
"""In place of a reference."""

CALIBRATED: Final = "calibration record"
"""In place of a date: the record names its inputs."""

Profile = TypeVar("Profile", DeviceProfile, HostProfile, LinkProfile)


def with_fitted(profile: Profile, fitted: Mapping[str, Fitted]) -> Profile:
    """`profile` with the figures of a calibration instead of the catalogue's."""
    figures: dict[str, Any] = {
        name: Figure(value.value, "fitted", value.reference, CALIBRATED) for name, value in fitted.items()
    }
    return replace(profile, **figures)


def as_fitted(profile: DeviceProfile, fitted: Mapping[str, Fitted]) -> DeviceProfile:
    """The device of a calibration: fitted efficiencies hold what caches and waves of tiles do, and what narrow rows
    take."""
    found = with_fitted(profile, fitted)
    return replace(found, entries_per_s=None, multiprocessors=None, cache_bandwidth=None)


def with_given(profile: Profile, spec: ClusterSpec) -> Profile:
    """`profile` with the figures that `spec` gives for it. Raises ScenarioError for shares of power that contradict
    each other."""
    if not spec.figures:
        return profile
    own = [(name.rpartition("."), value) for name, value in spec.figures]
    figures: dict[str, Any] = {
        field: Figure(value, "given", GIVEN, "") for (name, _, field), value in own if name == profile.name
    }
    if "spmm_efficiency" in figures:
        # One number for all sizes: what was measured would hide it.
        figures["spmm_curve"] = None
    if not figures:
        return profile
    found = replace(profile, **figures)
    if (wrong := above_limit(figures_of(found), figures)) is not None:
        value, limit = (FRACTION.exact(getattr(found, field).value) for field in wrong)
        raise ScenarioError(
            f"cluster.figures: {profile.name}.{wrong[0]}={value} is not allowed; at most {wrong[1]} ({limit})"
        )
    return found


def with_drawn(profile: Profile, drawn: Mapping[str, FloatArray]) -> Profile:
    """`profile` with an array for every figure in `drawn`; cost laws accept both."""
    found: dict[str, Any] = {}
    for name, values in drawn.items():
        owner, _, field = name.rpartition(".")
        if owner == profile.name:
            values = np.asarray(values, dtype=np.float64)
            found[field] = replace(getattr(profile, field), value=values)
    return replace(profile, **found) if found else profile


HOST_MEMORY: Final = "host-memory"
"""The link that carries traffic between two workers of one server."""

NVLINK: Final = "nvlink"
"""The link of the catalogue whose bandwidth `cluster.nvlink` sets."""


@dataclass(frozen=True)
class Profiles:
    """The parts of a question's machine, each with its figures.

    spec: the question. device: of every worker, or of the first server if they differ. devices: by rank if servers have
    different devices, otherwise empty. network: the link between servers. copies: the link between the device and its
    host. own_copies: the same by rank, if devices differ and the question names no link. host_memory: between workers
    of a server. between: the paths between GPUs. nvlink: the link between GPUs of a server, whether present or not.
    calibration: the record of the figures, if the question names one. measured: compute times that replace those of the
    cost laws, if it names a file of them.
    """

    spec: ClusterSpec
    device: DeviceProfile
    devices: tuple[DeviceProfile, ...]
    host: HostProfile
    network: LinkProfile
    copies: LinkProfile
    own_copies: tuple[LinkProfile, ...]
    host_memory: LinkProfile
    between: BetweenGpus
    nvlink: LinkProfile
    calibration: Calibration | None
    measured: MeasuredCompute | None = None

    @property
    def kind(self) -> str:
        """The kind of its workers: `gpu` or `cpu`."""
        return self.device.kind

    def device_of(self, rank: Rank) -> DeviceProfile:
        """The device of one worker."""
        return self.devices[rank] if self.devices else self.device

    def copies_of(self, rank: Rank) -> LinkProfile:
        """The link between one worker's device and its host."""
        return self.own_copies[rank] if self.own_copies else self.copies


def find_profiles(spec: ClusterSpec) -> Profiles:
    """The figures of the machine that `spec` describes.

    Raises ScenarioError for an unknown name, a calibration of another device or a CPU core among GPUs, FileError for an
    unusable file.
    """
    chosen, servers, network = device(spec.device), host(spec.host), link(spec.link)
    copies = _to_host(chosen, servers)
    record = calibration_of(spec.calibration)
    if record is not None:
        if record.device != spec.device:
            raise ScenarioError(
                f"cluster.calibration: {spec.calibration} is for {record.device}, cluster.device is {spec.device}"
            )
        if record.links_only and spec.measured_compute is None and chosen.kind == "gpu":
            raise ScenarioError(
                f"cluster.calibration: {spec.calibration} has links only, no kernels; allowed: with "
                "cluster.measured_compute (python -m runtime.measure measures it), or a calibration of a profile"
            )
        if chosen.kind == "gpu" and "launch_s" in record.figures["device"] and "call_s" not in record.figures["host"]:
            raise ScenarioError(
                f"cluster.calibration: {spec.calibration} was fitted before calls of the host were counted; "
                "fit its measurements again (gcnsim calibrate)"
            )
        chosen = chosen if record.links_only else _calibrated(chosen, record)
        servers = with_fitted(servers, record.figures["host"])
        network = with_fitted(network, record.figures["network"])
        copies = with_fitted(copies, record.figures.get("copies", {}))
    if spec.platform is not None and (fitted := platform(spec.platform).operation_s) is not None:
        servers = replace(servers, operation_s=fitted)
    measured = None if spec.measured_compute is None else measured_compute(spec.measured_compute)
    if measured is not None and not measured.on_gpu:
        servers = _with_measured_cores(servers, measured, spec, record)
    servers = with_given(servers, spec)
    own = PLAIN_KERNELS if measured is None or measured.on_gpu else _measured_kernels(measured)
    if measured is not None or chosen.kind == "gpu":
        _refuse_kernels(spec, chosen, own, servers)
    if own.threads > 1:
        # Threads of a kernel end together, so a worker computes on a core that is as many, or waits for all of them.
        wide = servers.cores.value // own.threads
        servers = replace(servers, cores=replace(servers.cores, value=wide))
    devices = _by_rank(spec)
    between = between_gpus(spec, devices or (chosen,), servers)
    nvlink = link(NVLINK) if between.nvlink is None else replace(link(NVLINK), bandwidth=between.nvlink)
    return Profiles(
        spec=spec,
        device=with_given(chosen, spec),
        devices=devices,
        host=servers,
        network=with_given(network, spec),
        copies=with_given(copies if spec.pcie is None else link(spec.pcie), spec),
        own_copies=tuple(with_given(_to_host(profile, servers), spec) for profile in devices)
        if spec.pcie is None
        else (),
        host_memory=with_given(link(HOST_MEMORY), spec),
        between=between,
        nvlink=with_given(nvlink, spec),
        calibration=record,
        measured=measured,
    )


def _with_measured_cores(
    servers: HostProfile, found: MeasuredCompute, spec: ClusterSpec, record: Calibration | None
) -> HostProfile:
    """Servers whose cores are as fast as measured, where that was beside busy ones, and as many as the measured machine
    has, where no record and no question says otherwise.

    A record that was fitted with measured compute has what runs lost beyond it. Raises ScenarioError where that was
    measured beside busy cores and this was not, or the other way round.
    """
    fitted = None if record is None else record.beside_busy
    if fitted is not None and fitted != found.beside_busy:
        words = {True: "beside busy cores", False: "alone"}
        raise ScenarioError(
            f"cluster.calibration: {spec.calibration} was fitted with compute measured {words[fitted]}, "
            f"{found.path} was measured {words[found.beside_busy]}; "
            "allowed: both alike (runtime.measure --seconds 5 or more a setting)"
        )
    if found.beside_busy and fitted is None:
        busy = Figure(1.0, "measured", "compute was measured beside busy cores", "")
        servers = replace(servers, busy_core_rate=busy)
    count = found.device.get("cores")
    if count is None or record is not None or spec.host != ClusterSpec().host:
        return servers
    number = Figure(float(count), "measured", "cores of the machine that compute was measured on", "")
    return replace(servers, cores=number)


def _measured_kernels(found: MeasuredCompute) -> CoreKernels:
    """What a worker on cores was measured with."""
    training = found.training
    threads = found.device.get("threads") or training.get("threads") or PLAIN_KERNELS.threads
    return CoreKernels(str(training.get("aggregator") or PLAIN_KERNELS.aggregator), int(threads))


def _to_host(chosen: DeviceProfile, servers: HostProfile) -> LinkProfile:
    """The link between a device and its host: the device's link, or that of the host's processors if it is slower."""
    own = link(chosen.link)
    if servers.pcie is None or chosen.kind != "gpu":
        return own
    return min(own, link(servers.pcie), key=lambda item: item.bandwidth.value)


def _calibrated(chosen: DeviceProfile, record: Calibration) -> DeviceProfile:
    chosen = as_fitted(chosen, record.figures["device"])
    if not record.curve:
        return chosen
    sizes, shares = zip(*record.curve, strict=True)
    return replace(chosen, spmm_curve=Curve(sizes, shares, "fitted", "micro-benchmarks", CALIBRATED))


def _refuse_kernels(spec: ClusterSpec, chosen: DeviceProfile, own: CoreKernels, servers: HostProfile) -> None:
    """Raises ScenarioError for kernels, or numbers of threads, that nothing was measured with."""
    for name, selected, known in (
        ("aggregator", spec.aggregator, own.aggregator),
        ("threads", spec.threads, own.threads),
    ):
        if selected is None or (selected == known and chosen.kind == "cpu"):
            continue
        if chosen.kind != "cpu":
            raise ScenarioError(
                f"cluster.{name}: {selected} is modelled for workers on CPU cores only; cluster.device is {spec.device}"
            )
        raise ScenarioError(
            f"cluster.{name}: {selected} is not what {spec.measured_compute} has measured: {known}; measure it: python "
            f"-m runtime.measure --{name} {selected} ..."
        )
    workers = spec.gpus if spec.shared_cores else min(spec.gpus, spec.gpus_per_server)
    if own.threads > 1 and workers * own.threads > servers.cores.value:
        raise ScenarioError(
            f"cluster.threads: {workers} workers of {own.threads} threads each need {workers * own.threads} cores, a "
            f"server has {servers.cores.value:g}; more threads than cores are not modelled"
        )


def _by_rank(spec: ClusterSpec) -> tuple[DeviceProfile, ...]:
    """The device of each rank if `spec` names them by server; the last one applies to all further servers."""
    if spec.devices is None:
        return ()
    found = [with_given(device(name), spec) for name in spec.devices]
    for item in found:
        if item.kind != "gpu":
            raise ScenarioError(
                f"cluster.devices: {item.name} is not allowed; unequal servers are modelled for GPUs only"
            )
    return tuple(found[min(rank // spec.gpus_per_server, len(found) - 1)] for rank in range(spec.gpus))


def calibration_of(path: str | None) -> Calibration | None:
    """The calibration record that a scenario names, if any. Raises FileError."""
    return None if path is None else _calibration(path, stamp_of(path))


@lru_cache(maxsize=64)
def _calibration(path: str, stamp: Stamp) -> Calibration:
    return read_calibration(path)


def for_graph(profile: DeviceProfile, record: Calibration | None, graph_hash: str | None) -> DeviceProfile:
    """The device on one graph: how far its SpMM was from the law there, where runs on that graph were recorded."""
    factor = 1.0 if record is None or graph_hash is None else record.graphs.get(graph_hash, 1.0)
    if factor == 1.0:
        return profile
    slower = replace(profile.spmm_efficiency, value=profile.spmm_efficiency.value / factor)
    curve = profile.spmm_curve
    if curve is not None:
        curve = replace(curve, values=tuple(value / factor for value in curve.values))
    through = profile.cache_bandwidth
    if through is not None:
        through = replace(through, value=through.value / factor)
    return replace(profile, spmm_efficiency=slower, spmm_curve=curve, cache_bandwidth=through)


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
