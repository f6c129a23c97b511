"""One question to the simulator: cluster, workload, partition, method and run.

Every spec checks itself, so an existing one is valid whether it came from a file, an option or `dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.fields import Choice, Count, Flag, Number, QuantityRange, check_fields, entry
from gcnsim.core.units import BANDWIDTH, FRACTION, SECONDS
from gcnsim.graph import IDS, two_columns
from gcnsim.hardware import AGGREGATORS, GENERIC_LINK, NETWORK
from gcnsim.hardware.link_specs import ALLREDUCES, RING
from gcnsim.methods import FEATURES, Method
from gcnsim.scenario.catalogue_fields import DEVICE, DEVICES, HOST, LINK, PCIE, CatalogueFigures, Figures
from gcnsim.scenario.faults import Fault, check_faults
from gcnsim.scenario.partition import PartitionSpec
from gcnsim.workload import (
    CONCATENATED,
    DROPOUTS,
    EXCHANGE_FIRST,
    HEADS_JOINED,
    MODELS,
    OTHER_DATASET,
    PAYLOADS,
    datasets,
)

DEFAULT_DATASET: Final = "reddit"
SOURCES: Final = ("dataset", "graph", "trace", "profile", "nodes")
"""Fields of `workload` that name the source of the accesses; exactly one is given."""
TOPOLOGY: Final = (
    "devices", "nvlink", "nvlink_gpus", "transport", "gpudirect", "transfers", "pcie_sharing", "gpus_per_switch",
    "servers_per_rack", "oversubscription", "host_memory", "payload", "allreduce", "sockets", "rate_beside_copies",
    "sampler_device", "sampler_threads", "features", "implementation", "aggregator", "threads", "figures",
    "measured_compute",
)  # fmt: skip
"""Fields of a cluster that older scenarios lack; without them, the answer stays the same."""
CPU: Final = "cpu"
GPU: Final = "gpu"
SAMPLER_DEVICES: Final = (CPU, GPU)
STAGED: Final = "staged"
DIRECT: Final = "direct"
TRANSPORTS: Final = (STAGED, DIRECT)
"""How rows pass between GPUs: copied through host memory as a whole, or streamed from GPU to GPU."""
LEAN: Final = "lean"
RELEASED: Final = "released"
"""The simulated code: ideal code, or the published systems' code with its overhead."""
_FILE: Final = Choice("a file name")


