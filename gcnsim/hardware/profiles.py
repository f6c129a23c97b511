"""The figures of a device, a link and a host that the cost laws use; no formulas.

For a CPU core, a calibration finds the cost of sums over neighbours, graph attention, learnt maps, the loss and
GraphSAGE's pooling. It also finds how much more rows cost that come from memory, and the kernels for which these
figures hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.hardware.tables import Curve, Fact, Figure, origins
from gcnsim.shapes import Amount, As, Keys, OneOrMore, Positive, Within

LEVELS: Final = 3
"""Caches that the formula distinguishes: a core's first and second, and the last one, behind which memory is."""

TERMS: Final = (
    "call",
    "row",
    "row_byte",
    "far_row_byte",
    "filled_row",
    "entry",
    "entry_byte",
    "first_miss",
    "first_miss_byte",
    "second_miss",
    "second_miss_byte",
    "last_miss",
    "last_miss_byte",
)
"""Of a product: calls; rows of its result and their bytes, those of a result that lies behind the last cache, rows with
an entry; entries and the bytes of the rows they read; rows read that the first, the second, the last cache lacks, and
their bytes."""


@dataclass(frozen=True, slots=True)
class SumFigures:
    """What sums over neighbours cost a core."""

    caches: Annotated[tuple[Positive, ...], Within(min_items=LEVELS, max_items=LEVELS)]
    """Bytes of a core's first and second cache and of the last one, ascending."""
    seconds: Annotated[Mapping[str, float], As(Keys.of(TERMS, Amount))]
    """Of a call, a row of the result, a byte of it, .. (docs/calibration.md)."""


ATTENTION_TERMS: Final = ("call", "entry", "entry_head", "entry_value", "row_value")
"""Of a pass over a layer: calls; entries, once and once for each head; values of the rows that entries read, and of the
rows themselves."""


@dataclass(frozen=True, slots=True)
class AttentionFigures:
    """Seconds of one of each of ATTENTION_TERMS: forward, and backward."""

    forward: Annotated[Mapping[str, float], As(Keys.of(ATTENTION_TERMS, Amount))]
    """Seconds of one of each, forward."""
    backward: Annotated[Mapping[str, float], As(Keys.of(ATTENTION_TERMS, Amount))]
    """The same backward."""


MAP_TERMS: Final = (
    "call",
    "flop",
    "read_byte",
    "written_byte",
    "weight_call",
    "weight_flop",
    "weight_read_byte",
    "weight_gradient_byte",
)
"""Of rows times weights: calls, floating-point operations, bytes of the rows read and of those written. Of the weights'
gradient, a product over all rows: calls, operations, bytes of the rows and of the gradients that are read."""


@dataclass(frozen=True, slots=True)
class MapFigures:
    """What learnt maps, their gradients and the loss cost a core."""

    seconds: Annotated[Mapping[str, float], As(Keys.of(MAP_TERMS, Amount))]
    """Of one of each term: rows times weights, and the weights' gradient."""
    loss: Annotated[tuple[tuple[Positive, Positive], ...], Within(min_items=1)]
    """Pairs of classes, ascending, and seconds a row of the loss, its gradient and the count of right answers."""


POOLING_TERMS: Final = ("call", "entry", "entry_value", "row_value", "made_value")
"""Of a pass over a layer: calls; entries; values of the rows that entries read, of the rows themselves, and of the rows
made."""


@dataclass(frozen=True, slots=True)
class PoolingFigures:
    """Seconds of one of each of POOLING_TERMS: forward, and backward."""

    forward: Annotated[Mapping[str, float], As(Keys.of(POOLING_TERMS, Amount))]
    """Seconds of one of each, forward."""
    backward: Annotated[Mapping[str, float], As(Keys.of(POOLING_TERMS, Amount))]
    """The same backward."""


Times = Annotated[float, Within(minimum=1)]

FAR_HOST: Final = (
    "draw_s",
    "sample_edges_per_s",
    "build_entries_per_s",
    "sort_edges_per_s",
    "batch_s",
    "batch_looked_per_s",
    "batch_drawn_per_s",
    "batch_built_per_s",
    "batch_stored_per_s",
    "batch_turned_per_s",
    "batch_matrix_s",
    "batch_row_s",
    "load_s",
    "load_row_s",
    "gather_bandwidth",
)
"""Figures of a host of what samples, draws mini-batches and loads their rows."""


@dataclass(frozen=True, slots=True)
class FarFigures:
    """What takes longer where an iteration touches more than the last cache has room for."""

    cache: Positive
    """Bytes between two uses after which half of the rows have left the last cache."""
    byte: Amount
    """Seconds added to each byte of a map that comes from memory."""
    passes: Times
    """How many times as long elementwise passes take where all rows come from memory."""
    rows: Times
    """The same of rows that are packed, added or put between others."""
    launch: Times
    """The same of launches, whose code comes from memory too."""
    host: Annotated[Mapping[str, float], As(Keys.of(FAR_HOST, Positive, needed=False))]
    """Figures of the host where all that it reads comes from memory."""


