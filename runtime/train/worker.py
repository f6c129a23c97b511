"""Run one worker from start to end.

At the end of a run the workers' results are gathered into one object, which worker 0 writes and reports.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gcnsim.core.ids import AnyArray
from gcnsim.core.units import format_seconds
from gcnsim.records.recorded_run import TRACE
from gcnsim.timeline import Timeline
from runtime.data import DatasetCache
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place, Watch, connect
from runtime.options import Options
from runtime.record import (
    IterationRow,
    RunFolder,
    Summary,
    breakdown,
    from_arrays,
    merge,
    peak_memory,
    summarise,
    to_arrays,
)
from runtime.train.checkpoint import with_saved_kernels
from runtime.train.memory_usage import COMPONENTS
from runtime.train.preflight import agree
from runtime.train.run_state import KINDS, Outcome, run_record
from runtime.train.session import Session
from runtime.train.setup import device_of, prepare
from runtime.train.tasks import Task, naming

ROUNDS = 8
"""Exchanges by which a worker learns the clock of worker 0."""


def work(tasks: Sequence[Task], place: Place) -> int:
    """Train all `tasks` as this worker, in order, until a worker is asked to stop; returns the exit code.

    Every error is raised, and names the plan entry if there is one.
    """
    datasets = DatasetCache()
    with Watch(place) as watch:
        for task in tasks:
            with naming(task.name):
                if task is tasks[0] and place.world > 1:
                    connect(place, task.options.timeout, "gloo")
                    agree([item.options for item in tasks], place)
                stopped = train(task, place, watch, datasets)
            if stopped:
                break
    return 0


def train(task: Task, place: Place, watch: Watch, datasets: DatasetCache) -> bool:
    """Train one run in the joined process group; returns whether a worker was asked to stop."""
    started = time.perf_counter()
    options = with_saved_kernels(replace(task.options, workers=place.world))
    device = device_of(options, place)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
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
            _print_results(
                results.final(summary, started), options, str(session.out) if task.name is not None else None
            )
        finally:
            results.write(summary)
    if worker.control is not None:
        worker.control.barrier()
    worker.channels.close()
    return session.stopped


def _print_results(final: dict[str, Any], options: Options, out: str | None) -> None:
    """Print the final figures on standard output; out: the folder of a plan's entry, which takes one line."""
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
    """Worker 0's clock minus this worker's, in ns; the error is at most half a round trip.

    Each worker in turn asks worker 0 for its time, ROUNDS times, and uses the quickest answer. 0 if both run on one
    machine, whose processes share the clock. now: this worker's clock; boot: identifies its machine.
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
    """The identity of this machine: the id of its last boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b"?"


