"""How much longer kernels take because transfers run beside them: overlap is not free.

Pipelined training has its transfers under way while it computes, and so has synchronous training that sums its inner
columns beneath them. Its kernels then share the device's memory with
copies and pack kernels, and the host's threads with those that send and receive. One number, the share of its rate at
which a GPU computes meanwhile, stands for all of that, for as long as transfers are under way in an iteration; of
synchronous training, those of a layer beneath the sum of its inner columns alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.cost import payload_width
from gcnsim.ids import FloatArray, Layer, Rank
from gcnsim.methods.facts import Facts
from gcnsim.timeline import Direction


def slowdown(facts: Facts, rank: Rank, compute: FloatArray, *, stale: bool) -> FloatArray:
    """Factor on a worker's kernels, float64[T]; compute: their seconds per iteration with nothing beside them;
    stale: whether they read earlier iterations' rows, so that transfers run beside them.

    1 where nothing is pipelined. Transfers are under way for at least the time that their busiest link needs; the GPU
    works at `rate_beside_copies` for that time, or all the time if transfers take longer than kernels.
    """
    if not stale or facts.cluster.gpus < 2:
        return np.ones_like(compute)
    layers = [layer for layer, shape in enumerate(facts.shapes) if shape.gathers]
    moving = transfer_seconds(facts, rank, layers, [layer for layer in layers if layer])
    return _slower(facts, compute, moving)


def slowed_beneath(facts: Facts, rank: Rank, layer: Layer, direction: Direction, seconds: FloatArray) -> FloatArray:
    """Seconds of a sum beneath the transfer of one layer, float64[T]; seconds: with nothing beside it."""
    forward, backward = ([layer], []) if direction is Direction.FORWARD else ([], [layer])
    return seconds * _slower(facts, seconds, transfer_seconds(facts, rank, forward, backward))


def _slower(facts: Facts, compute: FloatArray, moving: FloatArray) -> FloatArray:
    loss = 1.0 / facts.rate_beside_copies - 1.0
    return np.asarray(1.0 + loss * np.minimum(1.0, moving / np.maximum(compute, 1e-12)))


def transfer_seconds(facts: Facts, rank: Rank, forward: Sequence[Layer], backward: Sequence[Layer]) -> FloatArray:
    """Least seconds in which a worker's rows of these layers cross its busiest link in an iteration, float64[T].

    Its copies down and up, its host side, and the network card it shares with the workers of its server.
    """
    cluster, rows, hits = facts.cluster, facts.counts.rows, facts.counts.hits
    first = [layer for layer in forward if layer == 0]

    def weigh(layers: Sequence[Layer]) -> int:
        return sum(payload_width(facts.shapes[layer].d_in, facts.payload) for layer in layers)

    asked = rows * weigh(forward) - hits * weigh(first)
    returned = rows * weigh(backward)
    moved = asked.transpose(0, 2, 1) + returned
    """moved[t, n, m]: bytes from n to m."""
    out, into = moved[:, rank].sum(axis=1), moved[:, :, rank].sum(axis=1)

    def capacity(route: tuple[int, ...]) -> float:
        return min(cluster.links[link].spec.capacity for link in route)

    busy = [out / capacity(cluster.to_host(rank)), into / capacity(cluster.to_device(rank))]
    if cluster.staging:
        busy.append((out + into) / cluster.links[cluster.staging[rank]].spec.capacity)
    server = np.array(cluster.server_of)
    here = server == server[rank]
    if not here.all():
        away = int(np.flatnonzero(~here)[0])
        share = capacity(cluster.route(f"host{server[rank]}", f"host{server[away]}"))
        busy += [moved[:, here][:, :, ~here].sum(axis=(1, 2)) / share]
        busy += [moved[:, ~here][:, :, here].sum(axis=(1, 2)) / share]
    return np.asarray(np.max(busy, axis=0), dtype=np.float64)