PLAIN, NUMBA, DGL = "plain", "numba", "dgl"

AGGREGATORS: Final = (PLAIN, NUMBA, DGL)
"""What sums neighbours: torch, kernels of the training runtime's own, DGL."""


@dataclass(frozen=True, slots=True)
class CoreKernels:
    """Which kernels figures are of."""

    aggregator: Annotated[str, Within(enum=AGGREGATORS)] = PLAIN
    """What sums neighbours."""
    threads: OneOrMore = 1
    """That a worker computes with."""

    @property
    def words(self) -> str:
        """`--aggregator numba and --threads 2`: how the training runtime is asked for them."""
        return f"--aggregator {self.aggregator} and --threads {self.threads}"


PLAIN_KERNELS: Final = CoreKernels()
"""Torch's own on one thread: what the catalogue's figures are of, and records that do not say."""


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
    the last cache on the device, through which all its cores read memory; None: not known, or of a core. spmm_curve:
    where calibrated, the SpMM efficiency by the bytes of the dense matrix that rows are gathered from. sums: of a core,
    where calibrated, what sums over neighbours cost where the order of their matrices is known. attention: of a core,
    where calibrated, what graph attention costs (beside its sums where these are of other kernels than it). maps: of a
    core, where calibrated, what learnt maps, their gradients and the loss cost. pooling: of a core, where calibrated,
    what GraphSAGE's pooling costs. far: of a core, where calibrated, what its maps and passes take longer on rows that
    come from memory. kernels: which kernels a core's figures are of; a worker of several threads has a
    core that is as many of them.
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
    spmm_curve: Curve | None = None
    sums: SumFigures | None = None
    attention: AttentionFigures | None = None
    maps: MapFigures | None = None
    pooling: PoolingFigures | None = None
    far: FarFigures | None = None
    kernels: CoreKernels = PLAIN_KERNELS

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
    around the ring of an all-reduce, per worker. draw_s: CPU seconds of drawing a graph, however small.
    loss_values_per_s: logits per second of the loss, its gradient and the count of right answers, on a core.
    gather_bandwidth: bytes of feature rows that one core picks out of host memory per second.
    iteration_s: seconds of an iteration of a worker on a core outside its kernels. work_spread: how much the time of
    equal work on a core varies, the standard deviation of its logarithm. operation_s: host time of one call of the
    framework that GPU workers are written in. rebuild_bytes: device memory traffic an entry with which that framework
    makes a graph. staging_bandwidth: bytes/s that the host side of one GPU worker moves between its buffers and those
    of its peers, sent and received together. neighbour_draws_per_s: neighbours that one thread of a mini-batch sampler
    draws and renumbers per second. uva_efficiency: share of a copy's rate that a GPU's own reads of host memory reach.

    Of an instance type, or a server of a known make: gpus: how many it has. nic: raw bytes/s of its network, per
    direction, all its cards together. nics: how many cards. device: the name of its GPU. network: the name of the link
    that its cards are. pcie: the name of the link of its processors to GPUs, where that may be slower than a GPU's
    own. nvlink: bytes/s per direction of a GPU to the others of the server, all its links together;
    None: no such links. peer_to_peer: whether its GPUs read each other's memory over PCIe. gpudirect: whether its
    cards read that of GPUs.

    Of mini-batches on cores, where calibrated: batch_s: CPU seconds of drawing one, however small, and of its layers'
    rows. batch_looked_per_s, batch_drawn_per_s, batch_built_per_s: entries looked at, drawn one by one, and made into
    rows. batch_stored_per_s, batch_turned_per_s: entries made into a matrix, and into its transpose. batch_matrix_s:
    CPU seconds of a matrix, however small. batch_row_s: of a row of a layer, drawn and built. load_s, load_row_s: of
    picking rows out of memory, however few, and of a row, however short.

    Where calibrated: wake_s: seconds that a thread keeps a core while one waits for it that has just been given work
    and has had less; else slice_s. busy_sums_ratio: how much more sums over neighbours slow down than dense products do
    where other workers are busy beside. dropout_values_per_s: of a core, values of rows that are dropped or kept per
    second.
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
    draw_s: Figure
    loss_values_per_s: Figure
    gather_bandwidth: Figure
    iteration_s: Figure
    work_spread: Figure
    operation_s: Figure
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
    batch_s: Figure | None = None
    batch_looked_per_s: Figure | None = None
    batch_drawn_per_s: Figure | None = None
    batch_built_per_s: Figure | None = None
    batch_stored_per_s: Figure | None = None
    batch_turned_per_s: Figure | None = None
    batch_matrix_s: Figure | None = None
    batch_row_s: Figure | None = None
    load_s: Figure | None = None
    load_row_s: Figure | None = None
    wake_s: Figure | None = None
    busy_sums_ratio: Figure | None = None
    dropout_values_per_s: Figure | None = None

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
