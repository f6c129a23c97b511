"""Runs recorded by the PyTorch profiler: the trace files of all workers, as iterations, spans and parts.

Any program may have trained them. A folder has one file per rank, or a file has the GPUs of one process. Clocks of
files are not compared: a worker's time begins with its first measured iteration. If an all-reduce of all workers takes
one of them longer than the quickest, the difference was waiting for a peer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, FloatArray, IntArray, Rank, frozen
from gcnsim.records.profiled_worker import WorkerTrace, workers_of
from gcnsim.records.trace_events import NoTraceError, Progress, trace_files
from gcnsim.records.trace_file import read_trace_file
from gcnsim.records.trace_names import Names, read_names
from gcnsim.timeline import KIND_CODE, PS_PER_S, Intervals, OpKind, Timeline
from gcnsim.timeline.breakdown import PHASES, PROFILED, Parts, Spans, breakdown, exposed_s, other_s

PS_PER_US: Final = 1e6
LONGEST_US: Final = 1e12
"""The longest recording: eleven days, whose picoseconds fit an int64."""

FEWEST: Final = 3
"""With at least this many iterations the first is left out, because it includes the profiler's set-up."""

LISTED: Final = 5
"""The most file names in a note."""

UNEVEN: Final = 2.0
"""An iteration of more than this many medians is reported."""


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A profiled run. iterations: seconds of each measured one, of the slowest worker. steps: their numbers in the
    traces.

    slowest: the worker with most compute and exposed sampling. parts: of every worker's mean iteration. devices: per
    worker, its GPU; empty on a CPU. timeline: spans within the measured iterations, with `iteration` as an index in
    `steps`. notes: remarks for readers.
    """

    path: Path
    iterations: FloatArray
    steps: tuple[int, ...]
    slowest: Rank
    parts: tuple[Parts, ...]
    devices: tuple[str, ...]
    timeline: Timeline
    notes: tuple[str, ...]

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self.parts)

    @property
    def spread_s(self) -> float:
        """Standard deviation of the iterations in seconds; 0 for a single one."""
        return float(self.iterations.std(ddof=1)) if self.iterations.size > 1 else 0.0

    @property
    def iteration_s(self) -> float:
        """Mean seconds of a measured iteration."""
        return float(self.iterations.mean())

    @property
    def phases(self) -> dict[str, float]:
        """Seconds per iteration of the slowest worker by `gcnsim.timeline.breakdown.PHASES`; they add up to
        `iteration_s`."""
        own = self.parts[self.slowest]
        return dict(zip(PHASES, (own.compute_s, exposed_s(own), other_s(own)), strict=True))


def read_profiled_run(
    path: str | Path, names: str | Path | Names | None = None, progress: Progress = lambda _: None
) -> ProfiledRun:
    """The run in a trace of the PyTorch profiler, or in a folder of them, one per rank.

    names: patterns for the meaning of names, or a YAML file of them. Raises FileError, naming the file and the error:
    no trace, no iterations, two files of one rank, no iteration on all workers.
    """
    chosen = names if isinstance(names, Names) else Names() if names is None else read_names(names)
    place = Path(path)
    files, others = trace_files(place) if place.is_dir() else ([place], [])
    found, faults = _read(files, chosen, progress)
    if faults and not place.is_dir():
        raise next(iter(faults.values()))
    found, bare = _on_gpus(found)
    ranked: dict[int, _File] = {}
    for file in found:
        if file.rank in ranked:
            other = ranked[file.rank].path.name
            raise FileError(f"{file.path}: of rank {file.rank}, as {other}; allowed: one file for each rank")
        ranked[file.rank] = file
    world = max((file.world for file in found), default=0)
    empty = {name: fault for name, fault in faults.items() if fault.meant}
    if empty and len(ranked) < max(world, 1):
        raise next(iter(empty.values()))
    others += [name for name in faults if name not in empty]
    if not ranked:
        held = f" (found: {_listed(others)}, without traceEvents)" if others else ""
        raise FileError(f"{path}: has no trace (*.json, *.json.gz){held}; allowed: a folder with a file for each rank")
    left_out = {"no trace of the profiler": others, "without iterations": [*empty], "without a GPU": bare}
    notes = [f"{path}: not read, since {why}: {_listed(names)}" for why, names in left_out.items() if names]
    notes += [note for file in found for note in file.notes]
    if len(ranked) < world:
        notes.append(
            f"{path}: has traces of {len(ranked)} of {world} ranks: waits for the others are not distinguished"
        )
    return _run(place, [worker for rank in sorted(ranked) for worker in ranked[rank].workers], notes)


@dataclass(frozen=True, slots=True)
class _File:
    """A trace. rank: from the file, otherwise its index by name; world: the number of ranks in the file, 0: unknown."""

    path: Path
    rank: int
    sure: bool
    world: int
    workers: list[WorkerTrace]
    notes: tuple[str, ...]


def _read(files: Sequence[Path], names: Names, progress: Progress) -> tuple[list[_File], dict[str, NoTraceError]]:
    """The traces among the files; and by name, the errors of the others. Raises FileError for damaged ones."""
    found: list[_File] = []
    faults: dict[str, NoTraceError] = {}
    for number, file in enumerate(files):
        try:
            read = read_trace_file(file, progress)
            workers = workers_of(read, names)
        except NoTraceError as error:
            faults[file.name] = error
            continue
        sure, rank = read.rank is not None, number if read.rank is None else read.rank
        found.append(_File(file, rank, sure, read.world or 0, workers, read.notes))
    return found, faults


def _on_gpus(found: list[_File]) -> tuple[list[_File], list[str]]:
    """The traces of GPUs, without CPU-only traces of unknown rank among them; and the names of those."""
    gpus = {file.rank for file in found if file.workers[0].device}
    bare = [file for file in found if gpus and not file.workers[0].device and (file.rank in gpus or not file.sure)]
    return [file for file in found if file not in bare], [file.path.name for file in bare]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(sorted(names)[:LISTED]) + more


def _run(path: Path, workers: Sequence[WorkerTrace], messages: Sequence[str]) -> ProfiledRun:
    steps, notes = _measured(path, workers)
    if any(worker.windows[steps[-1]][1] - worker.windows[steps[0]][0] > LONGEST_US for worker in workers):
        raise FileError(f"{path}: its iterations last more than {LONGEST_US / PS_PER_US:,.0f} s; allowed: less")
    timeline = _with_waits(_timeline(workers, steps), len(workers), len(steps))
    windows = [_windows(worker, steps) for worker in workers]
    parts = _parts(timeline, len(workers), windows)
    slowest = int(np.argmax([part.compute_s + part.exposed_sampling_s for part in parts]))
    notes += _unnamed(path, workers[slowest], steps)
    starts, ends = windows[slowest]
    iterations = (ends - starts) / PS_PER_S
    if not iterations.any():
        raise FileError(f"{path}: its iterations last 0 s; allowed: more")
    median, longest = float(np.median(iterations)), int(np.argmax(iterations))
    if iterations[longest] > UNEVEN * median:
        notes.append(
            f"{path}: iteration {steps[longest]} took {1e3 * iterations[longest]:.3g} ms, the median is "
            f"{1e3 * median:.3g} ms: the mean is of unlike iterations"
        )
    return ProfiledRun(
        path=path,
        iterations=frozen(iterations),
        steps=steps,
        slowest=slowest,
        parts=parts,
        devices=tuple(worker.device for worker in workers),
        timeline=timeline,
        notes=tuple(dict.fromkeys([*(note for worker in workers for note in worker.notes), *messages, *notes])),
    )


def _measured(path: Path, workers: Sequence[WorkerTrace]) -> tuple[tuple[int, ...], list[str]]:
    """Numbers of the iterations that all workers have, without the first; and notes."""
    common = set(workers[0].windows).intersection(*(worker.windows for worker in workers))
    every = set(workers[0].windows).union(*(worker.windows for worker in workers))
    if not common:
        raise FileError(f"{path}: no iteration is in the traces of all {len(workers)} workers")
    steps = sorted(common)
    notes = []
    if len(every) > len(common):
        notes.append(f"{path}: {len(every) - len(common)} of {len(every)} iterations are not in every worker's trace")
    if len(steps) >= FEWEST:
        notes.append(f"{path}: iteration {steps[0]}, the first recorded, is left out")
        steps = steps[1:]
    return tuple(steps), notes


def _unnamed(path: Path, worker: WorkerTrace, steps: Sequence[int]) -> list[str]:
    """A note on collectives that the trace does not identify; None without such."""
    times = np.clip(worker.unnamed_us, worker.windows[steps[0]][0], worker.windows[steps[-1]][1])
    mean_ms = 1e-3 * float((times[1] - times[0]).sum()) / len(steps)
    return [
        f"{path}: {mean_ms:.3g} ms an iteration are collectives whose kind the trace does not say; counted as messages "
        "(--names can say it)"
    ] * (mean_ms > 0.0)


def _windows(worker: WorkerTrace, steps: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Starts and ends of the measured iterations, picoseconds from the first start."""
    origin = worker.windows[steps[0]][0]
    times = _picoseconds(np.array([worker.windows[step] for step in steps]), origin)
    return times[:, 0], times[:, 1]


