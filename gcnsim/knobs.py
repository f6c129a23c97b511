"""The knobs of each method, declared once: scenario, methods, command line and runtime all read this table.

A method has the knobs listed for it; a knob it lacks sits at the value in `FIXED`, which is what the method is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from gcnsim.errors import ScenarioError, nearest

KnobValue: TypeAlias = int | float | str | None
Kind: TypeAlias = Literal["int", "real", "size", "choice", "file", "list"]


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob: what it is called, its unit, its range and its default.

    kind: `int`, `real`, `size` (a share of the boundary, or bytes), `choice`, `file` (a path, or none), `list` (a
    number for each layer, or none).
    low, high: inclusive, except low when low_open; high None is no limit. A share is in fractions of one, shown in %.
    """

    name: str
    unit: Literal["", "%", "iterations"]
    kind: Kind
    low: float | None
    high: float | None
    low_open: bool
    default: KnobValue
    choices: tuple[str, ...]
    help: str

    @property
    def allowed(self) -> str:
        """The range in words, for messages and tables."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "file":
            return "a file, or none"
        if self.kind == "list":
            return "a number or share for each layer, the input's first (25,10), or none"
        if self.default == "auto":
            return "auto, 0% to 100% of the rows of its part, or bytes with a unit (2GiB)"
        if self.kind == "size":
            return "0% to 100% of the boundary nodes, or bytes with a unit (2GiB)"
        noun = "a whole number" if self.kind == "int" else "a number"
        if self.low is None:
            return noun
        low = f"{'above' if self.low_open else 'of at least'} {self.low:g}"
        return f"{noun} {low}" + (f" and at most {self.high:g}" if self.high is not None else "")


def _choice(name: str, default: str, choices: tuple[str, ...], told: str) -> Knob:
    """A knob that takes one of a few words."""
    return Knob(name, "", "choice", None, None, False, default, choices, told)


TAU: Final = Knob(
    "tau", "iterations", "int", 0, 1000, False, 2, (), "staleness: age in iterations of the boundary values read"
)
EPSILON: Final = Knob(
    "epsilon", "", "real", 0, 1, True, 0.1, (), "sampling rate: expected share of each node's edges that are drawn"
)
CACHE: Final = Knob("cache", "%", "size", 0, 1, False, 0.0, (), "layer-0 rows of boundary nodes kept on the GPU")
CACHE_POLICY: Final = _choice(
    "cache_policy", "inclusion", ("inclusion", "degree", "random"), "which boundary rows the cache keeps"
)
SAMPLER: Final = _choice(
    "sampler",
    "vr",
    ("vr", "uniform"),
    "edge probabilities: variance-reduced (PSC-GCN, Theorem 2) or the same for every edge",
)
REFRESH: Final = Knob(
    "refresh",
    "iterations",
    "int",
    1,
    None,
    False,
    20,
    (),
    "iterations between recomputations of the edge probabilities",
)
NORMS: Final = Knob(
    "norms", "", "file", None, None, False, None, (), "node norms recorded in training; without them every norm is 1"
)

RATE: Final = Knob(
    "rate", "", "real", 0, 1, False, 0.1, (), "share of the boundary nodes that is sent in an iteration (p of BNS-GCN)"
)
BOUNDARY_SCALE: Final = _choice(
    "boundary_scale",
    "rate",
    ("rate", "ratio"),
    "sampled boundary rows are divided by the rate, or by the share really drawn",
)
GAMMA: Final = Knob(
    "gamma", "", "real", 0, 1, False, 0.95, (), "decay of the running average of received rows (PipeGCN's smoothing)"
)
ESTIMATOR: Final = _choice(
    "estimator",
    "unbiased",
    ("unbiased", "self-normalised"),
    "weights of drawn edges: divided by their probability, or scaled to the weight of the whole row",
)
COLD_START: Final = _choice(
    "cold_start",
    "zeros",
    ("zeros", "features"),
    "boundary rows of the first tau iterations: zeros, or the true features in layer 0",
)

SAMPLE: Final = _choice(
    "sample",
    "nodes",
    ("nodes", "boundary-edges", "edges"),
    "what is drawn: boundary nodes; or as many edges as that drops, of those that cross, or of all (DropEdge)",
)
REPLICATION: Final = Knob(
    "replication", "", "int", 2, 128, False, 2, (), "workers that hold the same block of rows (c of CAGNET 1.5D)"
)
STALE_TEST: Final = _choice(
    "stale_test",
    "adaptive",
    ("fixed", "adaptive", "gap"),
    "when a block is sent again: by its age (SANCUS' E), by the age its readers see (A), by how far it moved (H)",
)
THRESHOLD: Final = Knob(
    "threshold", "", "real", 0, 1000, False, 1.0, (), "of the stale test: iterations of age, or largest change of a row"
)
DRIFT: Final = Knob(
    "drift", "", "real", 0, 1000, False, 0.01, (), "gap test: largest change of a row in one iteration, assumed"
)
WARMUP: Final = Knob(
    "warmup",
    "%",
    "real",
    0,
    1,
    False,
    0.0,
    (),
    "share of all iterations, the first ones, in which every block is sent; the mean is over all",
)
DETECTION: Final = _choice(
    "detection",
    "delayed",
    ("delayed", "at-once"),
    "adaptive test: whether a stale block is sent one iteration after it is found, or at once",
)
SKIP_BACKWARD: Final = _choice(
    "skip_backward", "no", ("no", "yes"), "whether a skipped block's gradient is not sent either"
)

BATCH: Final = Knob("batch", "", "int", 1, None, False, 6000, (), "training nodes in a worker's mini-batch")
FANOUT: Final = Knob(
    "fanout", "", "list", None, None, False, None, (), "neighbours that a node draws, number or share, per layer"
)
LAYER_SIZES: Final = Knob(
    "layer_sizes", "", "list", None, None, False, None, (), "nodes that a layer draws, instead of neighbours per node"
)
SUBGRAPH: Final = Knob("subgraph", "%", "real", 0, 1, True, 0.053, (), "share of all nodes in a worker's mini-batch")
CLUSTERS: Final = replace(SUBGRAPH, default=0.013)
QUEUE: Final = Knob("queue", "", "int", 1, 1000, False, 1, (), "mini-batches loaded ahead of the one that is trained")
PREPROCESS: Final = _choice("preprocess", "no", ("no", "yes"), "whether the input is aggregated once, before training")
STATIC_CACHE: Final = replace(CACHE, default="auto", help="input rows kept on the GPU, of its part; auto: all it holds")

KNOBS: Final[Mapping[str, Knob]] = MappingProxyType(
    {knob.name: knob for knob in (TAU, EPSILON, CACHE, CACHE_POLICY, SAMPLER, REFRESH, NORMS, RATE)}
)
BLOCK_KNOBS: Final[Mapping[str, Knob]] = MappingProxyType(
    {knob.name: knob for knob in (SAMPLE, REPLICATION, STALE_TEST, THRESHOLD, DRIFT, WARMUP, DETECTION, SKIP_BACKWARD)}
)
"""Knobs of edge sampling, and of systems that broadcast blocks: who lacks one has it at its default, unused."""

BATCH_KNOBS: Final[Mapping[str, Knob]] = MappingProxyType(
    {knob.name: knob for knob in (BATCH, FANOUT, LAYER_SIZES, SUBGRAPH, QUEUE, PREPROCESS)}
)
"""Knobs of the systems that train mini-batches: a method that lacks one has it at its default, unused."""

METHOD_KNOBS: Final[Mapping[str, tuple[Knob, ...]]] = MappingProxyType(
    {
        "full-graph": (),
        "pipegcn": (),
        "bns-gcn": (RATE, SAMPLE),
        "psc-gcn": (TAU, EPSILON, CACHE, CACHE_POLICY, SAMPLER, REFRESH, NORMS),
        "pipegcn-g": (),
        "pipegcn-f": (),
        "pipegcn-gf": (),
        "cagnet-1d": (),
        "cagnet-1.5d": (REPLICATION,),
        "sancus": (STALE_TEST, THRESHOLD, DRIFT, WARMUP, DETECTION, SKIP_BACKWARD),
        "roc": (),
        "dgl": (BATCH, FANOUT, LAYER_SIZES),
        "pagraph": (BATCH, FANOUT, LAYER_SIZES, STATIC_CACHE, QUEUE, PREPROCESS),
        "distdgl": (BATCH, FANOUT, LAYER_SIZES),
        "graphsage": (BATCH, FANOUT, LAYER_SIZES),
        "graphsaint": (SUBGRAPH,),
        "clustergcn": (CLUSTERS,),
    }
)
MINI_BATCH: Final = ("dgl", "pagraph", "distdgl", "graphsage", "graphsaint", "clustergcn")
"""The methods that update the model once per mini-batch, several times an epoch."""

VARIANTS: Final[Mapping[str, tuple[Mapping[str, KnobValue], ...]]] = MappingProxyType(
    {
        "bns-gcn": ({}, {"sample": "boundary-edges"}, {"sample": "edges"}),
        "sancus": ({}, {"stale_test": "fixed"}, {"stale_test": "gap", "threshold": 0.02}),
        "pagraph": ({}, {"preprocess": "yes"}),
    }
)
"""Settings of a method that a comparison of all methods shows beside its defaults; its defaults alone where none is."""

WHOLE_BLOCKS: Final = ("cagnet-1d", "cagnet-1.5d", "sancus")
"""The methods that send whole blocks of rows, whatever the boundary."""

OVERLAPPING: Final = ("full-graph", "bns-gcn", "psc-gcn")
"""The methods that can work beneath transfers that they wait for, at tau 0."""

COMPARED: Final = ("full-graph", "pipegcn", "bns-gcn", "psc-gcn")
"""The methods that a question is asked of when it names none."""

_STALE: Final = MappingProxyType({"tau": 1, "epsilon": 1.0, "cache": 0.0, "rate": 1.0})
_SYNCHRONOUS: Final = MappingProxyType({"tau": 0, "epsilon": 1.0, "cache": 0.0, "rate": 1.0})
FIXED: Final[Mapping[str, Mapping[str, KnobValue]]] = MappingProxyType(
    {
        "full-graph": _SYNCHRONOUS,
        "pipegcn": _STALE,
        "pipegcn-g": _STALE,
        "pipegcn-f": _STALE,
        "pipegcn-gf": _STALE,
        "cagnet-1d": _SYNCHRONOUS,
        "cagnet-1.5d": _SYNCHRONOUS,
        "sancus": _SYNCHRONOUS,
        "roc": _SYNCHRONOUS,
        "bns-gcn": MappingProxyType({"tau": 0, "epsilon": 1.0, "cache": 0.0}),
        "psc-gcn": MappingProxyType({"rate": 1.0}),
        "dgl": _SYNCHRONOUS,
        "pagraph": MappingProxyType({"tau": 0, "epsilon": 1.0, "rate": 1.0}),
        "distdgl": _SYNCHRONOUS,
        "graphsage": _SYNCHRONOUS,
        "graphsaint": _SYNCHRONOUS,
        "clustergcn": _SYNCHRONOUS,
    }
)

TRAINING_KNOBS: Final = (GAMMA, ESTIMATOR, BOUNDARY_SCALE, COLD_START)
"""Knobs of training that change no time: no scenario has them, recorded runs do."""


def has_knob(method: str, name: str) -> bool:
    """Whether `method` has the knob `name`. Raises ScenarioError for an unknown method."""
    return any(knob.name == name for knob in knobs_of(method))


def knobs_of(method: str, path: str = "method.name") -> tuple[Knob, ...]:
    """The knobs of `method`. Raises ScenarioError, starting with `path`, for an unknown method."""
    if method not in METHOD_KNOBS:
        raise ScenarioError(f"{path}: unknown method {method!r}; {nearest(method, METHOD_KNOBS)}")
    return METHOD_KNOBS[method]


def check(knob: Knob, value: object, path: str) -> None:
    """Refuse a `value` that `knob` does not allow: ScenarioError with `path`, the value and the range.

    A size is checked as its share of the boundary (None when it was given in bytes).
    """
    if knob.kind == "list":
        good = value is None or isinstance(value, tuple)
    elif knob.kind == "file":
        good = value is None or isinstance(value, str)
    elif knob.kind == "choice":
        if isinstance(value, str) and value not in knob.choices:
            raise ScenarioError(f"{path}: unknown {knob.name} {value!r}; {nearest(value, knob.choices)}")
        good = isinstance(value, str)
    elif knob.kind == "size" and (value is None or value == "auto"):
        good = True
    else:
        good = _is_number(knob, value) and _in_range(knob, value)
    if not good:
        shown = f"{value:.6g}" if isinstance(value, float) and knob.unit != "%" else _percent(knob, value)
        raise ScenarioError(f"{path}: {shown} is not allowed; {knob.name} is {knob.allowed}")


def _is_number(knob: Knob, value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (knob.kind != "int" and isinstance(value, float))


def _in_range(knob: Knob, value: object) -> bool:
    assert isinstance(value, int | float)
    if knob.low is not None and not (value > knob.low if knob.low_open else value >= knob.low):
        return False
    return value < float("inf") and (knob.high is None or value <= knob.high)


def _percent(knob: Knob, value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{100 * float(str(value)):g}%" if number and knob.unit == "%" else repr(value)
