"""One worker from start to end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from gcnsim.units import format_seconds
from runtime.data import DatasetCache
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place, Watch, connect
from runtime.options import Options
from runtime.record import breakdown
from runtime.train.agreement import agree
from runtime.train.checkpoint.start import with_saved_kernels
from runtime.train.finalize import FinalResults
from runtime.train.plan import Task, naming
from runtime.train.session import Session
from runtime.train.setup import device_of, prepare

ROUNDS = 8
"""Exchanges by which a worker learns the clock of worker 0."""


def work(tasks: Sequence[Task], place: Place) -> int:
    """Train all `tasks` at `place`, in order, until a worker is asked to stop; the exit code.

    Whatever goes wrong is raised, and names the entry where the task is one of a plan.
    """
    datasets = DatasetCache()
    with Watch(place) as watch:
        for task in tasks:
            with naming(task.name):
                if task is tasks[0] and place.world > 1:
                    connect(place, task.options.timeout, "gloo")
                    agree([each.options for each in tasks], place)
                stopped = train(task, place, watch, datasets)
            if stopped:
                break
    return 0


def train(task: Task, place: Place, watch: Watch, datasets: DatasetCache) -> bool:
    """Train one run, the process group being joined; whether a worker was asked to stop."""
    started = time.perf_counter()
    options = with_saved_kernels(replace(task.options, workers=place.world))
    device = device_of(options, place)
    worker = prepare(options, place, device, datasets)
    session = Session(worker, watch)
    origin = torch.tensor([time.perf_counter_ns()])
    offset = 0
    if worker.control is not None:
        offset = clock_offset(worker.control, place.world)
        worker.control.broadcast(origin)
    session.run()
    results = FinalResults(session, int(origin), offset)
    worker.method.close()
    worker.trainer.close()
    if place.rank == 0:
        summary = results.summary()
        try:
            _tell(results.final(summary, started), options, str(session.out) if task.name is not None else None)
        finally:
            results.write(summary)
    if worker.control is not None:
        worker.control.barrier()
    worker.channels.close()
    return session.stopped


def _tell(final: dict[str, Any], options: Options, out: str | None) -> None:
    """The final figures on standard output; out: the folder of a plan's entry, which then takes one line."""
    if options.json:
        text = json.dumps(final if out is None else {"out": out, **final}, allow_nan=False)
    elif out is None:
        text = breakdown(final)
    else:
        each = "-" if final["iteration_s"] is None else format_seconds(final["iteration_s"])
        text = f"{out}: {final['iterations']} iterations of {each}, {final['seconds']:.1f} s in all"
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def clock_offset(
    channel: Channel, world: int, now: Callable[[], int] = time.perf_counter_ns, boot: bytes | None = None
) -> int:
    """Worker 0's clock minus this worker's, in ns; off by half a round trip at most.

    Each worker in turn asks worker 0 for its time, ROUNDS times, and believes the quickest answer. 0 where both run on
    one machine, whose processes share the clock. now: this worker's clock; boot: what tells its machine from others.
    """
    boots = channel.gather_arrays(_boot() if boot is None else boot)
    best, offset = None, 0
    for asking in range(1, world):
        for _ in range(ROUNDS):
            stamp = torch.zeros(1, dtype=torch.int64)
            if channel.rank == 0:
                channel.exchange([Message(asking, stamp, False)])
                channel.exchange([Message(asking, torch.tensor([now()]), True)])
            elif channel.rank == asking:
                sent = now()
                channel.exchange([Message(0, stamp, True)])
                channel.exchange([Message(0, stamp, False)])
                took = now() - sent
                if best is None or took < best:
                    best, offset = took, int(stamp) - (sent + took // 2)
    return 0 if boots[channel.rank] == boots[0] else offset


def _boot() -> bytes:
    """What tells this machine from others: the number of its last start."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b"?"
