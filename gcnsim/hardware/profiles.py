"""The figures of a device, a link and a host that the cost laws use; no formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gcnsim.hardware.tables import Curve, Fact, Figure, origins

CORE: Final = "cpu-core"
"""The device of the catalogue that is a CPU core."""

PLAIN, NUMBA, DGL = "plain", "numba", "dgl"

AGGREGATORS: Final = (PLAIN, NUMBA, DGL)
"""What sums neighbours: torch, kernels of the training runtime's own, DGL."""


@dataclass(frozen=True, slots=True)
class CoreKernels:
    """Which kernels compute times of cores are of."""

    aggregator: str = PLAIN
    """What sums neighbours, one of AGGREGATORS."""
    threads: int = 1
    """That a worker computes with."""


PLAIN_KERNELS: Final = CoreKernels()
"""Torch's own on one thread: of whoever does not say."""


GIVEN: Final = "as given"
"""The source of a figure that a question gave."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One GPU (or one CPU core that trains).

    memory: bytes. memory_bandwidth: bytes/s. flops_fp32, flops_fp16: peak flop/s (fp16 dense, on matrix units where the
    device has them; None when it has no fp16 rate worth using). spmm, gemm, gather and elementwise efficiency: share of
    the memory bandwidth (of the fp32 peak for gemm) that the kernel reaches; for SpMM every gathered row counts as read
    from DRAM. launch_s: seconds a kernel costs before its first byte. cache_rate: bandwidth at which sparse
    sums read rows that the last cache holds, over that of memory. link: name of the link to the host. nvlink:
    bytes/s per direction of all links to other GPUs together, of a module that has them; a host says whether it joins
    them. peer_to_peer: whether GPUs read each other's memory over PCIe, where the server allows it. l2_cache: bytes of
    the last cache on the device, through which all its cores read memory; None: not known, or of a core. power: watts
    of the board; busy_power, waiting_power: shares of it that it draws while it computes and while it waits; None: not
    known. spmm_curve: where calibrated, the SpMM efficiency by the bytes of the dense matrix that rows are gathered
    from.
    """

    name: str
    title: str
    kind: str
    """`gpu` or `cpu`."""
    memory: Figure
    memory_bandwidth: Figure
    flops_fp32: Figure
    flops_fp16: Figure | None
    spmm_efficiency: Figure
    gemm_efficiency: Figure
    gather_efficiency: Figure
    elementwise_efficiency: Figure
    launch_s: Figure
    link: str
    nvlink: Figure | None = None
    nvlink_generation: Figure | None = None
    peer_to_peer: Fact | None = None
    l2_cache: Figure | None = None
    cache_rate: Figure | None = None
    power: Figure | None = None
    busy_power: Figure | None = None
    waiting_power: Figure | None = None
    spmm_curve: Curve | None = None

    def provenance(self) -> tuple[str, ...]:
        """Kinds of origin among its figures, the weakest first."""
        return origins(self)


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """One kind of link, full duplex.

    bandwidth: raw bytes/s per direction. efficiency: share of it that payload reaches in long transfers. latency_s:
    seconds that a message takes before its first byte arrives, whatever its size; while they pass, others may use the
    link. At latency_s x reachable bandwidth bytes, Hockney's half-size, half of that bandwidth is reached. queue: bytes
    that each transfer under way has waiting in the link's queue, ahead of a message that starts.
    """

    name: str
    title: str
    bandwidth: Figure
    efficiency: Figure
    latency_s: Figure
    queue: Figure

    def provenance(self) -> tuple[str, ...]:
        """Kinds of origin among its figures, the weakest first."""
        return origins(self)


