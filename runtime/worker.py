"""One worker from start to end."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace

import torch

from runtime.ending import Ending
from runtime.exchange import Lane
from runtime.launch import Place, Watch, connect
from runtime.options import Options
from runtime.record import breakdown
from runtime.session import Session
from runtime.setup import device_of, prepare


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
            offset = clock_offset(ready.control)
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


def clock_offset(lane: Lane) -> int:
    """Worker 0's clock minus this worker's, in ns: half a round trip from the quickest of some exchanges.

    0 where both run on one machine, whose processes share the clock.
    """
    boots = lane.gather_arrays(_boot())
    best, offset = None, 0
    for _ in range(8):
        sent = time.perf_counter_ns()
        theirs = [int(found) for found in lane.gather(torch.tensor([time.perf_counter_ns()]))]
        took = time.perf_counter_ns() - sent
        if best is None or took < best:
            best, offset = took, theirs[0] - (sent + took // 2)
    return 0 if boots[lane.rank] == boots[0] else offset


def _boot() -> bytes:
    """What tells this machine from others: the number of its last start."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b"?"
