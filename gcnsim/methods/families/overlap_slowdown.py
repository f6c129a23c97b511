"""How much longer kernels take because transfers run beside them: overlap is not free.

Pipelined training has its transfers under way while it computes, and so has synchronous training that sums its inner
columns beneath them. Its kernels then share the device's memory with
copies and pack kernels, and the host's threads with those that send and receive. One number, the share of its rate at
which a GPU computes meanwhile, stands for all of that, for as long as transfers are under way in an iteration; of
synchronous training, those of a layer beneath the sum of its inner columns alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gcnsim.cost import payload_width
from gcnsim.ids import FloatArray, Layer
from gcnsim.methods.facts import Facts
from gcnsim.timeline import Direction


def slowdown(facts: Facts, compute: FloatArray, *, stale: bool) -> FloatArray:
    """Factor on the workers' kernels, float64[T, P]; compute: their seconds per iteration with nothing beside them;
    stale: whether they read earlier iterations' rows, so that transfers run beside them.

    1 where nothing is pipelined. Transfers are under way for at least the time that their busiest link needs; the GPU
    works at `rate_beside_copies` for that time, or all the time if transfers take longer than kernels.
    """
    if not stale or facts.cluster.gpus < 2:
        return np.ones_like(compute)
    layers = [layer for layer, shape in enumerate(facts.shapes) if shape.exchanges]
    moving = transfer_seconds(facts, layers, [layer for layer in layers if layer])
    return _slower(facts, compute, moving)


def slowed_beneath(facts: Facts, layer: Layer, direction: Direction, seconds: FloatArray) -> FloatArray:
    """Seconds of a sum beneath the transfer of one layer, float64[T, P]; seconds: with nothing beside it."""
    forward, backward = ([layer], []) if direction is Direction.FORWARD else ([], [layer])
    return seconds * _slower(facts, seconds, transfer_seconds(facts, forward, backward))


def _slower(facts: Facts, compute: FloatArray, moving: FloatArray) -> FloatArray:
    loss = 1.0 / facts.rate_beside_copies - 1.0
    return np.asarray(1.0 + loss * np.minimum(1.0, moving / np.maximum(compute, 1e-12)))


def transfer_seconds(facts: Facts, forward: Sequence[Layer], backward: Sequence[Layer]) -> FloatArray:
    """Least seconds in which each worker's rows of these layers cross its busiest link in an iteration, float64[T, P].

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
    out, into = moved.sum(axis=2), moved.sum(axis=1)

    def capacity(routes: Iterable[tuple[int, ...]]) -> FloatArray:
        return np.array([min(cluster.links[link].spec.capacity for link in route) for route in routes])

    ranks = range(cluster.gpus)
    busy = [out / capacity(map(cluster.to_host, ranks)), into / capacity(map(cluster.to_device, ranks))]
    if cluster.staging:
        busy.append((out + into) / np.array([cluster.links[link].spec.capacity for link in cluster.staging]))
    if cluster.servers > 1:
        server = np.array(cluster.server_of)
        begins = np.flatnonzero(np.diff(server, prepend=-1))
        # Ranks of a server are consecutive; any other server is reached by the same card.
        by_server = np.add.reduceat(moved, begins, axis=1)
        by_server = np.add.reduceat(by_server, begins, axis=2)
        away = 1 - np.eye(cluster.servers, dtype=np.int64)
        share = capacity(cluster.route(f"host{each}", f"host{0 if each else 1}") for each in range(cluster.servers))
        busy += [((by_server * away).sum(axis=axis) / share)[:, server] for axis in (2, 1)]
    return np.asarray(np.max(busy, axis=0), dtype=np.float64)