def _picoseconds(times_us: FloatArray, origin_us: float) -> IntArray:
    """Times since the origin, limited to the longest recording."""
    since = np.clip(times_us - origin_us, -LONGEST_US, LONGEST_US)
    found: IntArray = np.rint(since * PS_PER_US).astype(np.int64)
    return found


def _timeline(workers: Sequence[WorkerTrace], steps: Sequence[int]) -> Timeline:
    """Spans within the measured iterations, clipped at their edges."""
    names = tuple(sorted({name for worker in workers for name in worker.streams}))
    columns: list[dict[str, AnyArray]] = []
    for rank, worker in enumerate(workers):
        spans, origin = worker.spans, worker.windows[steps[0]][0]
        starts, ends = _windows(worker, steps)
        begin, end = _picoseconds(spans.start_us, origin), _picoseconds(spans.end_us, origin)
        inside = (end > 0) & (begin < ends[-1])
        begin, end = np.maximum(begin[inside], 0), np.minimum(end[inside], ends[-1])
        streams = np.array([names.index(name) for name in worker.streams], np.int32)
        columns.append(
            {
                "kind": spans.kind[inside],
                "worker": np.full(begin.size, rank, np.int32),
                "stream": streams[spans.stream[inside]] if streams.size else np.zeros(0, np.int32),
                "iteration": np.maximum(np.searchsorted(starts, begin, side="right") - 1, 0).astype(np.int32),
                "start_ps": begin,
                "end_ps": end,
                "nbytes": spans.nbytes[inside],
            }
        )
    joined = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    return _ordered(joined, names)


