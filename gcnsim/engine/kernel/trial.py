"""`python -m gcnsim.engine.kernel.trial FILE`: test the kernel in FILE against the reference engine."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.engine.kernel.driver import simulate_by
from gcnsim.engine.kernel.store import LoadedKernel, read
from gcnsim.engine.reference import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import OpKind

SERVERS = 7
ITERATIONS = 6


def sample() -> Schedule:
    """A schedule with all features of the kernel: a matrix of pairs, caps, queues, connections, threads, delays,
    buffers, lags.
    """
    wires = [
        Link(f"s{at}.{way}", "nic", "a", "b", LinkSpec(1e9 + 1e7 * at, 2e-5, 1e-5))
        for way in ("tx", "rx")
        for at in range(SERVERS)
    ]
    queued = Link("queue", "nic", "a", "b", LinkSpec(3e8, 1e-5, 2e-6, 4e5))
    cores = Link("cpu", "cpu", "a", "b", LinkSpec(1.9, cores=2, slice_s=1e-3, wake_s=2e-4))
    builder = Builder("trial", Cluster((0,), (*wires, queued, cores)), 3)
    every: list[int] = []
    kind = OpKind.WIRE
    for index, (one, other) in enumerate(permutations(range(SERVERS), 2)):
        route = (one, SERVERS + other)
        every.append(builder.flow(kind, 0, 1e5 * (1 + index % 11), route, stream=f"{one}>{other}", after=every[-1:]
                                  if index % 5 == 0 else ()))  # fmt: skip
    for index in range(4):
        work = [1e5 * (1 + index), 0.0, 7e5]
        every.append(builder.flow(kind, 0, _row(work), (2 * SERVERS,), stream=f"q{index}", connection=f"c{index % 2}"))
    every.append(builder.flow(kind, 0, 2e6, (2 * SERVERS,), stream="capped", cap=2e8, after=every[3:5]))
    for index in range(5):
        task = builder.flow(OpKind.LOSS, 0, 1.3e-3 * (1 + index), (2 * SERVERS + 1,), stream=f"t{index}", cap=1.0,
                            thread=f"t{index % 4}")  # fmt: skip
        every.append(task)
    reader = builder.compute(OpKind.LOSS, 0, 1e-3, after=[(every[0], 2), every[7]])
    builder.reuse(every[0], reader)
    return builder.close([builder.compute(OpKind.STEP, 0, _row([1e-3, 2e-3, 0.0]), after=every[1:])])


def _row(values: list[float]) -> FloatArray:
    return np.array(values)


def main(file: str) -> int:
    """Test the kernel in `file` and return the exit code."""
    schedule = sample()
    run = simulate_by(LoadedKernel(*read(Path(file))), schedule, ITERATIONS)
    right = simulate(schedule, ITERATIONS)
    same = (run.starts == right.starts).all() and (run.ends == right.ends).all()
    if not same:
        sys.stderr.write("its results differ from those of the reference engine\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
