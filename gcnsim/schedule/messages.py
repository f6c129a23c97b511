"""Messages from host memory to host memory, with what they take of the cores where the cluster counts that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np

from gcnsim.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.schedule.builder import Builder, Dependency, Waits, Work, waits_of
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
    What it takes of the cores at both ends: `host_messages`.
    """
    if builder.cluster.sockets is None:
        where = builder.cluster.between(rank, peer) if route is None else route
        sent = builder.flow(
            kind,
            rank,
            nbytes,
            where,
            stream=stream,
            after=after,
            peer=peer,
            connection=connection,
            layer=layer,
            direction=direction,
        )
        return [sent]
    own, other = np.array([rank], dtype=np.int64), np.array([peer], dtype=np.int64)
    amounts = np.asarray(nbytes, dtype=np.float64).reshape(-1, 1)
    sizes = message_sizes(builder, amounts)
    first = builder.numbers(sizes)
    host_messages(
        builder,
        kind,
        own,
        other,
        amounts,
        waits_of([after]),
        at=first,
        sizes=sizes,
        stream=builder.names([stream]),
        ways=None if route is None else builder.ways([route]),
        connection=connection,
        layer=layer,
        direction=direction,
    )
    return list(range(int(first[0]), int(first[0] + sizes[0])))


def message_sizes(builder: Builder, nbytes: FloatArray) -> IntArray:
    """How many ops each message is, int64[*shape]; nbytes: float64[T, *shape], T being 1 where it does not vary."""
    if builder.cluster.sockets is None:
        return np.ones(nbytes.shape[1:], np.int64)
    return np.where((nbytes > SEGMENT).any(axis=0), 5, 3)


def host_messages(
    builder: Builder,
    kind: OpKind,
    ranks: IntArray,
    peers: IntArray,
    nbytes: FloatArray,
    after: Sequence[Waits],
    *,
    at: IntArray,
    sizes: IntArray,
    stream: IntArray,
    ways: IntArray | None = None,
    connection: str | None = None,
    layer: Layer = -1,
    direction: Direction = Direction.NONE,
) -> IntArray:
    """Add messages from the hosts of `ranks` to those of `peers`, arrays of one shape; the ops that end them.

    nbytes, sizes: as of `message_sizes`, which says how many ops each has: consecutive ones, from the number `at` on.
    stream: names (`Builder.names`) of one shape with them. ways: by default the links between the hosts.

    Where sockets are not free, a message takes bytes / bandwidth + message_s core-seconds at either end, of one thread,
    shared by the rule of all links with whatever else runs there: the call and the first SEGMENT at the sender before
    it travels, the call and the last SEGMENT at the receiver after it, what lies between at both ends meanwhile. A
    message of nothing takes none.
    """
    about: _About = {"layer": layer, "direction": direction}
    where = builder.between[ranks, peers] if ways is None else ways
    sockets = builder.cluster.sockets
    if sockets is None:
        return builder.block(
            kind, ranks, nbytes, at=at, after=after, stream=stream, ways=where, peers=peers, connection=connection,
            **about,
        )  # fmt: skip
    whole = np.minimum(nbytes, SEGMENT)
    call = np.where(nbytes > 0, sockets.message_s, 0.0) + whole / sockets.bandwidth
    rest = (nbytes - whole) / sockets.bandwidth
    ends = builder.ways(map(builder.cluster.cores, range(builder.cluster.gpus)))
    table = list(builder.names_of(stream))
    out = builder.names(f"{name}.out" for name in table).reshape(stream.shape)
    come = builder.names(f"{name}.in{rank}" for name, rank in zip(table, ranks.ravel().tolist(), strict=True))
    come = come.reshape(stream.shape)

    def work(who: IntArray, seconds: FloatArray, numbers: IntArray, after: Sequence[Waits], name: IntArray) -> None:
        builder.block(kind, who, seconds, at=numbers, after=after, stream=name, ways=ends[who], cap=ONE_THREAD, **about)

    long = sizes == 5
    work(ranks, call, at, after, out)
    builder.block(
        kind, ranks, nbytes, at=at + 1, after=[at], stream=stream, ways=where, peers=peers, connection=connection,
        **about,
    )  # fmt: skip
    work(ranks[long], rest[..., long], at[long] + 2, [at[long]], out[long])
    work(peers[long], rest[..., long], at[long] + 3, [at[long]], come[long])
    both = [np.where(long, at + place, -1) for place in (2, 3)]
    work(peers, call, at + sizes - 1, [at + 1, *both], come)
    return np.asarray(at + sizes - 1)


class _About(TypedDict):
    """What all ops of a message are about."""

    layer: Layer
    direction: Direction
