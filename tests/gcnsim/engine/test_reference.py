"""The reference engine on schedules small enough to run by hand, to the picosecond."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.engine import Run, simulate
from gcnsim.schedule import Builder
from gcnsim.timeline import PS_PER_S, OpKind

Builders = Callable[..., Builder]
S = PS_PER_S
WIRE, LOSS = OpKind.WIRE, OpKind.LOSS


def run(builder: Builder, end: int, iterations: int = 1) -> Run:
    return simulate(builder.close([end]), iterations)


def ends(builder: Builder, end: int) -> list[int]:
    found: list[int] = run(builder, end).ends[0].tolist()
    return found


def test_exclusive_work_takes_its_seconds(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(LOSS, 0, 0.25)
    two = b.compute(LOSS, 0, 1.5, after=[one])
    done = run(b, two)
    assert done.starts[0].tolist() == [0, S // 4]
    assert done.ends[0].tolist() == [S // 4, 7 * S // 4]
    assert done.ends.dtype == np.int64


def test_two_equal_flows_on_one_link_take_twice_as_long(builder: Builders) -> None:
    alone, both = builder(100.0), builder(100.0)
    single = alone.flow(WIRE, 0, 300.0, (0,), stream="a")
    both.flow(WIRE, 0, 300.0, (0,), stream="a")
    second = both.flow(WIRE, 0, 300.0, (0,), stream="b")
    assert ends(alone, single) == [3 * S]
    assert ends(both, second) == [6 * S, 6 * S]


def test_a_flow_that_joins_later_shares_from_then_on(builder: Builders) -> None:
    # 100 units/s. The first has sent 100 of its 300 when the second (100) joins; both at 50 until 3 s; then 100 left.
    b = builder(100.0)
    b.flow(WIRE, 0, 300.0, (0,), stream="a")
    delay = b.compute(LOSS, 0, 1.0)
    late = b.flow(WIRE, 0, 100.0, (0,), stream="b", after=[delay])
    assert ends(b, late) == [4 * S, 1 * S, 3 * S]


@pytest.mark.parametrize("flows", [1, 2, 5, 9])
def test_staggered_arrivals_end_by_the_closed_form(builder: Builders, flows: int) -> None:
    # All start at once with k units each more than the last: flow k ends at the sum of min(size, own size) / capacity.
    b = builder(8.0)
    sizes = [float(3 * k + 1) for k in range(flows)]
    last = [b.flow(WIRE, 0, size, (0,), stream=f"s{k}") for k, size in enumerate(sizes)][-1]
    expected = [sum(min(size, other) for other in sizes) / 8.0 * S for size in sizes]
    assert np.abs(np.array(ends(b, last)) - expected).max() <= flows


def test_streams_are_first_in_first_out(builder: Builders) -> None:
    b = builder(10.0)
    slow = b.compute(LOSS, 0, 2.0)
    first = b.flow(WIRE, 0, 10.0, (0,), stream="q", after=[slow])
    second = b.flow(WIRE, 0, 10.0, (0,), stream="q")
    done = run(b, second)
    assert done.starts[0, [first, second]].tolist() == [2 * S, 3 * S]
    assert done.ends[0, second] == 4 * S


def test_a_lag_reads_the_iteration_that_many_back(builder: Builders) -> None:
    b = builder(1.0)
    send = b.flow(WIRE, 0, 5.0, (0,), stream="tx")
    read = b.compute(LOSS, 0, 1.0, after=[(send, 2)])
    done = run(b, read, 6)
    # The link carries one flow every 5 s; read t starts when flow t - 2 has ended, the first two at once.
    assert done.ends[:, send].tolist() == [5 * S * (t + 1) for t in range(6)]
    assert done.starts[:, read].tolist() == [0, 1 * S, 5 * S, 10 * S, 15 * S, 20 * S]


def test_reuse_keeps_at_most_lag_flows_under_way(builder: Builders) -> None:
    b = builder(1.0)
    send = b.flow(WIRE, 0, 5.0, (0,), stream="tx")
    read = b.compute(LOSS, 0, 1.0, after=[(send, 2)])
    b.reuse(send, read)
    done = run(b, read, 5)
    assert (done.starts[:, send] >= done.ends[:, read]).all()


def test_latency_comes_before_the_first_byte_and_takes_no_bandwidth(builder: Builders) -> None:
    b = builder(100.0, latency=0.5)
    b.flow(WIRE, 0, 100.0, (0,), stream="a")
    delay = b.compute(LOSS, 0, 1.0)
    other = b.flow(WIRE, 0, 100.0, (0,), stream="b", after=[delay])
    # The second is in its latency until the first has just ended.
    assert ends(b, other) == [3 * S // 2, 1 * S, 5 * S // 2]


@pytest.mark.parametrize("nbytes", [1.0, 1e3, 65536.0, 1e8])
def test_an_idle_link_takes_latency_plus_bytes_over_capacity(builder: Builders, nbytes: float) -> None:
    b = builder(1e9, latency=2e-5, startup=1e-5)
    op = b.flow(WIRE, 0, nbytes, (0,), stream="a")
    (end,) = ends(b, op)
    assert abs(end - S * (2e-5 + nbytes / 1e9)) <= 1


def test_half_of_the_capacity_at_latency_times_capacity(builder: Builders) -> None:
    b = builder(1e9, latency=4e-6)
    op = b.flow(WIRE, 0, 4e-6 * 1e9, (0,), stream="a")
    assert ends(b, op)[0] == pytest.approx(2 * 4e-6 * S, abs=1)


def test_small_messages_of_many_pairs_share_a_link_by_their_bytes_alone(builder: Builders) -> None:
    """100 messages of 10 bytes each are 1,000 bytes: what each costs whatever its size, all pay at once."""
    b = builder(100.0, latency=1.0, startup=1.0)
    sent = [b.flow(WIRE, 0, 10.0, (0,), stream=f"tx{index}") for index in range(100)]
    assert max(ends(b, sent[-1])) == pytest.approx(11 * S, abs=100)


def test_an_empty_flow_takes_no_time_and_sends_nothing(builder: Builders) -> None:
    b = builder(1.0, latency=5.0)
    busy = b.flow(WIRE, 0, 10.0, (0,), stream="a")
    empty = b.flow(WIRE, 0, 0.0, (0,), stream="b")
    after = b.compute(LOSS, 0, 0.0, after=[empty])
    done = run(b, after)
    assert done.ends[0].tolist() == [(5 + 10) * S, 0, 0]
    assert done.starts[0, busy] == 0


def test_disjoint_links_do_not_influence_each_other(builder: Builders) -> None:
    crowded, alone = builder(7.0, 3.0), builder(7.0, 3.0)
    for k in range(5):
        crowded.flow(WIRE, 0, 11.0 * (k + 1), (0,), stream=f"s{k}")
    here = crowded.flow(WIRE, 0, 10.0, (1,), stream="x")
    there = alone.flow(WIRE, 0, 10.0, (1,), stream="x")
    assert run(crowded, here).ends[0, here] == run(alone, there).ends[0, there]


def test_a_cap_leaves_the_rest_to_the_others(builder: Builders) -> None:
    b = builder(10.0)
    b.flow(WIRE, 0, 4.0, (0,), stream="thread", cap=1.0)
    free = b.flow(WIRE, 0, 36.0, (0,), stream="free")
    assert ends(b, free) == [4 * S, 4 * S]


def test_a_long_route_goes_at_the_rate_of_its_narrowest_link(builder: Builders) -> None:
    b = builder(10.0, 2.0, 5.0)
    long = b.flow(WIRE, 0, 12.0, (0, 1, 2), stream="long")
    b.flow(WIRE, 0, 16.0, (0,), stream="short")  # 10 - 2 are left on link 0
    assert ends(b, long) == [6 * S, 2 * S]


def test_iterations_beyond_the_demand_start_again(builder: Builders) -> None:
    b = builder(1.0, iterations=3)
    op = b.compute(LOSS, 0, np.array([1.0, 2.0, 4.0]))
    done = run(b, op, 8)
    assert np.diff(done.ends[:, op], prepend=0).tolist() == [S, 2 * S, 4 * S, S, 2 * S, 4 * S, S, 2 * S]


def test_enough_stops_the_run(builder: Builders) -> None:
    b = builder(1.0)
    op = b.compute(LOSS, 0, 1.0)
    seen: list[int] = []

    def enough(so_far: IntArray) -> bool:
        seen.append(so_far.shape[0])
        return bool(so_far[-1, op] >= 4 * S)

    done = simulate(b.close([op]), 50, enough)
    assert done.iterations == 4
    assert done.finished_ops == 4
    assert seen == [1, 2, 3, 4]


def test_asked_for_iterations_are_all_there(builder: Builders) -> None:
    b = builder(1.0)
    op = b.compute(LOSS, 0, 1.0)
    assert simulate(b.close([op]), 7).iterations == 7


def test_a_schedule_of_empty_work_ends_at_zero(builder: Builders) -> None:
    b = builder(1.0)
    first = b.compute(LOSS, 0, 0.0)
    last = b.flow(WIRE, 0, 0.0, (0,), stream="tx", after=[first])
    done = run(b, last, 3)
    assert done.ends.tolist() == [[0, 0]] * 3


def test_picoseconds_are_rounded_once_per_op(builder: Builders) -> None:
    b = builder(3.0)
    for _ in range(1000):
        op = b.compute(LOSS, 0, 1e-6 / 3)
    flow = b.flow(WIRE, 0, 1.0, (0,), stream="tx", after=[op])
    done = run(b, flow)
    assert done.ends[0, op] == 1000 * 333_333
    assert done.ends[0, flow] - done.ends[0, op] == -(-S // 3)


def test_many_flows_that_end_together_end_at_one_instant(builder: Builders) -> None:
    b = builder(7.0)
    last = [b.flow(WIRE, 0, 1 / 3, (0,), stream=f"s{k}") for k in range(31)][-1]
    assert len(set(ends(b, last))) == 1


def test_a_stream_nobody_waits_for_does_not_hold_the_others(builder: Callable[..., Builder]) -> None:
    b = builder(1.0, iterations=1)
    work = b.compute(OpKind.LOSS, 0, 1.0)
    b.flow(OpKind.WIRE, 0, 5.0, (0,), stream="tx", after=[work])
    run = simulate(b.close([work]), 5)
    assert (run.ends[:, work] / PS_PER_S).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
