"""Collectives written as flows, so that they share links with everything else; their closed forms are tests.

Ring all-reduce of w bytes over P workers: 2 (P - 1) steps in which each worker passes a chunk of w / P to its right
neighbour; alone on equal links it takes 2 (P - 1) (alpha + w / P / bandwidth).
"""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.ids import Bytes
from gcnsim.schedule.builder import Builder, Dependency
from gcnsim.timeline import OpKind


def ring_allreduce(builder: Builder, nbytes: Bytes, after: Sequence[Dependency]) -> list[int]:
    """Add a host-staged ring all-reduce; return, per worker, the op that ends it (`after` itself for one worker).

    after: per worker, the op whose end makes its contribution ready.
    """
    cluster = builder.cluster
    workers = range(cluster.gpus)
    if cluster.gpus == 1:
        return [dep if isinstance(dep, int) else dep[0] for dep in after]
    chunk = nbytes / cluster.gpus
    ready = [
        builder.flow(
            OpKind.ALLREDUCE, rank, nbytes, cluster.to_host(rank), stream="reduce.d2h", after=[after[rank]], peer=rank
        )
        for rank in workers
    ]
    for _ in range(2 * (cluster.gpus - 1)):
        sent = []
        for rank in workers:
            right = (rank + 1) % cluster.gpus
            route = cluster.between(rank, right)
            sent.append(
                builder.flow(
                    OpKind.ALLREDUCE, rank, chunk, route, stream="reduce.ring", after=[ready[rank]], peer=right
                )
            )
        ready = [sent[rank - 1] for rank in workers]
    return [
        builder.flow(
            OpKind.ALLREDUCE, rank, nbytes, cluster.to_device(rank), stream="reduce.h2d", after=[ready[rank]], peer=rank
        )
        for rank in workers
    ]
