"""A world of two whose other rank does exactly what this one does: what is sent to it comes back from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import IntArray
from runtime.aggregate import PlainMatrix, Rows
from runtime.exchange import CachedRows, Channels, Exchange, Requests, SampledGraph
from runtime.exchange.channels import Message, Posted
from runtime.exchange.exchange import Smooth
from runtime.record import Recorder

INNER = 6
WIDTHS = (3, 2, 4)
INDEX = (0, 2, 3, 5)
"""The inner rows that the other rank wants; its own of the same numbers are this rank's four boundary rows."""


class MirrorLane:
    """A channel on which every message sent is the message received."""

    def __init__(self) -> None:
        self.posting: BaseException | None = None
        self.waiting: BaseException | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.messages: list[tuple[int, int, bool]] = []
        """Peer, rows and whether outgoing, of all messages that are not empty."""

    def post(self, messages: Sequence[Message]) -> Posted:
        """Hand over; raises `posting` if it is set."""
        if self.posting is not None:
            raise self.posting
        return Posted([message for message in messages if message.tensor.numel()], [])

    def await_all(self, posted: Posted, done: Callable[[Message], None] = lambda _: None) -> None:
        """Copy, once `gate` is open; raises `waiting` if it is set."""
        assert self.gate.wait(60.0)
        if self.waiting is not None:
            raise self.waiting
        incoming = [message for message in posted.messages if not message.outgoing]
        outgoing = [message for message in posted.messages if message.outgoing]
        for there, back in zip(outgoing, incoming, strict=True):
            assert there.peer == back.peer == 1
            back.tensor.copy_(there.tensor)
        for message in [*incoming, *outgoing]:
            self.messages.append((message.peer, message.tensor.shape[0], message.outgoing))
            done(message)


class MirrorLanes:
    """Of rank 0."""

    rank, world, backend = 0, 2, "gloo"

    def __init__(self) -> None:
        self.channels: dict[str, MirrorLane] = {}

    def open(self, name: str, *, bulk: bool = False) -> MirrorLane:
        """The channel called `name`."""
        assert bulk
        return self.channels.setdefault(name, MirrorLane())


def mirrored(
    tau: int, *, threaded: bool = True, smooth: Smooth | None = None, recorder: Recorder | None = None
) -> tuple[Exchange, MirrorLane, MirrorLane]:
    """An exchange and its two channels, forward and backward."""
    channels = MirrorLanes()
    recorder = Recorder(0) if recorder is None else recorder
    dtype, device = torch.float64, torch.device("cpu")
    exchange = Exchange(
        cast("Channels", channels), recorder, WIDTHS, tau, dtype, device, threaded=threaded, smooth=smooth
    )
    return exchange, channels.channels["f"], channels.channels["b"]


def graph(number: int = 0, held: CachedRows | None = None) -> SampledGraph:
    """A graph of which only the boundary matters: rows INDEX of the other rank."""
    nothing = Rows(np.zeros(INNER + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), INNER)
    matrix = PlainMatrix(nothing, torch.float64, torch.device("cpu"))
    count = len(INDEX)
    needed: IntArray = np.arange(count)
    missing = count
    if held is not None:
        hit = held.slot >= 0
        needed = np.lexsort((needed, hit))
        missing = int(np.count_nonzero(~hit))
    ptr, misses = (0, 0, count), (0, missing)
    index = torch.tensor(INDEX)[torch.from_numpy(needed)]
    return SampledGraph(number, matrix, None, needed, ptr, misses, (0, 0), Requests(index, ptr, misses), held)


def at_hand(drawn: SampledGraph) -> Future[SampledGraph]:
    """A graph that is there."""
    done: Future[SampledGraph] = Future()
    done.set_result(drawn)
    return done


def values(t: int, layer: int) -> Tensor:
    """H^(t,layer), [INNER, WIDTHS[layer]]."""
    draw = torch.Generator().manual_seed(100 * t + layer)
    found: Any = torch.randn(INNER, WIDTHS[layer], dtype=torch.float64, generator=draw)
    return cast("Tensor", found)