def _ordered(columns: Mapping[str, AnyArray], names: tuple[str, ...]) -> Timeline:
    """A timeline of columns in any order; layer, direction and peer are unknown."""
    order = np.lexsort((columns["kind"], columns["stream"], columns["worker"], columns["start_ps"]))
    count = order.size
    return Timeline(
        **{name: frozen(column[order]) for name, column in columns.items()},
        layer=frozen(np.full(count, -1, np.int32)),
        direction=frozen(np.zeros(count, np.uint8)),
        peer=frozen(np.full(count, -1, np.int32)),
        streams=names,
    )


def _with_waits(timeline: Timeline, workers: int, iterations: int) -> Timeline:
    """`timeline` with the extra time of each all-reduce over the quickest worker marked as a wait at its start.

    The k-th of an iteration is the same one on every worker; if their numbers differ, nothing is marked.
    """
    if workers < 2:
        return timeline
    code = KIND_CODE[OpKind.ALLREDUCE]
    chosen = np.flatnonzero(timeline.kind == code)
    lasted = timeline.end_ps - timeline.start_ps
    starts, kinds = timeline.start_ps.copy(), timeline.kind.copy()
    waits: list[tuple[int, int]] = []
    for iteration in range(iterations):
        here = chosen[timeline.iteration[chosen] == iteration]
        mine = [here[timeline.worker[here] == rank] for rank in range(workers)]
        if len({array.size for array in mine}) > 1:
            continue
        for same in np.stack(mine, axis=1).tolist():
            least = int(lasted[same].min())
            for at in same:
                if lasted[at] > least:
                    waits.append((at, int(timeline.end_ps[at]) - least))
                    starts[at] = timeline.end_ps[at] - least
    added = np.array([at for at, _ in waits], np.int64)
    until = np.array([end for _, end in waits], np.int64)
    names = ("worker", "stream", "iteration")
    columns: dict[str, AnyArray] = {
        name: np.r_[getattr(timeline, name), getattr(timeline, name)[added]] for name in names
    }
    wait = np.full(added.size, KIND_CODE[OpKind.WAIT], np.uint8)
    columns |= {
        "kind": np.r_[kinds, wait],
        "start_ps": np.r_[starts, timeline.start_ps[added]],
        "end_ps": np.r_[timeline.end_ps, until],
        "nbytes": np.r_[timeline.nbytes, np.zeros(added.size)],
    }
    return _ordered(columns, timeline.streams)


def _parts(timeline: Timeline, workers: int, windows: Sequence[tuple[IntArray, IntArray]]) -> tuple[Parts, ...]:
    """The workers' mean iterations."""
    spans, count = Spans(timeline, None), windows[0][0].size * PS_PER_S
    return tuple(
        breakdown(spans, rank, Intervals.of(*windows[rank]), PROFILED).parts(rank, lambda length: length / count)
        for rank in range(workers)
    )
