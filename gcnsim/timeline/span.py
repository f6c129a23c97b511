"""Spans and the timeline: when and where every op ran, and how many bytes it moved. Simulated and measured runs share
the type.

Data are columns, not objects: a run of 30 iterations on 48 workers has a million spans. Times are integer picoseconds
since the start of the run, so that a timeline is byte-identical across machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

import numpy as np

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, Iteration, Layer, Rank


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint half-open intervals [start, end), ascending; build them with `of`, which merges overlaps.

    >>> Intervals.of(np.array([0, 5]), np.array([3, 9])).difference(Intervals.of(np.array([2]), np.array([6]))).length
    5
    """

    starts: IntArray
    ends: IntArray

    @classmethod
    def of(cls, starts: IntArray, ends: IntArray) -> Intervals:
        """The union of the intervals [starts[i], ends[i]); empty ones vanish."""
        real = ends > starts
        starts, ends = starts[real], ends[real]
        if not starts.size:
            return cls(starts, ends)
        order = np.argsort(starts, kind="stable")
        starts, reach = starts[order], np.maximum.accumulate(ends[order])
        # If an interval begins after the end of all before it, the next merged interval starts.
        bounds = np.ones(starts.size + 1, np.bool_)
        np.greater(starts[1:], reach[:-1], out=bounds[1:-1])
        return cls(starts[bounds[:-1]], reach[bounds[1:]])

    @property
    def length(self) -> int:
        """Picoseconds covered."""
        return int((self.ends - self.starts).sum())

    def within(self, start: int, end: int) -> Intervals:
        """The part inside [start, end)."""
        return Intervals.of(np.clip(self.starts, start, end), np.clip(self.ends, start, end))

    def union(self, other: Intervals) -> Intervals:
        """Instants in either."""
        return Intervals.of(np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends)))

    def difference(self, other: Intervals) -> Intervals:
        """Instants in this and not in the other."""
        sweep = IntervalSweep(self, other)
        return sweep.instants(sweep.has(self) & ~sweep.has(other))

    def intersection(self, other: Intervals) -> Intervals:
        """Instants in this and in the other."""
        sweep = IntervalSweep(self, other)
        return sweep.instants(sweep.has(self) & sweep.has(other))


class IntervalSweep:
    """The stretches between neighbouring edges of several sets: each set contains a whole stretch, or nothing of it."""

    def __init__(self, *sets: Intervals) -> None:
        edges = np.concatenate([edge for intervals in sets for edge in (intervals.starts, intervals.ends)])
        edges.sort()
        self._starts, self._ends = edges[:-1], edges[1:]

    def has(self, instants: Intervals) -> BoolArray:
        """Whether `instants` contain each stretch, bool[stretches]; `instants` must be one of the sets, or combined
        from them.
        """
        if not instants.starts.size:
            return np.zeros(self._starts.shape, dtype=np.bool_)
        at = instants.starts.searchsorted(self._starts, side="right") - 1
        inside: BoolArray = (at >= 0) & (self._starts < instants.ends[np.maximum(at, 0)])
        return inside

    def instants(self, chosen: BoolArray) -> Intervals:
        """The instants of the stretches that are `chosen`."""
        return Intervals.of(self._starts[chosen], self._ends[chosen])


class Phase(StrEnum):
    """The purpose of a span's time."""

    SAMPLING = "sampling"
    TRANSFER = "transfer"
    WAIT = "wait"
    COMPUTE = "compute"
    REDUCE = "reduce"
    OPTIMIZER = "optimizer"


class OpKind(StrEnum):
    """One step of an iteration; simulated and measured spans use the same words."""

    SAMPLE = "sample"
    LOOKUP = "lookup"
    CACHE_REFRESH = "cache_refresh"
    INDEX = "index"
    GATHER = "gather"
    PACK = "pack"
    D2H = "d2h"
    WIRE = "wire"
    H2D = "h2d"
    UNPACK = "unpack"
    SCATTER = "scatter"
    WAIT = "wait"
    AGGREGATE = "aggregate"
    UPDATE = "update"
    LOSS = "loss"
    ATTENTION = "attention"
    QUANTISE = "quantise"
    ALLREDUCE = "allreduce"
    STEP = "step"


