"""Run folders as the simulator reads them: the training, the machine, and the iteration times.

The training runtime writes them (docs/files.md). This module does not need it, so a laptop can evaluate a folder that
was recorded on a cluster. Notes, one line each, state what to know before using results from recorded runs.
`read_measured` also reads what a profiler recorded.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import FloatArray, IntArray, Rank, Seconds
from gcnsim.core.json_files import canonical
from gcnsim.records.calibration import settings
from gcnsim.records.profiled_run import read_profiled_run
from gcnsim.records.run_files import (
    CLUSTER,
    ITERATIONS,
    RUN,
    Cluster,
    Shares,
    read_cluster,
    read_facts,
    read_iterations,
    read_rows,
)
from gcnsim.records.trace_events import is_profiler_trace
from gcnsim.timeline import Timeline
from gcnsim.timeline.breakdown import phases_of_means
from gcnsim.timeline.run_perfetto import MAIN, RunFacts
from gcnsim.timeline.span import read_spans

PS_PER_S: Final = 1e12
TIMELINE, TRACE = "timeline.parquet", "access.trace"

COMPUTE: Final = "compute"
"""The stream of a worker's kernels in recorded spans."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A finished run. iterations: seconds of each measured iteration. emulation: of the cluster, None on a real one.

    cluster: the real one, if it is known to have several servers. sha256: of the contents that identify the run's
    results, its run.json and its iterations, independent of file layout. inner, boundary: nodes of each worker.
    threads: CPU threads per worker.
    """

    path: Path
    workers: int
    options: Mapping[str, Any]
    widths: tuple[int, ...]
    graph: Mapping[str, str]
    partition: Mapping[str, str]
    inner: tuple[int, ...]
    boundary: tuple[int, ...]
    versions: Mapping[str, str]
    hardware: Mapping[str, Any]
    emulation: Mapping[str, Any] | None
    iterations: FloatArray
    slowest: Rank
    shares: Shares
    sha256: str
    threads: int = 1
    cluster: Cluster | None = None

    @property
    def place(self) -> Mapping[str, Any] | None:
        """The cluster, emulated or real: `hosts`, `workers_per_host`, `bandwidth`, `latency_s` and more.

        None: all workers on one machine.
        """
        if self.accelerator is not None:
            assert self.emulation is not None
            return {**self.emulation, "bandwidth": self.accelerator["bandwidth"]}
        return self.emulation if self.emulation is not None or self.cluster is None else self.cluster.facts()

    @property
    def accelerator(self) -> Mapping[str, Any] | None:
        """The emulated device; None if the workers computed. All times refer to that device, not to the waits."""
        return None if self.emulation is None else self.emulation.get("accelerator")

    @property
    def iteration_s(self) -> float:
        """Mean seconds of a measured iteration."""
        return float(self.iterations.mean())

    @property
    def spread_s(self) -> float:
        """Standard deviation of the measured iterations in seconds; 0 for a single one."""
        return float(self.iterations.std(ddof=1)) if self.iterations.size > 1 else 0.0

    @property
    def phases(self) -> dict[str, float]:
        """Seconds per iteration of the slowest worker by `gcnsim.timeline.breakdown.PHASES`; they add up to
        `iteration_s`."""
        return phases_of_means(self.shares, self.iteration_s, samples_itself=self.samples_itself)

    @property
    def samples_itself(self) -> bool:
        """Whether the training thread also samples, as with sampled boundary nodes; it then never waits for a sampler.

        Emulated workers record the reason of each wait.
        """
        return self.accelerator is not None or "rate" in self.options["knobs"]

    @property
    def settings(self) -> dict[str, float]:
        """The settings whose ranges a calibration stores, by `gcnsim.records.calibration`."""
        place = self.place or {"hosts": 1, "workers_per_host": self.workers}
        names = {"method": self.options["method"], "model": self.options["model"], "graph": self.graph["hash"]}
        return settings(names, place, self.widths, self.options["knobs"])

    @property
    def trace(self) -> Path:
        """The access trace in its folder; without one, the path where it was saved."""
        option = self.options.get("save_trace")
        inside = self.path / TRACE
        return inside if inside.is_file() or not option else Path(str(option))

    def timeline(self) -> Timeline:
        """All workers' spans. Raises FileError."""
        return read_spans(self.path / TIMELINE)

    def facts(self, spans: Timeline) -> RunFacts:
        """The end of each iteration on the last worker's main thread, and the first measured iteration, from its spans.

        Raises FileError if an iteration has no span of such a thread.
        """
        main = np.isin(spans.stream, [index for index, name in enumerate(spans.streams) if name in MAIN])
        iterations = spans.iteration[main]
        count = int(iterations.max(initial=-1)) + 1
        ends: IntArray = np.zeros(count, np.int64)
        np.maximum.at(ends, iterations, spans.end_ps[main])
        empty = np.flatnonzero(np.bincount(iterations, minlength=count) == 0)
        if empty.size or count < self.iterations.size:
            place = int(empty[0]) if empty.size else count
            raise FileError(f"{self.path / TIMELINE}: has no span of a training thread in iteration {place}")
        measured = np.rint(self.iterations * PS_PER_S).astype(np.int64)
        return RunFacts(np.maximum.accumulate(ends), count - measured.size, {}, lengths=measured)


