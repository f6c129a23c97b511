"""The figures of a device, a link and a host that the cost laws use, each with its quantity; no formulas.

A figure is a number with its source: every prediction is only as good as the worst figure it uses. Figures are declared
and parsed here.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Final, TypeAlias

import numpy as np

from gcnsim.core import units
from gcnsim.core.errors import FileError, GcnsimError, nearest
from gcnsim.core.fields import Number, QuantityRange, shown
from gcnsim.core.ids import FloatArray

SOURCES: Final = ("assumed", "datasheet", "given", "fitted", "measured")
"""Kinds of source, the weakest first; only `assumed` figures have a range. `given`: by the question."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI units with its source.

    value: seconds, bytes, bytes/s, flop/s, edges/s or a share of one. source: one of `SOURCES`. reference: the
    document, or the way it was measured. date: of the reference (ISO, or the year). low, high: the range if assumed.
    """

    value: float
    source: str
    reference: str
    date: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A true or false fact with its source; source, reference and date as in a `Figure`."""

    value: bool
    source: str
    reference: str
    date: str


def figures_of(profile: Any) -> dict[str, Figure]:
    """The figures of `profile` by field name, in the order of its fields."""
    pairs = ((field.name, getattr(profile, field.name)) for field in fields(profile))
    return {name: value for name, value in pairs if isinstance(value, Figure)}


def origins(profile: Any) -> tuple[str, ...]:
    """The kinds of source among the figures of `profile`, the weakest first."""
    kinds = {figure.source for figure in figures_of(profile).values()}
    return tuple(source for source in SOURCES if source in kinds)


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure that depends on a size: `values[i]` at `sizes[i]` (ascending), straight in log(size), flat beyond."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]
    source: str
    reference: str
    date: str

    def at(self, size: FloatArray) -> FloatArray:
        """The value at each size, float64 of the same shape."""
        interpolated: FloatArray = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.values)
        return interpolated


Table: TypeAlias = Mapping[str, units.Quantity | None]
"""Figures by name, with the quantity of each (None: a plain number)."""

ZERO: Final = "zero"
"""The mark of a figure that may be zero; a rate or a share of one may not."""

OF_CALIBRATIONS: Final = "calibrations"
"""The mark of a figure that only calibrations contain."""


def declared(profile: type, mark: str = "") -> dict[str, units.Quantity | None]:
    """The figures of a profile in the order of its fields, or those with a mark.

    A field declares a figure by its annotation, `Annotated[Figure, quantity, *marks]`.
    """
    hints = ((item.name, getattr(item.type, "__metadata__", ())) for item in fields(profile))
    return {name: how[0] for name, how in hints if how and (not mark or mark in how)}


def split_declared(profile: type) -> tuple[Table, Table]:
    """The figures that every profile of a kind has, and those that it may have in a file."""
    every, calibrated = declared(profile), declared(profile, OF_CALIBRATIONS)
    always = {item.name for item in fields(profile) if item.default is MISSING}
    return (
        {name: quantity for name, quantity in every.items() if name in always},
        {name: quantity for name, quantity in every.items() if name not in always and name not in calibrated},
    )


def read_figure(raw: object, quantity: units.Quantity | None, path: str) -> Figure:
    """Parse a figure `{value, source, reference, date, low, high}`. Raises FileError that starts with `path`."""
    if not isinstance(raw, dict) or not {"value", "source", "reference", "date"} <= set(raw):
        raise FileError(f"{path}: a figure is {{value, source, reference, date}} and, if assumed, low and high")
    unknown = sorted(set(raw) - {"value", "source", "reference", "date", "low", "high"})
    if unknown:
        raise FileError(f"{path}: unknown key {shown(unknown[0])}; {nearest(unknown[0], Figure.__slots__)}")
    source = str(raw["source"])
    if source not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(source, SOURCES)}")
    low, value, high = (_number(raw[key], quantity, path) if key in raw else None for key in ("low", "value", "high"))
    assert value is not None
    if source == "assumed" and (low is None or high is None or not low <= value <= high):
        raise FileError(f"{path}: an assumed figure needs low and high around its value")
    return Figure(value, source, str(raw["reference"]), str(raw["date"]), low, high)


def read_fact(raw: object, path: str) -> Fact:
    """Parse a fact `{value, source, reference, date}`, value true or false.

    Raises FileError that starts with `path`.
    """
    if not isinstance(raw, dict) or set(raw) != {"value", "source", "reference", "date"}:
        raise FileError(f"{path}: is not {{value: true or false, source, reference, date}}")
    if not isinstance(raw["value"], bool):
        raise FileError(f"{path}: {shown(raw['value'])} is not true or false")
    if raw["source"] not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(str(raw['source']), SOURCES)}")
    return Fact(raw["value"], raw["source"], str(raw["reference"]), str(raw["date"]))


