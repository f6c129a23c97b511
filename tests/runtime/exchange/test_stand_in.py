"""Transfers that stand in for real ones."""

from __future__ import annotations

import pytest
import torch

from gcnsim.timeline import OpKind
from runtime.exchange import Mail, StandIns
from runtime.exchange.channels import Channel, Message
from runtime.exchange.stand_in import KEPT, fill


def exchanged(channel: Channel, numbers: list[int]) -> list[int]:
    """Tell the other one `numbers`, and hear its own."""
    peer = 1 - channel.rank
    count = torch.zeros(1, dtype=torch.int32)
    channel.exchange(
        [Message(peer, count, False), Message(peer, torch.tensor([len(numbers)], dtype=torch.int32), True)]
    )
    heard = torch.empty(int(count), dtype=torch.int32)
    channel.exchange([Message(peer, heard, False), Message(peer, torch.tensor(numbers, dtype=torch.int32), True)])
    return [int(number) for number in heard]


def both(mail: Mail) -> tuple[Channel, Channel]:
    first, second = (StandIns(rank, 2, "gloo", mail).open("ids") for rank in range(2))
    return first, second


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 9])
def test_what_comes_is_filled_with_own_rows_over_and_over(rows: int) -> None:
    target = torch.full((rows, 2), torch.nan)
    fill(target, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert target.tolist() == [[1.0, 2.0] if row % 2 == 0 else [3.0, 4.0] for row in range(rows)]
    for nothing in (None, torch.empty(0, 2)):
        fill(target, nothing)
        assert target.tolist() == [[0.0, 0.0]] * rows


def test_lists_are_those_that_the_other_part_sent_in_its_last_turn() -> None:
    mail = Mail()
    first, second = both(mail)
    assert exchanged(first, [4, 5, 6]) == []
    assert exchanged(second, [7]) == [4, 5, 6]
    assert exchanged(first, [1]) == [7]
    # A part that was prepared anew hears the same.
    again, _ = both(mail)
    assert exchanged(again, []) == [7]


def test_several_lists_are_handed_out_in_turn_the_latest_ones() -> None:
    first, second = both(Mail())
    for number in range(KEPT + 2):
        exchanged(first, [number])
    assert [exchanged(second, []) for _ in range(KEPT + 1)] == [[2 + k % KEPT] for k in range(KEPT + 1)]


def test_lists_that_serve_other_ops_are_kept_apart() -> None:
    first, second = both(Mail())
    exchanged(first.serving(OpKind.INDEX), [1, 2])
    exchanged(first.serving(OpKind.CACHE_REFRESH), [3])
    assert exchanged(second.serving(OpKind.CACHE_REFRESH), []) == [3]
    assert exchanged(second.serving(OpKind.INDEX), []) == [1, 2]
    assert first.serving(OpKind.INDEX) is first.serving(OpKind.INDEX)


def normed(channel: Channel, own: list[float], count: int) -> list[float]:
    """Send norms of own rows, and receive `count`."""
    got, peer = torch.full((count,), torch.nan), 1 - channel.rank
    channel.exchange([Message(peer, got, False), Message(peer, torch.tensor(own), True)])
    return got.tolist()


def test_norms_are_those_of_the_same_exchange() -> None:
    first, second = both(Mail())
    assert normed(first, [1.0, 2.0], 3) == [1.0, 2.0, 1.0]
    assert normed(first, [10.0, 20.0], 3) == [10.0, 20.0, 10.0]
    assert normed(second, [7.0, 8.0, 9.0], 2) == [1.0, 2.0]
    assert normed(second, [70.0, 80.0, 90.0], 2) == [10.0, 20.0]


def test_norms_that_were_not_sent_yet_have_grown_as_ones_own() -> None:
    mail = Mail()
    first, second = both(mail)
    normed(first, [1.0, 3.0], 1)
    normed(second, [5.0], 2)
    # One's own have become four times as large; the other one has not had its turn since.
    assert normed(first, [8.0, 8.0], 1) == [20.0]
    # A worker prepared anew begins with its first exchange.
    again, _ = both(mail)
    assert normed(again, [1.0, 3.0], 1) == [5.0]


def test_only_the_last_norms_are_kept() -> None:
    mail = Mail()
    first, _ = both(mail)
    for number in range(KEPT + 3):
        normed(first, [float(number)], 1)
    (kept,) = mail.norms.values()
    assert list(kept) == list(range(3, KEPT + 3))


def test_every_message_is_told_as_through_and_sums_are_ones_own() -> None:
    channel = StandIns(0, 3, "gloo", Mail()).open("f", bulk=True)
    messages = [Message(peer, torch.ones(2, 2), outgoing) for peer in (1, 2) for outgoing in (False, True)]
    through: list[Message] = []
    channel.exchange([*messages, Message(1, torch.empty(0, 2), False)], through.append)
    assert through == messages
    tensor = torch.tensor([2.0])
    channel.wait(channel.all_reduce(tensor))
    channel.broadcast(tensor, 2)
    channel.barrier()
    assert tensor.tolist() == [2.0]
    assert [array.tolist() for array in channel.gather(tensor)] == [[2.0]] * 3


def test_there_is_nobody_to_agree_with() -> None:
    assert StandIns(1, 4, "gloo", Mail()).control() is None
