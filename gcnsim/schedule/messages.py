"""Messages from host memory to host memory, with what they take of the cores where the cluster counts that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np

from gcnsim.ids import FloatArray, Layer, Rank
from gcnsim.schedule.builder import Builder, Dependency, Work
from gcnsim.timeline import Direction, OpKind

ONE_THREAD: Final = 1.0
"""At each end one thread moves a message: it never uses more than one core."""

SEGMENT: Final = 65_536.0
"""Bytes that a sender has handed over before the first leave, and that a receiver takes after the last are there: the
most that Linux gives to a network card at once (a TCP segment offloaded)."""


def host_message(
    builder: Builder,
    kind: OpKind,
    rank: Rank,
    peer: Rank,
    nbytes: Work,
    after: Sequence[Dependency],
    *,
    stream: str,
    route: tuple[int, ...] | None = None,
    connection: str | None = None,
    layer: Layer = -1,
    direction: Direction = Direction.NONE,
) -> list[int]:
    """Add a message from the host of one worker to that of another; its ops, from the first that starts to the end.

    It goes over `route`, by default the links between the hosts, in order with others of the `connection` to this peer.
    Where sockets are not free, it takes bytes / bandwidth + message_s core-seconds at either end, of one thread, shared
    by the rule of all links with whatever else runs there: the call and the first SEGMENT at the sender before it
    travels, the call and the last SEGMENT at the receiver after it, what lies between at both ends meanwhile. A message
    of nothing takes none.
    """
    about: _About = {"layer": layer, "direction": direction}

    def way(after: Sequence[Dependency]) -> int:
        where = builder.cluster.between(rank, peer) if route is None else route
        return builder.flow(
            kind, rank, nbytes, where, stream=stream, after=after, peer=peer, connection=connection, **about
        )

    sockets = builder.cluster.sockets
    if sockets is None:
        return [way(after)]
    moved = np.asarray(nbytes, dtype=np.float64)
    whole = np.minimum(moved, SEGMENT)
    call = np.where(moved > 0, sockets.message_s, 0.0) + whole / sockets.bandwidth
    rest = (moved - whole) / sockets.bandwidth

    def work(end: Rank, seconds: FloatArray, after: Sequence[Dependency], part: str) -> int:
        cores, name = builder.cluster.cores(end), f"{stream}.{part}"
        return builder.flow(kind, end, seconds, cores, stream=name, after=after, cap=ONE_THREAD, **about)

    given = work(rank, call, after, "out")
    through = [way([given])]
    if rest.any():
        through += [work(rank, rest, [given], "out"), work(peer, rest, [given], f"in{rank}")]
    return [given, *through, work(peer, call, through, f"in{rank}")]


class _About(TypedDict):
    """What all ops of a message are about."""

    layer: Layer
    direction: Direction
