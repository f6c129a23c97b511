"""Messages from host memory to host memory, with what they take of the cores where the cluster counts that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gcnsim.ids import Layer, Rank
from gcnsim.schedule.builder import Builder, Dependency, Work
from gcnsim.timeline import Direction, OpKind

ONE_THREAD: Final = 1.0
"""At each end one thread moves a message: it never uses more than one core."""


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
    layer: Layer = -1,
    direction: Direction = Direction.NONE,
) -> list[int]:
    """Add a message from the host of one worker to that of another; the ops that have ended when it is there.

    The first is its way over `route`, by default the links between the hosts. The others are what it takes of the cores
    at both of its ends meanwhile, none where sockets are free: bytes / bandwidth + message_s core-seconds at either
    end, of one thread, shared by the rule of all links with whatever else runs there; a message of nothing takes none.
    """
    sent = builder.flow(
        kind,
        rank,
        nbytes,
        builder.cluster.between(rank, peer) if route is None else route,
        stream=stream,
        after=after,
        peer=peer,
        layer=layer,
        direction=direction,
    )
    sockets = builder.cluster.sockets
    if sockets is None:
        return [sent]
    moved = np.asarray(nbytes, dtype=np.float64)
    work = moved / sockets.bandwidth + np.where(moved > 0, sockets.message_s, 0.0)
    handled = [
        builder.flow(
            kind,
            end,
            work,
            builder.cluster.cores(end),
            stream=f"{stream}.{part}",
            after=after,
            cap=ONE_THREAD,
            layer=layer,
            direction=direction,
        )
        for end, part in ((rank, "out"), (peer, f"in{rank}"))
    ]
    return [sent, *handled]
