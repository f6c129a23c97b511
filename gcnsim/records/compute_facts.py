"""What was measured: of each setting and part, seconds of every operation in every iteration.

Files have a recorder's words for operations; `in_schedule_words` turns them into those of schedules, which simulations
and waits share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer, Rank, Seconds
from gcnsim.timeline import Direction, OpKind


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
