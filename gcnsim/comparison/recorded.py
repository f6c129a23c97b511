"""A recorded run as a side: the parts of its iterations by its spans, by the same words as a simulated one.

A worker's iteration ends with its step and lasts as long as iterations.csv says, so that every command gives the same
time for a run. What worker 0 writes between two iterations is no part of it.

An all-reduce counts from when the last worker is there: before that, the others wait for a peer. A message counts from
when its sender offers it. Bytes are those of rows and gradients: the record's spans have no others.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gcnsim.breakdown import (
    RECORDED,
    RECORDED_SAMPLING_ITSELF,
    Parts,
    Spans,
    breakdown,
    exposed_s,
    iteration_s,
    other_s,
)
from gcnsim.comparison.iteration_report import IterationReport, Link
from gcnsim.errors import FileError
from gcnsim.evidence.facts import facts_of_run
from gcnsim.hardware import GENERIC_LINK, link
from gcnsim.ids import BoolArray, Rank, Seconds
from gcnsim.runs.recorded_run import COMPUTE, TIMELINE, RecordedRun, read_recorded_run
from gcnsim.timeline import PS_PER_S, Intervals, Phase, Timeline


def report_of_run(path: str | Path, label: str) -> IterationReport:
    """The side of the run in the folder `path`. Raises FileError, naming the file and what is wrong."""
    run = read_recorded_run(path)
    told = _Told(run)
    workers = tuple(told.worker(rank) for rank in range(run.workers))
    own = workers[run.slowest]
    return IterationReport(
        label=label,
        kind="run",
        setting=_setting(run),
        iteration_s=run.iteration_s,
        spread_s=run.spread_s,
        whole={
            "compute_s": own.compute_s,
            "exposed_comm_s": exposed_s(own),
            "exposed_other_s": other_s(own),
        },
        beneath={"hidden_comm_s": own.hidden_comm_s, "sampling_s": told.sampling_s(run.slowest)},
        links=told.links(),
        workers=workers,
        slowest=run.slowest,
        facts=facts_of_run(run),
    )


def _setting(run: RecordedRun) -> str:
    shown = ("tau", "epsilon", "rate", "cache")
    knobs = [f"{name} {value}" for name, value in run.options["knobs"].items() if name in shown]
    where = f"{run.workers} workers on one machine"
    if run.place is not None:
        place = run.place
        where = f"{place['hosts']} x {place['workers_per_host']} workers at {float(place['bandwidth']) * 8e-6:g}Mbps"
    own = [] if run.options["overlap"] == "central" else ["no overlap"]
    return f"{', '.join([str(run.options['method']), *knobs, *own])}, measured on {where}"


def _adding_up(parts: Parts, whole: Seconds) -> Parts:
    """`parts` that add up to `whole`. Workers end a step some microseconds apart, and wait for one another so long."""
    left = whole - iteration_s(parts)
    name = "waiting_s" if parts.waiting_s + left >= 0 else "rest_s"
    return replace(parts, **{name: max(0.0, getattr(parts, name) + left)})


class _Told:
    """The spans of a run's measured iterations."""

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        self.timeline: Timeline = run.timeline()
        self.spans = Spans(self.timeline, COMPUTE)
        self.count = run.iterations.size
        """The measured iterations are the last of all."""
        self.measured: BoolArray = self.timeline.iteration > int(self.timeline.iteration.max(initial=0)) - self.count

    def sampling_s(self, rank: Rank) -> float:
        """Seconds per iteration in which a worker samples."""
        sampling = self.spans.covers(self.spans.of(rank) & self.spans.phase(Phase.SAMPLING))
        return self._seconds(sampling.intersection(self.window(rank)).length)

    def window(self, rank: Rank) -> Intervals:
        """The measured iterations of a worker, each up to the end of its own step."""
        spans = self.timeline
        mine = np.flatnonzero(self.spans.main & self.spans.of(rank))
        last = int(spans.iteration.max(initial=0))
        starts, ends = [], []
        for t in range(last - self.count + 1, last + 1):
            own = mine[spans.iteration[mine] == t]
            if not own.size:
                raise FileError(f"{self.run.path / TIMELINE}: has no span of worker {rank} in iteration {t}")
            before = mine[spans.iteration[mine] == t - 1]
            # The step is the last that the thread that trains does in an iteration.
            end = int(spans.end_ps[own].max())
            begin = end - round(self.run.iterations[t - last - 1] * PS_PER_S)
            starts.append(max(begin, int(spans.end_ps[before].max())) if before.size else begin)
            ends.append(end)
        return Intervals.of(np.array(starts, np.int64), np.array(ends, np.int64))

    def _seconds(self, length: int) -> Seconds:
        return length / (self.count * PS_PER_S)

    def worker(self, rank: Rank) -> Parts:
        """One worker's iteration."""
        reading = RECORDED_SAMPLING_ITSELF if self.run.samples_itself else RECORDED
        found = breakdown(self.spans, rank, self.window(rank), reading).parts(rank, self._seconds)
        return _adding_up(found, self.run.iteration_s)

    def links(self) -> dict[str, Link]:
        """Bytes of rows and gradients through each server's card, or between the workers of a server."""
        place, spans = self.run.place, self.timeline
        each = self.run.workers if place is None else int(place["workers_per_host"])
        carried: dict[str, float] = {}
        counted = self.spans.sent & self.measured
        rows = (spans.worker[counted], spans.peer[counted], spans.nbytes[counted])
        if not (spans.nbytes >= 0).all():
            raise FileError(f"{self.run.path / TIMELINE}: has a span of less than no bytes")
        for sender, receiver, nbytes in zip(*(column.tolist() for column in rows), strict=True):
            source, target = sender // each, receiver // each
            names = [f"memory{source}"] if source == target else [f"nic{source}.tx", f"nic{target}.rx"]
            for name in names:
                carried[name] = carried.get(name, 0.0) + nbytes / self.count
        # What payload gets of the raw bandwidth, as the simulator has it.
        payload = link(GENERIC_LINK).efficiency.value
        bandwidth = None if place is None else float(place["bandwidth"]) * payload
        return {
            name: Link(nbytes, nbytes / bandwidth if bandwidth and name.startswith("nic") else None)
            for name, nbytes in sorted(carried.items())
            if nbytes
        }
