"""The ops of workers on CPU cores, one by one: single-threaded work, a message, gloo's ring all-reduce.

Threads take turns on the cores (`gcnsim.engine.cores`). A worker has one thread that computes, one that samples, and
per kind of traffic (lane) one that moves bytes and one that waits for messages; all-reduces have a separate pair. Equal
work varies slightly in time; otherwise workers would run in a lock step that real ones never keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from math import ceil

import numpy as np

from gcnsim.core.ids import FloatArray, Layer, Rank
from gcnsim.core.streams import stream as random_stream
from gcnsim.cost import adding_seconds, gradient_bytes, socket_core_seconds
from gcnsim.methods.method import Facts
from gcnsim.schedule import COMPUTE_STREAM, Builder
from gcnsim.schedule.builder import Dependency, Work
from gcnsim.timeline import Direction, OpKind

ONE_THREAD = 1.0
VARIED = 24
"""The least iterations before the random variation of work repeats."""

SAMPLER = "sampler"
TAG = {Direction.FORWARD: "f", Direction.BACKWARD: "b"}
WOKEN_S = 1e-6
"""A thread that waited needs a core again before it can continue."""


@dataclass(frozen=True, slots=True)
class MessageOps:
    """The ops that end when a message is sent, and the one that ends when its receiver has all of it."""

    sent: list[Dependency]
    got: int


class CpuOps:
    """Adds ops to the schedule of the method `name` for `facts`. cycle: iterations after which it repeats."""

    def __init__(self, name: str, facts: Facts, cycle: int) -> None:
        self.spread = facts.host.work_spread.value
        self.iterations = cycle * (ceil(VARIED / cycle) if self.spread else 1)
        self.facts = facts
        self.varied = random_stream(facts.seed, "work of cores")
        self.builder = Builder(name, facts.cluster, self.iterations)
        self.workers = range(facts.cluster.gpus)
        self.exchanges = facts.cluster.gpus > 1

    def work(
        self,
        kind: OpKind,
        rank: Rank,
        seconds: Work,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        *,
        after: Iterable[Dependency] = (),
        stream: str = COMPUTE_STREAM,
        thread: str | None = None,
    ) -> int:
        """Core-seconds of one thread; each stream is a separate thread unless `thread` names one."""
        if self.spread:
            seconds = seconds * self._factors()
        return self.builder.flow(
            kind,
            rank,
            seconds,
            self.facts.cluster.cores(rank),
            stream=stream,
            after=after,
            cap=ONE_THREAD,
            layer=layer,
            direction=direction,
            thread=thread or stream,
        )

    def handed_over(self, rank: Rank) -> int:
        """What is in no operation: hand-overs between threads and the interpreter, spread evenly over the layers' two
        passes. How long they take is measured."""
        return self.work(OpKind.STEP, rank, WOKEN_S)

    def _factors(self) -> FloatArray:
        """The random factor on some work, float64[T]: log-normal, 1 on average."""
        return self.varied.lognormal(-(self.spread**2) / 2, self.spread, self.iterations)

    def pairs(self) -> Iterator[tuple[Rank, Rank]]:
        """Every ordered pair of workers."""
        return permutations(self.workers, 2)

    def message(
        self,
        kind: OpKind,
        rank: Rank,
        peer: Rank,
        nbytes: Work,
        after: list[Dependency],
        stream: str,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
    ) -> MessageOps:
        """`nbytes` to a peer and the threads' work at both ends.

        A call at each end is `message_s`: at the receiving end half of it moves bytes, half wakes who waits for them.
        """
        facts, lane = self.facts, stream.partition(".")[0]
        size = np.zeros(self.iterations) + nbytes
        moved = socket_core_seconds(facts.host, size)
        call = np.where(size > 0, facts.host.message_s.value, 0.0)
        route = facts.cluster.between(rank, peer)
        io, woken = f"{lane}.io", SAMPLER if lane == "ids" else f"{lane}.wait"

        def work(end: Rank, seconds: FloatArray, after: list[Dependency], part: str, thread: str) -> int:
            return self.work(
                kind, end, seconds, layer, direction, after=after, stream=f"{stream}.{part}", thread=thread
            )

        ends: list[Dependency] = [
            self.builder.flow(
                kind,
                rank,
                size,
                route,
                stream=stream,
                after=after,
                peer=peer,
                layer=layer,
                direction=direction,
                connection=lane,
            ),
            work(rank, moved + call, after, f"out{peer}", io),
            work(peer, moved + call / 2, after, f"in{rank}", io),
        ]
        return MessageOps(ends[:2], work(peer, call / 2, ends, f"got{rank}", woken))

    def reduce(self, layer: Layer, made: list[int]) -> list[int]:
        """All-reduce one layer's gradient around the ring; per worker, the op that ends it."""
        facts = self.facts
        if not self.exchanges:
            return made
        chunk = gradient_bytes((facts.shapes[layer],)) / facts.cluster.gpus
        ready = list(made)
        for step in range(2 * (facts.cluster.gpus - 1)):
            adding = adding_seconds(facts.device, chunk) if step < facts.cluster.gpus - 1 else 0.0
            got = [self._pass_on(rank, chunk, ready[rank], adding, layer) for rank in self.workers]
            ready = [got[rank - 1] for rank in self.workers]
        return ready

    def _pass_on(self, rank: Rank, chunk: float, ready: int, adding: float, layer: Layer) -> int:
        """One step of the ring: a chunk to the right neighbour, which adds its own; the op that ends it."""
        facts, right = self.facts, (rank + 1) % self.facts.cluster.gpus
        kind, run = OpKind.ALLREDUCE, "reduce.run"
        half = facts.host.reduce_step_s.value / 2 + float(socket_core_seconds(facts.host, np.array(chunk)))
        sent = self.work(kind, rank, half, layer, after=[ready], stream="reduce.out", thread=run)
        route = facts.cluster.between(rank, right)
        wire = self.builder.flow(kind, rank, chunk, route, stream="reduce.ring", after=[sent], peer=right, layer=layer)
        heard = self.work(kind, right, half, layer, after=[wire], stream="reduce.in", thread="reduce.io")
        if not adding:
            return heard
        return self.work(kind, right, adding, layer, after=[heard], stream="reduce.add", thread=run)
