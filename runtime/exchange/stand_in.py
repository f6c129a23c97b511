"""Channels of a worker without any others: what it asks of them is answered at once, so that its part runs by itself.

All parts take turns in one process. Lists of numbers (rows that are wanted, ids that were drawn) are those that the
other part sent last when it was its turn; before its first turn it wants nothing. Norms are those that the other part
sent in the same exchange, or in its last one, as many times as large as this worker's own have become since: norms grow
with training, and only how they compare says which edges are drawn. Rows and gradients are this worker's own, over and
over: of the right shape, and numbers like any others. Sums over workers are its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from gcnsim.ids import Rank
from gcnsim.timeline import OpKind
from runtime.exchange.channels import Channel, Channels, Message, Posted

KEPT: Final = 8
"""Lists that are kept of a part, and handed out in turn; exchanges whose norms are kept."""

_Key: TypeAlias = tuple[str, str, Rank, Rank]
"""A channel, what it serves, who sends, who receives."""


@dataclass(frozen=True)
class IntListMessage:
    """A list of numbers as it travels: first how many, then which."""

    head: Tensor
    numbers: Tensor


class Mail:
    """What the parts of one setting sent one another in their last turns."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.lists: dict[_Key, deque[IntListMessage]] = {}
        self.norms: dict[_Key, dict[int, Tensor]] = {}

    def put(self, key: _Key, listed: IntListMessage) -> None:
        """Keep a list in the place of the oldest."""
        self.lists.setdefault(key, deque(maxlen=KEPT)).append(listed)

    def taken(self, key: _Key, turn: int) -> IntListMessage | None:
        """The list for the receiver's exchange number `turn`; None where none was sent yet."""
        found = self.lists.get(key)
        return None if not found else found[turn % len(found)]

    def put_norms(self, key: _Key, number: int, norms: Tensor) -> None:
        """Keep those of exchange `number` in the place of the oldest."""
        stored = self.norms.setdefault(key, {})
        stored.pop(number, None)
        stored[number] = norms
        if len(stored) > KEPT:
            del stored[next(iter(stored))]

    def taken_norms(self, key: _Key, number: int) -> tuple[int, Tensor] | None:
        """Those of exchange `number`, else of the last one, with its number; None where none were sent yet."""
        stored = self.norms.get(key)
        if not stored:
            return None
        found = number if number in stored else next(reversed(stored))
        return found, stored[found]


class _Done:
    """A sum over workers that is there."""

    def wait(self) -> None:
        """At once."""


@dataclass
class _Turn:
    """Where a channel stands in its exchanges of lists, and in those of norms.

    heads: sent, where the lists themselves come next. means: of own norms, by exchange.
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
        """See `Channel`: lists for ops of one kind answer those of the same."""
        if kind not in self.others:
            self.others[kind] = StandIn(
                self.name, None, self.rank, self.timeout_s, world=self.world, mail=self.mail, serves=str(kind)
            )
        return self.others[kind]

    def post(self, messages: Sequence[Message]) -> Posted:
        """Fill what is to be received."""
        sent = {message.peer: message.tensor for message in messages if message.outgoing}
        coming = {message.peer: message.tensor for message in messages if not message.outgoing}
        if any(not tensor.is_floating_point() for tensor in (*sent.values(), *coming.values())):
            self._listed(sent, coming)
        else:
            self._filled(sent, coming)
        return Posted([message for message in messages if message.tensor.numel()], [])

    def all_reduce(self, tensor: Tensor) -> Any:
        """`tensor` as it is."""
        return _Done()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """This worker's `tensor` for each."""
        return [tensor.clone() for _ in range(self.world)]

    def broadcast(self, tensor: Tensor, source: Rank = 0) -> None:
        """`tensor` as it is."""

    def _listed(self, sent: dict[Rank, Tensor], coming: dict[Rank, Tensor]) -> None:
        """Numbers travel in twos: how many, to and from everybody, then which."""
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
        """One number a row: norms."""
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
    """The channels of a worker whose part is measured by itself. mail: of all parts."""

    def __init__(self, rank: Rank, world: int, backend: str, mail: Mail) -> None:
        """backend: which buffers rows go through, as of a run with others."""
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
    """Fill `target` with `rows`, over and over; with zeros where there are none."""
    count = 0 if rows is None else min(rows.shape[0], target.shape[0])
    if rows is None or not count:
        target.zero_()
        return
    target[:count] = rows[:count]
    while count < target.shape[0]:
        more = min(count, target.shape[0] - count)
        target[count : count + more] = target[:more]
        count += more
