"""One side of a comparison: an iteration in parts, the traffic of its links, the activity of its workers.

A recorded run is described by its spans, in the same words as a simulated one. A worker's iteration ends with its
optimizer step and lasts as long as iterations.csv states, so every command gives the same time for a run. Output that
worker 0 writes between two iterations is not included.

An all-reduce counts from the arrival of the last worker: before that, the others wait for a peer. A message counts from
the time its sender offers it. Bytes are those of rows and gradients, because the record's spans have no others.

Traces of the PyTorch profiler contain neither the training method nor the traffic of links. Of their setting only the
GPUs are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import BoolArray, Rank, Seconds
from gcnsim.core.units import format_gbps
from gcnsim.evidence.setting_facts import facts_of, facts_of_profile, facts_of_run
from gcnsim.hardware import GENERIC_LINK, link
from gcnsim.records.profiled_run import ProfiledRun, read_profiled_run
from gcnsim.records.recorded_run import COMPUTE, TIMELINE, RecordedRun, evaluations, interval_of_mean, read_recorded_run
from gcnsim.records.trace_events import Progress
from gcnsim.records.trace_names import Names
from gcnsim.results import Row, SimulationReport
from gcnsim.timeline import PS_PER_S, Intervals, Phase, Timeline
from gcnsim.timeline.breakdown import (
    RECORDED,
    RECORDED_SAMPLING_ITSELF,
    Parts,
    Spans,
    breakdown,
    exposed_s,
    iteration_s,
    other_s,
)

WHOLE: Final = ("compute_s", "exposed_comm_s", "exposed_other_s")
"""The three parts that every source has; some sources also split the second and the third."""


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The load of a link in an iteration. seconds: the time at its capacity; None if the capacity is unknown."""

    nbytes: float
    seconds: Seconds | None


@dataclass(frozen=True, slots=True)
class IterationReport:
    """One iteration. kind: `scenario`, `result`, `what-if`, or measured: `run`, `trace` (of a profiler).

    whole: seconds of the slowest worker by the names of WHOLE, which add up to iteration_s. beneath: seconds of
    overlapping work. workers: by rank; empty if only the slowest one's three parts are known. low_s, high_s: the 90 %
    interval of a prediction. per_epoch: iterations in an epoch. facts: the setting, by field. notes: remarks for
    readers. spread_s: for a measured side, the standard deviation of its iterations. learning: of a run, (iterations
    done, seconds until then, validation accuracy) at each evaluation.
    """

    label: str
    kind: str
    setting: str
    iteration_s: Seconds
    whole: Mapping[str, Seconds]
    beneath: Mapping[str, Seconds]
    links: Mapping[str, LinkLoad]
    workers: tuple[Parts, ...] = ()
    slowest: Rank | None = None
    low_s: Seconds | None = None
    high_s: Seconds | None = None
    per_epoch: int = 1
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    spread_s: Seconds | None = None
    learning: tuple[tuple[int, Seconds, float], ...] = ()

    @property
    def parts(self) -> Parts | None:
        """The slowest worker's iteration in detail, if known."""
        return self.workers[self.slowest] if self.workers and self.slowest is not None else None

    def epoch(self) -> IterationReport:
        """The same side with seconds and bytes per epoch."""
        times = self.per_epoch
        seconds = [item.name for item in fields(Parts) if item.name != "worker"]
        return replace(
            self,
            iteration_s=times * self.iteration_s,
            whole={name: times * value for name, value in self.whole.items()},
            beneath={name: times * value for name, value in self.beneath.items()},
            links={
                name: LinkLoad(times * link.nbytes, None if link.seconds is None else times * link.seconds)
                for name, link in self.links.items()
            },
            workers=tuple(
                replace(worker, **{name: times * getattr(worker, name) for name in seconds}) for worker in self.workers
            ),
            low_s=None if self.low_s is None else times * self.low_s,
            high_s=None if self.high_s is None else times * self.high_s,
            spread_s=None if self.spread_s is None else times**0.5 * self.spread_s,
        )


def report_of_result(report: SimulationReport, label: str, kind: str = "result") -> IterationReport:
    """The side of one simulated scenario."""
    seconds = report.result.iteration_s
    links = {name: LinkLoad(value.bytes, value.utilization * seconds) for name, value in report.links.items()}
    side = replace(report_of_row(report.result, label, kind, links), facts=facts_of(report.scenario))
    if not report.workers or report.slowest is None:
        return side
    return replace(side, workers=report.workers, slowest=report.slowest)


def report_of_row(
    row: Row,
    label: str,
    kind: str = "what-if",
    links: Mapping[str, LinkLoad] | None = None,
) -> IterationReport:
    """The side of one row of a what-if."""
    # Rounding errors of a file go to the part that is defined as the rest.
    rest = row.iteration_s - row.compute_s - row.exposed_comm_s
    parts = (float(row.compute_s), float(row.exposed_comm_s), rest)
    return IterationReport(
        label=label,
        kind=kind,
        setting=f"{knobs_of(row)} on {plural(row.gpus, 'GPU')} at {format_gbps(row.bandwidth_bytes_per_s)}",
        iteration_s=float(row.iteration_s),
        whole=dict(zip(WHOLE, parts, strict=True)),
        beneath={"hidden_comm_s": float(row.hidden_comm_s), "sampling_s": float(row.sampling_s)},
        links=links or {},
        low_s=row.iteration_s_low,
        high_s=row.iteration_s_high,
        per_epoch=int(row.iterations_per_epoch),
    )