def _number(raw: object, quantity: units.Quantity | None, path: str) -> float:
    try:
        return (
            Number(False, 0).read(raw, path)
            if quantity is None
            else QuantityRange(quantity, 0, math.inf).read(raw, path)
        )
    except GcnsimError as error:
        raise FileError(str(error)) from None


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

    memory: bytes. memory_bandwidth: bytes/s. flops_fp32, flops_fp16: peak flop/s (fp16 dense, on matrix units where
    the device has them; None when it has no fp16 rate worth using). spmm, gemm, gather and elementwise efficiency:
    share of the memory bandwidth (of the fp32 peak for gemm) that the kernel reaches. launch_s: seconds a kernel
    costs before its first byte. multiprocessors: how many it has (compute units of AMD). cache_bandwidth: bytes/s
    that one of them reads through the last cache in sparse sums; without it, or their number, every gathered row
    counts as read from memory. degree_spread: standard deviation of the log of degrees of the graph that is
    trained. entries_per_s: stored entries that sparse sums of narrow rows process at most; None: not known. link:
    name of the link to the host. nvlink: bytes/s per direction of all links to other GPUs together, of a module
    that has them; a host says whether it joins them. peer_to_peer: whether GPUs read each other's memory over PCIe,
    where the server allows it. l2_cache: bytes of the last cache on the device, through which all its cores read
    memory; None: not known, or of a core. power: watts of the board; busy_power, waiting_power, idle_power: shares
    of it that it draws while it computes, while it waits, and while nobody uses it; None: not known. sold_in: the
    host that it is usually sold in, which a question that names no server has; None: none in particular. spmm_curve:
    where calibrated, the SpMM efficiency by the bytes of the dense matrix that rows are gathered from.
    """

    name: str
    title: str
    kind: str
    """`gpu` or `cpu`."""
    memory: Annotated[Figure, units.NBYTES]
    memory_bandwidth: Annotated[Figure, units.BANDWIDTH]
    flops_fp32: Annotated[Figure, units.FLOPS]
    flops_fp16: Annotated[Figure | None, units.FLOPS]
    spmm_efficiency: Annotated[Figure, units.FRACTION]
    gemm_efficiency: Annotated[Figure, units.FRACTION]
    gather_efficiency: Annotated[Figure, units.FRACTION]
    elementwise_efficiency: Annotated[Figure, units.FRACTION]
    launch_s: Annotated[Figure, units.SECONDS, ZERO]
    link: str
    nvlink: Annotated[Figure | None, units.BANDWIDTH] = None
    nvlink_generation: Annotated[Figure | None, None] = None
    peer_to_peer: Fact | None = None
    l2_cache: Annotated[Figure | None, units.NBYTES, "cache"] = None
    multiprocessors: Annotated[Figure | None, None] = None
    cache_bandwidth: Annotated[Figure | None, units.BANDWIDTH, "cache"] = None
    entries_per_s: Annotated[Figure | None, units.RATE, "cache"] = None
    power: Annotated[Figure | None, units.POWER, "power"] = None
    busy_power: Annotated[Figure | None, units.FRACTION, "power"] = None
    waiting_power: Annotated[Figure | None, units.FRACTION, "power"] = None
    idle_power: Annotated[Figure | None, units.FRACTION, "power"] = None
    spmm_curve: Curve | None = None
    degree_spread: float | None = None
    sold_in: str | None = None

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
    bandwidth: Annotated[Figure, units.BANDWIDTH]
    efficiency: Annotated[Figure, units.FRACTION]
    latency_s: Annotated[Figure, units.SECONDS, ZERO]
    queue: Annotated[Figure, units.NBYTES, ZERO]

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

    memory: bytes of the whole server; None: not known, so nothing is refused for it.

    Of an instance type, or a server of a known make: gpus: how many it has. nic: raw bytes/s of its network, per
    direction, all its cards together. nics: how many cards. device: the name of its GPU. network: the name of the link
    that its cards are. pcie: the name of the link of its processors to GPUs, where that may be slower than a GPU's
    own. nvlink: bytes/s per direction of a GPU to the others of the server, all its links together;
    None: no such links. peer_to_peer: whether its GPUs read each other's memory over PCIe. gpudirect: whether its
    cards read that of GPUs.

    host_power: power of a server without its GPUs, with its switch port, over their board power; it is host_floor, in
    watts, at least.

    Where calibrated: wake_s: seconds that a thread keeps a core while one waits for it that has just been given work
    and has had less; else slice_s.
    """

    name: str
    title: str
    cores: Annotated[Figure, None]
    memory_bandwidth: Annotated[Figure, units.BANDWIDTH]
    sample_edges_per_s: Annotated[Figure, units.RATE]
    sort_edges_per_s: Annotated[Figure, units.RATE]
    build_entries_per_s: Annotated[Figure, units.RATE]
    message_s: Annotated[Figure, units.SECONDS, ZERO]
    socket_bandwidth: Annotated[Figure, units.BANDWIDTH]
    busy_core_rate: Annotated[Figure, units.FRACTION]
    slice_s: Annotated[Figure, units.SECONDS]
    reduce_step_s: Annotated[Figure, units.SECONDS]
    gather_bandwidth: Annotated[Figure, units.BANDWIDTH]
    work_spread: Annotated[Figure, units.FRACTION, ZERO]
    operation_s: Annotated[Figure, units.SECONDS, ZERO]
    call_s: Annotated[Figure, units.SECONDS, ZERO]
    rebuild_bytes: Annotated[Figure, units.NBYTES, ZERO]
    staging_bandwidth: Annotated[Figure, units.BANDWIDTH]
    neighbour_draws_per_s: Annotated[Figure, units.RATE]
    uva_efficiency: Annotated[Figure, units.FRACTION]
    memory: Annotated[Figure | None, units.NBYTES] = None
    gpus: Annotated[Figure | None, None] = None
    nic: Annotated[Figure | None, units.BANDWIDTH] = None
    device: str | None = None
    nics: Annotated[Figure | None, None] = None
    network: str | None = None
    pcie: str | None = None
    nvlink: Annotated[Figure | None, units.BANDWIDTH] = None
    nvlink_generation: Annotated[Figure | None, None] = None
    peer_to_peer: Fact | None = None
    gpudirect: Fact | None = None
    wake_s: Annotated[Figure | None, units.SECONDS, OF_CALIBRATIONS] = None
    host_power: Annotated[Figure | None, None, "site"] = None
    host_floor: Annotated[Figure | None, units.POWER, "site"] = None

    def provenance(self) -> tuple[str, ...]:
        """Kinds of origin among its figures, the weakest first."""
        return origins(self)


