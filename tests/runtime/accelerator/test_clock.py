from __future__ import annotations

from runtime.accelerator.clock import NS, Lane, now, sleep_until

LENGTH, COUNT, LATE = 4_000_000, 50, 200_000_000


def test_pieces_that_are_ready_follow_one_another_exactly_and_lateness_does_not_add_up() -> None:
    lane, begun = Lane(), now()
    ends = [lane.work(begun, LENGTH)[1] for _ in range(COUNT)]
    assert ends == [begun + LENGTH * (index + 1) for index in range(COUNT)]
    # One late waking at the most is left, however many pieces there were.
    assert 0 <= now() - ends[-1] < LATE


def test_a_piece_waits_until_it_is_ready() -> None:
    lane, begun = Lane(), now()
    assert lane.work(begun, LENGTH) == (begun, begun + LENGTH)
    later = begun + 3 * LENGTH
    assert lane.work(later, LENGTH) == (later, later + LENGTH)


def test_an_instant_that_has_passed_is_not_waited_for() -> None:
    begun = now()
    sleep_until(begun - NS)
    assert now() - begun < LATE