def knobs_of(row: Row) -> str:
    """The method and its significant knobs, in words."""
    words = [row.method]
    if row.tau:
        words.append(f"tau {row.tau}")
    if row.epsilon < 1:
        words.append(f"epsilon {row.epsilon:g}")
    if row.rate < 1:
        words.append(f"rate {row.rate:g}")
    if row.cache_fraction:
        words.append(f"cache {100 * row.cache_fraction:g}%")
    return ", ".join(words)


def worker_dicts(workers: Sequence[Parts]) -> list[dict[str, Any]]:
    """Workers as plain data."""
    return [asdict(worker) for worker in workers]


def report_of_run(path: str | Path, label: str) -> IterationReport:
    """The side of the run in the folder `path`. Raises FileError, naming the file and what is wrong."""
    run = read_recorded_run(path)
    counts = _RunCounts(run)
    workers = tuple(counts.worker(rank) for rank in range(run.workers))
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
        beneath={"hidden_comm_s": own.hidden_comm_s, "sampling_s": counts.sampling_s(run.slowest)},
        links=counts.links(),
        workers=workers,
        slowest=run.slowest,
        facts=facts_of_run(run),
        learning=() if run.options.get("resume") else evaluations(run.path),
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
    """`parts` adjusted to add up to `whole`. Workers end a step some microseconds apart, and wait for each other
    meanwhile.
    """
    left = whole - iteration_s(parts)
    name = "waiting_s" if parts.waiting_s + left >= 0 else "rest_s"
    return replace(parts, **{name: max(0.0, getattr(parts, name) + left)})


class _RunCounts:
    """The spans of a run's measured iterations."""

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        self.timeline: Timeline = run.timeline()
        self.spans = Spans(self.timeline, COMPUTE)
        self.count = run.iterations.size
        """The measured iterations are the last ones."""
        self.measured: BoolArray = self.timeline.iteration > int(self.timeline.iteration.max(initial=0)) - self.count

    def sampling_s(self, rank: Rank) -> float:
        """Seconds per iteration in which a worker samples."""
        sampling = self.spans.covers(self.spans.of(rank) & self.spans.phase(Phase.SAMPLING))
        return self._seconds(sampling.intersection(self.window(rank)).length)

    def window(self, rank: Rank) -> Intervals:
        """The measured iterations of a worker, each up to the end of its step."""
        spans = self.timeline
        mine = np.flatnonzero(self.spans.main & self.spans.of(rank))
        last = int(spans.iteration.max(initial=0))
        starts, ends = [], []
        for t in range(last - self.count + 1, last + 1):
            own = mine[spans.iteration[mine] == t]
            if not own.size:
                raise FileError(f"{self.run.path / TIMELINE}: has no span of worker {rank} in iteration {t}")
            before = mine[spans.iteration[mine] == t - 1]
            # The step is the training thread's last span of an iteration.
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
        parts = breakdown(self.spans, rank, self.window(rank), reading).parts(rank, self._seconds)
        return _adding_up(parts, self.run.iteration_s)

    def links(self) -> dict[str, LinkLoad]:
        """Bytes of rows and gradients through each server's NIC, or between the workers of a server."""
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
        # The payload's share of the raw bandwidth, as in the simulator.
        payload = link(GENERIC_LINK).efficiency.value
        bandwidth = None if place is None else float(place["bandwidth"]) * payload
        return {
            name: LinkLoad(nbytes, nbytes / bandwidth if bandwidth and name.startswith("nic") else None)
            for name, nbytes in sorted(carried.items())
            if nbytes
        }


def report_of_profile(
    path: str | Path, label: str, names: str | Path | Names | None = None, progress: Progress = lambda _: None
) -> IterationReport:
    """The side of the trace, or the folder of traces, at `path`; names: the meaning of the names in them (a YAML file).

    Raises FileError, naming the file and what is wrong.
    """
    run = read_profiled_run(path, names, progress)
    own = run.parts[run.slowest]
    low, high = interval_of_mean(run.iterations)
    return IterationReport(
        label=label,
        kind="trace",
        setting=_profiled_setting(run),
        iteration_s=run.iteration_s,
        whole={
            "compute_s": own.compute_s,
            "exposed_comm_s": exposed_s(own),
            "exposed_other_s": other_s(own),
        },
        beneath={"hidden_comm_s": own.hidden_comm_s, "sampling_s": _sampling_s(run)},
        links={},
        workers=run.parts,
        slowest=run.slowest,
        low_s=low,
        high_s=high,
        spread_s=run.spread_s,
        facts=facts_of_profile(run.workers, run.devices, run.path),
        notes=run.notes,
    )


def _profiled_setting(run: ProfiledRun) -> str:
    workers = plural(run.workers, "GPU" if any(run.devices) else "worker")
    return f"{workers}, {plural(run.iterations.size, 'iteration')}, measured by the PyTorch profiler"


def _sampling_s(run: ProfiledRun) -> float:
    """Seconds per iteration in which the slowest worker samples, exposed or not."""
    spans = run.timeline
    mask = (spans.worker == run.slowest) & spans.of_phase(Phase.SAMPLING)
    sampling = Intervals.of(spans.start_ps[mask], spans.end_ps[mask])
    return sampling.length / (run.iterations.size * PS_PER_S)
