"""From a scenario's cluster to links with capacities, by the catalogue's figures or those of a calibration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from gcnsim.cluster import Cluster, LinkSpec, Sockets, build_cluster
from gcnsim.errors import ScenarioError
from gcnsim.machine.links import devices_of, offered, paths_of
from gcnsim.machine.platform import copies_of, staging_of
from gcnsim.machine.replaced import with_given
from gcnsim.profile import Curve, DeviceProfile, Figure, HostProfile, LinkProfile, device, file_stamp, host, link
from gcnsim.record import Calibration, Fitted, read_calibration
from gcnsim.scenario import ClusterSpec

HOST_MEMORY = "host-memory"
"""The link that carries traffic between two workers of one server."""

CALIBRATED = "calibration record"
"""In place of a date: the record names its inputs."""

Profile = TypeVar("Profile", DeviceProfile, HostProfile, LinkProfile)


def link_spec(profile: LinkProfile) -> LinkSpec:
    """What the link offers to payload: its raw bandwidth times the share that payload reaches."""
    return offered(profile)


def calibration_of(path: str | None) -> Calibration | None:
    """The calibration record that a scenario names, if it names one. Raises FileError."""
    return None if path is None else _calibration(path, _stamp(path))


@lru_cache(maxsize=64)
def _calibration(path: str, stamp: tuple[int, int]) -> Calibration:
    return read_calibration(path)


def _stamp(path: str) -> tuple[int, int]:
    """Changes when the file at `path` does; a missing one is found out when it is read."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def profiles(spec: ClusterSpec) -> tuple[DeviceProfile, HostProfile, LinkProfile]:
    """Device, host and network of `spec`, with the figures of its calibration.

    Raises ScenarioError for a name the catalogue does not have, or a calibration of another device.
    """
    chosen, servers, network = device(spec.device), host(spec.host), link(spec.link)
    record = calibration_of(spec.calibration)
    if record is None:
        return with_given(chosen, spec), with_given(servers, spec), with_given(network, spec)
    if record.device != spec.device:
        raise ScenarioError(
            f"cluster.calibration: {spec.calibration} is of {record.device}, cluster.device is {spec.device}"
        )
    chosen = with_fitted(chosen, record.figures["device"])
    if record.curve:
        sizes, shares = zip(*record.curve, strict=True)
        chosen = replace(chosen, spmm_curve=Curve(sizes, shares, "fitted", "micro-benchmarks", CALIBRATED))
    return (
        with_given(chosen, spec),
        with_given(with_fitted(servers, record.figures["host"]), spec),
        with_given(with_fitted(network, record.figures["network"]), spec),
    )


def device_link(spec: ClusterSpec) -> LinkProfile:
    """The link between a GPU of `spec` and its host: the one it names, or the device's by its calibration."""
    if spec.pcie is not None:
        return with_given(link(spec.pcie), spec)
    own, record = link(device(spec.device).link), calibration_of(spec.calibration)
    return with_given(own if record is None else with_fitted(own, record.figures.get("copies", {})), spec)


def for_graph(profile: DeviceProfile, record: Calibration | None, graph_hash: str | None) -> DeviceProfile:
    """The device on one graph: how far its SpMM was from the law there, where runs on that graph were recorded."""
    factor = 1.0 if record is None or graph_hash is None else record.graphs.get(graph_hash, 1.0)
    if factor == 1.0:
        return profile
    slower = replace(profile.spmm_efficiency, value=profile.spmm_efficiency.value / factor)
    curve = profile.spmm_curve
    if curve is not None:
        curve = replace(curve, values=tuple(value / factor for value in curve.values))
    return replace(profile, spmm_efficiency=slower, spmm_curve=curve)


def machine(spec: ClusterSpec) -> tuple[Cluster, DeviceProfile, HostProfile]:
    """The cluster of `spec` with its device and host profile.

    A network message costs CPU time at both ends before and after it travels; with GPU workers that time is counted as
    latency, with workers on CPU cores, or where the scenario says so (`cluster.sockets`), it is work for the cores.
    """
    calibration = (0, 0) if spec.calibration is None else _stamp(spec.calibration)
    return _machine(spec, (calibration, *map(file_stamp, spec.devices or (spec.device,))))


@lru_cache(maxsize=256)
def _machine(spec: ClusterSpec, stamps: tuple[tuple[int, int], ...]) -> tuple[Cluster, DeviceProfile, HostProfile]:
    chosen, servers, network = profiles(spec)
    wire = network.latency_s.value if spec.latency is None else spec.latency
    on_cores, paths = chosen.kind == "cpu", paths_of(spec)
    if spec.sockets == "cores":
        paths = replace(paths, sockets=Sockets(servers.socket_bandwidth.value, servers.message_s.value))
    cluster = build_cluster(
        gpus=spec.gpus,
        gpus_per_server=spec.gpus_per_server,
        pcie=_copies(spec),
        nic=LinkSpec(
            spec.bandwidth * network.efficiency.value,
            wire + (0.0 if on_cores or paths.sockets else 2 * servers.message_s.value),
            0.0 if on_cores or paths.sockets else servers.message_s.value,
            network.queue.value,
        ),
        memory=link_spec(with_given(link(HOST_MEMORY), spec)),
        cores=LinkSpec(
            servers.cores.value * (servers.busy_core_rate.value if on_cores else 1.0),
            cores=round(servers.cores.value) if on_cores else 0,
            slice_s=servers.slice_s.value,
        ),
        shared_cores=spec.shared_cores,
        staging=staging_of(spec),
        paths=paths,
    )
    return cluster, chosen, servers


def _copies(spec: ClusterSpec) -> LinkSpec | list[LinkSpec]:
    """The link of every GPU to its host: one, or by rank where servers have devices of their own."""
    own = devices_of(spec)
    if not own or spec.pcie is not None:
        return copies_of(spec, link_spec(device_link(spec)))
    return [link_spec(with_given(link(each.link), spec)) for each in own]


def with_fitted(profile: Profile, fitted: Mapping[str, Fitted]) -> Profile:
    """`profile` with the figures of a calibration in the place of its own."""
    figures: dict[str, Any] = {
        name: Figure(each.value, "fitted", each.reference, CALIBRATED) for name, each in fitted.items()
    }
    return replace(profile, **figures)
