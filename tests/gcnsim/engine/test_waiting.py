"""What a message waits for besides its own bytes: the queues of its links."""

from __future__ import annotations

import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, bounds
from gcnsim.timeline import PS_PER_S, OpKind

S = PS_PER_S
WIRE, LOSS = OpKind.WIRE, OpKind.LOSS


def queued(queue: float, capacity: float = 100.0) -> Builder:
    """One wire whose transfers each have `queue` units waiting."""
    link = Link("wire", "nic", "a", "b", LinkSpec(capacity, queue=queue))
    return Builder("test", Cluster((0,), (link,)), 1)


def late_message(queue: float, ahead: float, streams: int = 1) -> list[int]:
    """Ends of `streams` flows of `ahead` units from 0 s on, of a delay of 1 s, and of 100 units after it."""
    b = queued(queue)
    for index in range(streams):
        b.flow(WIRE, 0, ahead, (0,), stream=f"bulk{index}")
    delay = b.compute(LOSS, 0, 1.0)
    late = b.flow(WIRE, 0, 100.0, (0,), stream="late", after=[delay])
    found: list[int] = simulate(b.close([late]), 1).ends[0].tolist()
    return found


def test_without_a_queue_a_message_shares_at_once() -> None:
    assert late_message(0.0, 300.0) == [4 * S, 1 * S, 3 * S]


