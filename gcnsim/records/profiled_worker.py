"""One worker's share of a profiler's trace: its spans by kind of operation, and the iterations they lie in.

A worker is a GPU of the file, or the process where no GPU worked. On a GPU its kernels, copies and collectives count,
and of the CPU sampling and the messages of gloo. Without one its operators count: those of the thread that trains, and
on other threads what is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.records.trace_events import NoTraceError
from gcnsim.records.trace_file import NONE, Events, TraceFile
from gcnsim.records.trace_names import (
    ANNOTATIONS,
    COLLECTIVES,
    COMPUTE,
    COPIES,
    MESSAGES,
    NO_WORK,
    RANGES,
    Names,
    first_of,
    is_unnamed,
    matches,
)
from gcnsim.timeline import KIND_CODE, PHASE, OpKind, Phase

SMALL: Final = 0.05
"""A GPU with less than this share of the busiest one's kernel time is not a worker: a context, a stray copy."""

NO_KIND: Final = 255
IGNORED: Final = 254
"""Codes in place of a kind: none is said, and to be left out."""

BESIDE: Final = tuple(KIND_CODE[kind] for kind, phase in PHASE.items() if phase not in (Phase.COMPUTE, Phase.OPTIMIZER))
"""Kinds that count on threads which do not train."""

OPTIMIZER: Final = "Optimizer.step#*"


@dataclass(frozen=True, slots=True)
class DeviceSpans:
    """Spans as columns: kind uint8 codes, stream by position in `WorkerTrace.streams`; microseconds and bytes."""

    kind: AnyArray
    stream: AnyArray
    start_us: FloatArray
    end_us: FloatArray
    nbytes: FloatArray


@dataclass(frozen=True, slots=True)
class WorkerTrace:
    """One worker. device: its GPU's number and name, empty on a CPU. windows: its iterations by their numbers, each
    (start, end) in microseconds of the file's clock. unnamed_us: starts and ends [2, K] of the collectives whose kind
    the trace does not say; notes: what a reader must know."""

    device: str
    windows: Mapping[int, tuple[float, float]]
    spans: DeviceSpans
    streams: tuple[str, ...]
    unnamed_us: FloatArray
    notes: tuple[str, ...]


def workers_of(trace: TraceFile, names: Names) -> list[WorkerTrace]:
    """The workers in one file, in the order of their GPUs' numbers. Raises FileError where no iterations are marked."""
    reading = _WorkerReader(trace, names)
    steps, notes = reading.steps()
    devices, small = reading.devices()
    if small:
        notes = (*notes, f"{trace.path.name}: hardly anything ran on GPU {', '.join(small)}, which is left out")
    if not devices:
        return [WorkerTrace("", steps, reading.on_cpu(True), reading.streams, np.zeros((2, 0)), notes)]
    beside = reading.on_cpu(False)
    found = []
    for number in devices:
        spans, windows = reading.on_device(number, steps)
        unknown = f"{trace.path.name}: launches on GPU {number} are not known: its iterations are those of the CPU"
        more = () if windows else (unknown,)
        name = f"GPU {number} {trace.devices.get(number, '')}".strip()
        mine, unnamed = _joined(spans, beside), reading.unnamed(number)
        found.append(WorkerTrace(name, windows or steps, mine, reading.streams, unnamed, (*notes, *more)))
    return found


def _joined(one: DeviceSpans, other: DeviceSpans) -> DeviceSpans:
    return DeviceSpans(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in DeviceSpans.__slots__))


