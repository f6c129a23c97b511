"""A run as a trace file for Perfetto: iterations, work of each worker, messages as arrows, link rates.

The format is the JSON of the "Trace Event Format", with times in microseconds, exact to the picosecond. It has a
process `iterations` with a slice for each, warm-up ones marked; a process per worker with a track per kind of work; an
arrow (`ph` s and f) from the start to the end of each message; and a process `links` with a counter (`ph` C) per link,
in bytes per second.

Concurrent messages would overlap on their track. The track is split where one begins or ends, and a slice states how
many there are. In detail mode every stream has a separate track instead, or several to avoid overlaps.

A recorded run and its prediction share a file: their first measured iterations begin at the same instant, and a counter
has the difference of each iteration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import FloatArray, Int32Array, IntArray, Iteration
from gcnsim.timeline.span import KIND_CODE, KINDS, PHASE, Direction, OpKind, Phase, Timeline

COMPUTE, RECEIVE, REDUCE = "compute", "receive", "all-reduce"
TRACKS: Final = (COMPUTE, "sampling", "pack", "copy to host", "send", RECEIVE, "copy to device", REDUCE, "pause")
"""The kinds of work with a track, in the order of display."""

MAIN: Final = ("gpu", "compute")
"""Streams that compute, simulated and measured."""

ARRIVES: Final = 2_000
"""Picoseconds before its end at which an arrow meets a slice: viewers round times to nanoseconds."""

_PS_PER_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts about a run beyond its spans. ends: int64[T] picoseconds, the end of each iteration on the last worker.
    measured: the first measured one. rates: per link, instants (picoseconds) and the bytes per second from each on.
    start: of the first iteration, picoseconds. lengths: int64[T - measured] picoseconds, of measured iterations whose
    evaluations and checkpoints lie between them; None: each lasts from the end of the one before.
    """

    ends: IntArray
    measured: Iteration
    rates: Mapping[str, tuple[IntArray, FloatArray]]
    start: int = 0
    lengths: IntArray | None = None

    @property
    def measured_lengths(self) -> IntArray:
        """The length of each measured iteration, int64[T - measured] picoseconds."""
        if self.lengths is not None:
            return self.lengths
        return np.diff(self.ends, prepend=self.start)[self.measured :]

    @property
    def measured_from(self) -> int:
        """The start of the first measured iteration, picoseconds."""
        return int(self.ends[self.measured - 1]) if self.measured else self.start


class TracedRun(NamedTuple):
    """A run for a file. name: the first word of its processes' names, where the file has several runs."""

    timeline: Timeline
    facts: RunFacts
    name: str = ""

    def later(self, by: int) -> TracedRun:
        """The run that begins `by` picoseconds later."""
        spans, facts = self.timeline, self.facts
        rates = {link: (instants + by, values) for link, (instants, values) in facts.rates.items()}
        return self._replace(
            timeline=replace(spans, start_ps=spans.start_ps + by, end_ps=spans.end_ps + by),
            facts=replace(facts, ends=facts.ends + by, rates=rates, start=facts.start + by),
        )


class Slice(NamedTuple):
    """A span, or several concurrent ones, on a worker's track. spans: their indices. received: as recorded by
    receivers.
    """

    worker: int
    track: str
    start_ps: int
    end_ps: int
    spans: tuple[int, ...]
    received: bool


class Arrow(NamedTuple):
    """A message from (worker, track) at its start to (worker, track) at its end."""

    span: int
    sender: tuple[int, str]
    receiver: tuple[int, str]


def write_run_trace(path: str | Path, title: str, run: TracedRun, *, detail: bool = False) -> None:
    """Write a run to `path` as Chrome trace JSON; detail: a track per stream instead of one per kind of work.

    Raises FileError if the file cannot be written.
    """
    _write(path, {"title": title}, _events(run, 0, 0, detail=detail))


def write_both(
    path: str | Path, title: str, measured: TracedRun, predicted: TracedRun, *, detail: bool = False
) -> None:
    """Write a recorded run and its prediction as in `write_run_trace`, with the difference of each measured iteration
    from the mean predicted one. Raises FileError.
    """
    ahead = measured.facts.measured_from - predicted.facts.measured_from
    measured, predicted = measured.later(max(0, -ahead)), predicted.later(max(0, ahead))
    lengths, mean = measured.facts.measured_lengths, float(predicted.facts.measured_lengths.mean())
    other = {"title": title, "aligned": "at the first measured iteration of both"}
    means = {"measured_iteration_s": float(lengths.mean()) / 1e12, "predicted_iteration_s": mean / 1e12}
    first = [0, _processes_of(measured), _processes_of(measured) + _processes_of(predicted)]
    events = chain(
        _processes(first[2], "difference", -1),
        _difference(lengths, mean, measured.facts, first[2]),
        _events(measured, first[0], 0, detail=detail),
        _events(predicted, first[1], 1, detail=detail),
    )
    _write(path, other | means, events)


