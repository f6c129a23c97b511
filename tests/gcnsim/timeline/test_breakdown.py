"""Spans, their kinds, and the parts of an iteration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.records.run_files import Shares
from gcnsim.timeline import KIND_CODE, KINDS, PHASE, PS_PER_S, Direction, Intervals, OpKind, Phase, Timeline
from gcnsim.timeline.breakdown import (
    EXPOSED,
    HIDDEN,
    NEVER,
    OTHER,
    PROFILED,
    RECORDED,
    RECORDED_SAMPLING_ITSELF,
    SIMULATED,
    TRANSFERS,
    Breakdown,
    Spans,
    SpanSemantics,
    breakdown,
    exposed_s,
    iteration_s,
    other_s,
    phases_of_means,
)
from gcnsim.timeline.span import Span

WHOLE = ("compute", *EXPOSED, *OTHER)
SOURCES = {"simulated": SIMULATED, "recorded": RECORDED, "itself": RECORDED_SAMPLING_ITSELF, "profiled": PROFILED}

Row = tuple[OpKind, str, int, int, int, int]
"""Kind, stream, start, end, worker, peer."""

ITERATION: list[Row] = [
    (OpKind.AGGREGATE, "compute", 0, 10, 0, -1),
    (OpKind.PACK, "compute", 10, 12, 0, -1),
    (OpKind.WAIT, "compute", 12, 30, 0, -1),
    (OpKind.UNPACK, "compute", 30, 33, 0, -1),
    (OpKind.WAIT, "compute", 33, 40, 0, -1),
    (OpKind.STEP, "compute", 40, 42, 0, -1),
    (OpKind.SAMPLE, "sampler", 5, 14, 0, -1),
    (OpKind.SAMPLE, "sampler", 42, 45, 0, -1),
    (OpKind.WIRE, "f.tx1", 8, 18, 0, 1),
    (OpKind.WIRE, "f.rx1", 12, 20, 0, 1),
    (OpKind.D2H, "f.copy", 17, 22, 0, -1),
    (OpKind.PACK, "f.pack", 22, 24, 1, 0),
    (OpKind.ALLREDUCE, "reduce", 34, 39, 0, -1),
    (OpKind.ALLREDUCE, "reduce", 36, 39, 1, -1),
    (OpKind.AGGREGATE, "compute", 0, 36, 1, -1),
]


def spans_of(rows: list[Row], main: str | None = "compute") -> Spans:
    kinds, streams, starts, ends, workers, peers = zip(*rows, strict=True)
    names = tuple(dict.fromkeys(streams))
    count = len(rows)
    timeline = Timeline(
        kind=np.array([KIND_CODE[kind] for kind in kinds], np.uint8),
        worker=np.array(workers, np.int32),
        stream=np.array([names.index(name) for name in streams], np.int32),
        iteration=np.zeros(count, np.int32),
        layer=np.full(count, -1, np.int32),
        direction=np.zeros(count, np.uint8),
        peer=np.array(peers, np.int32),
        start_ps=np.array(starts, np.int64),
        end_ps=np.array(ends, np.int64),
        nbytes=np.zeros(count),
        streams=names,
    )
    return Spans(timeline, main)


def between(*edges: int) -> Intervals:
    return Intervals.of(np.array(edges[::2], np.int64), np.array(edges[1::2], np.int64))


def lengths(found: Breakdown) -> dict[str, int]:
    return {name: length for name in (*WHOLE, HIDDEN) if (length := getattr(found, name).length)}


def read(reading: SpanSemantics, main: str | None = "compute", excused: Intervals = NEVER) -> dict[str, int]:
    return lengths(breakdown(spans_of(ITERATION, main), 0, between(0, 50), reading, excused))


def test_a_simulated_run_knows_what_its_stream_does_and_what_peers_pack() -> None:
    assert read(SIMULATED) == {
        "compute": 10,
        "handling": 5,  # it packs, and unpacks
        "network": 8,  # 12 to 20
        "copies": 4,  # 20 to 22, and the peer's packing to 24
        "reduce": 5,
        "waiting": 8,  # 24 to 30, 33 to 34, 39 to 40
        "exposed_sampling": 3,  # what it samples while nothing waits
        "optimizer": 2,
        "rest": 5,
        "hidden_comm": 2,  # 8 to 10, beneath computation
    }


def test_waits_for_the_own_sampler_and_pauses_are_no_communication() -> None:
    found = read(SIMULATED, excused=between(12, 14, 24, 26))
    assert (found["network"], found["waiting"]) == (6, 6)
    assert (found["exposed_sampling"], found["rest"]) == (5, 7)


def test_a_recorded_run_waits_for_its_sampler_and_for_who_comes_last() -> None:
    assert read(RECORDED) == {
        "compute": 10,
        "handling": 3,
        "network": 4,  # the sender's span, from 14: until then it waits for its sampler
        "copies": 4,  # of its own helper thread, after the message
        "reduce": 3,  # from 36, when the other is there
        "waiting": 12,
        "exposed_sampling": 2,
        "optimizer": 2,
        "rest": 10,  # packing on the main thread, and what is sampled while it does not wait
        "hidden_comm": 6,
    }


def test_where_the_main_thread_samples_no_wait_is_for_it() -> None:
    found = read(RECORDED_SAMPLING_ITSELF)
    assert (found["network"], found["waiting"], found["exposed_sampling"]) == (6, 12, 5)


def test_a_trace_knows_no_main_stream_and_takes_every_transfer_for_a_wait() -> None:
    assert read(PROFILED, None) == {
        "compute": 10,
        "handling": 3,
        "optimizer": 2,
        "exposed_sampling": 7,
        "network": 6,
        "copies": 2,
        "reduce": 5,
        "waiting": 10,
        "rest": 5,
        "hidden_comm": 6,
    }


def test_nothing_else_differs_between_sources() -> None:
    content = replace(RECORDED_SAMPLING_ITSELF, handling=TRANSFERS, sent_only=False, peers_copies=True)
    assert replace(content, reduce_together=False) == SIMULATED


def test_parts_are_seconds_by_the_rule_of_the_source() -> None:
    parts = breakdown(spans_of(ITERATION), 0, between(0, 50), SIMULATED).parts(0, lambda length: length / 10)
    assert (parts.worker, parts.compute_s, parts.hidden_comm_s) == (0, 1.0, 0.2)
    assert (exposed_s(parts), other_s(parts), iteration_s(parts)) == pytest.approx((3.0, 1.0, 5.0))


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    edge = st.integers(0, 40)
    one = st.tuples(
        st.sampled_from(list(OpKind)), st.sampled_from(["compute", "f.tx1", "f.rx1", "sampler"]), edge, edge,
        st.integers(0, 1), st.integers(-1, 1),
    )  # fmt: skip
    return [
        (kind, stream, min(a, b), max(a, b), own, peer)
        for kind, stream, a, b, own, peer in draw(st.lists(one, min_size=1))
    ]


@given(rows(), st.sampled_from(sorted(SOURCES)), st.booleans())
def test_parts_make_up_the_window_and_hidden_communication_is_beneath_others(
    made: list[Row], source: str, excused: bool
) -> None:
    window = between(0, 12, 15, 40)
    found = breakdown(spans_of(made), 0, window, SOURCES[source], between(3, 9) if excused else NEVER)
    assert sum(getattr(found, name).length for name in WHOLE) == window.length
    assert found.exposed.length == sum(getattr(found, name).length for name in EXPOSED)
    assert found.compute.length + found.exposed.length + found.other == window.length
    assert found.hidden_comm.intersection(found.exposed).length == 0
    assert found.hidden_comm.difference(window).length == 0


@pytest.mark.parametrize(
    ("itself", "expected"), [(False, (0.4, 0.2, 0.4)), (True, (0.4, 0.35, 0.25))], ids=["helper", "main thread"]
)
def test_means_tell_the_three_phases_too(itself: bool, expected: tuple[float, float, float]) -> None:
    means = Shares(0, 0.4, 0.3, 0.5, 0.0, 0.2, 0.15, 0.0, 0.05, 0.1, 0.05)
    assert tuple(phases_of_means(means, 1.0, samples_itself=itself).values()) == pytest.approx(expected)


def test_means_never_tell_less_than_nothing() -> None:
    means = Shares(0, 0.9, 0.1, 0.5, 0.0, 0.2, 0.3, 0.0, 0.05, 0.1, 0.2)
    assert tuple(phases_of_means(means, 1.0, samples_itself=False).values()) == pytest.approx((0.9, 0.2, 0.0))


def test_phases_as_the_glossary_has_them() -> None:
    of = {phase: {str(kind) for kind, found in PHASE.items() if found is phase} for phase in Phase}
    assert of == {
        Phase.SAMPLING: {"sample", "lookup", "cache_refresh", "index"},
        Phase.TRANSFER: {"gather", "pack", "d2h", "wire", "h2d", "unpack", "scatter"},
        Phase.WAIT: {"wait"},
        Phase.COMPUTE: {"aggregate", "update", "loss", "attention", "quantise"},
        Phase.REDUCE: {"allreduce"},
        Phase.OPTIMIZER: {"step"},
    }


@pytest.fixture
def two_spans() -> Timeline:
    kinds = [OpKind.WIRE, OpKind.UPDATE]
    return Timeline(
        kind=np.array([KIND_CODE[kind] for kind in kinds], dtype=np.uint8),
        worker=np.array([0, 1], dtype=np.int32),
        stream=np.array([1, 0], dtype=np.int32),
        iteration=np.array([0, 2], dtype=np.int32),
        layer=np.array([3, -1], dtype=np.int32),
        direction=np.array([Direction.BACKWARD, Direction.NONE], dtype=np.uint8),
        peer=np.array([1, -1], dtype=np.int32),
        start_ps=np.array([0, PS_PER_S]),
        end_ps=np.array([PS_PER_S // 2, 3 * PS_PER_S]),
        nbytes=np.array([64.0, 0.0]),
        streams=("gpu", "f.tx1"),
    )


def test_rows_of_a_timeline(two_spans: Timeline) -> None:
    assert len(two_spans) == 2
    assert list(two_spans) == [
        Span(OpKind.WIRE, 0, "f.tx1", 0, 3, Direction.BACKWARD, 1, 0.0, 0.5, 64.0),
        Span(OpKind.UPDATE, 1, "gpu", 2, -1, Direction.NONE, -1, 1.0, 3.0, 0.0),
    ]


def test_stored_codes_keep_their_meaning() -> None:
    """Files of spans hold directions as numbers, and picoseconds."""
    assert {item.name: item.value for item in Direction} == {"NONE": 0, "FORWARD": 1, "BACKWARD": 2}
    assert PS_PER_S == 10**12
    assert [KIND_CODE[kind] for kind in KINDS] == list(range(len(KINDS)))


Pairs = list[tuple[int, int]]
PAIRS = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=12)


def intervals(pairs: Pairs) -> Intervals:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Intervals.of(table[:, 0], table[:, 1])


def instants(pairs: Pairs) -> set[int]:
    return {instant for start, end in pairs for instant in range(start, end)}


def covered(found: Intervals) -> set[int]:
    """The integers inside; the intervals must be non-empty, ascending and apart."""
    assert (found.ends > found.starts).all()
    assert (found.starts[1:] > found.ends[:-1]).all()
    return instants(list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)))


@settings(deadline=None, max_examples=200)
@given(PAIRS, PAIRS)
def test_union_difference_and_intersection(a: Pairs, b: Pairs) -> None:
    one, two, first, second = intervals(a), intervals(b), instants(a), instants(b)
    assert covered(one) == first
    assert covered(one.union(two)) == first | second
    assert covered(one.difference(two)) == first - second
    assert covered(one.intersection(two)) == first & second
    assert one.length == len(first)
    assert one.difference(two).length + one.intersection(two).length == one.length


@settings(deadline=None, max_examples=100)
@given(PAIRS, st.integers(-5, 40), st.integers(0, 20))
def test_within_a_window(a: Pairs, start: int, size: int) -> None:
    window = set(range(start, start + size))
    assert covered(intervals(a).within(start, start + size)) == instants(a) & window


def test_touching_intervals_are_one() -> None:
    found = intervals([(3, 5), (0, 3), (7, 9)])
    assert (found.starts.tolist(), found.ends.tolist()) == ([0, 7], [5, 9])


def test_empty_and_reversed_intervals_vanish() -> None:
    assert intervals([(4, 4), (9, 2)]).length == 0
    assert intervals([]).union(intervals([(1, 2)])).length == 1
    assert intervals([]).difference(intervals([(1, 2)])).length == 0


def test_picoseconds_of_days_stay_exact() -> None:
    day = 86_400 * 10**12
    assert intervals([(0, 10 * day), (10 * day - 1, 10 * day + 1)]).length == 10 * day + 1
