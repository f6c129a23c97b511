"""Record what one worker does and when: a span per op, from any of its threads, at the cost of appending a tuple.

Host work is timed with the host's monotonic clock. Work on a CUDA stream is timed with events, which the GPU stamps as
it reaches them. An anchor converts them to host time: an event on a separate stream that is always idle. The GPU
therefore stamps it while the host reads its clock. A new anchor every second prevents drift between the two clocks.
It also keeps elapsed times, which are float32 milliseconds, short enough to be exact to a microsecond.

The workers' timelines are merged into one, and converted to plain arrays that any process group can carry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from gcnsim.core.ids import AnyArray, Int32Array, Iteration, Layer, Rank, frozen
from gcnsim.timeline import KIND_CODE, Direction, OpKind, Timeline

MAIN_STREAM = "compute"
"""The stream of the worker's main thread; what it waits for is exposed."""

PS_PER_NS = 1000

_CHUNK = 16384
"""Spans stored as tuples (about 300 bytes each) before they become columns (57 bytes)."""


_TRIES = 4
_NARROW_NS = 40_000
"""An anchor is tried up to `_TRIES` times, until the GPU stamps it within so many ns."""

_LASTS_NS = 10**9
"""An older anchor is replaced at an iteration's end: each try takes the host some 50 us."""


class Stamp(Protocol):
    """The methods of a `torch.cuda.Event` that the recorder uses."""

    def query(self) -> bool:
        """Whether the GPU has reached it."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this event to `end`; both must have been reached."""


Mark: TypeAlias = int | Stamp
"""An instant: nanoseconds of the host's monotonic clock, or an event on a CUDA stream."""

_Row: TypeAlias = tuple[OpKind, str, Iteration, Layer, int, Rank, Mark, Mark, float]
_DTYPES = {
    "kind": np.uint8,
    "stream": np.int32,
    "iteration": np.int32,
    "layer": np.int32,
    "direction": np.uint8,
    "peer": np.int32,
    "start_ns": np.int64,
    "end_ns": np.int64,
    "nbytes": np.float64,
}


