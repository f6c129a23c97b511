"""Channels of a worker without peers: requests are answered locally, so that its part can run alone.

All parts run in turns in one process. A list of numbers (requested rows, sampled ids) is the one that the other part
sent in its last turn; before its first turn it requests nothing. Norms are those that the other part sent in the same
exchange, or in its last one, scaled by the growth of this worker's norms: norms grow with training, and only their
ratios decide which edges are sampled. Received rows and gradients are copies of this worker's own, with the right shape
and plausible values. Sums over workers are its own values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from gcnsim.core.ids import Rank
from gcnsim.timeline import OpKind
from runtime.exchange.channels import Channel, Channels, Message, Posted

KEPT: Final = 8
"""The number of lists stored per part and used in turn, and of exchanges whose norms are stored."""

_Key: TypeAlias = tuple[str, str, Rank, Rank]
"""A channel, its purpose, the sender and the receiver."""


@dataclass(frozen=True)
class IntListMessage:
    """A list of numbers in a message: first how many, then which."""

    head: Tensor
    numbers: Tensor


class Mail:
    """The data that the parts of one setting sent each other in their last turns."""

    def __init__(self) -> None:
        """An empty mailbox."""
        self.lists: dict[_Key, deque[IntListMessage]] = {}
        self.norms: dict[_Key, dict[int, Tensor]] = {}

    def put(self, key: _Key, listed: IntListMessage) -> None:
        """Store a list in place of the oldest."""
        self.lists.setdefault(key, deque(maxlen=KEPT)).append(listed)

    def taken(self, key: _Key, turn: int) -> IntListMessage | None:
        """The list for the receiver's exchange number `turn`; None if none was sent yet."""
        found = self.lists.get(key)
        return None if not found else found[turn % len(found)]

    def put_norms(self, key: _Key, number: int, norms: Tensor) -> None:
        """Store the norms of exchange `number` in place of the oldest."""
        stored = self.norms.setdefault(key, {})
        stored.pop(number, None)
        stored[number] = norms
        if len(stored) > KEPT:
            del stored[next(iter(stored))]

    def taken_norms(self, key: _Key, number: int) -> tuple[int, Tensor] | None:
        """The norms of exchange `number`, otherwise of the last one, with its number; None if none were sent yet."""
        stored = self.norms.get(key)
        if not stored:
            return None
        found = number if number in stored else next(reversed(stored))
        return found, stored[found]


class _Done:
    """A completed sum over workers."""

    def wait(self) -> None:
        """Return at once."""


@dataclass
class _Turn:
    """The position of a channel in its exchanges of lists and of norms.

    heads: whether the lengths are sent, so that the lists come next. means: of this worker's norms, by exchange.
    """

    number: int = 0
    heads: dict[Rank, Tensor] | None = None
    taken: dict[Rank, IntListMessage | None] = field(default_factory=dict)
    means: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class StandIn(Channel):
    """One kind of traffic without peers. serves: its purpose, in a word."""

    world: int
    mail: Mail
    serves: str = ""
    turn: _Turn = field(default_factory=_Turn)
    others: dict[OpKind, StandIn] = field(default_factory=dict)

    def serving(self, kind: OpKind) -> StandIn:
        """See `Channel`: lists for ops of one kind answer those of the same kind."""
        if kind not in self.others:
            self.others[kind] = StandIn(
                self.name, None, self.rank, self.timeout_s, world=self.world, mail=self.mail, serves=str(kind)
            )
        return self.others[kind]

    def post(self, messages: Sequence[Message]) -> Posted:
        """Fill the buffers of the receives."""
        sent = {message.peer: message.tensor for message in messages if message.outgoing}
        coming = {message.peer: message.tensor for message in messages if not message.outgoing}
        if any(not tensor.is_floating_point() for tensor in (*sent.values(), *coming.values())):
            self._listed(sent, coming)
        else:
            self._filled(sent, coming)
        return Posted([message for message in messages if message.tensor.numel()], [])

    def all_reduce(self, tensor: Tensor) -> Any:
        """Return `tensor` unchanged."""
        return _Done()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """This worker's `tensor`, once per worker."""
        return [tensor.clone() for _ in range(self.world)]

    def broadcast(self, tensor: Tensor, source: Rank = 0) -> None:
        """Return `tensor` unchanged."""

    def _listed(self, sent: dict[Rank, Tensor], coming: dict[Rank, Tensor]) -> None:
        """Lists are exchanged in pairs: the numbers of ids to and from all peers, then the ids."""
        turn = self.turn
        if turn.heads is None:
            turn.heads = {peer: tensor.clone() for peer, tensor in sent.items()}
            turn.taken = {peer: self.mail.taken(self._key(peer, self.rank), turn.number) for peer in coming}
            for peer, tensor in coming.items():
                listed = turn.taken[peer]
                tensor.copy_(torch.zeros_like(tensor) if listed is None else listed.head)
            return
        for peer, tensor in sent.items():
            self.mail.put(self._key(self.rank, peer), IntListMessage(turn.heads[peer], tensor.clone()))
        for peer, tensor in coming.items():
            listed = turn.taken[peer]
            if listed is not None:
                tensor.copy_(listed.numbers)
        turn.heads, turn.number = None, turn.number + 1

    def _filled(self, sent: dict[Rank, Tensor], coming: dict[Rank, Tensor]) -> None:
        if any(tensor.dim() == 1 for tensor in sent.values()):
            self._normed(sent, coming)
            return
        for peer, tensor in coming.items():
            fill(tensor, sent.get(peer))

    def _normed(self, sent: dict[Rank, Tensor], coming: dict[Rank, Tensor]) -> None:
        """One number per row: norms."""
        means = self.turn.means
        means.append(float(torch.cat(list(sent.values())).mean()))
        number = len(means) - 1
        for peer, tensor in coming.items():
            found = self.mail.taken_norms(self._key(peer, self.rank), number)
            if found is None or found[1].shape != tensor.shape:
                fill(tensor, sent.get(peer))
                continue
            then = means[found[0]] if found[0] < number else 0.0
            tensor.copy_(found[1] * (means[number] / then if then else 1.0))
        for peer, tensor in sent.items():
            self.mail.put_norms(self._key(self.rank, peer), number, tensor.clone())

    def _key(self, sender: Rank, receiver: Rank) -> _Key:
        return self.name, self.serves, sender, receiver


class StandIns(Channels):
    """The channels of a worker whose part is measured alone. mail: of all parts."""

    def __init__(self, rank: Rank, world: int, backend: str, mail: Mail) -> None:
        """backend: decides which buffers rows use, as in a run with peers."""
        super().__init__(rank, world, 0.0, backend)
        self._mail = mail

    def open(self, name: str, *, bulk: bool = False) -> Channel:
        """See `Channels`."""
        if name not in self._open:
            self._open[name] = StandIn(name, None, self.rank, 0.0, world=self.world, mail=self._mail)
        return self._open[name]

    def control(self) -> Channel | None:
        """None: there are no peers to agree with."""
        return None


def fill(target: Tensor, rows: Tensor | None) -> None:
    """Fill `target` with repeated `rows`; with zeros if there are none."""
    count = 0 if rows is None else min(rows.shape[0], target.shape[0])
    if rows is None or not count:
        target.zero_()
        return
    target[:count] = rows[:count]
    while count < target.shape[0]:
        more = min(count, target.shape[0] - count)
        target[count : count + more] = target[:more]
        count += more
