"""The machine of a question, resolved once: no other code reads the catalogue or a record again.

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

from gcnsim.cluster import RING, Cluster, Link
from gcnsim.errors import ScenarioError, plural
from gcnsim.hardware import Platform, file_stamp, link
from gcnsim.ids import Bytes, Rank, Seconds
from gcnsim.machine.links import build_topology, offered, paths_of, platform_of, staging_of
from gcnsim.machine.profiles import HOST_MEMORY, NVLINK, Profiles, Stamp, find_profiles, record_stamp
from gcnsim.methods import Method, named
from gcnsim.scenario import DIRECT, LEAN, ClusterSpec


def payload_shares(machine: Machine) -> dict[str, float]:
    """By link, payload over the raw bandwidth that carries it; a link without framing is not named."""
    cluster = machine.topology
    network = machine.network.efficiency.value
    shares = {"nic": network, "rack": network, "nvlink": link(NVLINK).efficiency.value}
    found = {item.name: shares[item.kind] for item in cluster.links if item.kind in shares}
    for item in cluster.links:
        if item.kind == "pcie":
            found[item.name] = machine.copies_of(_rank(cluster, item)).efficiency.value
        elif machine.kind == "cpu" and item.kind == "memory":
            found[item.name] = link(HOST_MEMORY).efficiency.value
    return found


def _rank(cluster: Cluster, copies: Link) -> Rank:
    """A GPU behind a PCIe link: its own, or the first of the server whose switch it is."""
    device = copies.target if copies.name.endswith(".down") else copies.source
    if device.startswith("gpu"):
        return int(device.removeprefix("gpu"))
    return cluster.server_of.index(int(device.removeprefix("pcie-switch").partition(".")[0]))


def refuse_no_effect(clusters: Sequence[ClusterSpec]) -> None:
    """Raises ScenarioError for racks that hold all servers of every one of `clusters`: nothing passes their uplinks."""
    largest = max(clusters, key=lambda cluster: cluster.servers)
    held = largest.servers_per_rack
    if held is not None and held >= largest.servers:
        allowed = "null" if largest.servers == 1 else f"less than {largest.servers}, or null"
        raise ScenarioError(
            f"cluster.servers_per_rack: {held} is all of {plural(largest.servers, 'server')}, so nothing passes the "
            f"rack's uplink; allowed: {allowed}"
        )


def refuse_unused(spec: ClusterSpec, method: Method) -> None:
    """Raises ScenarioError for a path, a device or an order of transfers that the method's schedule does not have."""
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
"""90th percentile of the absolute errors with which the schedule of GPUs predicted the first draw of runs whose kernels
are waits (docs/validation.md): 52 runs, those whose messages kept the cores busy left out. Later draws are judged with
it."""

LAW_ERROR: Final = 0.15
"""About the 90th percentile (15.8 % of 22) of the absolute errors of whole iterations on GPUs whose figures were fitted
to them, those of attention and of more than `FAR_GPUS` left out (docs/reproduce.md): what laws leave out even where
their figures are known."""

FAR_LAW_ERROR: Final = 0.4
"""Of attention, and of more than `FAR_GPUS` GPUs: two tables that others printed are predicted 29 and 38 %
too fast, a third, of 192 GPUs, by far more."""

FAR_GPUS: Final = 24
"""GPUs up to which laws have been seen to hold."""


MEASURED_LEFT_OUT: Final = 0.25
"""Half the 90 % interval of iterations on CPU cores whose compute was measured and whose links were fitted to no run:
of 73 such runs 90 % were off by at most 20 % (docs/validation.md)."""


@dataclass(frozen=True)
class Machine(Profiles):
    """Its devices, host and links with their figures, and what follows from them.

    What only a schedule needs, the topology and the platform's figures, is resolved when it is first asked for, and
    refused then: a question is told first what else is wrong with it.
    """

    @cached_property
    def platform(self) -> Platform | None:
        """The platform whose published runs figures are fitted to. Raises ScenarioError for one of another device."""
        return platform_of(self.spec)

    @cached_property
    def topology(self) -> Cluster:
        """Its links with their capacities. Raises ScenarioError for paths that its workers do not have."""
        return build_topology(self, paths_of(self), staging_of(self, self.platform))

    @property
    def copies_limited(self) -> bool:
        """Whether the host's memory copies, not PCIe, limit copies between GPUs and host."""
        staging = staging_of(self, self.platform)
        return staging is not None and staging.capacity / 2 < offered(self.copies).capacity

    @cached_property
    def batch_topology(self) -> Cluster:
        """The same for mini-batches: what their GPUs copy are features in pinned memory, not what peers send."""
        fitted = self.platform is not None and self.platform.staging_bandwidth is not None
        return self.topology if fitted else build_topology(self, paths_of(self), None)

    @cached_property
    def capacities(self) -> tuple[Bytes, ...] | None:
        """Bytes of memory of each worker's GPU, by rank; None of workers on CPU cores, which share their host's."""
        ranks = range(self.spec.gpus)
        return None if self.kind == "cpu" else tuple(self.device_of(rank).memory.value for rank in ranks)

    @property
    def rate_beside_copies(self) -> float:
        """Share of its rate at which a GPU computes while transfers are under way: as asked, else as fitted, else 1."""
        if self.spec.rate_beside_copies is not None:
            return self.spec.rate_beside_copies
        return 1.0 if self.platform is None else self.platform.rate_beside_copies.value

    @property
    def error(self) -> float:
        """Half the width of the 90 % interval that calibration and platform left unexplained, relative."""
        record = self.calibration
        residual = 0.0 if record is None or record.error is None else record.error
        return residual if self.platform is None else float(np.hypot(residual, self.platform.error.value))

    def law_error(self, *, attends: bool) -> float:
        """Half the width of the 90 % interval of what laws and schedule leave out of an iteration, relative.

        Of measured kernels the schedule's alone, and that of several workers. 0 where a platform is fitted to whole
        iterations: its error holds this one too. attends: whether the model attends.
        """
        if self.kind == "cpu":
            judged = self.calibration is not None and self.calibration.error is not None
            return MEASURED_LEFT_OUT if self.spec.gpus > 1 and not judged else 0.0
        if self.platform is not None:
            return 0.0
        if self.calibration is None and self.measured is None:
            return FAR_LAW_ERROR if attends or self.spec.gpus > FAR_GPUS else LAW_ERROR
        return SCHEDULE_ERROR if self.spec.gpus > 1 else 0.0

    @property
    def unexplained_s(self) -> Seconds:
        """Time of an iteration that the platform's runs have and no figure gives."""
        return 0.0 if self.platform is None else self.platform.unexplained_s.value


def resolve_machine(spec: ClusterSpec) -> Machine:
    """The machine that `spec` describes, resolved again only where a file that it names has changed.

    Raises ScenarioError for a name the catalogue does not have, a calibration of another device or a CPU core among
    GPUs, FileError for a file that cannot be used.
    """
    files = (*(spec.devices or (spec.device,)), spec.host, *filter(None, [spec.platform]))
    records = (spec.calibration, spec.measured_compute)
    return _resolved(spec, (*map(record_stamp, records), *map(file_stamp, files)))


@lru_cache(maxsize=256)
def _resolved(spec: ClusterSpec, stamps: tuple[Stamp, ...]) -> Machine:
    profiles = find_profiles(spec)
    return Machine(**{field.name: getattr(profiles, field.name) for field in fields(profiles)})