@dataclass(frozen=True, slots=True)
class HostProfile:
    """One server's CPU side.

    cores: number of cores (vCPU). memory_bandwidth: bytes/s of the whole server. sample_edges_per_s: edges that one
    sampling thread draws per second. sort_edges_per_s: edges whose sampling probabilities one thread recomputes per
    second. build_entries_per_s: kept entries that one thread turns into a sparse matrix and its transpose per second.
    message_s: CPU seconds per message sent or received. socket_bandwidth: bytes that one core moves through a socket
    per second, at either end. busy_core_rate: what a core does when all are busy, as a share of what one does alone.
    slice_s: seconds that a thread keeps a core while another waits for it. reduce_step_s: CPU seconds of one step
    around the ring of an all-reduce, per worker. gather_bandwidth: bytes of feature rows that one core picks out of
    host memory per second. work_spread: how much the time of equal work on a core varies, the standard deviation of its
    logarithm. operation_s: host time of one call of the framework that the published systems' GPU workers are written
    in. call_s: the same of plain torch. rebuild_bytes: device memory traffic an entry with which that framework makes a
    graph. staging_bandwidth: bytes/s that the host side of one GPU worker moves between its buffers and those of its
    peers, sent and received together.
    neighbour_draws_per_s: neighbours that one thread of a mini-batch sampler draws and renumbers per second.
    uva_efficiency: share of a copy's rate that a GPU's own reads of host memory reach.

    Of an instance type, or a server of a known make: gpus: how many it has. nic: raw bytes/s of its network, per
    direction, all its cards together. nics: how many cards. device: the name of its GPU. network: the name of the link
    that its cards are. pcie: the name of the link of its processors to GPUs, where that may be slower than a GPU's
    own. nvlink: bytes/s per direction of a GPU to the others of the server, all its links together;
    None: no such links. peer_to_peer: whether its GPUs read each other's memory over PCIe. gpudirect: whether its
    cards read that of GPUs.

    host_power: power of a server without its GPUs, with its switch port, over their board power. pue: power of the
    building over that of its servers.

    Where calibrated: wake_s: seconds that a thread keeps a core while one waits for it that has just been given work
    and has had less; else slice_s.
    """

    name: str
    title: str
    cores: Figure
    memory_bandwidth: Figure
    sample_edges_per_s: Figure
    sort_edges_per_s: Figure
    build_entries_per_s: Figure
    message_s: Figure
    socket_bandwidth: Figure
    busy_core_rate: Figure
    slice_s: Figure
    reduce_step_s: Figure
    gather_bandwidth: Figure
    work_spread: Figure
    operation_s: Figure
    call_s: Figure
    rebuild_bytes: Figure
    staging_bandwidth: Figure
    neighbour_draws_per_s: Figure
    uva_efficiency: Figure
    gpus: Figure | None = None
    nic: Figure | None = None
    device: str | None = None
    nics: Figure | None = None
    network: str | None = None
    pcie: str | None = None
    nvlink: Figure | None = None
    nvlink_generation: Figure | None = None
    peer_to_peer: Fact | None = None
    gpudirect: Fact | None = None
    wake_s: Figure | None = None
    host_power: Figure | None = None
    pue: Figure | None = None

    def provenance(self) -> tuple[str, ...]:
        """Kinds of origin among its figures, the weakest first."""
        return origins(self)


@dataclass(frozen=True, slots=True)
class Price:
    """What one GPU costs per hour: the price of `instance` divided by its `gpus`. pricing: on-demand or spot."""

    device: str
    usd_per_gpu_hour: float
    instance: str
    gpus: int
    region: str
    source: str
    date: str
    pricing: str = "on-demand"

    @property
    def usd_per_hour(self) -> float:
        """US dollars of the whole instance per hour."""
        return self.usd_per_gpu_hour * self.gpus

    @property
    def named(self) -> bool:
        """Whether a question gave it, rather than a list of prices."""
        return self.source == GIVEN

    @property
    def order(self) -> tuple[str, float, str]:
        """For sorting: by device, the cheapest GPU first."""
        return self.device, self.usd_per_gpu_hour, self.instance.lower()
