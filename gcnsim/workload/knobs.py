"""Knobs: the parameters of methods, each declared once; this module has the shared ones.

A method is a dataclass whose fields are its knobs (`gcnsim.methods`): a field made by `knob` has type, unit, range,
default and help. A knob of only one method is declared in that method's file. A `PerLayer` has a number for each layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Choice, FieldRule, Number, QuantityRange, Share, entry, shown
from gcnsim.core.units import FRACTION
from gcnsim.workload.caching import CACHE_SIZES, STATIC_CACHE_SIZES, Cache, CacheSize

PerLayer = tuple[int | float, ...]
"""One number per layer, the input's first: how many (int), or a share of all (float)."""

MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PerLayerValues:
    """Whole numbers, and with `shares` also shares (`10%`), separated by commas."""

    shares: bool = False
    unit: str = ""

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""
        more = " or shares (10%)" if self.shares else ""
        return f"whole numbers of at least 1{more} separated by commas, one for each layer, the input's first (25,10)"

    def read(self, raw: object, path: str) -> PerLayer:
        """Parse `25,10`, one number, or a list. Raises ScenarioError, starting with `path`."""
        if isinstance(raw, bool) or not isinstance(raw, str | int | list):
            raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")
        texts = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, list) else [raw]
        values = tuple(self._number(str(text).strip(), raw, path) for text in texts)
        self.check(values, path)
        return values

    def _number(self, text: str, raw: object, path: str) -> int | float:
        if re.fullmatch(r"[0-9]{1,10}", text):
            return int(text)
        if self.shares and re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", text):
            return float(text[:-1]) / 100.0
        raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")

    def check(self, value: Any, path: str) -> None:
        """Refuse numbers out of range. Raises ScenarioError, starting with `path`."""
        good = isinstance(value, tuple) and value and all(self._good(item) for item in value)
        if not good:
            text = self.write(value) if isinstance(value, tuple) and value else shown(value)
            raise ScenarioError(f"{path}: {text} is not allowed; {self.allowed}")

    def _good(self, value: Any) -> bool:
        if isinstance(value, bool):
            return False
        return (isinstance(value, int) and 1 <= value <= MOST) or (
            self.shares and isinstance(value, float) and 0.0 < value <= 1.0
        )

    def write(self, value: Any) -> object:
        """`25,10`."""
        return ",".join(f"{100 * item:.12g}%" if isinstance(item, float) else str(item) for item in value)


KnobValue: TypeAlias = int | float | str | None
Kind: TypeAlias = Literal["int", "real", "size", "choice", "file", "list"]


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob of a method: its name, unit, range, default and help.

    kind: `int`, `real`, `size` (a share of the boundary, or bytes), `choice`, `file` (a path, or none), `list` (a
    number for each layer, or none; with the unit % also a share). low, high: inclusive, except low if low_open; None:
    unlimited. Shares are fractions of one, shown in %.
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
            shares = " or share" if self.unit == "%" else ""
            return f"a number{shares} for each layer, the input's first (25,10), or none"
        if self.kind == "size":
            return STATIC_CACHE_SIZES if self.default == "auto" else CACHE_SIZES
        noun = "a whole number" if self.kind == "int" else "a number"
        if self.low is None:
            return noun
        low = f"{'above' if self.low_open else 'of at least'} {self.low:g}"
        return f"{noun} {low}" + (f" and at most {self.high:g}" if self.high is not None else "")

    @property
    def rule(self) -> FieldRule:
        """Its rule in a scenario."""
        low, high = self.low or 0.0, float("inf") if self.high is None else self.high
        if self.kind == "int":
            return Number(True, low, high)
        if self.kind == "real" and self.unit == "%":
            return QuantityRange(FRACTION, low, high, self.low_open)
        if self.kind == "real" and (low, high) == (0.0, 1.0):
            return Share(False, low, high, self.low_open)
        if self.kind == "real":
            return Number(False, low, high, self.low_open)
        if self.kind == "size":
            return Cache(auto=self.default == "auto")
        if self.kind == "list":
            return PerLayerValues(shares=self.unit == "%")
        if self.kind == "file":
            return Choice("a file name")
        return Choice(f"a {self.name.replace('_', ' ')}", lambda: self.choices)

    @property
    def standard(self) -> Any:
        """The default in a method's type: a size as a `CacheSize`."""
        if self.kind != "size":
            return self.default
        return CacheSize(auto=True) if self.default == "auto" else CacheSize.none()


_KNOB: Final = "knob"


def knob(of: Knob) -> Any:
    """A dataclass field for the knob `of`."""
    made = entry(of.rule, of.help, of.standard, optional=of.kind in ("file", "list"))
    return field(default=made.default, metadata={**made.metadata, _KNOB: of})


def knob_of(item: Field[Any]) -> Knob | None:
    """The knob of a dataclass field; None for other fields."""
    found: Knob | None = item.metadata.get(_KNOB)
    return found


def choice(name: str, default: str, choices: tuple[str, ...], text: str) -> Knob:
    """A knob with a few named choices."""
    return Knob(name, "", "choice", None, None, False, default, choices, text)


