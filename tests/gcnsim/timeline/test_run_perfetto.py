"""The trace file of a run: iterations, tracks by kind of work, arrows from send to receive, and rates of links."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.engine import Run, link_rates, simulate, timeline
from gcnsim.timeline import Timeline, run_perfetto
from gcnsim.timeline.run_perfetto import RunFacts, TracedRun, write_both, write_run_trace
from tests.cases import Case, method

Event = dict[str, Any]
MEASURED = 3


@pytest.fixture(scope="module")
def run(facts: Callable[..., Case]) -> Run:
    given = facts(tau=2, sampled=True, iterations=3, spread=0.2, hits=0.2, nic=2e8)
    return simulate(method("psc-gcn")(given), 6)


def traced(run: Run, name: str = "") -> TracedRun:
    ends = run.ends[:, list(run.schedule.ends)].max(axis=1)
    return TracedRun(timeline(run), RunFacts(ends, MEASURED, link_rates(run)), name)


def written(run: Run, path: Path, *, detail: bool = False) -> list[Event]:
    write_run_trace(path, "a run", traced(run), detail=detail)
    events: list[Event] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events


def processes(events: list[Event]) -> dict[str, int]:
    return {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}


def tracks(events: list[Event], pid: int) -> dict[str, int]:
    return {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name" and e["pid"] == pid}


@pytest.mark.parametrize("detail", [False, True])
def test_every_event_has_what_its_kind_needs(run: Run, tmp_path: Path, detail: bool) -> None:
    events = written(run, tmp_path / "t", detail=detail)
    needs = {
        "M": {"name", "pid", "tid", "args"},
        "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
        "s": {"name", "cat", "id", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
        "C": {"name", "pid", "ts", "args"},
        "i": {"name", "pid", "tid", "ts", "s"},
    }
    assert {event["ph"] for event in events} == needs.keys()
    assert all(needs[event["ph"]] <= event.keys() for event in events)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xsf"} <= named
    places = [(e["pid"], e["args"]["sort_index"]) for e in events if e["name"] == "process_sort_index"]
    assert len(dict(places)) == len({place for _, place in places}) == 6


@pytest.mark.parametrize("detail", [False, True])
def test_no_two_slices_of_a_track_overlap(run: Run, tmp_path: Path, detail: bool) -> None:
    slices = [event for event in written(run, tmp_path / "t", detail=detail) if event["ph"] == "X"]
    slices.sort(key=lambda event: (event["pid"], event["tid"], event["ts"]))
    for _, group in groupby(slices, key=lambda event: (event["pid"], event["tid"])):
        mine = list(group)
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-5 for a, b in pairwise(mine))


def test_iterations_follow_one_another_and_those_of_the_warm_up_say_so(run: Run, tmp_path: Path) -> None:
    events = written(run, tmp_path / "t")
    pid = processes(events)["iterations"]
    found = [event for event in events if event["pid"] == pid and event["ph"] == "X"]
    assert [e["name"] for e in found] == [*(f"warm-up {t}" for t in range(3)), *(f"iteration {t}" for t in range(3, 6))]
    assert [event["cat"] for event in found] == ["warm-up"] * 3 + ["measured"] * 3
    ends = np.cumsum([event["dur"] for event in found])
    assert ends == pytest.approx(run.ends[:, list(run.schedule.ends)].max(axis=1) / 1e6)
    (begin,) = [event for event in events if event["ph"] == "i"]
    assert begin["ts"] == pytest.approx(found[3]["ts"])


def test_a_worker_has_a_track_for_each_kind_of_work(run: Run, tmp_path: Path) -> None:
    events = written(run, tmp_path / "t")
    kinds = ["compute", "sampling", "pack", "copy to host", "send", "receive", "copy to device", "all-reduce"]
    for rank in range(4):
        assert list(tracks(events, processes(events)[f"worker {rank}"])) == kinds


@pytest.mark.parametrize("late", [-(10**12), 10**12])
def test_a_run_and_its_prediction_begin_to_be_measured_at_one_instant(run: Run, tmp_path: Path, late: int) -> None:
    measured, predicted = traced(run, "measured").later(late), traced(run, "predicted")
    facts = predicted.facts
    slower = facts.ends.copy()
    slower[MEASURED:] += np.arange(1, 4) * 10**9  # each of the three takes 1 ms more
    predicted = predicted._replace(facts=RunFacts(slower, MEASURED, facts.rates))
    write_both(tmp_path / "t", "a run", measured, predicted)
    found = json.loads((tmp_path / "t").read_text(encoding="utf-8"))
    events, named = found["traceEvents"], processes(found["traceEvents"])
    sides = ("measured", "predicted")
    own = {f"{side} {of}" for side in sides for of in ("iterations", "links", "worker 0")}
    assert own | {"difference"} <= set(named)
    assert len(set(named.values())) == len(named) == 2 * 6 + 1
    first = [event for event in events if event["name"] == f"iteration {MEASURED}"]
    begins = [next(e["ts"] for e in first if e["pid"] == named[f"{side} iterations"]) for side in sides]
    assert begins[0] == pytest.approx(begins[1])
    assert min(event["ts"] for event in events if "ts" in event) >= 0
    lengths = np.diff(facts.ends)[MEASURED - 1 :] / 1e9
    counted = [event for event in events if event["pid"] == named["difference"] and event["ph"] == "C"]
    differences = [event["args"]["ms"] for event in counted]
    assert differences == pytest.approx([*(lengths - lengths.mean() - 1.0), 0.0], abs=1e-4)
    assert counted[0]["ts"] == pytest.approx(begins[0])
    assert found["otherData"]["predicted_iteration_s"] == pytest.approx(lengths.mean() / 1e3 + 1e-3)
    arrows = Counter(event["id"] for event in events if event["ph"] == "s")
    assert set(arrows.values()) == {1}


def test_an_evaluation_between_iterations_is_in_the_length_of_none(run: Run, tmp_path: Path) -> None:
    measured, predicted = traced(run, "measured"), traced(run, "predicted")
    lengths = measured.facts.measured_lengths // 2
    measured = measured._replace(facts=replace(measured.facts, lengths=lengths))
    write_both(tmp_path / "t", "a run", measured, predicted)
    found = json.loads((tmp_path / "t").read_text(encoding="utf-8"))
    assert found["otherData"]["measured_iteration_s"] == pytest.approx(lengths.mean() / 1e12)
    counted = [event["ts"] for event in found["traceEvents"] if event["ph"] == "C" and "measured" in event["name"]]
    assert counted == pytest.approx(measured.facts.ends[MEASURED - 1 :] / 1e6)


def test_an_arrow_leads_from_where_a_message_leaves_to_where_it_arrives(run: Run, tmp_path: Path) -> None:
    for detail in (False, True):
        events = written(run, tmp_path / "t", detail=detail)
        sent, got = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
        spans = timeline(run)
        assert (
            len(sent) == len(got) == int(((spans.peer >= 0) & (spans.peer != spans.worker) & (spans.nbytes > 0)).sum())
        )
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        slices: dict[tuple[int, int], list[Event]] = {}
        for event in events:
            if event["ph"] == "X":
                slices.setdefault((event["pid"], event["tid"]), []).append(event)
        for arrow in sent:
            begin, end = sent[arrow], got[arrow]
            assert begin["pid"] != end["pid"]
            assert begin["ts"] <= end["ts"]
            for at in (begin, end):
                mine = slices[at["pid"], at["tid"]]
                assert any(entry["ts"] <= at["ts"] <= entry["ts"] + entry["dur"] for entry in mine)
        kinds = Counter((names[sent[a]["pid"], sent[a]["tid"]], names[got[a]["pid"], got[a]["tid"]]) for a in sent)
        assert detail or kinds.keys() == {("send", "receive"), ("all-reduce", "receive")}


def test_links_carry_the_bytes_of_their_messages_and_no_more_than_they_can(run: Run, tmp_path: Path) -> None:
    schedule, rates = run.schedule, link_rates(run)
    moved = schedule.demand[np.arange(run.iterations) % schedule.demand.shape[0]].sum(axis=0)
    for link, name in enumerate(schedule.link_names):
        nbytes = sum(moved[op.index] for op in schedule.ops if link in (op.route or ()))
        if schedule.link_kinds[link] == "cpu" or not nbytes:
            assert name not in rates
            continue
        instants, rate = rates[name]
        assert (np.diff(instants) > 0).all()
        assert rate[-1] == 0.0
        assert rate.max() <= schedule.capacity[link] * (1 + 1e-6)
        assert float((rate[:-1] * np.diff(instants)).sum()) / 1e12 == pytest.approx(nbytes, rel=1e-6)
    events = written(run, tmp_path / "t")
    counted = Counter(event["name"] for event in events if event["ph"] == "C")
    assert counted == {name: len(instants) for name, (instants, _) in rates.items()}
    assert all(event["args"].keys() == {"bytes/s"} for event in events if event["ph"] == "C")


def test_several_messages_at_once_are_one_slice_that_counts_them(run: Run, tmp_path: Path) -> None:
    events = written(run, tmp_path / "t")
    several = [e for e in events if e["ph"] == "X" and e["name"].startswith("wire x")]
    assert several
    for event in several[:50]:
        assert len(event["args"]["peers"]) >= 1
        assert event["args"]["bytes"] > 0


def test_the_same_run_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(run, tmp_path / name, detail=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    events = written(run, tmp_path / "c", detail=True)
    first, *others = tracks(events, 0)
    assert first == "gpu"
    assert others == sorted(others)


_drawn = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 20), st.integers(0, 8)), max_size=25)


@settings(deadline=None, max_examples=40)
@given(_drawn)
def test_no_two_spans_of_a_lane_overlap_and_no_lane_is_wasted(drawn: list[tuple[int, int, int, int]]) -> None:
    columns = np.array(sorted(drawn, key=lambda span: span[2]), dtype=np.int64).reshape(-1, 4).T
    size = columns.shape[1]
    timeline = Timeline(
        kind=np.zeros(size, dtype=np.uint8),
        worker=columns[0].astype(np.int32),
        stream=columns[1].astype(np.int32),
        iteration=np.zeros(size, dtype=np.int32),
        layer=np.zeros(size, dtype=np.int32),
        direction=np.zeros(size, dtype=np.uint8),
        peer=np.zeros(size, dtype=np.int32),
        start_ps=columns[2],
        end_ps=columns[2] + columns[3],
        nbytes=np.zeros(size),
        streams=("gpu", "nic-tx"),
    )
    lanes = run_perfetto._lanes(timeline)
    for worker, stream in {(worker, stream) for worker, stream, _, _ in drawn}:
        mine = (timeline.worker == worker) & (timeline.stream == stream)
        starts, ends = timeline.start_ps[mine], timeline.end_ps[mine]
        for lane in range(int(lanes[mine].max()) + 1):
            held = np.flatnonzero(lanes[mine] == lane)
            assert all(ends[a] <= starts[b] for a, b in pairwise(held.tolist()))
        most = max(int(((starts <= at) & (ends > at)).sum()) for at in starts.tolist())
        assert int(lanes[mine].max()) + 1 <= max(1, most) + int((starts == ends).sum())


def test_an_hour_is_written_to_the_picosecond() -> None:
    assert run_perfetto._micros(3_600_000_000_000_001) == "3600000000.000001"
