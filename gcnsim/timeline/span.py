"""Spans and the timeline: when and where every op ran, and how many bytes it moved. Simulated and measured runs share
the type.

Data are columns, not objects: a run of 30 iterations on 48 workers has a million spans. Times are integer picoseconds
since the start of the run, so that a timeline is byte-identical across machines. Spans are also written as a Parquet
file, for analysis in a data frame, and read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.container import read_parquet_table
from gcnsim.core.errors import FileError, nearest
from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, Iteration, Layer, Rank, frozen


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


_KINDS: Final = tuple(str(kind) for kind in KINDS)
_DIRECTIONS: Final = tuple(item.name.lower() for item in Direction)

_NUMBERS: Final[dict[str, tuple[str, int]]] = {
    "worker": ("int32", 0),
    "iteration": ("int32", 0),
    "layer": ("int32", -1),
    "peer": ("int32", -1),
    "start_ps": ("int64", 0),
    "end_ps": ("int64", 0),
    "nbytes": ("float64", 0),
}
"""Columns of numbers: their type and least value."""


def write_spans(path: str | Path, timeline: Timeline, about: dict[str, str]) -> None:
    """Write one row per span: kind, worker, stream, iteration, layer, direction, peer, start_ps, end_ps, nbytes.

    about: text for the file's metadata (scenario hash, seed, version). Raises FileError if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def words(codes: Any, names: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names, pa.string()))

    table = pa.table(
        {
            "kind": words(timeline.kind, _KINDS),
            "worker": timeline.worker,
            "stream": words(timeline.stream, timeline.streams),
            "iteration": timeline.iteration,
            "layer": timeline.layer,
            "direction": words(timeline.direction, _DIRECTIONS),
            "peer": timeline.peer,
            "start_ps": timeline.start_ps,
            "end_ps": timeline.end_ps,
            "nbytes": timeline.nbytes,
        }
    ).replace_schema_metadata(about)
    with atomic_write(path) as file:
        pq.write_table(table, file, write_page_checksum=True)


def read_spans(path: str | Path) -> Timeline:
    """The timeline in a file that `write_spans` wrote; all arrays read-only.

    A file without rows has no streams. Raises FileError when the file is missing, damaged or no Parquet, lacks a
    column, or holds an unknown kind or direction, an empty or impossible value, or rows not ordered by their start.
    """
    table = _table(Path(path))
    double = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if double:
        raise FileError(f"{path}: has column {double[0]!r} more than once; not a file of spans")
    missing = [name for name in ("kind", "stream", "direction", *_NUMBERS) if name not in table.column_names]
    if missing:
        raise FileError(f"{path}: has no column {missing[0]!r}; not a file of spans")
    empty = [name for name in table.column_names if table[name].null_count]
    if empty:
        raise FileError(f"{path}: column {empty[0]!r} has empty values")
    columns = {name: _numbers(path, table, name) for name in _NUMBERS}
    kind, kinds = _words(path, table, "kind")
    direction, directions = _words(path, table, "direction")
    columns["stream"], streams = _words(path, table, "stream")
    columns["kind"] = _codes(path, "kind", kind, kinds, _KINDS)
    columns["direction"] = _codes(path, "direction", direction, directions, _DIRECTIONS)
    _check_times(path, columns["start_ps"], columns["end_ps"])
    return Timeline(**{name: frozen(column) for name, column in columns.items()}, streams=streams)


def _table(path: Path) -> Any:
    import pyarrow as pa

    try:
        table = read_parquet_table(path)
        table.column_names  # noqa: B018 - decodes them, which fails where they are not UTF-8
        return table
    except (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise FileError(f"{path}: not a Parquet file, or a damaged one: {_line(error)}") from None
    except OSError as error:
        if error.errno is None:  # Arrow reports a failed checksum or a truncated page as a bare OSError
            raise FileError(f"{path}: a damaged Parquet file: {_line(error)}") from None
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _numbers(path: str | Path, table: Any, name: str) -> AnyArray:
    import pyarrow as pa

    kind, least = _NUMBERS[name]
    try:
        column = table[name].cast(kind).to_numpy()
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted {kind}: {_line(error)}") from None
    values: AnyArray = column.astype(np.dtype(kind))
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= least)))
    if wrong.size:
        raise FileError(f"{path}: row {wrong[0]}: {name} is {values[wrong[0]]}; allowed: {least} or more")
    return values


def _words(path: str | Path, table: Any, name: str) -> tuple[AnyArray, tuple[str, ...]]:
    """The codes int32[rows] of a column of words, and the words, in the file's own order."""
    import pyarrow as pa

    try:
        column = table[name]
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        column = column.unify_dictionaries()
        if column.num_chunks == 0:
            return np.zeros(0, np.int32), ()
        words = tuple(column.chunk(0).dictionary.cast(pa.string()).to_pylist())
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted words: {_line(error)}") from None
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])
    return codes.astype(np.int32), words


def _codes(path: str | Path, name: str, codes: AnyArray, words: tuple[str, ...], known: tuple[str, ...]) -> AnyArray:
    """The same words as positions in `known`, uint8[rows]."""
    strange = [words[code] for code in np.unique(codes) if words[code] not in known]
    if strange:
        raise FileError(f"{path}: unknown {name} {strange[0]!r}; {nearest(strange[0], known)}")
    ours = np.array([known.index(word) if word in known else 0 for word in words], dtype=np.uint8)
    return ours[codes]


def _check_times(path: str | Path, starts: AnyArray, ends: AnyArray) -> None:
    backwards = np.flatnonzero(ends < starts)
    if backwards.size:
        row = backwards[0]
        raise FileError(f"{path}: row {row}: ends at {ends[row]} ps, before its start at {starts[row]} ps")
    late = np.flatnonzero(starts[1:] < starts[:-1])
    if late.size:
        raise FileError(f"{path}: row {late[0] + 1} starts before the row above it; spans are ordered by their start")
