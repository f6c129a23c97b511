"""The validated options of one training run: the other modules use only these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.fields import Number
from gcnsim.graph.assign import BALANCES, NODES
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import KnobValue, PerLayer, PerLayerValues

Held: TypeAlias = KnobValue | CacheSize | PerLayer
"""A knob's value in a method."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "model": ("gcn", "graphsage", "gat"),
        "norm": ("none", "layer"),
        "sage_mean": ("neighbours", "with-self"),
        "optimizer": ("adam", "sgd"),
        "aggregator": ("plain", "numba", "dgl", "auto"),
        "dropout_order": ("exchange-first", "dropout-first"),
        "overlap": ("none", "central"),
        "device": ("cpu", "cuda"),
        "backend": ("auto", "gloo", "nccl"),
        "dtype": ("float32", "float64"),
        "feature_norm": ("none", "row", "standard"),
        "partition_method": ("metis", "random", "block"),
        "objective": ("vol", "cut"),
        "balance": BALANCES,
    }
)

RULES: Final[Mapping[str, Number]] = MappingProxyType(
    {
        "workers": Number(True, 1, 4096),
        "iterations": Number(True, 1, 10**9),
        "seed": Number(True, 0, 2**31 - 1),
        "layers": Number(True, 1, 1000),
        "hidden": Number(True, 1, 1_000_000),
        "heads": Number(True, 1, 1024),
        "dropout": Number(False, 0, 0.999),
        "lr": Number(False, 0, 1_000_000),
        "weight_decay": Number(False, 0, 1_000_000),
        "feature_dim": Number(True, 1, 1_000_000),
        "random_features": Number(True, 1, 1_000_000),
        "random_classes": Number(True, 2, 1_000_000),
        "threads": Number(True, 1, 4096),
        "eval_every": Number(True, 0, 10**9),
        "checkpoint_every": Number(True, 0, 10**9),
        "timeout": Number(False, 1, 86_400),
        "partition_seed": Number(True, 0, 2**31 - 1),
        "warmup": Number(True, 0, 10**9),
    }
)
"""Rules of numeric options: of training, micro-benchmarks, emulation and surveys."""


@dataclass(frozen=True, slots=True)
class Options:
    """One run. Every value is checked at construction: ScenarioError names the option, the value and the range.

    knobs: all knobs of the method, by name. Paths are as the user wrote them.
    """

    method: str = "full-graph"
    knobs: Mapping[str, Held] = field(default_factory=dict)
    dataset: str = "digits"
    graph: str | None = None
    workers: int = 2
    iterations: int = 200
    seed: int = 0
    # data
    feature_dim: int | None = None
    feature_norm: str = "none"
    random_features: int | None = None
    random_classes: int | None = None
    partition: str | None = None
    partition_method: str = "metis"
    objective: str = "vol"
    balance: str = NODES
    partition_seed: int = 0
    # model
    model: str = "gcn"
    layers: int = 2
    hidden: int = 128
    heads: int = 1
    dropout: float = 0.0
    norm: str = "none"
    bias: bool = True
    sage_mean: str = "neighbours"
    dropout_order: str = "exchange-first"
    preaggregate: bool = False
    # training
    optimizer: str = "adam"
    lr: float = 0.01
    weight_decay: float = 0.0
    eval_every: int = 10
    init_weights: str | None = None
    save_init: str | None = None
    # machine
    device: str = "cpu"
    backend: str = "auto"
    dtype: str = "float32"
    aggregator: str = "plain"
    overlap: str = "central"
    threads: int | None = None
    timeout: float = 60.0
    # files and words
    out: str | None = None
    record: bool = True
    warmup: int = 5
    save_trace: str | None = None
    loss_log: str | None = None
    checkpoint_every: int = 0
    resume: str | None = None
    overwrite: bool = False
    json: bool = False
    json_log: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ScenarioError(f"{flag(name)}: unknown {value!r}; {nearest(str(value), choices)}")
        for name, rule in RULES.items():
            if getattr(self, name) is not None:
                rule.check(getattr(self, name), flag(name))
        if self.balance != NODES and (self.partition is not None or self.partition_method != "metis"):
            other = f"--partition {self.partition}" if self.partition else f"--partition-method {self.partition_method}"
            raise ScenarioError(f"--balance: {self.balance} is for METIS, not for {other}; allowed: {NODES}")
        if self.backend == "nccl" and self.device != "cuda":
            raise ScenarioError(f"--backend: nccl needs --device cuda, it is {self.device}; allowed: auto, gloo")
        if self.aggregator == "numba" and self.device != "cpu":
            raise ScenarioError("--aggregator: numba sums on CPUs, --device is cuda; allowed: plain, dgl, auto")
        if self.model == "gat" and self.hidden % self.heads:
            raise ScenarioError(f"--heads: {self.heads} does not divide --hidden {self.hidden}")
        if self.gathers and self.preaggregate:
            raise ScenarioError(f"--preaggregate: {self.model} has no fixed first aggregation; allowed: gcn, graphsage")

    @property
    def gathers(self) -> bool:
        """Whether a layer reads the rows of its neighbours individually, not only their sum."""
        return self.model == "gat"

    @property
    def sums_input(self) -> bool:
        """Whether layer 0's sum over neighbours is computed once, before training."""
        return self.preaggregate or self.knobs.get("preprocess") == "yes"

    def asdict(self) -> dict[str, Any]:
        """All fields as plain JSON values; a cache size and a number for each layer as typed (`30%`, `25,10`)."""
        document = asdict(self)
        document["knobs"] = {name: plain(value) for name, value in self.knobs.items()}
        return document


def plain(value: Held) -> object:
    """A knob's value as typed."""
    if isinstance(value, tuple):
        return PerLayerValues(shares=True).write(value)
    return value.describe() if isinstance(value, CacheSize) else value


def flag(name: str) -> str:
    """The option as it is typed.

    >>> flag("feature_dim")
    '--feature-dim'
    """
    return "--" + name.replace("_", "-")