class _WorkerReader:
    """A file's events with the kinds that their names say."""

    def __init__(self, trace: TraceFile, names: Names) -> None:
        self.trace, self.names = trace, names
        self.streams = tuple(f"{'stream' if where == 'gpu' else 'thread'} {last}" for where, _, last in trace.places)
        ranges, operators = trace.sorts["range"], trace.sorts["op"]
        self.events, order = _merged(ranges, operators)
        self.annotated = np.repeat([True, False], [ranges.name.size, operators.name.size])[order]
        self.thread = NONE
        """The place of the thread that trains."""
        pairs = [(self._kind_of(name, True), self._kind_of(name, False)) for name in trace.names]
        self._kinds = np.array([[kind for kind, _ in pair] for pair in pairs], np.uint8).reshape(-1, 2)
        self._sure = np.array([[sure for _, sure in pair] for pair in pairs], np.bool_).reshape(-1, 2)

    def _kind_of(self, name: str, annotated: bool) -> tuple[int, bool]:
        """Code of the kind of what the CPU calls `name`, and whether it is that of all within; NO_KIND without one."""
        mine, kind = self.names.own(name)
        if mine:
            return (NO_KIND if kind is None else KIND_CODE[kind]), kind is not None
        named = first_of(RANGES, name) or (first_of(ANNOTATIONS, name) if annotated and "::" not in name else None)
        if named:
            return KIND_CODE[named], True
        if not annotated and "::" in name and not any(matches(pattern, name) for pattern in NO_WORK):
            return KIND_CODE[first_of(COMPUTE, name) or OpKind.UPDATE], False
        return NO_KIND, False

    def steps(self) -> tuple[dict[int, tuple[float, float]], tuple[str, ...]]:
        """Iterations by the CPU's clock: by number, start and end; and notes."""
        events, ranges = self.events, self.trace.sorts["range"]
        if self.names.iteration is not None:
            marks = [self.names.marks(name) for name in self.trace.names]
            found = np.flatnonzero(np.array(marks, np.bool_)[events.name])
            problem = f"no range is called {self.names.iteration!r} (iteration, in the file of names)"
            return self._between(events.start_us, found, problem), ()
        marked = self.trace.steps()
        if marked:
            self.thread = int(ranges.place[next(iter(marked.values()))])
            starts = {number: float(ranges.start_us[at]) for number, at in marked.items()}
            ends = {number: float(ranges.end_us[at]) for number, at in marked.items()}
            return {n: (starts[n], starts.get(n + 1, ends[n])) for n in sorted(starts)}, ()
        marks = [matches(OPTIMIZER, name) for name in self.trace.names]
        found = np.flatnonzero(np.array(marks, np.bool_)[events.name])
        missing = "no ProfilerStep#N (profiler.step() after each iteration)"
        if np.unique(events.name[found]).size > 1:
            found = found[:0]
            missing += ", and optimizers of several kinds"
        steps = self._between(events.end_us, found, missing)
        return steps, (f"{self.trace.path.name}: has {missing}: from the end of one optimizer step to the next",)

    def _between(self, times: FloatArray, found: AnyArray, missing: str) -> dict[int, tuple[float, float]]:
        """Iterations from one mark to the next, numbered from 0."""
        if found.size < 2:
            hint = "allowed: two iterations or more, marked by the profiler's steps or a range named by --names"
            raise NoTraceError(f"{self.trace.path}: {missing}; {hint}")
        self.thread = int(self.events.place[found[0]])
        at = np.sort(times[found]).tolist()
        return {n: (at[n], at[n + 1]) for n in range(len(at) - 1)}

    def devices(self) -> tuple[list[str], list[str]]:
        """GPUs that are workers, by their numbers; and those on which hardly anything ran."""
        spent: dict[str, float] = {}
        kernels = self.trace.sorts["kernel"]
        for index, (where, number, _) in enumerate(self.trace.places):
            if where == "gpu":
                spent[number] = spent.get(number, 0.0) + float(kernels.lasted_us[kernels.place == index].sum())
        order = sorted(spent, key=lambda number: (len(number), number))
        most = max(spent.values(), default=0.0)
        busy = [number for number in order if spent[number] > SMALL * most]
        return busy, [number for number in order if number not in busy and most > 0.0]

    def on_cpu(self, trains: bool) -> DeviceSpans:
        """Spans of the threads; trains: whether operators are the computation, or kernels of a GPU are."""
        pieces: list[tuple[int, int, float, float]] = []
        for place in np.unique(self.events.place).tolist():
            mine = self.events.place == place
            whole = trains and place == self.thread
            for start, end, code in self._pieces(mine if whole else mine & self._certain()):
                if whole or code in BESIDE:
                    pieces.append((code, place, start, end))
        codes = np.array([self._message(name) for name in self.trace.names], np.uint8)[self.events.name]
        sent = self.events.chosen(codes != NO_KIND)
        columns = [np.array(column) for column in zip(*pieces, strict=True)] or [np.zeros(0)] * 4
        return DeviceSpans(
            np.r_[columns[0], codes[codes != NO_KIND]].astype(np.uint8),
            np.r_[columns[1], sent.place].astype(np.int32),
            np.r_[columns[2], sent.start_us],
            np.r_[columns[3], sent.end_us],
            np.zeros(len(pieces) + sent.name.size),
        )

    def _message(self, name: str) -> int:
        kind = None if self.names.own(name)[0] else first_of(MESSAGES, name)
        return NO_KIND if kind is None else KIND_CODE[kind]

    def _certain(self) -> BoolArray:
        """Mask of the CPU's events that name all within them."""
        sure: BoolArray = self._sure[self.events.name, np.where(self.annotated, 0, 1)]
        return sure

    def _pieces(self, mask: BoolArray) -> Iterator[tuple[float, float, int]]:
        """(start, end, kind) of one thread's events, disjoint: of nested ones the innermost that names all within it,
        else the outermost operator."""
        column = np.where(self.annotated, 0, 1)
        codes, sure = self._kinds[self.events.name, column], self._sure[self.events.name, column]
        chosen = np.flatnonzero(mask & (codes != NO_KIND))
        columns = (self.events.start_us, self.events.end_us, codes, sure)
        yield from flattened(zip(*(item[chosen].tolist() for item in columns), strict=True))

    def on_device(
        self, number: str, steps: Mapping[int, tuple[float, float]]
    ) -> tuple[DeviceSpans, dict[int, tuple[float, float]]]:
        """Spans of a GPU, and its iterations by the ends of what they launched; empty where that is not known."""
        kernels, copies = (self._on(number, sort) for sort in ("kernel", "copy"))
        launched = [self._launched(events) for events in (kernels, copies)]
        own = np.array([self._kernel(name) for name in self.trace.names], np.uint8)[kernels.name]
        kinds = np.where(own != NO_KIND, own, self._ranged(launched[0]))
        usual = np.array([KIND_CODE[first_of(COMPUTE, name) or OpKind.UPDATE] for name in self.trace.names], np.uint8)
        kinds = np.where(kinds != NO_KIND, kinds, usual[kernels.name])
        moved = np.array([self._copy(name) for name in self.trace.names], np.uint8)[copies.name]
        spans = DeviceSpans(
            np.r_[kinds, moved].astype(np.uint8),
            np.r_[kernels.place, copies.place].astype(np.int32),
            np.r_[kernels.start_us, copies.start_us],
            np.r_[kernels.end_us, copies.end_us],
            np.r_[kernels.nbytes, copies.nbytes],
        )
        counted = spans.kind < IGNORED
        windows = by_ends(np.r_[launched[0][0], launched[1][0]], spans.end_us, steps)
        return DeviceSpans(*(getattr(spans, name)[counted] for name in DeviceSpans.__slots__)), windows

    def unnamed(self, number: str) -> FloatArray:
        """Starts and ends [2, K] of a GPU's collectives whose kind neither their names nor the user's patterns say."""
        kernels = self._on(number, "kernel")
        unsaid = [not self.names.own(name)[0] and is_unnamed(name) for name in self.trace.names]
        mine = kernels.chosen(np.array(unsaid, np.bool_)[kernels.name])
        return np.stack([mine.start_us, mine.end_us])

    def _on(self, number: str, sort: str) -> Events:
        """Events of one sort on a GPU."""
        places = [index for index, location in enumerate(self.trace.places) if location[:2] == ("gpu", number)]
        events = self.trace.sorts[sort]
        return events.chosen(np.isin(events.place, places))

    def _kernel(self, name: str) -> int:
        """The kind that a kernel's own name says for certain."""
        mine, kind = self.names.own(name)
        if not mine:
            kind = first_of(COLLECTIVES, name.partition("(")[0])
            return NO_KIND if kind is None else KIND_CODE[kind]
        return IGNORED if kind is None else KIND_CODE[kind]

    def _copy(self, name: str) -> int:
        mine, kind = self.names.own(name)
        found = kind if mine else first_of(COPIES, name)
        return NO_KIND if found is None else KIND_CODE[found]

    def _launched(self, events: Events) -> tuple[FloatArray, AnyArray]:
        """When and on which thread the CPU launched each of `events`; nan and -1 where that is not known."""
        launches = self.trace.sorts["launch"]
        order = np.argsort(launches.link, kind="stable")
        links = launches.link[order]
        at = np.searchsorted(links, events.link)
        at = np.minimum(at, max(links.size - 1, 0))
        known = (events.link >= 0) & (links[at] == events.link) if links.size else np.zeros(events.link.shape, np.bool_)
        source = order[at] if links.size else at
        start = np.where(known, launches.start_us[source] if links.size else 0.0, np.nan)
        return start, np.where(known, launches.place[source] if links.size else NONE, NONE)

    def _ranged(self, launched: tuple[FloatArray, AnyArray]) -> AnyArray:
        """The kind of the range in which each of some events was launched, codes; NO_KIND outside of any."""
        times, threads = launched
        found = np.full(times.shape, NO_KIND, np.uint8)
        for place in np.unique(threads[threads != NONE]).tolist():
            pieces = list(self._pieces(self._certain() & (self.events.place == place)))
            if not pieces:
                continue
            starts, ends, codes = (np.array(column) for column in zip(*pieces, strict=True))
            mine = np.flatnonzero(threads == place)
            at = np.maximum(np.searchsorted(starts, times[mine], side="right") - 1, 0)
            inside = (times[mine] >= starts[at]) & (times[mine] < ends[at])
            found[mine[inside]] = codes[at[inside]]
        return found