MOST_GPUS: Final = 1024
"""Every pair of workers exchanges a flow per layer and direction: ten million ops per iteration at this number."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Servers with GPUs: one worker per GPU, one NIC per server. bandwidth: bytes/s per direction of that NIC."""

    gpus: int = entry(Number(True, 1, MOST_GPUS), "total number of GPUs, one worker each", 6)
    gpus_per_server: int = entry(Number(True, 1, 1024), "GPUs in one server; the last may hold fewer", 2)
    device: str = entry(DEVICE, "a device: its name in the catalogue, or a file", "t4")
    bandwidth: float = entry(
        NETWORK, "raw bandwidth of a server's NIC, per direction; or the name of a network (ethernet-25g)", 1.875e9
    )
    latency: float | None = entry(
        QuantityRange(SECONDS, 0.0, 60.0), "latency of the network; null: the link's", None, optional=True
    )
    pcie: str | None = entry(
        PCIE, "GPU-host link; null: the slower of the device's and the host's", None, optional=True
    )
    link: str = entry(LINK, "kind of network: its efficiency and latency", GENERIC_LINK)
    host: str = entry(
        HOST,
        "a server: its name in the catalogue, or a file; sets the CPU, and the GPUs and NIC unless given; by default "
        "the one that the device is usually sold in",
        "generic-16",
    )
    shared_cores: bool = entry(Flag(), "servers emulated on one machine share its cores", False)
    calibration: str | None = entry(_FILE, "calibration record with measured figures", None, optional=True)
    platform: str | None = entry(
        Choice("a platform"), "figures fitted to a platform's published runs: a name, or a file", None, optional=True
    )
    devices: tuple[str, ...] | None = entry(
        DEVICES,
        "device of each server, in place of cluster.device",
        None,
        optional=True,
    )
    nvlink: float | None = entry(
        QuantityRange(BANDWIDTH, 125.0, 1.25e13, or_none=True),
        "bandwidth from a GPU to the others in its server, per direction; null: the instance's, else the device's",
        None,
        optional=True,
    )
    nvlink_gpus: int | None = entry(
        Number(True, 2, 1024),
        "GPUs that one NVLink bridge joins, 2 for pairs; null: all of a server",
        None,
        optional=True,
    )
    transport: str | None = entry(
        Choice("a transport", lambda: TRANSPORTS),
        "direct (NCCL), or staged: whole copies in host memory (gloo); null: direct, but staged with platform, "
        "implementation: released or sockets: cores",
        None,
        optional=True,
    )
    gpudirect: bool | None = entry(
        Flag(), "copies between GPU and NIC bypass host memory; null: if the host can", None, optional=True
    )
    transfers: str = entry(
        Choice("an order", lambda: ("concurrent", "serial")),
        "whether a worker sends to all its peers at once, or to one after another",
        "concurrent",
    )
    pcie_sharing: str = entry(
        Choice("a sharing", lambda: ("none", "switch")), "whether GPUs share a PCIe uplink to their host", "none"
    )
    gpus_per_switch: int | None = entry(
        Number(True, 1, 1024), "GPUs on one PCIe switch, with pcie_sharing: switch; null: 2", None, optional=True
    )
    servers_per_rack: int | None = entry(
        Number(True, 1, 1024), "servers below one rack switch; null: one switch for all", None, optional=True
    )
    payload: str = entry(Choice("a payload", lambda: PAYLOADS), "number format of boundary rows in messages", "fp32")
    oversubscription: float = entry(Number(False, 1, 1000), "bandwidth of a rack's NICs over that of its uplink", 1.0)
    host_memory: float | None = entry(
        QuantityRange(BANDWIDTH, 125.0, 1.25e13),
        "host memory bandwidth shared by copies and NIC; null: unlimited",
        None,
        optional=True,
    )
    allreduce: str = entry(Choice("an all-reduce", lambda: ALLREDUCES), "algorithm that sums gradients", RING)
    sockets: str = entry(
        Choice("a kind of sockets", lambda: ("free", "cores")),
        "whether network messages cost CPU time (cores) or not (free)",
        "free",
    )
    rate_beside_copies: float | None = entry(
        QuantityRange(FRACTION, 0.0, 1.0, low_open=True),
        "GPU speed during transfers, as a share of its undisturbed speed; null: the platform's, else 100%",
        None,
        optional=True,
    )
    sampler_device: str | None = entry(
        Choice("a device of samplers", lambda: SAMPLER_DEVICES),
        "what draws graphs and mini-batches: host threads or the GPU; null: the method's default",
        None,
        optional=True,
    )
    sampler_threads: int | None = entry(
        Number(True, 1, 1024),
        "CPU threads that draw for one worker: they share a graph, or draw mini-batches ahead; null: the method's "
        "default",
        None,
        optional=True,
    )
    features: str | None = entry(
        Choice("a place", lambda: FEATURES),
        "where mini-batches read their rows: host memory, collected by cores (host) or read by the GPU (uva); or on "
        "the GPU; null: the method's default",
        None,
        optional=True,
    )
    implementation: str = entry(
        Choice("an implementation", lambda: (LEAN, RELEASED)),
        "lean: ideal code; released: add the overheads of the papers' published code",
        LEAN,
    )
    aggregator: str | None = entry(
        Choice("an aggregator", lambda: AGGREGATORS),
        "kernels that sum neighbours on CPU cores; null: those measured",
        None,
        optional=True,
    )
    threads: int | None = entry(
        Number(True, 1, 1024),
        "compute threads of each worker on CPU cores; null: as measured",
        None,
        optional=True,
    )
    figures: Figures = entry(CatalogueFigures(), "figures of the catalogue that are replaced in this question", ())
    measured_compute: str | None = entry(
        _FILE, "compute times measured by python -m runtime.measure; CPU cores need them", None, optional=True
    )

    def __post_init__(self) -> None:
        check_fields(self, "cluster")
        self._refuse_idle()
        if self.devices is not None:
            if len(self.devices) > self.servers:
                raise ScenarioError(
                    f"cluster.devices: {len(self.devices)} devices for {plural(self.servers, 'server')}"
                )
            # The device that the answer is named after: the first server's.
            object.__setattr__(self, "device", self.devices[0])

    def _refuse_idle(self) -> None:
        """Refuse a field that would not change the answer."""
        if self.oversubscription != 1.0 and self.servers_per_rack is None:
            raise ScenarioError(
                f"cluster.oversubscription: {self.oversubscription:g} needs cluster.servers_per_rack; it is null"
            )
        if self.gpus_per_switch is not None and self.pcie_sharing != "switch":
            raise ScenarioError(f"cluster.gpus_per_switch: {self.gpus_per_switch} needs cluster.pcie_sharing: switch")
        if self.nvlink_gpus is not None and not self.nvlink:
            raise ScenarioError(f"cluster.nvlink_gpus: {self.nvlink_gpus} needs cluster.nvlink, the bridges' rate")
        if self.sampler_device == GPU and self.sampler_threads not in (None, 1):
            raise ScenarioError(
                f"cluster.sampler_threads: {self.sampler_threads} needs cluster.sampler_device: {CPU}; it is {GPU}"
            )
        for name in ("calibration", "platform", "measured_compute"):
            if self.devices is not None and getattr(self, name) is not None:
                raise ScenarioError(f"cluster.devices: not allowed with cluster.{name}, which holds for one device")

    @property
    def besides(self) -> tuple[str, ...]:
        """The fields of `TOPOLOGY` that the user set."""
        plain = {item.name: item.default for item in fields(self)}
        return tuple(name for name in TOPOLOGY if getattr(self, name) != plain[name])

    @property
    def servers(self) -> int:
        """Number of servers; the last one may have fewer GPUs."""
        return -(-self.gpus // self.gpus_per_server)


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """The accesses (of a dataset, a graph file, a trace, a profile, sizes) and the model; None means the source's."""

    dataset: str | None = entry(
        Choice("a dataset", datasets, otherwise=OTHER_DATASET), "published dataset", DEFAULT_DATASET, optional=True
    )
    graph: str | None = entry(_FILE, "graph file, instead of a dataset", None, optional=True)
    ids: str = entry(
        Choice("a way to read ids", lambda: IDS),
        "node ids in an edge list: numbers, compact (integers with gaps, to be renumbered), or names",
        "numbers",
    )
    ends: str | None = entry(
        Choice("two columns (source,target)"),
        "columns of an edge list that hold the ends, by name or number from 1; null: by the header",
        None,
        optional=True,
    )
    trace: str | None = entry(_FILE, "recorded access trace, instead of a dataset", None, optional=True)
    profile: str | None = entry(_FILE, "stored boundary profile, instead of a dataset", None, optional=True)
    nodes: int | None = entry(
        Count(True, 2, 10**11), "nodes of a graph known only by its sizes, instead of a dataset", None, optional=True
    )
    edges: int | None = entry(
        Count(True, 1, 10**13), "undirected edges of a graph of workload.nodes, each counted once", None, optional=True
    )
    model: str | None = entry(
        Choice("a model", lambda: MODELS), "type of the layers; null: the dataset's", None, optional=True
    )
    layers: int | None = entry(Number(True, 1, 1000), "number of layers; null: the dataset's", None, optional=True)
    hidden: int | None = entry(Number(True, 1, 1_000_000), "hidden width; null: the dataset's", None, optional=True)
    heads: int = entry(Number(True, 1, 1024), "heads of attention (gat)", 1)
    heads_joined: str = entry(
        Choice("a way to join heads", lambda: HEADS_JOINED),
        "heads share the width of a hidden layer, or each has all of it and they are averaged (gat)",
        CONCATENATED,
    )
    keep_inputs: bool = entry(Flag(), "input rows of boundary nodes are fetched once, before training (gat)", False)
    norm: str = entry(Choice("a normalisation", lambda: ("none", "layer")), "LayerNorm after hidden layers", "layer")
    dropout: float | None = entry(
        QuantityRange(FRACTION, 0.0, 0.999),
        "share of each layer's input values that is dropped; every share above 0 takes the same time; null: dropout on "
        "GPUs, none on CPU cores",
        None,
        optional=True,
    )
    dropout_order: str = entry(
        Choice("an order", lambda: DROPOUTS[1:]),
        "dropout after rows arrive, or before they are sent",
        EXCHANGE_FIRST,
    )
    preaggregate: bool = entry(Flag(), "the input is aggregated once, before training", False)
    training_subgraph: bool = entry(Flag(), "only the training nodes of a graph file, and their edges", False)
    dense_layers: int = entry(Number(True, 0, 1000), "number of final layers without a sum over neighbours", 0)
    features: int | None = entry(Number(True, 1, 10_000_000), "input width; null: the data's", None, optional=True)
    classes: int | None = entry(Number(True, 1, 10_000_000), "output width; null: the data's", None, optional=True)
    cross_fraction: float | None = entry(
        QuantityRange(FRACTION, 0.0, 1.0, low_open=True),
        "share of edges that cross parts; null: assumed or counted",
        None,
        optional=True,
    )
    train_fraction: float | None = entry(
        QuantityRange(FRACTION, 0.0, 1.0, low_open=True),
        "share of nodes that are training nodes; null: the data's, else 65%",
        None,
        optional=True,
    )
    imbalance: float | None = entry(
        Number(False, 1, 1000), "slowest worker's load over the mean; null: assumed or counted", None, optional=True
    )

    def __post_init__(self) -> None:
        check_fields(self, "workload")
        if self.heads != 1 and self.model not in (None, "gat"):
            raise ScenarioError(f"workload.heads: {self.heads} is not allowed; only gat has heads, not {self.model}")
        if self.heads_joined != CONCATENATED and self.heads == 1:
            raise ScenarioError(
                f"workload.heads_joined: {self.heads_joined} needs workload.heads of at least 2; it is 1"
            )
        if self.keep_inputs and self.model not in (None, "gat"):
            raise ScenarioError(
                f"workload.keep_inputs: true is not allowed with {self.model}, which has workload.preaggregate; only "
                "gat recomputes its input sums in every iteration"
            )
        sources = {name: getattr(self, name) for name in SOURCES if getattr(self, name) is not None}
        if len(sources) > 1:
            named = " and ".join(f"{name} ({value})" for name, value in sources.items())
            raise ScenarioError(f"workload: both {named} are given; give one, the others null")
        if self.training_subgraph and self.graph is None:
            raise ScenarioError("workload.training_subgraph: true needs workload.graph, a file with a train_mask")
        if self.ids != "numbers" and self.graph is None:
            raise ScenarioError(f"workload.ids: {self.ids} needs workload.graph, an edge list; allowed: numbers")
        if self.ends is not None and self.graph is None:
            raise ScenarioError(f"workload.ends: {self.ends} needs workload.graph, an edge list; allowed: null")
        if self.ends is not None:
            two_columns(self.ends, "workload.ends")
        if not sources:
            raise ScenarioError(
                "workload: neither dataset nor graph, trace, profile or nodes is given; give one of them"
            )
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Raise ScenarioError for nodes without edges or the reverse, and for more edges than pairs of nodes."""
        if self.nodes is None or self.edges is None:
            if self.nodes is not self.edges:
                lacking, there = ("edges", "nodes") if self.edges is None else ("nodes", "edges")
                raise ScenarioError(f"workload.{there}: {getattr(self, there)} needs workload.{lacking} too")
            return
        most = self.nodes * (self.nodes - 1) // 2
        if self.edges > most:
            raise ScenarioError(
                f"workload.edges: {self.edges} is not allowed; {self.nodes} nodes have at most {most} undirected edges"
            )


AUTO: Final = "auto"
EXACT: Final = "exact"
COARSE: Final = "coarse"
COARSE_FROM: Final = 192
"""The number of GPUs from which runs are coarse by default, because exact ones take minutes."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The length, seed and fidelity of a run."""

    iterations: int = entry(Number(True, 1, 1_000_000), "iterations recorded", 30)
    seed: int = entry(Number(True, 0, 2**31 - 1), "seed of every draw", 0)
    fidelity: str = entry(
        Choice("a fidelity", lambda: (AUTO, EXACT, COARSE)),
        f"how flows share a link: exact or coarse; auto: coarse from {COARSE_FROM} GPUs",
        AUTO,
    )

    def __post_init__(self) -> None:
        check_fields(self, "run")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One validated question."""

    name: str
    cluster: ClusterSpec
    workload: WorkloadSpec
    partition: PartitionSpec
    method: Method
    run: RunSpec
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        check_faults(self.faults, self.cluster.gpus, self.run.iterations)