class FinalResults:
    """The gathered results; every rank must create one at the same time."""

    def __init__(self, session: Session, origin_ns: int, offset_ns: int) -> None:
        """Gather spans, bytes, memory, norms and accesses of all workers. origin_ns: start of the run."""
        worker, self._session = session.worker, session
        self._worker = worker
        self._timeline: Timeline | None = None
        if session.options.record:
            arrays = to_arrays(worker.recorder.timeline(origin_ns, offset_ns))
            columns = {name: worker.by_rank(array) for name, array in arrays.items()}
            self._timeline = merge(
                [from_arrays({name: found[n] for name, found in columns.items()}) for n in range(worker.place.world)]
            )
        self._bytes = np.stack([table.reshape(-1, len(KINDS)) for table in worker.by_rank(session.sent())])
        memory = peak_memory(worker.device.type == "cuda")
        pair = np.array([memory["host_bytes"] or 0, memory["device_bytes"] or -1], np.int64)
        self._memory = [found.tolist() for found in worker.by_rank(pair)]
        counted = session.memory.report(worker)
        row = np.array([-1] * len(COMPONENTS) if counted is None else [counted[name] for name in COMPONENTS], np.int64)
        self._tensors = [found.tolist() for found in worker.by_rank(row)]
        self._hits = [found.tolist() for found in worker.by_rank(np.array(session.drawn, np.int64))]
        session.keep_norms()
        self._trace: list[dict[str, AnyArray]] | None = None
        self._norms: AnyArray | None = None
        if session.trace is not None:
            self._trace = session.trace.gathered()
            measured = worker.method.norms()
            self._norms = None if measured is None else worker.whole(measured[1])

    def summary(self) -> Summary | None:
        """The parts of this process's iterations; None without a record or without any iteration."""
        rows = [row for row in self._session.rows if row.iteration >= self._session.begun]
        if self._timeline is None or not rows:
            return None
        return summarise(
            self._timeline,
            [row.seconds for row in rows],
            workers=self._worker.place.world,
            warmup=self._session.options.warmup,
            first=self._session.begun,
            waits_labelled=self._worker.evaluator is None,
        )

    def write(self, summary: Summary | None) -> None:
        """Write the run folder, then the trace even if the first failed; only on worker 0."""
        session = self._session
        try:
            if session.folder is not None:
                self._write_folder(session.folder, summary)
        finally:
            self._write_trace()

    def _write_folder(self, folder: RunFolder, summary: Summary | None) -> None:
        session = self._session
        if self._timeline is not None:
            about = {"method": session.options.method, "seed": str(session.options.seed), "measured": "yes"}
            folder.write_timeline(self._timeline, about)
        folder.write_iterations(self._rows())
        outcome = Outcome(self._bytes, tuple(self._memory), self._hit_rate(), tuple(session.normed), self._held())
        folder.write_record(run_record(session, outcome, summary))

    def _write_trace(self) -> None:
        """Write the access trace to its requested place, otherwise next to the record of a run with iterations."""
        session, folder = self._session, self._session.folder
        if session.trace is None or self._trace is None:
            return
        path = session.options.save_trace
        if path is None and folder is not None and session.done:
            path = str(folder.path / TRACE)
        if path is not None:
            session.trace.write(path, self._trace, self._norms)

    def final(self, summary: Summary | None, started: float) -> dict[str, Any]:
        """The final object (docs/training.md). started: the start of the run, by `time.perf_counter`."""
        session, rows = self._session, self._session.rows
        shares = None if summary is None else summary.shares
        return {
            "method": session.options.method,
            "workers": self._worker.place.world,
            "iterations": session.done,
            "test_accuracy": session.best.test,
            "val_accuracy": session.best.val,
            "final_loss": rows[-1].loss if rows else None,
            "iteration_s": self._iteration_s() if summary is None else summary.iteration_s,
            "compute_s": shares and shares.compute_s,
            "wait_s": shares and shares.wait_s,
            "transfer_s": shares and shares.transfer_s,
            "sampling_s": shares and shares.sampling_s,
            "reduce_s": shares and shares.reduce_s,
            "optimizer_s": shares and shares.optimizer_s,
            "pack_s": shares and shares.pack_s + shares.unpack_s,
            "bytes_sent": int(self._bytes.sum()),
            "cache_hit_rate": self._hit_rate(),
            "evaluation_s": session.evaluation_s,
            "seconds": time.perf_counter() - started,
        }

    def _iteration_s(self) -> float | None:
        """Mean seconds of the iterations after the warm-up, as in a summary; None without any."""
        rows = self._session.rows
        seconds = [row.seconds for row in rows[min(self._session.options.warmup, len(rows) - 1) :]]
        return float(np.mean(seconds)) if rows else None

    def _held(self) -> tuple[dict[str, int], ...] | None:
        """Bytes of every worker's tensors by component; None if one could not count them."""
        if any(-1 in row for row in self._tensors):
            return None
        return tuple(dict(zip(COMPONENTS, row, strict=True)) for row in self._tensors)

    def _rows(self) -> list[IterationRow]:
        """The iterations.

        The last one includes traffic that finished after it, so that the bytes add up to the run's.
        """
        rows = list(self._session.rows)
        if rows:
            rest = int(self._bytes.sum()) - sum(row.bytes_sent for row in rows)
            rows[-1] = replace(rows[-1], bytes_sent=rows[-1].bytes_sent + rest)
        return rows

    def _hit_rate(self) -> float | None:
        lookups = sum(int(rows) for _, rows in self._hits)
        if not self._session.cached or not lookups:
            return None
        return sum(int(hits) for hits, _ in self._hits) / lookups
