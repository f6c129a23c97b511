"""Collectives written as flows, so that they share links with all other traffic; tests check their closed forms.

Over P workers, alone on equal links of latency alpha (the routes between them are in `Cluster`):
- ring all-reduce of w bytes, host-staged or from GPU to GPU: 2 (P - 1) (alpha + w / P / bandwidth), each worker passing
  a chunk of w / P to its right neighbour in every step;
- broadcast of w bytes around a ring, in chunks of c: P alpha + (w + (P - 2) c) / bandwidth: the first chunk fills the
  ring hop by hop, the rest follows on all hops at once. No broadcast is faster than alpha + w / bandwidth;
- all-reduce up and down a binary tree: 2 ceil(log2 P) (alpha + w / bandwidth) where P is a power of two.

A cluster's `allreduce` selects its all-reduce. Rows are exchanged by no collective. Methods send messages between
pairs, which leave one by one as their rows are made. Messages go from host memory to host memory, with their load on
the cores where the cluster counts that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple, TypedDict

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer, Rank
from gcnsim.hardware.link_specs import TREE
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule.builder import Builder, Dependency, Waits, Work, waits_of
from gcnsim.timeline import Direction, OpKind

ONE_THREAD: Final = 1.0
"""One thread per end moves a message, so it never uses more than one core."""

SEGMENT: Final = 65_536.0
"""The bytes a sender hands over before the first ones leave, and a receiver copies after the last ones arrive.

It is the most that Linux passes to a network card at once (TCP segmentation offload).
"""


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
) -> list[int]:
    """Add a message between the hosts of two workers; return its ops, from the first that starts to the end.

    It uses `route`, by default the links between the hosts. `host_messages` describes its CPU time at both ends.
    """
    if builder.cluster.sockets is None:
        where = builder.cluster.between(rank, peer) if route is None else route
        return [builder.flow(kind, rank, nbytes, where, stream=stream, after=after, peer=peer, layer=layer)]
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
        layer=layer,
    )
    return list(range(int(first[0]), int(first[0] + sizes[0])))


def message_sizes(builder: Builder, nbytes: FloatArray) -> IntArray:
    """The number of ops of each message, int64[*shape]. nbytes: float64[T, *shape], with T = 1 if it does not vary."""
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
    """Add messages from the hosts of `ranks` to those of `peers` (arrays of one shape); return the ops that end them.

    nbytes, sizes: as in `message_sizes`, which gives the number of ops of each message; they are consecutive from the
    number `at` on. stream: names (`Builder.names`) of the same shape. ways: by default the links between the hosts.

    If sockets cost CPU time, a message takes bytes / bandwidth + message_s core-seconds at either end, on one thread
    that shares the cores as links are shared. The call and the first SEGMENT are at the sender before the message
    travels. The call and the last SEGMENT are at the receiver after it. The rest runs at both ends meanwhile. An empty
    message takes no time.
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
    """The facts that all ops of a message share."""

    layer: Layer
    direction: Direction


CHUNK: Final = 2.0**20
"""Bytes of a broadcast that a worker receives before it forwards them. Assumed (range: 128 KiB to 4 MiB)."""


def hop(cluster: Cluster, source: Rank, target: Rank) -> tuple[int, ...]:
    """The route from the memory of one GPU to that of another, with each byte forwarded as it arrives.

    Within a server both GPUs reach one buffer in host memory over their links: no thread copies there.
    """
    direct = cluster.direct(source, target)
    if direct is not None:
        return direct
    way = cluster.between(source, target)
    if cluster.server_of[source] == cluster.server_of[target]:
        way = (cluster.staging[source], cluster.staging[target]) if cluster.staging else ()
    return tuple(dict.fromkeys(cluster.to_host(source) + way + cluster.to_device(target)))


