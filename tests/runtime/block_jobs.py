"""What ranks of a test do with the ring that blocks are broadcast around."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import runtime.exchange.blocks
from gcnsim.core.ids import AnyArray
from gcnsim.timeline import Direction, Timeline
from runtime.exchange import BlockRing, Channels
from runtime.launch import Place, connect
from runtime.record import Recorder


@dataclass(frozen=True)
class Passed:
    """What one rank has of each root's block, in order, and what it did."""

    blocks: list[AnyArray]
    sent: dict[tuple[int, str], int]
    timeline: Timeline


def passed_around(place: Place, members: list[int], rows: list[int], width: int, piece: int) -> Passed:
    """Broadcast a block of each member, [rows, width], in pieces of `piece` bytes; its values say whose row it is."""
    connect(place, 60.0, "gloo")
    usual, runtime.exchange.blocks.PIECE = runtime.exchange.blocks.PIECE, piece  # type: ignore[misc]
    try:
        recorder = Recorder(place.rank)
        ring = BlockRing(Channels(place.rank, place.world, 60.0, "gloo").open("blocks"), recorder, members)
        found = []
        for root, count in enumerate(rows):
            own = members[root] == place.rank
            block = torch.full((count, width), -1.0) if not own else values(root, count, width)
            ring.broadcast(0, root, Direction.FORWARD, root, block)
            found.append(block.numpy().copy())
        return Passed(found, ring.bytes_sent, recorder.timeline(0))
    finally:
        runtime.exchange.blocks.PIECE = usual  # type: ignore[misc]


def added_up(place: Place, members: list[int], rows: int, width: int) -> Passed:
    """Add up [rows, width] of each member, all of whose values are 0.1 more than those of the one before."""
    connect(place, 60.0, "gloo")
    recorder = Recorder(place.rank)
    ring = BlockRing(Channels(place.rank, place.world, 60.0, "gloo").open("blocks"), recorder, members)
    own = values(0, rows, width) + 0.1 * members.index(place.rank)
    ring.add_up(3, 1, Direction.BACKWARD, own)
    return Passed([own.numpy().copy()], ring.bytes_sent, recorder.timeline(0))


def values(root: int, count: int, width: int) -> torch.Tensor:
    """The block of the member at place `root`."""
    return 1000.0 * root + torch.arange(count * width, dtype=torch.float32).view(count, width)
