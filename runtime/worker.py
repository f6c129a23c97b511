"""One worker from start to end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from runtime.ending import Ending
from runtime.exchange import Lane
from runtime.exchange.lanes import Parcel
from runtime.launch import Place, Watch, connect
from runtime.options import Options
from runtime.record import breakdown
from runtime.session import Session
from runtime.setup import device_of, prepare

ROUNDS = 8
"""Exchanges by which a worker learns the clock of worker 0."""


def work(options: Options, place: Place) -> int:
    """Train at `place`; the exit code. Whatever goes wrong is raised."""
    started = time.perf_counter()
    options = replace(options, workers=place.world)
    with Watch(place) as watch:
        device = device_of(options, place)
        if place.world > 1:
            connect(place, options.timeout, "gloo")
        ready = prepare(options, place, device)
        session = Session(ready, watch)
        origin = torch.tensor([time.perf_counter_ns()])
        offset = 0
        if ready.control is not None:
            offset = clock_offset(ready.control, place.world)
            ready.control.broadcast(origin)
        session.run()
        ending = Ending(session, int(origin), offset)
        ready.method.close()
        if place.rank == 0:
            summary = ending.summary()
            ending.write(summary)
            final = ending.final(summary, started)
            sys.stdout.write((json.dumps(final, allow_nan=False) if options.json else breakdown(final)) + "\n")
            sys.stdout.flush()
        if ready.control is not None:
            ready.control.barrier()
    return 0


def clock_offset(
    lane: Lane, world: int, now: Callable[[], int] = time.perf_counter_ns, boot: bytes | None = None
) -> int:
    """Worker 0's clock minus this worker's, in ns; off by half a round trip at most.

    Each worker in turn asks worker 0 for its time, ROUNDS times, and believes the quickest answer. 0 where both run on
    one machine, whose processes share the clock. now: this worker's clock; boot: what tells its machine from others.
    """
    boots = lane.gather_arrays(_boot() if boot is None else boot)
    best, offset = None, 0
    for asking in range(1, world):
        for _ in range(ROUNDS):
            stamp = torch.zeros(1, dtype=torch.int64)
            if lane.rank == 0:
                lane.exchange([Parcel(asking, stamp, False)])
                lane.exchange([Parcel(asking, torch.tensor([now()]), True)])
            elif lane.rank == asking:
                sent = now()
                lane.exchange([Parcel(0, stamp, True)])
                lane.exchange([Parcel(0, stamp, False)])
                took = now() - sent
                if best is None or took < best:
                    best, offset = took, int(stamp) - (sent + took // 2)
    return 0 if boots[lane.rank] == boots[0] else offset


def _boot() -> bytes:
    """What tells this machine from others: the number of its last start."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b"?"
