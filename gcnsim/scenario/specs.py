"""One question to the simulator, as facts: which cluster, which work, which partition, which method, which run.

Every spec checks itself, so one that exists is valid whether it came from a file, an option or `dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gcnsim import knobs
from gcnsim.caching import CacheSize
from gcnsim.errors import ScenarioError
from gcnsim.profile import GENERIC_LINK, devices, hosts, links
from gcnsim.scenario.rules import Cache, Measure, Number, Truth, Word, check_fields, entry
from gcnsim.units import BANDWIDTH, FRACTION, SECONDS
from gcnsim.workload import MODELS, datasets

DEFAULT_DATASET: Final = "reddit"
_FILE: Final = Word("a file name")

OF_ALL: Final = ("name", "overlap")
"""Fields of a method that are no knobs of some: every method has them."""

MOST_GPUS: Final = 128
"""Every pair of workers exchanges a flow per layer and direction: a quarter of a million ops per iteration."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Servers with GPUs: one worker per GPU, one NIC per server. bandwidth: bytes/s per direction of that NIC."""

    gpus: int = entry(Number(True, 1, MOST_GPUS), "GPUs in all, one worker each", 6)
    gpus_per_server: int = entry(Number(True, 1, 1024), "GPUs in one server", 2)
    gpus_per_server_explicit: bool = False
    """Whether somebody chose gpus_per_server: then it must divide gpus; else the last server may hold fewer."""
    device: str = entry(Word("a device", devices), "device of the catalogue", "t4")
    bandwidth: float = entry(
        Measure(BANDWIDTH, 125.0, 1.25e12), "raw bandwidth of a server's NIC, per direction", 1.875e9
    )
    latency: float | None = entry(Measure(SECONDS, 0.0, 60.0), "of the network; null: the link's", None, optional=True)
    pcie: str | None = entry(Word("a link", links), "GPU to host; null: the device's", None, optional=True)
    link: str = entry(Word("a link", links), "kind of network: its efficiency and latency", GENERIC_LINK)
    host: str = entry(Word("a host", hosts), "CPU side of a server", "generic-16")
    shared_cores: bool = entry(Truth(), "servers emulated on one machine share its cores", False)
    calibration: str | None = entry(_FILE, "calibration record with measured figures", None, optional=True)
    platform: str | None = entry(
        Word("a platform"), "figures fitted to a platform's published runs: a name, or a file", None, optional=True
    )

    def __post_init__(self) -> None:
        check_fields(self, "cluster")
        if self.gpus_per_server_explicit and self.gpus % self.gpus_per_server:
            raise ScenarioError(
                f"cluster.gpus_per_server: {self.gpus_per_server} does not divide cluster.gpus = {self.gpus}; "
                f"allowed: {', '.join(str(n) for n in range(1, min(self.gpus, 64) + 1) if self.gpus % n == 0)}"
            )

    @property
    def servers(self) -> int:
        """Number of servers; the last one may hold fewer GPUs."""
        return -(-self.gpus // self.gpus_per_server)


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """The accesses (of a published dataset, a graph file or a recorded trace) and the model; None: the source's own."""

    dataset: str | None = entry(Word("a dataset", datasets), "published dataset", DEFAULT_DATASET, optional=True)
    graph: str | None = entry(_FILE, "graph file, instead of a dataset", None, optional=True)
    trace: str | None = entry(_FILE, "recorded access trace, instead of a dataset", None, optional=True)
    model: str | None = entry(Word("a model", lambda: MODELS), "null: the dataset's", None, optional=True)
    layers: int | None = entry(Number(True, 1, 1000), "graph convolutions; null: the dataset's", None, optional=True)
    hidden: int | None = entry(Number(True, 1, 1_000_000), "hidden width; null: the dataset's", None, optional=True)
    norm: str = entry(Word("a normalisation", lambda: ("none", "layer")), "LayerNorm after hidden layers", "layer")
    preaggregate: bool = entry(Truth(), "the input is aggregated once, before training", False)
    dense_layers: int = entry(Number(True, 0, 1000), "of the layers, the last so many sum no neighbours", 0)
    features: int | None = entry(Number(True, 1, 10_000_000), "input width; null: the data's", None, optional=True)
    classes: int | None = entry(Number(True, 1, 10_000_000), "output width; null: the data's", None, optional=True)
    cross_fraction: float | None = entry(
        Measure(FRACTION, 0.0, 1.0, low_open=True),
        "share of edges that cross partitions; null: assumed or counted",
        None,
        optional=True,
    )
    imbalance: float | None = entry(
        Number(False, 1, 1000), "slowest worker's load over the mean; null: assumed or counted", None, optional=True
    )

    def __post_init__(self) -> None:
        check_fields(self, "workload")
        given = {name: getattr(self, name) for name in ("dataset", "graph", "trace") if getattr(self, name) is not None}
        if len(given) > 1:
            named = " and ".join(f"{name} ({value})" for name, value in given.items())
            raise ScenarioError(f"workload: both {named} are given; give one, the others null")
        if not given:
            raise ScenarioError("workload: neither dataset nor graph nor trace is given; give one of them")


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How the graph is cut into one part per GPU."""

    method: str = entry(Word("a partition method", lambda: ("metis", "random", "block")), "how to cut", "metis")
    objective: str = entry(Word("an objective", lambda: ("vol", "cut")), "METIS minimises volume or cut edges", "vol")
    seed: int = entry(Number(True, 0, 2**31 - 1), "seed of the partitioner", 0)
    file: str | None = entry(_FILE, "partition file, instead of cutting", None, optional=True)

    def __post_init__(self) -> None:
        check_fields(self, "partition")


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A published system and where its knobs stand; knobs it lacks stand at their fixed values."""

    name: str = entry(Word("a method", lambda: knobs.METHOD_KNOBS), "published system", "psc-gcn")
    tau: int = entry(Number(True, 0, 1000), knobs.TAU.help, 2)
    epsilon: float = entry(Number(False, 0, 1, low_open=True), knobs.EPSILON.help, 0.1)
    cache: CacheSize = entry(Cache(), knobs.CACHE.help, CacheSize.none())  # noqa: RUF009 - as dataclasses.field
    cache_policy: str = entry(
        Word("a cache policy", lambda: knobs.CACHE_POLICY.choices), knobs.CACHE_POLICY.help, "inclusion"
    )
    sampler: str = entry(Word("a sampler", lambda: knobs.SAMPLER.choices), knobs.SAMPLER.help, "vr")
    refresh: int = entry(Number(True, 1), knobs.REFRESH.help, 20)
    norms: str | None = entry(_FILE, knobs.NORMS.help, None, optional=True)
    rate: float = entry(Number(False, 0, 1), f"{knobs.RATE.help}; of bns-gcn {knobs.RATE.default}", 1.0)
    overlap: str = entry(
        Word("an overlap", lambda: ("none", "central")), "what runs beneath synchronous transfers", "none"
    )

    def __post_init__(self) -> None:
        check_fields(self, "method")
        for knob, fixed in knobs.FIXED[self.name].items():
            self._refuse_unless(knob, fixed)

    @classmethod
    def of(cls, name: str, **given: Any) -> MethodSpec:
        """`name` with the knobs in `given`; the others stand at their defaults, or where the method fixes them.

        Raises ScenarioError for an unknown method, a knob it lacks (unless given at its fixed value), or a bad value.
        """
        have = {knob.name for knob in knobs.knobs_of(name)}
        fixed = knobs.FIXED[name]
        for knob in given:
            if knob not in have and knob not in fixed and knob not in OF_ALL:
                raise ScenarioError(f"method.{knob}: {name} has no {knob}; {_methods_with(knob)}")
        settled = {knob: CacheSize.none() if knob == "cache" else value for knob, value in fixed.items()}
        if "rate" in have:
            settled["rate"] = knobs.RATE.default
        return cls(name=name, **(settled | given))

    def _refuse_unless(self, knob: str, fixed: knobs.KnobValue) -> None:
        value = getattr(self, knob)
        if isinstance(value, CacheSize):
            same, found, stands = value.empty, value.describe(), "0%"
        else:
            same, found, stands = value == fixed, f"{value:g}", f"{fixed:g}"
        if not same:
            fact = f"{self.name} has no {knob} (it is {stands})"
            raise ScenarioError(f"method.{knob}: {found} is not allowed; {fact}; {_methods_with(knob)}")


@dataclass(frozen=True, slots=True)
class RunSpec:
    """How long, and with which seed."""

    iterations: int = entry(Number(True, 1, 1_000_000), "iterations recorded", 30)
    seed: int = entry(Number(True, 0, 2**31 - 1), "seed of every draw", 0)

    def __post_init__(self) -> None:
        check_fields(self, "run")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One validated question."""

    name: str
    cluster: ClusterSpec
    workload: WorkloadSpec
    partition: PartitionSpec
    method: MethodSpec
    run: RunSpec


def _methods_with(knob: str) -> str:
    having = [name for name in knobs.METHOD_KNOBS if knobs.has_knob(name, knob)]
    return f"methods with it: {', '.join(having)}"
