"""Recorded spans and their summary."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from gcnsim.timeline import KINDS, Direction, OpKind, Timeline
from gcnsim.timeline.span import Span
from runtime.record import Recorder, merge, summarise


def test_a_span_keeps_its_facts_in_picoseconds_since_the_origin() -> None:
    recorder = Recorder(3)
    recorder.add(OpKind.WIRE, "f.tx1", 7, 2_500, 4_000, layer=1, direction=Direction.BACKWARD, peer=1, nbytes=4096.0)
    timeline = recorder.timeline(origin_ns=1_000, offset_ns=500)
    assert timeline.start_ps.tolist() == [2_000_000]
    assert timeline.end_ps.tolist() == [3_500_000]
    assert list(timeline) == [
        Span(OpKind.WIRE, 3, "f.tx1", 7, 1, Direction.BACKWARD, 1, 2e-6, 3.5e-6, 4096.0),
    ]


def test_columns_have_the_types_of_a_timeline_and_are_read_only() -> None:
    recorder = Recorder(0)
    recorder.add(OpKind.STEP, "compute", 0, 0, 1)
    for item in (recorder.timeline(0), Recorder(0).timeline(0)):
        found = {name: getattr(item, name) for name in item.__slots__ if name != "streams"}
        types = {name: str(column.dtype) for name, column in found.items()}
        assert types == {
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
        assert not any(column.flags.writeable for column in found.values())


def test_spans_are_ordered_by_start_and_streams_by_first_use() -> None:
    recorder = Recorder(0)
    recorder.add(OpKind.STEP, "late", 0, 50, 60)
    recorder.add(OpKind.AGGREGATE, "compute", 0, 10, 40)
    recorder.add(OpKind.PACK, "b.pack", 0, 10, 20)
    recorder.add(OpKind.UPDATE, "compute", 0, 10, 10)
    timeline = recorder.timeline(0)
    assert timeline.streams == ("b.pack", "compute", "late")
    assert [span.kind for span in timeline] == [OpKind.PACK, OpKind.AGGREGATE, OpKind.UPDATE, OpKind.STEP]


def test_what_lies_before_the_origin_is_cut_off_there() -> None:
    recorder = Recorder(0)
    recorder.add(OpKind.PACK, "f.pack", 0, 90, 130)
    recorder.add(OpKind.PACK, "f.pack", 0, 10, 20)
    timeline = recorder.timeline(origin_ns=100)
    assert timeline.start_ps.tolist() == [0, 0]
    assert sorted(timeline.end_ps.tolist()) == [0, 30_000]


def test_a_hundred_thousand_spans_of_four_threads_are_all_there() -> None:
    recorder, each = Recorder(0), 25_000

    def work(thread: int) -> None:
        for i in range(each):
            recorder.add(KINDS[i % len(KINDS)], f"s{thread}", i, i, i + thread, peer=thread, nbytes=float(i))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        recorder.end_iteration()
    for thread in threads:
        thread.join()
    assert len(recorder) == 4 * each
    timeline = recorder.timeline(0)
    assert len(timeline) == 4 * each == len(recorder)
    for rank in range(4):
        mine = timeline.peer == rank
        assert {timeline.streams[i] for i in np.unique(timeline.stream[mine])} == {f"s{rank}"}
        assert np.array_equal(timeline.iteration[mine], np.arange(each))
        assert np.array_equal(timeline.end_ps[mine], 1000 * (np.arange(each) + rank))
        assert np.array_equal(timeline.kind[mine], np.arange(each) % len(KINDS))
        assert np.array_equal(timeline.nbytes[mine], np.arange(each))


def test_a_disabled_recorder_keeps_nothing() -> None:
    recorder = Recorder(0, enabled=False, cuda=True)
    recorder.add(OpKind.WAIT, "compute", 0, recorder.mark(), recorder.mark_compute())
    assert (recorder.end_iteration(), len(recorder), len(recorder.timeline(0))) == (0.0, 0, 0)


def test_end_iteration_tells_the_waits_of_the_main_stream_only() -> None:
    recorder = Recorder(0)
    recorder.add(OpKind.WAIT, "compute", 0, 0, 2_000_000)
    recorder.add(OpKind.WAIT, "sampler", 0, 0, 5_000_000)
    recorder.add(OpKind.STEP, "compute", 0, 0, 7_000_000)
    recorder.add(OpKind.WAIT, "compute", 0, 3_000_000, 4_000_000)
    assert recorder.end_iteration() == pytest.approx(3e-3)
    assert recorder.end_iteration() == 0.0


class Gpu:
    """A GPU that reaches events when it is told to; its clock runs 5 ms ahead of nothing in particular."""

    def __init__(self) -> None:
        self.now_ms = 5.0
        self.queue: list[Event] = []

    def reach(self, count: int, ms: float) -> None:
        """Reach the next `count` events, each `ms` after the one before."""
        for event in self.queue[:count]:
            self.now_ms += ms
            event.at_ms = self.now_ms
        del self.queue[:count]


class Event:
    gpu: Gpu

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at_ms: float | None = None

    def record(self, stream: object = None) -> None:
        if stream is None:
            self.gpu.queue.append(self)
        else:
            self.at_ms = self.gpu.now_ms

    def query(self) -> bool:
        return self.at_ms is not None

    def synchronize(self) -> None:
        assert self.at_ms is not None

    def elapsed_time(self, end: Event) -> float:
        assert self.at_ms is not None
        assert end.at_ms is not None
        return end.at_ms - self.at_ms


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    import torch

    device = Gpu()
    Event.gpu = device

    def finish() -> None:
        device.reach(len(device.queue), 1.0)

    replaced: dict[str, Any] = {"Event": Event, "Stream": object, "synchronize": finish}
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return device


def test_events_become_instants_once_the_gpu_has_reached_them(gpu: Gpu) -> None:
    before = time.perf_counter_ns()
    recorder = Recorder(0, cuda=True)
    anchored = time.perf_counter_ns()
    first = [recorder.mark_compute() for _ in range(2)]
    recorder.add(OpKind.AGGREGATE, "compute", 0, *first)
    host = recorder.mark()
    recorder.add(OpKind.WIRE, "f.tx1", 0, host, host + 5)
    gpu.reach(2, 3.0)
    unreached = [recorder.mark_compute() for _ in range(2)]
    recorder.add(OpKind.UPDATE, "compute", 0, *unreached)
    recorder.end_iteration()
    recorder.end_iteration()
    assert len(recorder) == 3
    timeline = recorder.timeline(before)
    spans = {span.kind: span for span in timeline}
    # The GPU's clock was at 5 ms when the anchor was set, between `before` and `anchored`.
    late = (anchored - before) * 1e-9
    assert 3e-3 <= spans[OpKind.AGGREGATE].start_s <= 3e-3 + late
    assert spans[OpKind.AGGREGATE].end_s - spans[OpKind.AGGREGATE].start_s == pytest.approx(3e-3, abs=2e-9)
    assert spans[OpKind.UPDATE].start_s - spans[OpKind.AGGREGATE].end_s == pytest.approx(1e-3, abs=2e-9)
    assert spans[OpKind.UPDATE].end_s - spans[OpKind.UPDATE].start_s == pytest.approx(1e-3, abs=2e-9)
    assert spans[OpKind.WIRE].end_s - spans[OpKind.WIRE].start_s == pytest.approx(5e-9, rel=1e-6)


def test_a_wait_of_the_gpu_counts_once_it_is_over(gpu: Gpu) -> None:
    recorder = Recorder(0, cuda=True)
    marks = recorder.mark_compute(), recorder.mark_compute()
    recorder.add(OpKind.WAIT, "compute", 0, *marks)
    assert recorder.end_iteration() == 0.0
    gpu.reach(2, 3.0)
    assert recorder.end_iteration() == pytest.approx(3e-3)
    assert recorder.end_iteration() == 0.0


@pytest.mark.parametrize(("lasts_ns", "leap_s"), [(0, 0.0), (10**12, 60.0)])
def test_an_old_anchor_is_replaced_when_an_iteration_ends(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, lasts_ns: int, leap_s: float
) -> None:
    monkeypatch.setattr("runtime.record.recorder._LASTS_NS", lasts_ns)
    recorder = Recorder(0, cuda=True)
    gpu.now_ms += 60_000.0  # the GPU's clock leaps: only marks behind the next anchor may use it
    recorder.end_iteration()
    before = time.perf_counter_ns()
    marks = recorder.mark_compute(), recorder.mark_compute()
    gpu.reach(2, 2.0)
    recorder.add(OpKind.AGGREGATE, "compute", 1, *marks)
    recorder.end_iteration()
    start_s = next(iter(recorder.timeline(before - 10**9))).start_s
    assert 0.9 < start_s - leap_s < 1.0 + 2e-3 + 1e-9


def test_a_span_may_begin_on_the_host_and_end_on_the_gpu(gpu: Gpu) -> None:
    recorder = Recorder(0, cuda=True)
    start, end = recorder.mark(), recorder.mark_compute()
    gpu.reach(1, 1000.0)
    recorder.add(OpKind.H2D, "compute", 0, start, end)
    span = next(iter(recorder.timeline(start)))
    assert span.start_s == 0.0
    assert 0.9 < span.end_s <= 1.0


MS = 1_000_000


class Desk:
    """Spans written by hand, in milliseconds."""

    def __init__(self, rank: int) -> None:
        self.recorder = Recorder(rank)

    def add(
        self, kind: OpKind, stream: str, start: float, end: float, peer: int = -1, t: int = 0, layer: int = 0
    ) -> None:
        self.recorder.add(
            kind, stream, t, int(start * MS), int(end * MS), layer=layer, direction=Direction.FORWARD, peer=peer
        )

    @property
    def timeline(self) -> Timeline:
        return self.recorder.timeline(0)


def test_one_iteration_of_one_worker_by_value() -> None:
    desk = Desk(0)
    desk.add(OpKind.AGGREGATE, "compute", 0, 10)
    desk.add(OpKind.UPDATE, "compute", 10, 14)
    desk.add(OpKind.WAIT, "compute", 14, 20)
    desk.add(OpKind.SCATTER, "compute", 20, 21)
    desk.add(OpKind.LOSS, "compute", 21, 23)
    desk.add(OpKind.STEP, "compute", 30, 31)
    desk.add(OpKind.PACK, "f.pack", 4, 6)
    desk.add(OpKind.GATHER, "f.pack", 5, 7)
    desk.add(OpKind.WIRE, "f.tx1", 7, 18, peer=1)
    desk.add(OpKind.WIRE, "f.tx2", 12, 16, peer=2)
    desk.add(OpKind.UNPACK, "f.unpack", 17, 19)
    desk.add(OpKind.SAMPLE, "sampler", 2, 8)
    desk.add(OpKind.INDEX, "sampler", 8, 9)
    desk.add(OpKind.CACHE_REFRESH, "sampler", 16, 18)
    desk.add(OpKind.WAIT, "sampler", 18, 30)
    desk.add(OpKind.ALLREDUCE, "reduce", 24, 29)
    summary = summarise(desk.timeline, [0.031], workers=1, warmup=5)
    shares = summary.shares
    assert (summary.measured, summary.warmup, summary.slowest, summary.iteration_s) == (1, 0, 0, 0.031)
    assert shares.compute_s == pytest.approx(16e-3)
    assert shares.wait_s == pytest.approx(6e-3)
    assert shares.transfer_s == pytest.approx(16e-3)  # 4..19 and 20..21
    assert shares.hidden_transfer_s == pytest.approx(10e-3)  # 4..14
    assert shares.sampling_s == pytest.approx(9e-3)
    assert shares.exposed_sampling_s == pytest.approx(2e-3)  # 16..18, under the wait
    assert (shares.reduce_s, shares.optimizer_s) == pytest.approx((5e-3, 1e-3))
    assert (shares.pack_s, shares.unpack_s) == pytest.approx((3e-3, 3e-3))


def test_a_receiver_that_waits_for_its_sender_transfers_nothing() -> None:
    sender, receiver = Desk(0), Desk(1)
    sender.add(OpKind.WIRE, "f.tx1", 50, 60, peer=1)
    receiver.add(OpKind.WIRE, "f.rx0", 0, 62, peer=0)
    summary = summarise(merge([sender.timeline, receiver.timeline]), [0.1], workers=2, warmup=0)
    assert [worker.transfer_s for worker in summary.workers] == pytest.approx([12e-3, 12e-3])


def test_messages_pair_up_by_their_facts_and_in_order() -> None:
    sender, receiver = Desk(0), Desk(1)
    for layer, start, ends in ((0, 10, (11, 13)), (0, 20, (21, 24)), (1, 30, (31, 36)), (2, 40, (41, 0))):
        sender.add(OpKind.WIRE, "f.tx1", start, ends[0], peer=1, layer=layer)
        if ends[1]:
            receiver.add(OpKind.WIRE, "f.rx0", 0, ends[1], peer=0, layer=layer)
    receiver.add(OpKind.WIRE, "f.rx2", 0, 90, peer=2)
    summary = summarise(merge([sender.timeline, receiver.timeline]), [0.1], workers=2, warmup=0)
    assert summary.workers[0].transfer_s == pytest.approx((3 + 4 + 6 + 1) * 1e-3)


def test_means_leave_the_warm_up_out() -> None:
    desk = Desk(0)
    for t, length in enumerate((100, 1, 2, 6)):
        desk.add(OpKind.AGGREGATE, "compute", 1000 * t, 1000 * t + length, t=t)
    summary = summarise(desk.timeline, [9.0, 1.0, 2.0, 6.0], workers=1, warmup=1)
    assert (summary.measured, summary.warmup) == (3, 1)
    assert summary.shares.compute_s == pytest.approx(3e-3)
    assert summary.iteration_s == 3.0, "the mean, as gcnsim validate and compare give it"
    assert (summary.iteration_s_p10, summary.iteration_s_p90) == pytest.approx((1.2, 5.2))


def test_a_resumed_run_counts_from_where_it_began() -> None:
    desk = Desk(0)
    for t, length in ((7, 50), (8, 2), (9, 4)):
        desk.add(OpKind.AGGREGATE, "compute", 1000 * t, 1000 * t + length, t=t)
    summary = summarise(desk.timeline, np.array([5.0, 1.0, 3.0]), workers=1, warmup=1, first=7)
    assert (summary.measured, summary.iteration_s) == (2, 2.0)
    assert summary.shares.compute_s == pytest.approx(3e-3)


def test_the_slowest_has_most_compute_and_exposed_sampling() -> None:
    desks = [Desk(rank) for rank in range(3)]
    for desk, compute in zip(desks, (10, 12, 8), strict=True):
        desk.add(OpKind.AGGREGATE, "compute", 0, compute)
    desks[2].add(OpKind.SAMPLE, "compute", 8, 13)
    desks[0].add(OpKind.SAMPLE, "sampler", 0, 10)
    summary = summarise(merge([desk.timeline for desk in desks]), [0.02], workers=3, warmup=0)
    assert summary.slowest == 2
    assert summary.shares.exposed_sampling_s == pytest.approx(5e-3)
    assert summary.workers[0].exposed_sampling_s == 0.0
    assert [worker.worker for worker in summary.workers] == [0, 1, 2]


def test_of_equals_the_lowest_rank_is_the_slowest_and_nothing_recorded_is_zero() -> None:
    summary = summarise(merge([]), [0.5, 0.5], workers=2, warmup=0)
    assert summary.slowest == 0
    assert summary.shares.compute_s == summary.shares.transfer_s == 0.0
    assert summary.iteration_s == 0.5


def test_no_iterations_are_refused() -> None:
    with pytest.raises(ValueError, match="no iterations"):
        summarise(merge([]), [], workers=1, warmup=0)


def test_where_waits_say_what_they_are_for_a_sampler_at_work_beside_one_is_not_exposed() -> None:
    desk = Desk(0)
    desk.add(OpKind.AGGREGATE, "compute", 0, 10)
    desk.add(OpKind.WAIT, "compute", 10, 16)
    desk.add(OpKind.INDEX, "compute", 16, 18)
    desk.add(OpKind.SAMPLE, "sampler", 8, 18)
    shares = summarise(desk.timeline, [0.018], workers=1, warmup=0, waits_labelled=True).shares
    assert (shares.sampling_s, shares.exposed_sampling_s) == pytest.approx((10e-3, 2e-3))
    assert summarise(desk.timeline, [0.018], workers=1, warmup=0).shares.exposed_sampling_s == pytest.approx(8e-3)