def _write(path: str | Path, other: Mapping[str, Any], events: Iterable[str]) -> None:
    with atomic_write(path, text=True) as file:
        file.write('{"displayTimeUnit":"ms","otherData":' + _as_json(other) + ',"traceEvents":[\n')
        file.write(",\n".join(events))
        file.write("\n]}\n")


def _difference(lengths: IntArray, mean: float, facts: RunFacts, pid: int) -> Iterator[str]:
    """A counter with the difference of each measured iteration from `mean`, in ms, from the end of the one before."""
    instants = [facts.measured_from, *facts.ends[facts.measured :].tolist()]
    for at, value in zip(instants, [*(lengths - mean).tolist(), 0.0], strict=True):
        args = _as_json({"ms": float(f"{value / 1e9:.6g}")})
        yield f'{{"ph":"C","name":"measured less predicted","pid":{pid},"ts":{_micros(at)},"args":{args}}}'


def _processes_of(run: TracedRun) -> int:
    """Processes of a run: its workers, iterations and links."""
    spans = run.timeline
    return int(max(spans.worker.max(initial=0), spans.peer.max(initial=0))) + 3


def _events(run: TracedRun, first: int, order: int, *, detail: bool) -> Iterator[str]:
    """The events of a run; first: its first process; order: its place among the runs of the file."""
    timeline, facts = run.timeline, run.facts
    slices, arrows = _in_detail(timeline) if detail else _by_kind(timeline)
    workers = sorted({part.worker for part in slices})
    iterations = first + _processes_of(run) - 2
    before = f"{run.name} ".lstrip()
    place = _places({(part.worker, part.track) for part in slices})
    yield from _processes(iterations, f"{before}iterations", order)
    yield _named("thread_name", iterations, 1, {"name": "iterations"})
    for worker in workers:
        yield from _processes(first + worker, f"{before}worker {worker}", 2 * (worker + 1) + order)
    for (worker, track), number in place.items():
        yield _named("thread_name", first + worker, number, {"name": track})
        yield _named("thread_sort_index", first + worker, number, {"sort_index": number})
    yield from _processes(iterations + 1, f"{before}links", 2 * _processes_of(run) + order)
    yield from _iterations(facts, iterations)
    for part in slices:
        yield _slice(timeline, part, first + part.worker, place[part.worker, part.track])
    for number, arrow in enumerate(arrows):
        yield from _arrow(timeline, arrow, 2 * number + order, first, place)
    for name, (instants, rates) in facts.rates.items():
        for at, rate in zip(instants.tolist(), rates.tolist(), strict=True):
            args = _as_json({"bytes/s": float(f"{rate:.9g}")})
            yield f'{{"ph":"C","name":"{name}","pid":{iterations + 1},"ts":{_micros(at)},"args":{args}}}'


