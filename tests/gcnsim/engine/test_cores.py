"""Threads that take turns on cores: who runs when, checked against schedules worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule, bounds
from gcnsim.timeline import PS_PER_S, OpKind

S = PS_PER_S
LOSS = OpKind.LOSS


def cores(count: int, slice_s: float = 1.0, together: float | None = None, wake_s: float | None = None) -> Builder:
    """A machine of `count` cores that do `together` core-seconds a second when all are busy."""
    spec = LinkSpec(together or float(count), cores=count, slice_s=slice_s, wake_s=wake_s)
    return Builder("test", Cluster((0,), (Link("cpu", "cpu", "a", "b", spec),)), 1)


def ends(b: Builder, *, iterations: int = 1) -> list[float]:
    """When each op of the last iteration ended, in seconds."""
    schedule = b.close([b.size - 1])
    return [end / S for end in simulate(schedule, iterations).ends[-1].tolist()]


def task(b: Builder, thread: str, seconds: float, stream: str | None = None, after: tuple[int, ...] = ()) -> int:
    return b.flow(LOSS, 0, seconds, (0,), stream=stream or thread, after=after, cap=1.0, thread=thread)


def test_as_many_threads_as_cores_wait_for_nobody() -> None:
    b = cores(2)
    task(b, "a", 3.0)
    task(b, "b", 5.0)
    assert ends(b) == [3.0, 5.0]


def test_more_threads_than_cores_take_turns_of_a_slice() -> None:
    # One core, slices of 1 s: a b a b a; a needs 3 s, b 2 s.
    b = cores(1)
    task(b, "a", 3.0)
    task(b, "b", 2.0)
    assert ends(b) == [5.0, 4.0]


def test_short_work_waits_for_a_slice_and_hardly_delays_long_work() -> None:
    b = cores(1)
    task(b, "long", 10.0)
    delay = b.compute(LOSS, 0, 2.25)
    task(b, "short", 0.125, after=(delay,))
    # At 2.25 s the running slice, begun at 0 with nobody waiting, is long over: the short task runs at once.
    assert ends(b) == pytest.approx([10.125, 2.25, 2.375], rel=1e-9)


def test_a_thread_that_wakes_waits_for_the_rest_of_the_slice() -> None:
    b = cores(1)
    task(b, "a", 3.0)
    task(b, "b", 3.0)
    delay = b.compute(LOSS, 0, 1.25)
    task(b, "short", 0.25, after=(delay,))
    # b runs from 1 to 2; then the short task, which has had as little as whoever had least, then a and b again.
    found = ends(b)
    assert found[3] == pytest.approx(2.25, rel=1e-9)
    assert max(found) == pytest.approx(6.25, rel=1e-9)


def test_a_thread_that_wakes_waits_no_longer_than_it_must() -> None:
    b = cores(1, wake_s=0.125)
    task(b, "a", 3.0)
    task(b, "b", 3.0)
    delay = b.compute(LOSS, 0, 1.25)
    early = task(b, "early", 0.25, after=(delay,))
    # All wake at 0: a until 0.125, b until 1.125, then a, which has kept the core for 0.125 when the early one wakes.
    found = ends(b)
    assert found[early] == pytest.approx(1.5, rel=1e-9)
    # From there slices of 1 s: a to 2.5, b to 3.5, a to 4.5, b to its end.
    assert found[:2] == pytest.approx([6.25, 5.5], rel=1e-9)


def test_a_thread_that_has_just_got_its_core_keeps_it_for_a_while() -> None:
    b = cores(1, wake_s=0.125)
    task(b, "a", 3.0)
    task(b, "b", 3.0)
    delay = b.compute(LOSS, 0, 1.1875)
    short = task(b, "short", 0.25, after=(delay,))
    # a has its core again from 1.125, and keeps it until 1.25.
    assert ends(b)[short] == pytest.approx(1.5, rel=1e-9)


def test_a_thread_that_wakes_takes_the_core_of_who_has_had_most() -> None:
    b = cores(2, slice_s=10.0, wake_s=0.125)
    task(b, "old", 4.0)
    late = b.compute(LOSS, 0, 1.0)
    task(b, "young", 4.0, after=(late,))
    later = b.compute(LOSS, 0, 1.0)
    short = task(b, "short", 0.5, after=(later,))
    # At 2 the old one has had 2 and the young one 1 or more, as much as the short one starts with.
    found = ends(b)
    assert (found[0], found[2], found[short]) == pytest.approx((4.5, 5.0, 2.5), rel=1e-9)


def test_a_thread_that_has_had_more_waits_until_a_running_one_has_had_as_much() -> None:
    b = cores(1, slice_s=10.0, wake_s=0.125)
    first = task(b, "heavy", 2.0, stream="h1")
    pause = b.compute(LOSS, 0, 0.25, after=(first,))
    task(b, "light", 5.0, after=(first,))
    again = task(b, "heavy", 0.5, stream="h2", after=(pause,))
    # The light one runs from 2; the heavy one, which has had 2, wakes at 2.25 and runs from 4.
    assert ends(b)[again] == pytest.approx(4.5, rel=1e-9)


def test_of_what_a_waiting_thread_has_had_more_a_slice_counts() -> None:
    b = cores(1)
    task(b, "a", 10.0)
    task(b, "b", 10.0, after=(b.compute(LOSS, 0, 5.0),))
    # At 5 s b takes the core of a, which has had 5 s: that counts as 1 s, so a is back at 6 s, and the two take turns
    # until a has had its other 5 s at 15 s. By all it has had it would be back at 10 s, and end at 19 s.
    assert ends(b) == [15.0, 5.0, 20.0]


def test_a_thread_that_ran_while_others_slept_shares_the_cores_with_them() -> None:
    b = cores(2)
    task(b, "a", 10.0)
    second = b.compute(LOSS, 0, 5.0)
    third = b.compute(LOSS, 0, 6.0, stream="another")
    task(b, "b", 4.0, after=(second,))
    task(b, "c", 4.0, after=(third,))
    # At 6 s a has had 6 s, b 1 s: c takes the core of a. By all it has had a would wait until b is done at 9 s, and
    # end at 13 s. It counts as 1 s, so b, which has had as much, yields to it: the three share two cores.
    assert ends(b) == [12.0, 5.0, 6.0, 10.0, 11.0]


def test_a_thread_keeps_its_core_from_one_task_to_the_next() -> None:
    b = cores(1, slice_s=10.0)
    first = task(b, "a", 1.0, stream="a1")
    task(b, "b", 1.0)
    task(b, "a", 1.0, stream="a2", after=(first,))
    assert ends(b) == [1.0, 3.0, 2.0]


def test_tasks_of_a_thread_are_done_in_the_order_they_came() -> None:
    b = cores(4)
    delay = b.compute(LOSS, 0, 0.5)
    late = task(b, "io", 1.0, stream="late", after=(delay,))
    early = task(b, "io", 2.0, stream="early")
    found = ends(b)
    assert (found[early], found[late]) == (2.0, 3.0)


def test_busy_cores_are_slower_than_one_alone() -> None:
    b = cores(2, together=1.6)
    task(b, "a", 2.0)
    task(b, "b", 4.0)
    # 0.8 each until a is done at 2.5 s; b has 2 s left, alone.
    assert ends(b) == pytest.approx([2.5, 4.5], rel=1e-9)


lengths = st.integers(10**8, 3 * 10**12).map(lambda picoseconds: picoseconds / S)
"""Seconds, in whole picoseconds as the engine has them."""
work = st.lists(st.tuples(st.integers(0, 4), lengths, st.booleans()), min_size=1, max_size=9)


@settings(deadline=None, max_examples=80)
@given(
    tasks=work,
    count=st.integers(1, 3),
    slice_s=st.sampled_from([1e-3, 0.1, 1.0]),
    wakes=st.sampled_from([None, 0.0, 0.01]),
)
def test_work_is_conserved_and_bounded(
    tasks: list[tuple[int, float, bool]], count: int, slice_s: float, wakes: float | None
) -> None:
    wake_s = None if wakes is None else wakes * slice_s
    b = cores(count, slice_s, together=0.9 * count if count > 1 else 1.0, wake_s=wake_s)
    last: int | None = None
    for index, (thread, seconds, chained) in enumerate(tasks):
        after = (last,) if chained and last is not None else ()
        last = task(b, f"t{thread}", seconds, stream=f"s{index}", after=after)
    assert last is not None
    final = b.compute(LOSS, 0, 0.0, after=range(len(tasks)))
    schedule: Schedule = b.close([final])
    run = simulate(schedule, 1)
    total, end = sum(seconds for _, seconds, _ in tasks), run.ends[0, final] / S
    limits = bounds(schedule)
    assert end * schedule.capacity[0] >= total * (1 - 1e-9)
    assert limits.lower_s <= end * (1 + 1e-9)
    assert end <= limits.upper_s * (1 + 1e-9)
    lasted = (run.ends - run.starts)[0, : len(tasks)] / S
    assert all(took >= seconds * (1 - 1e-9) for took, (_, seconds, _) in zip(lasted, tasks, strict=True))
    assert (simulate(schedule, 1).ends == run.ends).all()