def allreduce(builder: Builder, nbytes: Work, after: Sequence[Dependency]) -> list[int]:
    """Add the all-reduce of the cluster, `ring_allreduce` or `tree_allreduce`.

    Return, per worker, the op that ends it.
    """
    return (tree_allreduce if builder.cluster.allreduce == TREE else ring_allreduce)(builder, nbytes, after)


def ring_allreduce(builder: Builder, nbytes: Work, after: Sequence[Dependency]) -> list[int]:
    """Add a ring all-reduce; return, per worker, the op that ends it (`after` itself for one worker).

    It is staged in host memory, unless every hop of the ring has a direct path between GPUs. after: per worker, the op
    whose end makes its contribution ready.
    """
    cluster = builder.cluster
    workers = range(cluster.gpus)
    if cluster.gpus == 1:
        return [dep if isinstance(dep, int) else dep[0] for dep in after]
    if all(cluster.direct(rank, (rank + 1) % cluster.gpus) is not None for rank in workers):
        return _ring(builder, workers, nbytes, after, "reduce.ring", -1, Direction.NONE)
    ranks: IntArray = np.arange(cluster.gpus, dtype=np.int64)
    whole = per_worker(nbytes, 1)
    down = builder.block(
        OpKind.ALLREDUCE,
        ranks,
        whole,
        after=waits_of([[dep] for dep in after]),
        stream="reduce.d2h",
        ways=builder.ways(map(cluster.to_host, workers)),
        peers=ranks,
    )
    steps = 2 * (cluster.gpus - 1)
    each = np.tile(ranks, (steps, 1))
    peers = (each + 1) % cluster.gpus
    chunk = per_worker(nbytes / cluster.gpus, 2)
    amounts = np.broadcast_to(chunk, (chunk.shape[0], *each.shape))
    sizes = message_sizes(builder, amounts)
    at = builder.numbers(sizes)
    last = at + sizes - 1
    before = np.concatenate([down[None], np.roll(last[:-1], 1, axis=1)])
    name = np.full(each.shape, builder.name("reduce.ring"))
    host_messages(builder, OpKind.ALLREDUCE, each, peers, amounts, [before], at=at, sizes=sizes, stream=name)
    up = builder.block(
        OpKind.ALLREDUCE,
        ranks,
        whole,
        after=[np.roll(last[-1], 1)],
        stream="reduce.h2d",
        ways=builder.ways(map(cluster.to_device, workers)),
        peers=ranks,
    )
    return [int(op) for op in up]


def per_worker(work: Work, axes: int) -> FloatArray:
    """A value shared by all ops of a block of this many axes: float64[T, 1, ...], with T = 1 if it does not vary."""
    return np.asarray(work, dtype=np.float64).reshape(-1, *[1] * axes)


def ring_reduce_among(
    builder: Builder,
    ring: Sequence[Rank],
    nbytes: Work,
    after: Sequence[Dependency],
    layer: Layer,
    direction: Direction,
) -> list[int]:
    """Add a ring all-reduce from GPU to GPU among the workers `ring`; return, in its order, the ops that end it.

    after: per member, the op whose end makes its contribution ready. At least two members.
    """
    return _ring(builder, ring, nbytes, after, "replicas.ring", layer, direction)


def _ring(
    builder: Builder,
    ring: Sequence[Rank],
    nbytes: Work,
    after: Sequence[Dependency],
    stream: str,
    layer: Layer,
    direction: Direction,
) -> list[int]:
    """Add the steps of a ring all-reduce from GPU to GPU."""
    size = len(ring)
    ranks: IntArray = np.array(ring, dtype=np.int64)
    each = np.tile(ranks, (2 * (size - 1), 1))
    peers = each[:, np.arange(1, size + 1) % size]
    ways = np.broadcast_to(builder.ways(map(hop, repeat(builder.cluster), ring, peers[0].tolist())), each.shape)
    at = builder.numbers(np.ones(each.shape, np.int64))
    left = np.arange(-1, size - 1)
    before = at[:-1, left]
    first: list[Waits] = waits_of([[dep] for dep in after])
    for steps, waits in ((slice(0, 1), first), (slice(1, None), [before])):
        builder.block(
            OpKind.ALLREDUCE,
            each[steps],
            per_worker(nbytes / size, 2),
            at=at[steps],
            after=waits,
            stream=stream,
            ways=ways[steps],
            peers=peers[steps],
            layer=layer,
            direction=direction,
        )
    return [int(op) for op in at[-1, left]]