class Recorder:
    """The spans of one worker; several threads may add spans, one thread ends the iterations.

    enabled: False records nothing. cuda: whether `mark_compute` marks the current CUDA stream. now: the clock of host
    work, in ns; spans of one op begin and end in one thread, so a clock of processor time gives the computing time of
    an op.
    """

    def __init__(
        self, rank: Rank, enabled: bool = True, cuda: bool = False, now: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self.rank = rank
        self._now = now
        self.enabled = enabled
        self._clock = _CudaClock() if cuda and enabled else None
        # Items are only appended at the end and removed from the front, each in one atomic step of the interpreter: no
        # lock.
        self._rows: list[_Row] = []
        self._pending: list[tuple[_Row, Anchor]] = []
        self._chunks: list[dict[str, AnyArray]] = []
        self._names: dict[str, int] = {}
        self._waited_ns = 0

    def __len__(self) -> int:
        """Number of spans added."""
        return len(self._rows) + len(self._pending) + sum(chunk["kind"].size for chunk in self._chunks)

    def mark(self) -> int:
        """Now, on the host."""
        return self._now()

    def mark_compute(self) -> Mark:
        """Now in this thread's current stream: when the GPU gets here; now on the host without a GPU."""
        return self._now() if self._clock is None else self._clock.mark()

    def add(
        self,
        kind: OpKind,
        stream: str,
        iteration: Iteration,
        start: Mark,
        end: Mark,
        *,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        peer: Rank = -1,
        nbytes: float = 0.0,
    ) -> None:
        """Record one op of `stream` from `start` to `end`; nbytes: its bytes, 0 for work on a device."""
        if not self.enabled:
            return
        row = (kind, stream, iteration, layer, direction, peer, start, end, nbytes)
        if isinstance(start, int) and isinstance(end, int):
            self._keep(row, start, end)
        else:
            assert self._clock is not None
            self._pending.append((row, self._clock.anchor))

    def end_iteration(self) -> float:
        """Convert finished CUDA events to instants; return the seconds the main stream waited since the last call."""
        if self._clock is not None:
            self._resolve(wait=False)
            self._clock.renew()
        if len(self._rows) >= _CHUNK:
            self._compact()
        waited, self._waited_ns = self._waited_ns, 0
        return waited * 1e-9

    def timeline(self, origin_ns: int, offset_ns: int = 0) -> Timeline:
        """All spans so far, ordered by (start, stream, order of adding), in picoseconds since `origin_ns`.

        origin_ns: start of the run on the common clock of all workers; offset_ns: that clock minus this host's. Spans
        are clipped at the origin. Streams are numbered by their first start. Waits for unfinished CUDA work.
        """
        self._resolve(wait=True)
        self._compact()
        empty = {name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()}
        columns = {name: np.concatenate([chunk[name] for chunk in [empty, *self._chunks]]) for name in _DTYPES}
        starts, ends = (
            np.maximum(columns.pop(name) + (offset_ns - origin_ns), 0) * PS_PER_NS for name in ("start_ns", "end_ns")
        )
        columns["stream"], streams = _by_first_use(columns["stream"], starts, list(self._names))
        order = np.lexsort((columns["stream"], starts))
        columns |= {"start_ps": starts, "end_ps": ends, "worker": np.full(starts.size, self.rank, np.int32)}
        return Timeline(**{name: frozen(column[order]) for name, column in columns.items()}, streams=streams)

    def _resolve(self, *, wait: bool) -> None:
        """Move the pending spans whose events the GPU has reached to the others."""
        count = len(self._pending)
        if self._clock is None or not count:
            return
        if wait:
            self._clock.finish()
        unfinished = []
        for row, anchor in self._pending[:count]:
            start, end = row[6:8]
            if _reached(start) and _reached(end):
                self._keep(row, anchor.host_ns(start), anchor.host_ns(end))
            else:
                unfinished.append((row, anchor))
        self._pending[:count] = unfinished

    def _keep(self, row: _Row, start: int, end: int) -> None:
        """Store a span whose instants are known."""
        self._rows.append((*row[:6], start, end, row[8]))
        if row[0] is OpKind.WAIT and row[1] == MAIN_STREAM:
            self._waited_ns += end - start

    def _compact(self) -> None:
        count = len(self._rows)
        if not count:
            return
        kind, stream, *others = zip(*self._rows[:count], strict=True)
        del self._rows[:count]
        codes = [KIND_CODE[item] for item in kind]
        numbers = [self._names.setdefault(name, len(self._names)) for name in stream]
        values = zip(_DTYPES.items(), [codes, numbers, *others], strict=True)
        self._chunks.append({name: np.array(column, dtype) for (name, dtype), column in values})


def _by_first_use(stream: AnyArray, starts: AnyArray, names: list[str]) -> tuple[AnyArray, tuple[str, ...]]:
    """The streams numbered by their earliest start (then by name), and their names in that order."""
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, stream, starts)
    order = sorted(range(len(names)), key=lambda number: (first[number], names[number]))
    place = np.empty(len(names), np.int32)
    place[order] = np.arange(len(names), dtype=np.int32)
    return place[stream], tuple(names[number] for number in order)


def _reached(mark: Mark) -> bool:
    return isinstance(mark, int) or mark.query()


class Anchor:
    """One instant on both clocks: an event the GPU has stamped, and the host's nanoseconds at that moment."""

    def __init__(self, event: Stamp, host_ns: int) -> None:
        self._event = event
        self._host_ns = host_ns

    def host_ns(self, mark: Mark) -> int:
        """The host's nanoseconds when `mark` was reached."""
        if isinstance(mark, int):
            return mark
        return self._host_ns + round(1e6 * self._event.elapsed_time(mark))


