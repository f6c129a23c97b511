"""A timeline as a trace file for Perfetto or chrome://tracing: a process per worker, a track per stream.

The format is the JSON of the "Trace Event Format": complete events (`ph` X), `ts` and `dur` in microseconds, written
exactly to the picosecond. A viewer cannot draw two events of one track that overlap without one holding the other, so a
stream that carries several spans at once (flows that share a link) is written as several tracks, as few as will do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.ids import Int32Array
from gcnsim.io.atomic import atomic_write
from gcnsim.timeline import KINDS, PHASE, Direction, Timeline

_PS_PER_US = 1_000_000


def write_chrome_trace(path: str | Path, timeline: Timeline, title: str) -> None:
    """Write `timeline` to `path` as Chrome trace JSON, one event per span in the timeline's order.

    Raises FileError when the file cannot be written.
    """
    lane = lanes_of(timeline)
    tracks = _tracks(timeline, lane)
    with atomic_write(path, text=True) as file:
        file.write('{"displayTimeUnit":"ms","otherData":' + as_json({"title": title}) + ',"traceEvents":[\n')
        separator = ""
        for event in _metadata(timeline, tracks):
            file.write(separator + as_json(event))
            separator = ",\n"
        for text in _events(timeline, lane, tracks):
            file.write(separator + text)
            separator = ",\n"
        file.write("\n]}\n")


def lanes_of(timeline: Timeline) -> Int32Array:
    """Per span the lowest lane of its worker's stream that is free when it starts, int32[spans]; 0 without overlap."""
    busy: dict[tuple[int, int], list[int]] = {}
    lanes = np.zeros(len(timeline), dtype=np.int32)
    for i, key in enumerate(zip(timeline.worker.tolist(), timeline.stream.tolist(), strict=True)):
        start, end = int(timeline.start_ps[i]), int(timeline.end_ps[i])
        ends = busy.setdefault(key, [])
        lane = next((place for place, until in enumerate(ends) if until <= start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes[i] = lane
    return lanes


def _tracks(timeline: Timeline, lane: Int32Array) -> dict[tuple[int, int, int], int]:
    """The track number of each (worker, stream, lane): 1.. within a worker, by stream and lane."""
    keys = np.unique(np.stack([timeline.worker, timeline.stream, lane], axis=1).astype(np.int64), axis=0)
    tracks: dict[tuple[int, int, int], int] = {}
    first: dict[int, int] = {}
    for position, (worker, stream, level) in enumerate(keys.tolist()):
        tracks[worker, stream, level] = position - first.setdefault(worker, position) + 1
    return tracks


def _metadata(timeline: Timeline, tracks: dict[tuple[int, int, int], int]) -> Iterator[dict[str, Any]]:
    for worker in sorted({worker for worker, _, _ in tracks}):
        yield meta("process_name", worker, 0, {"name": f"worker {worker}"})
        yield meta("process_sort_index", worker, 0, {"sort_index": worker})
    for (worker, stream, level), track in tracks.items():
        name = timeline.streams[stream] + (f" ({level + 1})" if level else "")
        yield meta("thread_name", worker, track, {"name": name})
        yield meta("thread_sort_index", worker, track, {"sort_index": track})


def meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    """An event that names a process (tid 0) or a track, or says where it stands."""
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _events(timeline: Timeline, lane: Int32Array, tracks: dict[tuple[int, int, int], int]) -> Iterator[str]:
    for i in range(len(timeline)):
        kind, worker = KINDS[int(timeline.kind[i])], int(timeline.worker[i])
        start, end = int(timeline.start_ps[i]), int(timeline.end_ps[i])
        track = tracks[worker, int(timeline.stream[i]), int(lane[i])]
        args = as_json(span_args(timeline, i))
        yield (
            f'{{"ph":"X","name":"{kind}","cat":"{PHASE[kind]}","pid":{worker},"tid":{track},'
            f'"ts":{micros(start)},"dur":{micros(end - start)},"args":{args}}}'
        )


def span_args(timeline: Timeline, i: int) -> dict[str, Any]:
    """What a viewer shows of span `i`: iteration, layer, direction, peer and bytes, where it has them."""
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


def micros(picoseconds: int) -> str:
    """Microseconds, to the picosecond."""
    return f"{picoseconds // _PS_PER_US}.{picoseconds % _PS_PER_US:06d}"


def as_json(value: Any) -> str:
    """JSON of one line without spaces; no number that is none."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