def ring_broadcast(
    builder: Builder,
    ring: Sequence[Rank],
    root: int,
    nbytes: Work,
    after: Sequence[Sequence[Dependency]],
    *,
    layer: Layer = -1,
    direction: Direction = Direction.NONE,
) -> list[int]:
    """Add a pipelined broadcast around `ring`, from its member at index `root`; return, per member, the op that ends
    it.

    after: per member, the ops before which it neither sends nor receives. At least two members. It ends for the root
    when its neighbour has everything. If a hop is faster than an earlier one, its last bytes arrive with those of the
    slower hop.
    """
    size = len(ring)
    first = np.minimum(nbytes, CHUNK) if size > 2 else nbytes
    ends = [-1] * size
    filled: list[Dependency] = []
    whole: list[Dependency] = []
    for step in range(size - 1):
        here, there = (root + step) % size, (root + step + 1) % size
        pair = _Pair(builder, ring[here], ring[there], layer, direction)
        last = pair.send(first, [*filled, *after[here], *after[there]])
        filled = [last]
        if size > 2:
            # A forwarded copy is complete no sooner than its source.
            last = pair.receive([pair.send(nbytes - first, []), *whole])
            whole = [last]
        ends[there] = last
        if step == 0:
            ends[here] = last
    return ends


class _Pair(NamedTuple):
    """Two neighbours of a ring."""

    builder: Builder
    rank: Rank
    peer: Rank
    layer: Layer
    direction: Direction

    def send(self, nbytes: Work, after: Sequence[Dependency]) -> int:
        """From one GPU to the other."""
        return self.builder.flow(
            OpKind.WIRE,
            self.rank,
            nbytes,
            hop(self.builder.cluster, self.rank, self.peer),
            stream="ring.tx",
            after=after,
            layer=self.layer,
            direction=self.direction,
            peer=self.peer,
        )

    def receive(self, after: Sequence[Dependency]) -> int:
        """The op that ends when all of these have ended, at the second GPU."""
        return self.builder.compute(
            OpKind.UNPACK,
            self.peer,
            0.0,
            after=after,
            stream="ring.rx",
            layer=self.layer,
            direction=self.direction,
        )


def tree_allreduce(builder: Builder, nbytes: Work, after: Sequence[Dependency]) -> list[int]:
    """Add an all-reduce up a binary tree and down again, from GPU to GPU; return, per worker, the op that ends it."""
    cluster = builder.cluster
    ready: list[Dependency] = list(after)
    levels = [1 << level for level in range((cluster.gpus - 1).bit_length())]

    def pass_on(rank: Rank, peer: Rank) -> None:
        kind, route = OpKind.ALLREDUCE, hop(cluster, rank, peer)
        if cluster.direct(rank, peer) is None:
            sent = host_message(builder, kind, rank, peer, nbytes, [ready[rank]], stream="reduce.tree", route=route)[-1]
        else:
            sent = builder.flow(kind, rank, nbytes, route, stream="reduce.tree", after=[ready[rank]], peer=peer)
        ready[peer] = builder.compute(kind, peer, 0.0, after=[ready[peer], sent], stream="reduce.in")

    for distance in levels:
        for rank in range(distance, cluster.gpus, 2 * distance):
            pass_on(rank, rank - distance)
    for distance in reversed(levels):
        for rank in range(distance, cluster.gpus, 2 * distance):
            pass_on(rank - distance, rank)
    return [dep if isinstance(dep, int) else dep[0] for dep in ready]