PHASE: dict[OpKind, Phase] = {
    OpKind.SAMPLE: Phase.SAMPLING,
    OpKind.LOOKUP: Phase.SAMPLING,
    OpKind.CACHE_REFRESH: Phase.SAMPLING,
    OpKind.INDEX: Phase.SAMPLING,
    OpKind.GATHER: Phase.TRANSFER,
    OpKind.PACK: Phase.TRANSFER,
    OpKind.D2H: Phase.TRANSFER,
    OpKind.WIRE: Phase.TRANSFER,
    OpKind.H2D: Phase.TRANSFER,
    OpKind.UNPACK: Phase.TRANSFER,
    OpKind.SCATTER: Phase.TRANSFER,
    OpKind.WAIT: Phase.WAIT,
    OpKind.AGGREGATE: Phase.COMPUTE,
    OpKind.UPDATE: Phase.COMPUTE,
    OpKind.LOSS: Phase.COMPUTE,
    OpKind.ATTENTION: Phase.COMPUTE,
    OpKind.QUANTISE: Phase.COMPUTE,
    OpKind.ALLREDUCE: Phase.REDUCE,
    OpKind.STEP: Phase.OPTIMIZER,
}


PS_PER_S = 1_000_000_000_000

KINDS: tuple[OpKind, ...] = tuple(OpKind)
"""The code of a kind in `Timeline.kind` is its position here."""

KIND_CODE: dict[OpKind, int] = {kind: code for code, kind in enumerate(KINDS)}


def of_kinds(codes: AnyArray, kinds: Iterable[OpKind]) -> BoolArray:
    """Mask of the `codes`, whole numbers, that are of one of these kinds."""
    chosen = np.zeros(len(KINDS), np.bool_)
    chosen[[KIND_CODE[kind] for kind in kinds]] = True
    mask: BoolArray = chosen[codes]
    return mask


class Direction(IntEnum):
    """Which half of the iteration an op belongs to."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2


class Span(NamedTuple):
    """One op on one resource, from start to end (seconds)."""

    kind: OpKind
    worker: Rank
    stream: str
    iteration: Iteration
    layer: Layer
    direction: Direction
    peer: Rank
    start_s: float
    end_s: float
    nbytes: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All spans of a run as columns of equal length, ordered by (start, worker, stream, op).

    kind: uint8 codes into KINDS. worker, stream, iteration, layer, peer: int32; layer and peer are -1 where an op has
    none; stream indexes `streams`. direction: uint8. start_ps, end_ps: int64. nbytes: float64, 0 for compute.
    """

    kind: AnyArray
    worker: Int32Array
    stream: Int32Array
    iteration: Int32Array
    layer: Int32Array
    direction: AnyArray
    peer: Int32Array
    start_ps: IntArray
    end_ps: IntArray
    nbytes: FloatArray
    streams: tuple[str, ...]

    def __len__(self) -> int:
        """Number of spans."""
        return int(self.kind.size)

    def __iter__(self) -> Iterator[Span]:
        """The spans as readable rows."""
        for i in range(len(self)):
            yield Span(
                KINDS[int(self.kind[i])],
                int(self.worker[i]),
                self.streams[int(self.stream[i])],
                int(self.iteration[i]),
                int(self.layer[i]),
                Direction(int(self.direction[i])),
                int(self.peer[i]),
                float(self.start_ps[i]) / PS_PER_S,
                float(self.end_ps[i]) / PS_PER_S,
                float(self.nbytes[i]),
            )

    def of_phase(self, *phases: Phase) -> BoolArray:
        """Mask of the spans whose kind belongs to one of `phases`."""
        return of_kinds(self.kind, [kind for kind, phase in PHASE.items() if phase in phases])