def _places(tracks: set[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """The number of each (worker, track): 1.. within a worker, those that compute first, then by kind or by name."""
    shown = {track: index for index, track in enumerate(TRACKS)} | dict.fromkeys(MAIN, 0)
    ordered = sorted(tracks, key=lambda own: (own[0], shown.get(own[1], len(TRACKS)), own[1]))
    first: dict[int, int] = {}
    return {own: index - first.setdefault(own[0], index) + 1 for index, own in enumerate(ordered)}


def _named(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    return _as_json(_meta(name, pid, tid, args))


def _processes(pid: int, name: str, place: int) -> Iterator[str]:
    yield _named("process_name", pid, 0, {"name": name})
    yield _named("process_sort_index", pid, 0, {"sort_index": place})


def _iterations(facts: RunFacts, pid: int) -> Iterator[str]:
    """A slice per iteration, from the end of the one before to its own, and where measuring begins."""
    start = facts.start
    for iteration, end in enumerate(facts.ends.tolist()):
        warming = iteration < facts.measured
        event: dict[str, Any] = {"ph": "X", "name": f"iteration {iteration}", "cat": "measured", "pid": pid, "tid": 1}
        if warming:
            event |= {"name": f"warm-up {iteration}", "cat": "warm-up", "cname": "grey"}
        args = {"iteration": iteration, "measured": not warming}
        yield _timed(event, start, end - start, args)
        if iteration + 1 == facts.measured:
            text = '{"ph":"i","name":"measured from here","cat":"measured","s":"g"'
            yield f'{text},"pid":{pid},"tid":1,"ts":{_micros(end)}}}'
        start = end


def _timed(event: dict[str, Any], start_ps: int, length_ps: int, args: dict[str, Any]) -> str:
    """A complete event, its times written to the picosecond."""
    times = f',"ts":{_micros(start_ps)},"dur":{_micros(length_ps)},"args":'
    return _as_json(event)[:-1] + times + _as_json(args) + "}"


def _slice(timeline: Timeline, found: Slice, pid: int, track: int) -> str:
    kinds = [KINDS[int(timeline.kind[span])] for span in found.spans]
    names = [RECEIVE if found.received else str(kind) for kind in kinds]
    counted = [f"{name} x{names.count(name)}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]
    event = {"ph": "X", "name": " + ".join(counted), "cat": str(PHASE[kinds[0]]), "pid": pid, "tid": track}
    args = _span_args(timeline, found.spans[0]) if len(found.spans) == 1 else _several(timeline, found)
    if found.received and len(found.spans) == 1:
        args["peer"] = int(timeline.worker[found.spans[0]])
    return _timed(event, found.start_ps, found.end_ps - found.start_ps, args)


def _several(timeline: Timeline, found: Slice) -> dict[str, Any]:
    """The summary of concurrent spans: their iterations, layers, peers and total bytes."""
    spans = list(found.spans)
    peers = timeline.worker[spans] if found.received else timeline.peer[spans]
    directions = {Direction(value).name.lower() for value in timeline.direction[spans].tolist() if value}
    args: dict[str, Any] = {"iterations": sorted(set(timeline.iteration[spans].tolist()))}
    args["layers"] = sorted({layer for layer in timeline.layer[spans].tolist() if layer >= 0})
    args["directions"] = sorted(directions)
    args["peers"] = sorted({peer for peer in peers.tolist() if peer >= 0})
    args["bytes"] = float(timeline.nbytes[spans].sum())
    return {name: value for name, value in args.items() if value}


def _arrow(
    timeline: Timeline, arrow: Arrow, number: int, first: int, place: Mapping[tuple[int, str], int]
) -> Iterator[str]:
    start, end = int(timeline.start_ps[arrow.span]), int(timeline.end_ps[arrow.span])
    name = "all-reduce" if timeline.kind[arrow.span] == KIND_CODE[OpKind.ALLREDUCE] else "message"
    ends = ((arrow.sender, "s", start, ""), (arrow.receiver, "f", max(start, end - ARRIVES), ',"bp":"e"'))
    for own, phase, at, more in ends:
        yield (
            f'{{"ph":"{phase}","name":"{name}","cat":"message","id":{number},"pid":{first + own[0]},"tid":{place[own]},'
            f'"ts":{_micros(at)}{more}}}'
        )


def messages(timeline: Timeline) -> IntArray:
    """The indices of spans that are messages to a peer: rows, gradients, ids and parts of all-reduces."""
    kinds = [KIND_CODE[kind] for kind in (OpKind.WIRE, OpKind.INDEX, OpKind.ALLREDUCE)]
    away = (timeline.peer >= 0) & (timeline.peer != timeline.worker)
    return np.flatnonzero(away & np.isin(timeline.kind, kinds) & (timeline.nbytes > 0))


def _track(timeline: Timeline, span: int, *, message: bool) -> str | None:
    """The kind of work of a span; None for one that only delays another."""
    stream, kind = timeline.streams[int(timeline.stream[span])], KINDS[int(timeline.kind[span])]
    if stream in MAIN:
        return COMPUTE
    if kind is OpKind.WAIT:
        return "pause" if stream.startswith("pause") else None
    if kind is OpKind.ALLREDUCE:
        return REDUCE
    if message:
        return "send"
    if kind is OpKind.WIRE and timeline.nbytes[span] == 0:
        return None  # a receiver waiting for a message, which is shown at its sender
    copies = {OpKind.D2H: "copy to host", OpKind.H2D: "copy to device", OpKind.INDEX: "copy to device"}
    if kind in copies:
        return copies[kind]
    if PHASE[kind] is Phase.SAMPLING:
        return "sampling"
    return COMPUTE if PHASE[kind] in (Phase.COMPUTE, Phase.OPTIMIZER) else "pack"


def _by_kind(timeline: Timeline, spans: Sequence[int] | None = None) -> tuple[list[Slice], list[Arrow]]:
    """Slices on a track per worker and kind of work, and arrows between them."""
    sent = set(messages(timeline).tolist())
    held: dict[tuple[int, str, bool], list[int]] = {}
    arrows = []
    for span in range(len(timeline)) if spans is None else spans:
        worker, track = int(timeline.worker[span]), _track(timeline, span, message=span in sent)
        if track is None:
            continue
        held.setdefault((worker, track, False), []).append(span)
        if span in sent:
            peer = int(timeline.peer[span])
            held.setdefault((peer, RECEIVE, True), []).append(span)
            arrows.append(Arrow(span, (worker, track), (peer, RECEIVE)))
    slices = [
        item
        for (worker, track, received), own in held.items()
        for item in _cut(timeline, worker, track, own, received=received)
    ]
    return slices, arrows


def slices_by_kind(timeline: Timeline, spans: Sequence[int]) -> list[Slice]:
    """Slices of these spans (indices in the timeline) on a track (`TRACKS`) per worker and kind of work."""
    return _by_kind(timeline, spans)[0]


def _cut(timeline: Timeline, worker: int, track: str, spans: list[int], *, received: bool) -> Iterator[Slice]:
    """The spans of a track in order, split where another begins or ends, so that no two slices overlap."""
    changes = sorted(
        [(int(timeline.start_ps[span]), 1, span) for span in spans]
        + [(int(timeline.end_ps[span]), 0, span) for span in spans]
    )
    under_way: dict[int, None] = {}
    since = 0
    for at, begins, span in changes:
        if under_way and at > since:
            yield Slice(worker, track, since, at, tuple(under_way), received)
        since = at
        if begins:
            under_way[span] = None
        else:
            under_way.pop(span, None)


def _in_detail(timeline: Timeline) -> tuple[list[Slice], list[Arrow]]:
    """A slice per span on tracks per stream, one per message at its receiver, and arrows between the two."""
    lanes = _lanes(timeline).tolist()
    slices, arrows = [], []
    sent = set(messages(timeline).tolist())
    busy: dict[tuple[int, str], list[int]] = {}
    for span in range(len(timeline)):
        stream, worker = timeline.streams[int(timeline.stream[span])], int(timeline.worker[span])
        track = stream + (f" ({lanes[span] + 1})" if lanes[span] else "")
        start, end = int(timeline.start_ps[span]), int(timeline.end_ps[span])
        slices.append(Slice(worker, track, start, end, (span,), received=False))
        if span in sent:
            peer, lane = int(timeline.peer[span]), stream.partition(".")[0]
            seen = f"{lane}.rx{worker}"
            ends = busy.setdefault((peer, seen), [])
            level = next((level for level, until in enumerate(ends) if until <= start), len(ends))
            ends[level : level + 1] = [end]
            seen += f" ({level + 1})" if level else ""
            slices.append(Slice(peer, seen, start, end, (span,), received=True))
            arrows.append(Arrow(span, (worker, track), (peer, seen)))
    return slices, arrows


def _lanes(timeline: Timeline) -> Int32Array:
    """Per span the lowest lane of its worker's stream that is free when it starts, int32[spans]; 0 without overlap."""
    busy: dict[tuple[int, int], list[int]] = {}
    lanes = np.zeros(len(timeline), dtype=np.int32)
    for i, key in enumerate(zip(timeline.worker.tolist(), timeline.stream.tolist(), strict=True)):
        start, end = int(timeline.start_ps[i]), int(timeline.end_ps[i])
        ends = busy.setdefault(key, [])
        lane = next((index for index, until in enumerate(ends) if until <= start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes[i] = lane
    return lanes


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    """An event that names a process (tid 0) or a track, or sets its position."""
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _span_args(timeline: Timeline, i: int) -> dict[str, Any]:
    """The details of span `i` in a viewer: iteration, layer, direction, peer and bytes, if it has them."""
    args: dict[str, Any] = {"iteration": int(timeline.iteration[i])}
    if timeline.layer[i] >= 0:
        args["layer"] = int(timeline.layer[i])
    if timeline.direction[i]:
        args["direction"] = Direction(int(timeline.direction[i])).name.lower()
    if timeline.peer[i] >= 0:
        args["peer"] = int(timeline.peer[i])
    if timeline.nbytes[i]:
        args["bytes"] = float(timeline.nbytes[i])
    return args


def _micros(picoseconds: int) -> str:
    """Microseconds, to the picosecond."""
    return f"{picoseconds // _PS_PER_US}.{picoseconds % _PS_PER_US:06d}"


def _as_json(value: Any) -> str:
    """JSON on one line without spaces and without NaN."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