def _merged(one: Events, other: Events) -> tuple[Events, AnyArray]:
    """Both by their starts, the longest first of equal ones; and the places in (one, other) that they come from."""
    columns = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in Events.__slots__}
    order = np.lexsort((-columns["lasted_us"], columns["start_us"]))
    return Events(**{name: column[order] for name, column in columns.items()}), order


def flattened(nested: Iterable[tuple[float, float, int, bool]]) -> list[tuple[float, float, int]]:
    """Nested events (start, end, kind, names all within) in the order of their starts as disjoint ones."""
    pieces: list[tuple[float, float, int]] = []
    stack: list[tuple[float, int]] = []
    now = 0.0

    def until(time: float) -> None:
        """What is innermost lasts until `time`."""
        nonlocal now
        if time > now:
            kind = stack[-1][1]
            if pieces and pieces[-1][2] == kind and pieces[-1][1] == now:
                pieces[-1] = (pieces[-1][0], time, kind)
            else:
                pieces.append((now, time, kind))
            now = time

    for start, end, kind, sure in nested:
        while stack and stack[-1][0] <= start:
            until(stack[-1][0])
            stack.pop()
        if stack:
            until(start)
        now = max(now, start) if stack else start
        stack.append((end, kind if sure or not stack else stack[-1][1]))
    while stack:
        until(stack[-1][0])
        stack.pop()
    return pieces


def by_ends(
    launched: FloatArray, ends: FloatArray, steps: Mapping[int, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """Iterations from the end of what the one before launched to the end of what it launched itself.

    The CPU runs ahead of its GPU, so its own clock tells less. Empty where an iteration launched nothing that is known.
    """
    last: dict[int, float] = {}
    for number, (start, end) in steps.items():
        mine = ends[(launched >= start) & (launched < end)]
        if not mine.size:
            return {}
        last[number] = max(float(mine.max()), last.get(number - 1, start))
    return {number: (last.get(number - 1, start), last[number]) for number, (start, _) in steps.items()}
