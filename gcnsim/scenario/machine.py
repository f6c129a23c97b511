"""The machine of a question, resolved once; no other code reads the catalogue or a record again.

`payload_shares` gives the share of each link's raw bandwidth that is payload: background traffic is given on the wire,
capacities in payload. Parts of a cluster that no schedule of a question would use are refused, because they would not
change the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import Bytes, Rank, Seconds
from gcnsim.core.stamps import Stamp, stamp_of
from gcnsim.hardware import Platform, file_stamp, link
from gcnsim.hardware.link_specs import RING, Link
from gcnsim.hardware.topology import Cluster
from gcnsim.methods import Method, named
from gcnsim.scenario.machine_links import build_topology, offered, paths_of, platform_of, staging_of
from gcnsim.scenario.machine_profiles import HOST_MEMORY, NVLINK, Profiles, find_profiles
from gcnsim.scenario.specs import DIRECT, LEAN, ClusterSpec


def payload_shares(machine: Machine) -> dict[str, float]:
    """By link, payload over the raw bandwidth that carries it; links without framing are omitted."""
    cluster = machine.topology
    network = machine.network.efficiency.value
    shares = {"nic": network, "rack": network, "nvlink": link(NVLINK).efficiency.value}
    by_link = {item.name: shares[item.kind] for item in cluster.links if item.kind in shares}
    for item in cluster.links:
        if item.kind == "pcie":
            by_link[item.name] = machine.copies_of(_rank(cluster, item)).efficiency.value
        elif machine.kind == "cpu" and item.kind == "memory":
            by_link[item.name] = link(HOST_MEMORY).efficiency.value
    return by_link


def _rank(cluster: Cluster, copies: Link) -> Rank:
    """The rank of a GPU behind a PCIe link: the link's GPU, or the first one of the server with that switch."""
    device = copies.target if copies.name.endswith(".down") else copies.source
    if device.startswith("gpu"):
        return int(device.removeprefix("gpu"))
    return cluster.server_of.index(int(device.removeprefix("pcie-switch").partition(".")[0]))


def refuse_no_effect(clusters: Sequence[ClusterSpec]) -> None:
    """Raise ScenarioError for racks that contain all servers of each of `clusters`: nothing crosses their uplinks."""
    largest = max(clusters, key=lambda cluster: cluster.servers)
    held = largest.servers_per_rack
    if held is not None and held >= largest.servers:
        allowed = "null" if largest.servers == 1 else f"less than {largest.servers}, or null"
        raise ScenarioError(
            f"cluster.servers_per_rack: {held} is all of {plural(largest.servers, 'server')}, so nothing passes the "
            f"rack's uplink; allowed: {allowed}"
        )


def refuse_unused(spec: ClusterSpec, method: Method) -> None:
    """Raise ScenarioError for a path, a device or an order of transfers that the method's schedule does not use."""
    requested = {
        "devices": spec.devices is not None,
        "transfers": spec.transfers != "concurrent",
        "payload": spec.payload != "fp32",
        "sockets": spec.sockets != "free",
        "rate_beside_copies": spec.rate_beside_copies is not None,
        "sampler_device": spec.sampler_device is not None,
        "sampler_threads": spec.sampler_threads is not None,
        "features": spec.features is not None,
        "implementation": spec.implementation != LEAN,
        "nvlink": bool(spec.nvlink),
        "transport": spec.transport == DIRECT,
        "gpudirect": bool(spec.gpudirect),
        "allreduce": spec.allreduce != RING,
    }
    for name, given in requested.items():
        if given and name not in method.uses:
            having = ", ".join(_using(name))
            raise ScenarioError(f"cluster.{name}: not modelled with {method.name}; methods with it: {having}")


def _using(option: str) -> list[str]:
    return named(lambda kind: option in kind.uses)


SCHEDULE_ERROR: Final = 0.04
"""90th percentile of the absolute errors of the GPU schedule on the first draw of emulated runs (docs/validation.md).

52 runs, without those whose messages kept the cores busy. Later draws are validated with it.
"""

LAW_ERROR: Final = 0.2
"""Between the 90th percentiles of the absolute errors of whole iterations on GPUs with fitted figures: 15.8 % of 22
published ones, 24.4 % of 18 on an H200 and 27.7 % of 12 on an H100 (docs/validation.md).

Attention and more than `FAR_GPUS` GPUs are excluded (docs/reproduce.md). It is the error of laws with known figures.
"""

FAR_LAW_ERROR: Final = 0.4
"""For attention, and for more than `FAR_GPUS` GPUs: two published tables are predicted 29 and 38 % too fast, a third,
of 192 GPUs, by far more. Attention in plain torch, as `runtime.train` computes it, is slower still.
"""