def read_recorded_run(path: str | Path) -> RecordedRun:
    """The run in the folder `path`.

    Raises FileError, naming the file and what is wrong: no run, an interrupted one, one without a record of its spans.
    """
    folder = Path(path)
    raw = read_facts(folder)
    if not raw["finished"]:
        raise FileError(f"{folder / RUN}: the run was interrupted after {raw['iterations']} iterations; train it again")
    if raw["summary"] is None:
        raise FileError(f"{folder / RUN}: has no summary: the run was not recorded (--no-record)")
    summary, seconds = raw["summary"], read_iterations(folder, raw)
    slowest = int(summary["slowest"])
    worker = summary["workers"][slowest]
    cluster = read_cluster(folder / CLUSTER) if (folder / CLUSTER).is_file() else None
    if cluster is not None and cluster.workers != raw["workers"]:
        raise FileError(f"{folder / CLUSTER}: of {cluster.workers} workers, the run had {raw['workers']}")
    return RecordedRun(
        path=folder,
        workers=int(raw["workers"]),
        options=raw["options"],
        widths=_whole(raw["widths"]),
        graph=raw["graph"],
        partition=raw["partition"],
        inner=_whole(raw["inner"]),
        boundary=_whole(raw["boundary"]),
        versions=raw["versions"],
        hardware=raw["hardware"],
        emulation=raw.get("emulation"),
        iterations=seconds[min(int(summary["warmup"]), seconds.size - 1) :],
        slowest=slowest,
        shares=Shares(**worker),
        sha256=hashlib.sha256(canonical([raw, seconds.tolist()]).encode()).hexdigest(),
        threads=_threads(raw, cluster),
        cluster=cluster,
    )


