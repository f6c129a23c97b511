from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.timeline import KIND_CODE, PHASE, Direction, OpKind, Timeline
from gcnsim.timeline.perfetto import lanes_of, write_chrome_trace

_STREAMS = ("gpu", "nic-tx")
_Spans = list[tuple[OpKind, int, int, int, int]]


def _timeline(spans: _Spans) -> Timeline:
    """A timeline of (kind, worker, stream, start, end in ps), in its documented order."""
    order = sorted(spans, key=lambda span: (span[3], span[1], span[2]))
    column = list(zip(*order, strict=True)) if order else [()] * 5
    size = len(order)
    wire = np.array([kind is OpKind.WIRE for kind in column[0]], dtype=bool)
    return Timeline(
        kind=np.array([KIND_CODE[kind] for kind in column[0]], dtype=np.uint8),
        worker=np.array(column[1], dtype=np.int32),
        stream=np.array(column[2], dtype=np.int32),
        iteration=np.full(size, 3, dtype=np.int32),
        layer=np.where(wire, -1, 1).astype(np.int32),
        direction=np.where(wire, int(Direction.BACKWARD), int(Direction.NONE)).astype(np.uint8),
        peer=np.where(wire, 1, -1).astype(np.int32),
        start_ps=np.array(column[3], dtype=np.int64),
        end_ps=np.array(column[4], dtype=np.int64),
        nbytes=np.where(wire, 4096.0, 0.0),
        streams=_STREAMS,
    )


_SAMPLE: _Spans = [
    (OpKind.AGGREGATE, 0, 0, 0, 2_000_001),
    (OpKind.WIRE, 0, 1, 500_000, 3_000_000),
    (OpKind.WIRE, 0, 1, 1_000_000, 4_000_000),
    (OpKind.WIRE, 0, 1, 3_000_000, 5_000_000),
    (OpKind.STEP, 1, 0, 700_000, 900_000),
]


def _events(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events


def test_one_event_per_span_in_order_with_its_facts(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_chrome_trace(path, _timeline(_SAMPLE), 'reddit "6 GPUs"')
    whole = json.loads(path.read_text(encoding="utf-8"))
    assert whole["otherData"] == {"title": 'reddit "6 GPUs"'}
    spans = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    assert [event["ts"] for event in spans] == [0.0, 0.5, 0.7, 1.0, 3.0]
    assert spans[0] | {"args": {}} == {
        "ph": "X",
        "name": "aggregate",
        "cat": PHASE[OpKind.AGGREGATE],
        "pid": 0,
        "tid": 1,
        "ts": 0.0,
        "dur": 2.000001,
        "args": {},
    }
    assert spans[0]["args"] == {"iteration": 3, "layer": 1}
    assert spans[1]["args"] == {"iteration": 3, "direction": "backward", "peer": 1, "bytes": 4096.0}


def test_streams_are_named_tracks_and_overlap_gets_a_track_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_chrome_trace(path, _timeline(_SAMPLE), "t")
    events = _events(path)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {(0, 1): "gpu", (0, 2): "nic-tx", (0, 3): "nic-tx (2)", (1, 1): "gpu"}
    assert {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        0: "worker 0",
        1: "worker 1",
    }
    assert [e["tid"] for e in events if e["ph"] == "X" and e["name"] == "wire"] == [2, 3, 2]


def test_an_empty_timeline_is_a_valid_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_chrome_trace(path, _timeline([]), "nothing")
    assert _events(path) == []


def test_the_same_timeline_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_chrome_trace(tmp_path / name, _timeline(_SAMPLE), "t")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_hour_is_written_to_the_picosecond(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    hour = 3_600_000_000_000_000
    write_chrome_trace(path, _timeline([(OpKind.STEP, 0, 0, hour + 1, hour + 3)]), "t")
    assert '"ts":3600000000.000001,"dur":0.000002' in path.read_text(encoding="utf-8")


_drawn = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 20), st.integers(0, 8)), max_size=25)


@settings(deadline=None, max_examples=40)
@given(_drawn)
def test_no_two_spans_of_a_track_overlap_and_no_track_is_wasted(drawn: list[tuple[int, int, int, int]]) -> None:
    timeline = _timeline([(OpKind.WIRE, worker, stream, at, at + length) for worker, stream, at, length in drawn])
    lanes = lanes_of(timeline)
    for worker, stream in {(worker, stream) for worker, stream, _, _ in drawn}:
        mine = (timeline.worker == worker) & (timeline.stream == stream)
        starts, ends = timeline.start_ps[mine], timeline.end_ps[mine]
        for lane in range(int(lanes[mine].max()) + 1):
            held = np.flatnonzero(lanes[mine] == lane)
            assert all(ends[a] <= starts[b] for a, b in pairwise(held.tolist()))
        most = max(int(((starts <= at) & (ends > at)).sum()) for at in starts.tolist())
        assert int(lanes[mine].max()) + 1 <= max(1, most) + int((starts == ends).sum())


@pytest.mark.parametrize("kind", list(OpKind))
def test_category_is_the_phase(kind: OpKind, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_chrome_trace(path, _timeline([(kind, 0, 0, 0, 1)]), "t")
    assert [event["cat"] for event in _events(path) if event["ph"] == "X"] == [PHASE[kind].value]