class _CudaClock:
    """Events on the current device, and the anchor that links new ones to the host's clock."""

    def __init__(self) -> None:
        import torch

        # Half of torch.cuda is untyped.
        self._cuda: Any = torch.cuda
        self._idle = self._cuda.Stream()
        self.anchor = self._anchored()

    def mark(self) -> Stamp:
        event: Any = self._cuda.Event(enable_timing=True)
        event.record()
        stamp: Stamp = event
        return stamp

    def renew(self) -> None:
        """Create a new anchor between the two clocks if the last one is old."""
        if time.perf_counter_ns() - self._renewed_ns >= _LASTS_NS:
            self.anchor = self._anchored()

    def finish(self) -> None:
        """Wait until the device has reached every event."""
        self._cuda.synchronize()

    def _anchored(self) -> Anchor:
        """The narrowest of a few tries: another process may delay the GPU or the host."""
        best: tuple[int, Any, int] | None = None
        for _ in range(_TRIES):
            event = self._cuda.Event(enable_timing=True)
            before = time.perf_counter_ns()
            event.record(self._idle)
            event.synchronize()
            took = time.perf_counter_ns() - before
            if best is None or took < best[0]:
                best = took, event, before + took // 2
            if took <= _NARROW_NS:
                break
        assert best is not None
        self._renewed_ns = time.perf_counter_ns()
        return Anchor(*best[1:])


COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kind": "uint8",
        "worker": "int32",
        "stream": "int32",
        "iteration": "int32",
        "layer": "int32",
        "direction": "uint8",
        "peer": "int32",
        "start_ps": "int64",
        "end_ps": "int64",
        "nbytes": "float64",
    }
)
"""The arrays of a timeline and their types; all have one value per span."""

NAMES = "streams"
"""The array that holds the streams' names: uint8, UTF-8, one per line."""


def merge(timelines: Sequence[Timeline]) -> Timeline:
    """All spans of `timelines` in one, ordered by (start, worker, stream, order in its own timeline).

    Streams of one name are merged; they are numbered by their earliest start, then by name.
    """
    names = sorted({name for timeline in timelines for name in timeline.streams})
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(timeline, name) for timeline in timelines)])
        for name, kind in COLUMNS.items()
        if name != "stream"
    }
    stream = np.concatenate([np.zeros(0, np.int64), *(_renamed(timeline, names) for timeline in timelines)])
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, stream, columns["start_ps"])
    by_use = np.argsort(first, kind="stable")
    columns["stream"] = np.argsort(by_use, kind="stable")[stream].astype(np.int32)
    order = np.lexsort((columns["stream"], columns["worker"], columns["start_ps"]))
    streams = tuple(names[number] for number in by_use)
    return Timeline(**{name: frozen(column[order]) for name, column in columns.items()}, streams=streams)


def _renamed(timeline: Timeline, names: list[str]) -> Int32Array:
    """The stream of each span as a position in `names`."""
    place = np.array([names.index(name) for name in timeline.streams], dtype=np.int32)
    return place[timeline.stream]


def to_arrays(timeline: Timeline) -> dict[str, AnyArray]:
    """The columns of `timeline` (types: COLUMNS), and under NAMES its streams' names as bytes."""
    arrays: dict[str, AnyArray] = {name: getattr(timeline, name) for name in COLUMNS}
    arrays[NAMES] = np.frombuffer("\n".join(timeline.streams).encode(), dtype=np.uint8)
    return arrays


def from_arrays(arrays: Mapping[str, AnyArray]) -> Timeline:
    """Restore the timeline from `to_arrays`. Raises ValueError if an array is missing, or of another type or size.

    The arrays are viewed, not copied.
    """
    missing = [name for name in (*COLUMNS, NAMES) if name not in arrays]
    if missing:
        raise ValueError(f"a timeline's arrays lack {missing[0]!r}")
    size = arrays["kind"].size
    for name, kind in COLUMNS.items():
        if arrays[name].dtype != np.dtype(kind) or arrays[name].shape != (size,):
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise ValueError(f"a timeline's {name}: {found}, wanted {kind}[{size}]")
    names = arrays[NAMES].tobytes().decode()
    return Timeline(
        **{name: frozen(arrays[name]) for name in COLUMNS}, streams=tuple(names.split("\n")) if names else ()
    )
