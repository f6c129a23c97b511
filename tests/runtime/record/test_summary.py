from __future__ import annotations

import numpy as np
import pytest

from gcnsim.timeline import Direction, OpKind, Timeline
from runtime.record import Recorder, merge, summarise

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


def test_as_plain_values() -> None:
    plain = summarise(merge([]), [0.5], workers=2, warmup=0).asdict()
    assert [worker["worker"] for worker in plain["workers"]] == [0, 1]
    assert plain["iteration_s"] == 0.5


def test_where_waits_say_what_they_are_for_a_sampler_at_work_beside_one_is_not_exposed() -> None:
    desk = Desk(0)
    desk.add(OpKind.AGGREGATE, "compute", 0, 10)
    desk.add(OpKind.WAIT, "compute", 10, 16)
    desk.add(OpKind.INDEX, "compute", 16, 18)
    desk.add(OpKind.SAMPLE, "sampler", 8, 18)
    shares = summarise(desk.timeline, [0.018], workers=1, warmup=0, waits_labelled=True).shares
    assert (shares.sampling_s, shares.exposed_sampling_s) == pytest.approx((10e-3, 2e-3))
    assert summarise(desk.timeline, [0.018], workers=1, warmup=0).shares.exposed_sampling_s == pytest.approx(8e-3)