FAR_GPUS: Final = 24
"""The most GPUs for which laws were validated."""


MEASURED_GPU_ERROR: Final = 0.12
"""90th percentile of the absolute errors of 36 runs on an H200, compute measured; 12.8 % of 36 on an H100."""

MEASURED_LEFT_OUT: Final = 0.25
"""Half the 90 % interval of iterations on CPU cores whose compute was measured and whose links were fitted to no run:
of 73 such runs 90 % were off by at most 20 % (docs/validation.md)."""


@dataclass(frozen=True)
class Machine(Profiles):
    """The devices, host and links of a machine with their figures, and derived properties.

    The topology and the platform's figures are resolved (and refused) on first use: a question reports its other errors
    first.
    """

    @cached_property
    def platform(self) -> Platform | None:
        """The platform whose published runs the figures are fitted to. Raises ScenarioError if its device differs."""
        return platform_of(self.spec)

    @cached_property
    def topology(self) -> Cluster:
        """Its links with their capacities. Raises ScenarioError for paths that its workers lack."""
        return build_topology(self, paths_of(self), staging_of(self, self.platform))

    @property
    def copies_limited(self) -> bool:
        """Whether the host's memory copies, not PCIe, limit copies between GPUs and host."""
        staging = staging_of(self, self.platform)
        return staging is not None and staging.capacity / 2 < offered(self.copies).capacity

    @cached_property
    def batch_topology(self) -> Cluster:
        """The same for mini-batches, whose GPUs copy features in pinned memory and not messages of peers."""
        fitted = self.platform is not None and self.platform.staging_bandwidth is not None
        return self.topology if fitted else build_topology(self, paths_of(self), None)

    @cached_property
    def capacities(self) -> tuple[Bytes, ...] | None:
        """Bytes of memory of each worker's GPU, by rank; None for workers on CPU cores, which share their host's."""
        ranks = range(self.spec.gpus)
        return None if self.kind == "cpu" else tuple(self.device_of(rank).memory.value for rank in ranks)

    @property
    def server_capacity(self) -> Bytes | None:
        """Bytes of memory of each server; None if not known."""
        return None if self.host.memory is None else self.host.memory.value

    @property
    def rate_beside_copies(self) -> float:
        """The relative speed of a GPU during transfers: given, otherwise fitted, otherwise 1."""
        if self.spec.rate_beside_copies is not None:
            return self.spec.rate_beside_copies
        return 1.0 if self.platform is None else self.platform.rate_beside_copies.value

    @property
    def error(self) -> float:
        """Half the width of the 90 % interval of the residual error of calibration and platform, relative."""
        record = self.calibration
        residual = 0.0 if record is None or record.error is None else record.error
        return residual if self.platform is None else float(np.hypot(residual, self.platform.error.value))

    def law_error(self, *, attends: bool) -> float:
        """Half the width of the 90 % interval of what laws and schedule leave out of an iteration, relative.

        Of measured kernels the error of such measurements, and of several workers the schedule's. A calibration without
        runs knows no error of its own. 0 where a platform is fitted to whole iterations: its error holds this one too.
        attends: whether the model attends.
        """
        if self.kind == "cpu":
            judged = self.calibration is not None and self.calibration.error is not None
            return MEASURED_LEFT_OUT if self.spec.gpus > 1 and not judged else 0.0
        if self.platform is not None:
            return 0.0
        if self.measured is None and (self.calibration is None or self.calibration.error is None):
            return FAR_LAW_ERROR if attends or self.spec.gpus > FAR_GPUS else LAW_ERROR
        schedule = SCHEDULE_ERROR if self.spec.gpus > 1 else 0.0
        return schedule if self.measured is None else float(np.hypot(schedule, MEASURED_GPU_ERROR))

    @property
    def unexplained_s(self) -> Seconds:
        """Seconds of an iteration in the platform's runs that no figure explains."""
        return 0.0 if self.platform is None else self.platform.unexplained_s.value


def resolve_machine(spec: ClusterSpec) -> Machine:
    """The machine that `spec` describes; it is resolved again only if a file that it names has changed.

    Raises ScenarioError for an unknown name, a calibration of another device or a CPU core among GPUs, FileError for an
    unusable file.
    """
    files = (*(spec.devices or (spec.device,)), spec.host, *filter(None, [spec.platform]))
    records = (spec.calibration, spec.measured_compute)
    return _resolved(spec, (*map(stamp_of, records), *map(file_stamp, files)))


@lru_cache(maxsize=256)
def _resolved(spec: ClusterSpec, stamps: tuple[Stamp, ...]) -> Machine:
    profiles = find_profiles(spec)
    return Machine(**{field.name: getattr(profiles, field.name) for field in fields(profiles)})
