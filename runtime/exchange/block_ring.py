"""Broadcasts of whole blocks of rows around a ring of workers, pipelined: what has come is passed on piece by piece;
and sums of what the members of a ring have.

Every member sends each block at most once, whoever its root is, so no link carries more than another. All members take
part in the same broadcasts in the same order; one is through on a worker before its next begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from gcnsim.ids import Iteration, Layer, Rank
from gcnsim.timeline import Direction, OpKind
from runtime.exchange.channels import Channel, Message
from runtime.exchange.exchange import TAG
from runtime.record import Recorder

PIECE: Final = 1 << 20
"""Bytes that a member receives before it passes them on, as in the simulator's broadcasts."""


class BlockRing:
    """The ring of the workers `members`, of which this one is one. A ring of one sends nothing."""

    def __init__(self, channel: Channel, recorder: Recorder, members: Sequence[Rank]) -> None:
        """channel: that of the blocks."""
        self._channel, self._recorder = channel, recorder
        self._members, self._place = tuple(members), members.index(channel.rank)
        self.bytes_sent: dict[tuple[int, str], int] = {}
        """Bytes sent so far per peer and kind (rows, gradients)."""

    def broadcast(self, t: Iteration, layer: Layer, direction: Direction, root: int, block: Tensor) -> None:
        """Bring the `block` of the member at place `root`, [rows, d], to all: contiguous, filled where it is not there.

        Returns when this worker has it and has passed it on.
        """
        size = len(self._members)
        if size == 1:
            return
        hops = (self._place - root) % size
        source, target = self._members[self._place - 1], self._members[(self._place + 1) % size]
        row = block.shape[1] * block.element_size()
        pieces = torch.split(block, max(1, PIECE // row) if size > 2 else block.shape[0])
        start = self._recorder.mark()
        coming = [self._channel.post([Message(source, piece, False)]) for piece in pieces] if hops else []
        leaving = []
        for number, piece in enumerate(pieces):
            if hops:
                self._channel.await_all(coming[number])
            if hops < size - 1:
                leaving.append(self._channel.post([Message(target, piece, True)]))
        if hops:
            self._span(OpKind.WIRE, f"{TAG[direction]}.rx{source}", t, layer, direction, start, source)
        for posted in leaving:
            self._channel.await_all(posted)
        if leaving:
            nbytes = block.shape[0] * row
            self._count(target, direction, nbytes)
            self._span(OpKind.WIRE, f"{TAG[direction]}.tx{target}", t, layer, direction, start, target, nbytes)
        self._span(OpKind.WAIT, "compute", t, layer, direction, start)

    def add_up(self, t: Iteration, layer: Layer, direction: Direction, rows: Tensor) -> None:
        """Add the `rows` of all members, contiguous and of equal shape, into each member's: around the ring and back.

        Every value is summed once and handed to all, so all members end with the same bits.
        """
        size, place = len(self._members), self._place
        if size == 1:
            return
        source, target = self._members[place - 1], self._members[(place + 1) % size]
        pieces = torch.tensor_split(rows.view(-1), size)
        start, nbytes = self._recorder.mark(), 0
        for step in range(2 * (size - 1)):
            leaving, coming = pieces[(place - step) % size], pieces[(place - step - 1) % size]
            got = torch.empty_like(coming) if step < size - 1 else coming
            self._channel.exchange([Message(source, got, False), Message(target, leaving, True)])
            nbytes += leaving.numel() * leaving.element_size()
            if got is not coming:
                coming += got
        self._count(target, direction, nbytes)
        self._span(OpKind.ALLREDUCE, "replicas.ring", t, layer, direction, start, target, nbytes)
        self._span(OpKind.WAIT, "compute", t, layer, direction, start)

    def _count(self, peer: Rank, direction: Direction, nbytes: int) -> None:
        key = peer, "rows" if direction is Direction.FORWARD else "gradients"
        self.bytes_sent[key] = self.bytes_sent.get(key, 0) + nbytes

    def _span(
        self,
        kind: OpKind,
        stream: str,
        t: Iteration,
        layer: Layer,
        direction: Direction,
        start: int,
        peer: int = -1,
        nbytes: float = 0.0,
    ) -> None:
        end = self._recorder.mark()
        self._recorder.add(kind, stream, t, start, end, layer=layer, direction=direction, peer=peer, nbytes=nbytes)