def _threads(raw: Mapping[str, Any], cluster: Cluster | None) -> int:
    """The recorded number of threads; for an older run the requested one, otherwise runtime.train's default.

    That is a worker's share of the cores of its machine, if all workers are on one, or on the servers of `cluster`.
    """
    threads = raw.get("threads") or raw["options"].get("threads")
    beside = raw["workers"] if cluster is None else cluster.workers_per_host
    return int(threads) if isinstance(threads, int) else max(1, raw["hardware"]["cores"] // beside)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The accuracy of a run over time.

    points: (iterations done, share of correct validation nodes) at each evaluation. options: all training options;
    widths: of the rows before the first and after each layer.
    """

    path: Path
    options: Mapping[str, Any]
    workers: int
    widths: tuple[int, ...]
    graph: Mapping[str, str]
    points: tuple[tuple[int, float], ...]

    @property
    def best(self) -> float:
        """The highest accuracy reached."""
        return max(share for _, share in self.points)

    def first(self, accuracy: float) -> int | None:
        """Iterations done when `accuracy` was first seen; None if it never was."""
        return next((done for done, share in self.points if share >= accuracy), None)


def read_learning_curve(path: str | Path) -> LearningCurve:
    """The curve of the run in the folder `path`, finished or not. Raises FileError, naming the file."""
    folder = Path(path)
    raw = read_facts(folder)
    points = tuple((done, share) for done, _, share in evaluations(folder))
    if not points:
        raise FileError(f"{folder / ITERATIONS}: accuracy was never evaluated; train with --eval-every above 0")
    return LearningCurve(folder, raw["options"], raw["workers"], tuple(raw["widths"]), raw["graph"], points)


def evaluations(folder: Path) -> tuple[tuple[int, Seconds, float], ...]:
    """Of the run in `folder`, (iterations done, seconds of those in its file, share of correct validation nodes) at
    each evaluation. Raises FileError, naming the file."""
    points, seconds = [], 0.0
    for row in read_rows(folder):
        try:
            seconds += float(row["seconds"])
            if row["val_accuracy"]:
                points.append((int(row["iteration"]) + 1, seconds, _share(row["val_accuracy"])))
        except (KeyError, TypeError, ValueError):
            raise FileError(f"{folder / ITERATIONS}: has a row without iteration and accuracy") from None
    return tuple(points)


def _whole(counts: Sequence[float]) -> tuple[int, ...]:
    """`counts` from JSON, where 3.0 is a whole number."""
    return tuple(int(count) for count in counts)


def _share(text: str) -> float:
    """The share in `text`. Raises ValueError."""
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError
    return share


TIMED_BY: Final = ("gcnsim", "torch")
"""Programs whose versions change how long an iteration takes."""


def version_notes(run: RecordedRun, versions: Mapping[str, str], done: str) -> Iterator[str]:
    """Versions that differ from those used when something was `calibrated` or `measured`."""
    for name in TIMED_BY:
        if run.versions.get(name) != versions.get(name):
            yield f"{run.path}: {name} {run.versions.get(name)}, {done} with {versions.get(name)}"


def link_notes(run: RecordedRun) -> Iterator[str]:
    """A note on emulated links: a limiter in the exchange slows single workers, so flows share no link."""
    if run.emulation is not None and run.emulation["limiter"] == "exchange":
        yield f"{run.path}: its links were paced in the exchange (limiter exchange), which the simulator does not model"


def session_notes(run: RecordedRun) -> Iterator[str]:
    """A note on emulated workers in separate system sessions, as in older versions."""
    made = run.emulation
    if made is not None and run.workers > made["cores"] and not made.get("one_session"):
        yield (
            f"{run.path}: each of its {run.workers} workers on {made['cores']} cores had its own session. Linux "
            "divides cores among sessions first, so waits were longer than simulated"
        )


def quota_notes(run: RecordedRun) -> Iterator[str]:
    """A note on a container whose CPU quota was below the workers' threads, so that they were stopped at times."""
    quota = run.hardware.get("quota")
    beside = run.workers if run.cluster is None else run.cluster.workers_per_host
    if quota is not None and beside * run.threads > quota:
        yield (
            f"{run.path}: {beside} workers of {plural(run.threads, 'thread')} had the time of {quota:g} CPUs (a "
            "container's quota), so they were stopped part of the time: its times are not those of whole cores"
        )


def trace_notes(run: RecordedRun) -> Iterator[str]:
    """A note on a trace outside the run's folder."""
    if run.trace != run.path / TRACE:
        yield f"{run.path}: has no {TRACE} beside it; read from where it was saved, {run.trace}"


def first_repeat(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, RecordedRun] | None:
    """The first run that is listed twice, and its repeat; None if all differ."""
    seen: dict[str, RecordedRun] = {}
    for run in runs:
        if run.sha256 in seen:
            return seen[run.sha256], run
        seen[run.sha256] = run
    return None


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds per iteration of `iterations` measured ones.

    low_s, high_s: the 90 % interval of their mean (the value itself for a single one). spread_s: their standard
    deviation. error_s: the standard error of their mean, `spread_s / sqrt(iterations)` (both 0 for a single one).
    phases: of the slowest worker, by `gcnsim.timeline.breakdown.PHASES`. kind: `run` (of runtime.train) or `trace` (of
    the PyTorch profiler). notes: remarks for readers. devices: for a trace, the GPU of each worker; empty for a run.
    """

    path: Path
    kind: str
    workers: int
    iterations: int
    iteration_s: float
    low_s: float
    high_s: float
    spread_s: float
    error_s: float
    phases: Mapping[str, float]
    notes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def read_measured(path: str | Path) -> Measured:
    """The iterations of a run folder, or of a trace or folder of traces that the PyTorch profiler exported.

    Raises FileError, naming the file and what is wrong.
    """
    place = Path(path)
    if place.is_file() or is_profiler_trace(place):
        profiled = read_profiled_run(place)
        measured = _measured(place, "trace", profiled.workers, profiled.iterations, profiled.phases, profiled.notes)
        return replace(measured, devices=tuple(profiled.devices))
    run = read_recorded_run(place)
    return _measured(place, "run", run.workers, run.iterations, run.phases, ())


def _measured(
    path: Path, kind: str, workers: int, times: FloatArray, phases: Mapping[str, float], notes: tuple[str, ...]
) -> Measured:
    low, high = interval_of_mean(times)
    spread = float(times.std(ddof=1)) if times.size > 1 else 0.0
    error = spread / math.sqrt(times.size)
    return Measured(path, kind, workers, times.size, float(times.mean()), low, high, spread, error, phases, notes)


def interval_of_mean(times: FloatArray) -> tuple[float, float]:
    """The 90 % interval of the mean of independent `times`, by Student's t; the value twice for a single one.

    No mean of times is negative, so the interval starts at 0 or above.
    """
    from scipy.special import stdtrit

    mean, count = float(times.mean()), times.size
    if count < 2:
        return mean, mean
    half = float(stdtrit(count - 1, 0.95) * times.std(ddof=1) / np.sqrt(count))
    return max(mean - half, 0.0), mean + half