def test_a_message_waits_for_what_another_has_in_the_queue() -> None:
    # At 1 s the first has 200 of 300 left, of which 50 are queued: 0.5 s. Then 150 left, both at 50 a second.
    assert late_message(50.0, 300.0) == [4 * S, 1 * S, 3 * S + S // 2]


def test_no_more_waits_than_the_other_still_has() -> None:
    # 20 of 120 left at 1 s: they are through after 0.2 s, and the message has the link to itself.
    assert late_message(50.0, 120.0) == [S + S // 5, 1 * S, 2 * S + S // 5]


def test_every_transfer_under_way_counts() -> None:
    # Two flows of 300 each: at 1 s 250 left each; 2 x 50 queued are 1 s of the link.
    *_, end = late_message(50.0, 300.0, streams=2)
    assert end == pytest.approx(2 * S + 3 * S, rel=1e-9)


def test_those_that_start_together_have_nothing_queued_yet() -> None:
    b = queued(50.0)
    b.flow(WIRE, 0, 100.0, (0,), stream="a")
    last = b.flow(WIRE, 0, 100.0, (0,), stream="b")
    assert simulate(b.close([last]), 1).ends[0].tolist() == [2 * S, 2 * S]


def test_bytes_are_conserved_whatever_waits() -> None:
    # The link is never idle before the last byte, so the end of all is that without a queue.
    for queue in (0.0, 10.0, 50.0, 500.0):
        assert max(late_message(queue, 700.0)) == pytest.approx(8 * S, rel=1e-9)


def test_a_message_right_behind_another_of_its_connection_waits_for_nobody() -> None:
    # Two connections of two messages of 100: each second one moves as its first ends, its place in the queue kept.
    b = queued(50.0)
    flows = [b.flow(WIRE, 0, 100.0, (0,), stream=f"s{index}", connection=f"c{index % 2}") for index in range(4)]
    assert simulate(b.close([flows[-1]]), 1).ends[0].tolist() == [2 * S, 2 * S, 4 * S, 4 * S]


def test_what_follows_on_a_connection_counts_as_queued_up_to_its_share() -> None:
    # At 1 s the first message has 20 left and 200 behind it on its connection: 50 of them are queued, 0.5 s.
    b = queued(50.0)
    first = b.flow(WIRE, 0, 120.0, (0,), stream="a", connection="c")
    behind = b.flow(WIRE, 0, 200.0, (0,), stream="b", connection="c")
    delay = b.compute(LOSS, 0, 1.0)
    late = b.flow(WIRE, 0, 100.0, (0,), stream="late", after=[delay])
    ends = simulate(b.close([late]), 1).ends[0]
    assert ends[first] == S + S // 5
    assert (ends[late], ends[behind]) == (3 * S + S // 2, 4 * S + S // 5)


def test_messages_of_a_connection_move_in_the_order_in_which_they_are_ready() -> None:
    b = queued(0.0)
    delay = b.compute(LOSS, 0, 0.5)
    late = b.flow(WIRE, 0, 100.0, (0,), stream="a", connection="c", after=[delay])
    early = b.flow(WIRE, 0, 100.0, (0,), stream="b", connection="c")
    ends = simulate(b.close([late]), 1).ends[0]
    assert (ends[early], ends[late]) == (1 * S, 2 * S)


def followers(latency: float, startup: float, second_ready: float) -> list[int]:
    """Ends of two messages of 100 on one connection, the second ready at `second_ready` seconds."""
    cluster = Cluster((0,), (Link("wire", "nic", "a", "b", LinkSpec(100.0, latency, startup)),))
    b = Builder("test", cluster, 1)
    delay = b.compute(LOSS, 0, second_ready)
    flows = [
        b.flow(WIRE, 0, 100.0, (0,), stream=f"s{index}", connection="c", after=after)
        for index, after in enumerate([[], [delay]])
    ]
    ends = simulate(b.close([flows[-1]]), 1).ends[0, flows]
    return [int(end) for end in ends]


def test_a_message_right_behind_another_has_its_start_up_but_not_its_latency() -> None:
    assert followers(0.75, 0.25, 0.5) == [7 * S // 4, 3 * S]
    assert followers(0.75, 0.0, 0.5) == [7 * S // 4, 11 * S // 4]


def test_no_message_is_sooner_there_than_its_latency_after_it_was_ready() -> None:
    # The first is through at 1.75 s: the second, ready at 1.5 s, may not move before 2.25 s.
    assert followers(0.75, 0.25, 1.5) == [7 * S // 4, 13 * S // 4]
    assert followers(0.75, 0.25, 2.0) == [7 * S // 4, 15 * S // 4]


@pytest.mark.parametrize("startup", [0.0, 0.25])
def test_the_bounds_hold_where_messages_follow_one_another(startup: float) -> None:
    cluster = Cluster((0,), (Link("wire", "nic", "a", "b", LinkSpec(100.0, 0.5, startup)),))
    b = Builder("test", cluster, 1)
    flows = [
        b.flow(WIRE, 0, 100.0 * (1 + index), (0,), stream=f"s{index}", connection=f"c{index % 2}") for index in range(4)
    ]
    last = b.compute(LOSS, 0, 0.1, after=flows)
    for flow in flows:
        b.wait_for(flow, (last, 1))
    schedule = b.close([last])
    mean = int(simulate(schedule, 30).ends[-1, last]) / 30 / S
    limits = bounds(schedule)
    assert limits.lower_s <= mean * (1 + 1e-9)
    assert mean <= limits.upper_s * (1 + 1e-9)
    # Two connections share the link; each has 100 or 200 units ahead of the longest of its other stream, or behind it.
    assert limits.upper_s == pytest.approx(0.1 + (0.5 + 2 * 2.0) + (0.5 + 2 * 4.0))


@pytest.mark.parametrize("queue", [0.0, 30.0, 400.0])
def test_the_bounds_hold_with_waits(queue: float) -> None:
    b = queued(queue)
    flows = [b.flow(WIRE, 0, 100.0 + 40 * index, (0,), stream=f"s{index}") for index in range(4)]
    delay = b.compute(LOSS, 0, 0.5)
    last = b.flow(WIRE, 0, 50.0, (0,), stream="late", after=[delay, *flows])
    schedule = b.close([last])
    # Streams run ahead of the last op, so only the whole run has done no more than its iterations' work.
    mean = int(simulate(schedule, 30).ends[-1, last]) / 30 / S
    limits = bounds(schedule)
    assert limits.lower_s <= mean * (1 + 1e-9)
    assert mean <= limits.upper_s * (1 + 1e-9)