TAU: Final = Knob(
    "tau", "iterations", "int", 0, 1000, False, 2, (), "staleness: age in iterations of the boundary values read"
)
EPSILON: Final = Knob(
    "epsilon", "", "real", 0, 1, True, 0.1, (), "sampling rate: expected share of each node's edges that are drawn"
)
CACHE: Final = Knob("cache", "%", "size", 0, 1, False, 0.0, (), "layer-0 rows of boundary nodes kept on the GPU")
CACHE_POLICY: Final = choice(
    "cache_policy", "inclusion", ("inclusion", "degree", "random"), "which boundary rows the cache keeps"
)
SAMPLER: Final = choice(
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
BOUNDARY_SCALE: Final = choice(
    "boundary_scale",
    "rate",
    ("rate", "ratio"),
    "sampled boundary rows are divided by the rate, or by the share actually drawn",
)
GAMMA: Final = Knob(
    "gamma",
    "",
    "real",
    0,
    1,
    False,
    0.95,
    (),
    "decay of the running average of received rows or gradients (PipeGCN's smoothing)",
)
BATCH: Final = Knob("batch", "", "int", 1, 2**31 - 1, False, 1024, (), "training nodes in a worker's mini-batch")
"""1,024 seeds, as in the public examples of DGL (node_classification.py) and PyG (ogbn_products_sage.py)."""
FANOUT: Final = Knob(
    "fanout",
    "%",
    "list",
    None,
    None,
    False,
    None,
    (),
    "neighbours drawn per node, a number or share for each layer, the input's first; none: 10,25 of two layers, "
    "5,10,15 of three, 10 in each of others",
)

_EXAMPLES: Final[Mapping[int, PerLayer]] = {2: (10, 25), 3: (5, 10, 15)}


def usual_fanout(layers: int) -> PerLayer:
    """The neighbours per node that public examples draw in a model of so many layers, the input's layer first.

    Two layers: 25 around the batch and 10 around those (GraphSAGE, section 4). Three: 15, 10 and 5, DGL's
    NeighborSampler([5, 10, 15]) and PyG's ogbn_products_sage.py. Others: 10 in every layer, as DGL's examples have.

    >>> usual_fanout(3)
    (5, 10, 15)
    """
    return _EXAMPLES.get(layers, (10,) * layers)


LAYER_SIZES: Final = Knob(
    "layer_sizes", "", "list", None, None, False, None, (), "nodes drawn per layer, instead of neighbours per node"
)
WALKED: Final = Knob("subgraph", "%", "real", 0, 1, True, 0.053, (), "share of all nodes in a worker's mini-batch")
CLUSTERED: Final = replace(WALKED, default=0.013)
STATIC_CACHE: Final = replace(
    CACHE, default="auto", help="input rows of the worker's part kept on the GPU; auto: all that fit"
)
QUEUE: Final = Knob("queue", "", "int", 1, 1000, False, 1, (), "mini-batches loaded in advance")
PREPROCESS: Final = choice("preprocess", "no", ("no", "yes"), "whether the input is aggregated once, before training")

ESTIMATOR: Final = choice(
    "estimator",
    "unbiased",
    ("unbiased", "self-normalised", "mean"),
    "drawn edges: divided by their probability, the same scaled to the node's total weight, or a plain mean",
)
COLD_START: Final = choice(
    "cold_start",
    "zeros",
    ("zeros", "features"),
    "boundary rows of the first tau iterations: zeros, or the true features in layer 0",
)

REPLICATION: Final = Knob(
    "replication", "", "int", 2, 1024, False, 2, (), "workers that hold the same block of rows (c of CAGNET 1.5D)"
)
STALE_TEST: Final = choice(
    "stale_test",
    "adaptive",
    ("fixed", "adaptive", "gap"),
    "when a block is sent again: by its age (SCS-E), by the age its readers see (SCS-A), by its change (SCS-H)",
)
THRESHOLD: Final = Knob(
    "threshold",
    "",
    "real",
    0,
    1000,
    False,
    1.0,
    (),
    "limit of the stale test: age in iterations, or largest change of a row",
)
DETECTION: Final = choice(
    "detection",
    "delayed",
    ("delayed", "at-once"),
    "adaptive test: whether a stale block is sent one iteration after it is detected, or at once",
)
SKIP_BACKWARD: Final = choice(
    "skip_backward", "no", ("no", "yes"), "whether gradients of skipped blocks are skipped, too"
)
WARM_ITERATIONS: Final = Knob(
    "warm_iterations",
    "iterations",
    "int",
    0,
    None,
    False,
    50,
    (),
    "first iterations, in which every block is sent regardless of the stale test",
)
CLIP: Final = Knob(
    "clip",
    "",
    "real",
    0,
    None,
    False,
    0.0,
    (),
    "gradient clipping: largest norm of a layer's gradient, divided by sqrt(P) on each of P workers; 0: none",
)

KNOBS: Final[Mapping[str, Knob]] = MappingProxyType(
    {knob.name: knob for knob in (TAU, EPSILON, CACHE, CACHE_POLICY, SAMPLER, REFRESH, NORMS, RATE)}
)
TRAINING_KNOBS: Final = (GAMMA, ESTIMATOR, BOUNDARY_SCALE, COLD_START, WARM_ITERATIONS, CLIP)
"""Knobs of training only: recorded runs have them, scenarios do not."""
