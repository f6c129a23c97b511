"""What was measured: of each setting and part, seconds of every operation in every iteration; and what the file says of
it: which graph, model and device, and how exactly each part is known (docs/files.md).

Files have a recorder's words for operations; `in_schedule_words` turns them into those of schedules, which simulations
and waits share. A command measures what a file lacks.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer, Rank, Seconds
from gcnsim.core.shapes import Amount, As, Count, OneOrMore, Text, Within
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.shapes import DROPOUT_FIRST, EXCHANGE_FIRST, MODELS

FORMAT: Final = "gcnsim.measured_compute/3"

LONGEST_S: Final = 1e7
"""No operation lasts longer: four months."""

FEWEST: Final = 2
"""Iterations of a part: of one, no spread is known."""

Width: TypeAlias = Annotated[int, Within(minimum=1, maximum=10**7)]


class MeasuredGraph(TypedDict):
    """The graph."""

    name: Text
    nodes: OneOrMore
    edges: Count
    features: Width
    classes: Width
    hash: Text
    file: NotRequired[str | None]
    """As it was given; read where a question names no graph."""


class MeasuredPartition(TypedDict):
    """How it was cut."""

    parts: Annotated[int, Within(minimum=1, maximum=4096)]
    algorithm: Text
    hash: Text
    seed: NotRequired[Count]


class MeasuredModel(TypedDict):
    """What was trained."""

    model: Annotated[str, Within(enum=MODELS)]
    layers: Annotated[int, Within(minimum=1, maximum=1000)]
    hidden: Width
    heads: NotRequired[Annotated[int, Within(minimum=1, maximum=1024)]]
    norm: NotRequired[Annotated[str, As(Literal["none", "layer"])]]
    dropout: NotRequired[Annotated[float, Within(minimum=0, maximum=0.999)]]
    dropout_order: NotRequired[Annotated[str, Within(enum=(EXCHANGE_FIRST, DROPOUT_FIRST))]]
    sage_mean: NotRequired[Text]
    bias: NotRequired[bool]
    preaggregate: NotRequired[bool]
    widths: NotRequired[Annotated[list[Width], Within(min_items=2, max_items=1001)]]


class MeasuredDevice(TypedDict):
    """The one device."""

    kind: Annotated[str, As(Literal["cpu", "cuda"])]
    name: Text
    threads: NotRequired[OneOrMore]
    cores: NotRequired[OneOrMore]
    beside: NotRequired[Count]
    """Processes that trained on the other cores meanwhile."""


class SettingHeader(TypedDict):
    """A method with its knobs."""

    setting: Annotated[int, Within(minimum=0, maximum=2**31 - 1)]
    method: Text
    knobs: Mapping[str, float | str | None]


class PartHeader(TypedDict):
    """A part of a setting that was measured."""

    setting: Count
    part: Count
    iterations: Annotated[int, Within(minimum=FEWEST, maximum=10**7)]
    refreshing: list[Count]
    """Iterations that refreshed the sampling probabilities."""
    warmup: Count
    mean_seconds: Annotated[float, Within(minimum=0, maximum=LONGEST_S)]
    outside_seconds: Annotated[float, Within(minimum=0, maximum=LONGEST_S)]
    """Processor time of an iteration that is in no operation; on a GPU time in which its main stream has none and
    waits for none."""
    relative_error: Annotated[float, Within(minimum=0, maximum=1000)]
    """Half the 90 % interval of the mean over it."""
    peak_bytes: Amount | None
    drawn: Mapping[str, Amount]
    """Mean counts of an iteration."""
    inner: NotRequired[Count]
    boundary: NotRequired[Count]


class SkippedHeader(TypedDict):
    """A part of a setting that was not."""

    setting: Count
    part: Count
    reason: Text
    needed_bytes: NotRequired[Amount | None]
    free_bytes: NotRequired[Amount | None]


class Header(TypedDict):
    """The metadata of a file of compute times, as `python -m runtime.measure` writes it under the key `gcnsim`. SI
    units, shares of one."""

    graph: MeasuredGraph
    partition: MeasuredPartition
    model: MeasuredModel
    training: Mapping[str, Any]
    device: Annotated[Mapping[str, Any], As(MeasuredDevice, Any)]
    versions: Mapping[str, Text]
    settings: Annotated[list[SettingHeader], Within(min_items=1, max_items=1000)]
    parts: list[PartHeader]
    skipped: list[SkippedHeader]


class OpKey(NamedTuple):
    """An operation of an iteration, by the words of a run's recorder; layer: -1 for none."""

    kind: OpKind
    layer: Layer
    direction: Direction


