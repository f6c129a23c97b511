"""Random networks of flows and delays for tests: every op is held back by the last of an earlier iteration."""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Dependency, Schedule
from gcnsim.timeline import OpKind


def coupled(random: np.random.Generator, scale: float = 1.0, *, queues: bool = False) -> Schedule:
    """Up to 25 ops on up to 8 streams and 5 links; iterations of about `scale` seconds, up to three kinds in turn.

    Ops wait for ops up to two iterations back, the last for all of the same or an earlier iteration, and the first of
    each stream for it. Half of the amounts recur, so that simultaneous events are common. Some flows share connections,
    have caps, latencies; with `queues` some wait in the queues of their links.
    """

    def one_of(*values: float) -> float:
        return float(random.choice(values))

    def link(name: str) -> Link:
        capacity = one_of(0.3, 1.0, 2.0) if random.random() < 0.5 else random.uniform(0.2, 3.0)
        latency = scale * one_of(0.0, 0.0, 0.01, 0.1)
        queue = scale * one_of(0.0, 0.5) if queues else 0.0
        return Link(name, "nic", "a", "b", LinkSpec(capacity, latency, latency * one_of(0.0, 0.5), queue))

    def amount() -> FloatArray:
        drawn = [one_of(0.0, 0.5, 1.0) if random.random() < 0.4 else random.uniform(0.05, 2.0) for _ in range(kinds)]
        return scale * np.array(drawn)

    def earlier(op: int) -> list[Dependency]:
        count = int(random.integers(3)) if op else 0
        return [(int(random.integers(op)), int(one_of(0, 0, 0, 1, 2))) for _ in range(count)]

    links = tuple(link(f"wire{index}") for index in range(random.integers(1, 6)))
    kinds = int(one_of(1, 1, 1, 2, 3))
    builder = Builder("coupled", Cluster((0,), links), kinds)
    count, streams = int(random.integers(2, 25)), int(random.integers(1, 9))
    first: dict[str, int] = {}
    for op in range(count):
        stream, after = f"s{random.integers(streams)}", earlier(op)
        if random.random() < 0.3:
            made = builder.compute(OpKind.LOSS, 0, amount(), after=after, stream=stream)
        else:
            route = random.permutation(len(links))[: random.integers(1, 4)].tolist()
            made = builder.flow(
                OpKind.WIRE,
                0,
                amount(),
                tuple(route),
                stream=stream,
                after=after,
                cap=0.7 if random.random() < 0.2 else None,
                connection=f"c{random.integers(2)}" if random.random() < 0.5 else None,
            )
        first.setdefault(stream, made)
    waits = [(op, int(one_of(0, 0, 1, 2, 3))) for op in range(count)]
    last = builder.compute(OpKind.STEP, 0, 0.125 * scale, after=waits)
    for op in first.values():
        builder.wait_for(op, (last, int(random.integers(1, 4))))
    return builder.close([last])