DEVICE, DEVICE_OPTIONAL = split_declared(DeviceProfile)
"""Figures that a device has and may have."""
LINK, _ = split_declared(LinkProfile)
HOST, INSTANCE = split_declared(HostProfile)
"""Figures of every host, and of those that are an instance type or a server of a known make, and of their power."""
CACHE: Final[Table] = declared(DeviceProfile, "cache")
"""Figures of a GPU's last-level cache."""
POWER: Final[Table] = declared(DeviceProfile, "power")
"""Power of a GPU: its board's, and the shares of it that a computing, a waiting and an unused GPU draw."""
SITE: Final[Table] = declared(HostProfile, "site")
"""Power of the rest of a server over its GPUs' board power, and its least."""
CALIBRATED: Final[Table] = declared(HostProfile, OF_CALIBRATIONS)
"""Host figures that only calibrations contain."""
PROFILES: Final = (DeviceProfile, LinkProfile, HostProfile)
QUANTITIES: Final[Table] = {name: quantity for kind in PROFILES for name, quantity in declared(kind).items()}
"""The quantity of each figure of a profile."""
ZERO_ALLOWED: Final = frozenset(name for kind in PROFILES for name in declared(kind, ZERO))
"""Figures that may be zero; a rate or a share of one may not."""


def above_limit(figures: Mapping[str, Figure | None], given: Collection[str]) -> tuple[str, str] | None:
    """The figure of a GPU's power among `given` that is above the one that limits it, and that one; None: in order.

    A GPU that waits draws at most what a computing one draws, and an unused one at most what a waiting one draws.
    """
    for less, more in (("waiting_power", "busy_power"), ("idle_power", "waiting_power")):
        low, high = figures.get(less), figures.get(more)
        if less in given and low is not None and high is not None and low.value > high.value:
            return less, more
    return None


HOST_NAMES: Final = ("device", "network", "pcie")
"""The catalogue names in a host: its GPUs, the kind of its network, the link between GPUs and processors."""

DEVICE_NAMES: Final = ("link", "sold_in")
"""The catalogue names in a device: its link to the host, and the server that it is usually sold in."""

INSIDE: Final = ("pcie", "nvlink", "host-memory")
"""The names of links within a server."""

DEVICE_FACTS: Final = ("peer_to_peer",)
HOST_FACTS: Final = ("peer_to_peer", "gpudirect")
"""Facts about a device or a host; unknown ones are omitted."""


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