def iteration_weights(refreshing: BoolArray, period: int) -> FloatArray:
    """float64[iterations], sum 1: weights of a mean in which one in `period` iterations refreshes the probabilities.

    refreshing: bool[iterations], which do. All weigh alike where only one kind was measured.
    """
    count = np.count_nonzero(refreshing)
    if count in (0, refreshing.size):
        return np.full(refreshing.size, 1.0 / refreshing.size)
    return np.where(refreshing, 1.0 / period / count, (1.0 - 1.0 / period) / (refreshing.size - count))


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPart:
    """One part of one setting, trained alone. keys: its operations. seconds: float64[iterations, keys], read-only.

    refreshing: bool[iterations], which of them refreshed the sampling probabilities. outside_s: processor time of an
    iteration in no operation; on a GPU time in which its main stream is idle. relative_error: half the 90 % interval of
    an iteration's mean over it. drawn: mean counts of an iteration.
    """

    keys: tuple[OpKey, ...]
    seconds: FloatArray
    refreshing: BoolArray
    outside_s: Seconds
    relative_error: float
    peak_bytes: float | None
    drawn: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSetting:
    """A method with its knobs, as a run records them. parts: by rank, those that were measured; skipped: why others
    were not."""

    method: str
    knobs: Mapping[str, Any]
    parts: Mapping[Rank, MeasuredPart]
    skipped: Mapping[Rank, str]

    @property
    def relative_error(self) -> float:
        """Of the least exactly known part."""
        return max((part.relative_error for part in self.parts.values()), default=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCompute:
    """A file of measured times. graph, partition, model, training, device, versions: as they were measured
    (docs/files.md); sha256: of the file."""

    path: str
    sha256: str
    graph: Mapping[str, Any]
    partition: Mapping[str, Any]
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    device: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: tuple[MeasuredSetting, ...]

    @property
    def parts(self) -> int:
        """How many workers the graph was cut for."""
        return int(self.partition["parts"])

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU was measured, and not a CPU core."""
        return bool(self.device["kind"] == "cuda")

    @property
    def beside_busy(self) -> bool:
        """Whether all cores were busy meanwhile, as far as there were parts and cores for them."""
        threads, cores = int(self.device.get("threads", 1)), int(self.device.get("cores", 0))
        return bool(cores) and int(self.device.get("beside", 0)) + 1 >= min(cores // threads, self.parts)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were measured, each once."""
        return tuple(dict.fromkeys(setting.method for setting in self.settings))


MOVED: Final = (OpKind.WIRE, OpKind.ALLREDUCE, OpKind.D2H, OpKind.H2D, OpKind.WAIT)
"""What links and peers decide, in a schedule as in a file."""

SAME: Final = {OpKind.ATTENTION: OpKind.UPDATE, OpKind.UNPACK: OpKind.SCATTER, OpKind.CACHE_REFRESH: OpKind.SAMPLE}
"""A recorder's words for operations that schedules have another word for."""

WITHOUT_LAYER: Final = (OpKind.LOSS, OpKind.STEP, OpKind.SAMPLE, OpKind.INDEX)
"""Operations of a schedule that have neither layer nor direction."""

LOOKUP: Final = OpKey(OpKind.LOOKUP, 0, Direction.FORWARD)
STEP: Final = OpKey(OpKind.STEP, -1, Direction.NONE)

WOKEN_S: Final = 1e-6
"""A thread that waited needs a core again before it can go on."""


def in_schedule_words(part: MeasuredPart, *, on_host: bool) -> dict[OpKey, FloatArray]:
    """Seconds of each measured iteration, float64[iterations], by the schedule's words.

    on_host: what tells the owners of a drawn graph's rows is the sampling thread's work.
    """
    found = dict[OpKey, FloatArray]()
    for column, key in enumerate(part.keys):
        if key.kind in MOVED:
            continue
        kind = SAME.get(key.kind, key.kind)
        kind = OpKind.SAMPLE if kind is OpKind.INDEX and on_host else kind
        own = OpKey(kind, -1, Direction.NONE) if kind in WITHOUT_LAYER else key._replace(kind=kind)
        found[own] = found.get(own, np.zeros(len(part.seconds))) + part.seconds[:, column]
    return found


def replayed(
    refreshing: BoolArray, period: int, generator: np.random.Generator, iterations: int | None = None
) -> IntArray:
    """Numbers of measured iterations, int64[iterations]: each kind equally often, as far as that goes, in random order.

    refreshing: bool[measured], which refreshed the sampling probabilities. Every `period`-th, from the first on, is one
    of these, where both kinds were measured. iterations: None takes the fewest periods that have all measured ones.
    """
    both = refreshing.any() and not refreshing.all()
    if iterations is None:
        refreshed = int(np.count_nonzero(refreshing))
        rounds = max(-(-(refreshing.size - refreshed) // (period - 1)) if period > 1 else 0, refreshed)
        iterations = rounds * period if both else refreshing.size
    due = np.arange(iterations) % period == 0 if both else np.full(iterations, refreshing.all())
    order = np.zeros(iterations, np.int64)
    for kind in (False, True):
        measured, wanted = np.flatnonzero(refreshing == kind), np.flatnonzero(due == kind)
        order[wanted] = generator.permutation(np.resize(generator.permutation(measured), wanted.size))
    return order


def placed(seconds: Mapping[OpKey, FloatArray], known: Collection[OpKey]) -> dict[OpKey, FloatArray]:
    """`seconds` by the operations `known` alone: what else there is belongs to the map of its layer, or to the step."""
    found = {key: values for key, values in seconds.items() if key in known}
    for key in [key for key in seconds if key not in known]:
        instead = OpKey(OpKind.UPDATE, key.layer, key.direction)
        instead = instead if instead in known else STEP
        found[instead] = found.get(instead, np.zeros(1)) + seconds[key]
    return found


def unmeasured(key: OpKey, law: FloatArray) -> FloatArray:
    """Seconds of an operation that a schedule has and the file lacks: the code that was measured does not do it."""
    return np.minimum(law, WOKEN_S if key.kind is OpKind.SCATTER else 0.0)


def first_gap(known: Collection[OpKey], layers: Iterable[Layer]) -> str | None:
    """In words, what every training has and `known` lacks: a layer's map, either way, or the step; None: nothing."""
    maps = (OpKey(OpKind.UPDATE, layer, way) for layer in layers for way in (Direction.FORWARD, Direction.BACKWARD))
    for key in (*maps, STEP):
        if key not in known:
            where = "" if key.layer < 0 else f" of layer {key.layer}, {key.direction.name.lower()}"
            return f"{key.kind}{where}"
    return None


SWITCHES: Final = ("preaggregate",)
"""Options without a value."""

BOTH: Final = ("bias",)
"""Options that are there, or with `no-` before them; the first is the default."""

TRAINING: Final = ("dtype", "aggregator", "threads", "overlap", "optimizer", "seed", "feature_dim")
"""Options of training that are repeated where the file says them."""

OF_MODEL: Final = (
    "model", "layers", "hidden", "heads", "norm", "dropout", "dropout_order", "sage_mean",
    "preaggregate", "bias",
)  # fmt: skip
"""Options of the model, by the name of the option."""


def measure_command(found: MeasuredCompute | None, graph: str | None, **question: Any) -> str:
    """`python -m runtime.measure ...` for what `question` asks and, of all else, as `found` was measured, if it was.

    graph: the graph's file. question: options by name; knobs of the method under `knobs`.
    """
    knobs = question.pop("knobs", {})
    content: dict[str, Any] = {}
    if found is not None:
        content |= {name: found.model[name] for name in OF_MODEL if found.model.get(name) is not None}
        content |= {name: found.training[name] for name in TRAINING if found.training.get(name) is not None}
        content |= {"device": found.device["kind"], "threads": found.device.get("threads") or content.get("threads")}
        graph, content["parts"] = graph or found.graph.get("file"), found.parts
    content |= {name: value for name, value in question.items() if value is not None}
    options = {"graph": graph or "GRAPH", "parts": content.pop("parts")}
    return shlex.join(["python", "-m", "runtime.measure", *written(options | content | dict(knobs)), "--out", "FILE"])


def written(options: Mapping[str, Any]) -> Iterable[str]:
    """Options of `runtime` as words of a command line."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name in SWITCHES:
            yield from [option] if value else []
        elif name in BOTH:
            yield from [] if value else [f"--no-{name}"]
        else:
            yield from (option, _text(value))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
