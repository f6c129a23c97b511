"""What was measured: of each setting and part, seconds of every operation in every iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, Layer, Rank, Seconds
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
