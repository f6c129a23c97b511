"""One part: whether it fits into memory, the worker that trains it, alone, and what is kept of its iterations.

On a GPU torch says when a part does not fit; on a CPU the system would end the process, so the need is estimated
beforehand, by the sizes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.ids import FloatArray, IntArray, Iteration, Rank
from gcnsim.core.resources import usable_resources
from gcnsim.graph import Graph
from gcnsim.graph.parts import Partitioning
from gcnsim.records.compute_facts import iteration_weights
from gcnsim.timeline import KIND_CODE, Intervals, OpKind, Timeline
from runtime.data import DatasetCache
from runtime.exchange import LoadedBatch, Mail, SampledGraph, StandIns
from runtime.launch import Place
from runtime.options import Options
from runtime.record import MAIN_STREAM
from runtime.train.memory_usage import MemoryUsage
from runtime.train.reduce import LocalSums
from runtime.train.setup import WorkerState, backend_of, prepare

ENTRY_BYTES: Final = 110
"""Of an entry of a part: its rows and both matrices with their transposes."""

DRAWN_BYTES: Final = 100
"""Of an entry besides, where graphs are drawn from them: chances, weights, and the graphs themselves."""

ATTENTION_BYTES: Final = 56
"""Of an entry besides, for each layer and head of attention."""

COPIES: Final = 3
"""Of a layer's rows that are held at once: kept for the backward pass, their gradients, what a kernel makes.

These numbers are rounded from the memory that parts of graphs of 12,000 to 326,000 nodes took: 0.9 to 1.5 of it."""

_MEMORY: Final = Path("/proc/meminfo")
_ASKED: Final = re.compile(r"Tried to allocate ([0-9.]+) (bytes|KiB|MiB|GiB)")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class PartSizes:
    """Inner nodes, boundary nodes and entries of a part."""

    inner: int
    boundary: int
    entries: int


def sizes_of(graph: Graph, partitioning: Partitioning, rank: Rank) -> PartSizes:
    """Those of part `rank`, counted without building it."""
    own = partitioning.owner == rank
    columns = graph.indices[np.repeat(own, graph.degrees)]
    reached = np.zeros(graph.nodes, np.bool_)
    reached[columns] = True
    return PartSizes(int(np.count_nonzero(own)), int(np.count_nonzero(reached & ~own)), int(columns.size))


def needed_bytes(sizes: PartSizes, options: Options, widths: tuple[int, ...], stored: int) -> int:
    """About what one part needs while it trains.

    widths: of the rows before the first and after each layer. stored: nodes of other parts whose features it holds.
    """
    itemsize = 8 if options.dtype == "float64" else 4
    knobs = options.knobs
    features = (sizes.inner * COPIES + stored) * widths[0] * itemsize + sizes.inner * widths[0] * 4
    rows = COPIES * sizes.inner * sum(widths[1:]) * itemsize
    # Rows and gradients, each where it is sent from and where it is received, for each age.
    ages = max(int(str(knobs.get("tau", 1))), 1)
    boundary = 4 * ages * sizes.boundary * sum(widths[:-1]) * itemsize
    each = ENTRY_BYTES
    if float(str(knobs.get("epsilon", 1.0))) < 1.0:
        each += DRAWN_BYTES
    if options.model == "gat":
        each += ATTENTION_BYTES * options.heads * options.layers
    return features + rows + boundary + each * sizes.entries


def free_bytes() -> int | None:
    """Memory that this process can still take; None where the system does not say."""
    limit = usable_resources().memory_bytes
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return limit
    free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return min((item for item in (limit, free) if item is not None), default=None)


def free_on_gpu(device: torch.device) -> int:
    """Memory that torch can still take or has taken and does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


class GpuPeak:
    """The most bytes at any instant of one part's tensors on a GPU, where other parts may stay meanwhile."""

    def __init__(self, device: torch.device) -> None:
        """What the GPU holds now belongs to others."""
        self._device = device
        self._others = int(torch.cuda.memory_allocated(device))
        self._held: int | None = None
        torch.cuda.reset_peak_memory_stats(device)
        self.nbytes = 0

    def begin(self) -> None:
        """The part goes on, after others may have come or gone."""
        if self._held is not None:
            self._others = int(torch.cuda.memory_allocated(self._device)) - self._held
            torch.cuda.reset_peak_memory_stats(self._device)

    def end(self) -> None:
        """The part stops."""
        self.nbytes = max(self.nbytes, int(torch.cuda.max_memory_allocated(self._device)) - self._others)
        self._held = int(torch.cuda.memory_allocated(self._device)) - self._others


def asked_bytes(error: str) -> int:
    """What torch tried to allocate when a GPU had no more, by its message; 0 where it does not say."""
    search = _ASKED.search(error)
    return 0 if search is None else round(float(search[1]) * _UNITS[search[2]])


ANSWERED: Final = (OpKind.WIRE, OpKind.WAIT, OpKind.ALLREDUCE)
"""What is answered at once here, so that its time says nothing."""

COUNTS: Final = ("rows", "hits", "sent", "edges")

_COUNTED: Final = 1
"""The iteration in which what the backward pass keeps is counted: the second."""


@dataclass(frozen=True, slots=True)
class Ops:
    """Seconds of ops, summed by iteration, kind, layer and direction; columns of equal length."""

    iteration: IntArray
    kind: IntArray
    layer: IntArray
    direction: IntArray
    seconds: FloatArray


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a part could not be measured, with what it needs and what is free, in bytes, where that is the reason."""

    reason: str
    needed_bytes: int | None = None
    free_bytes: int | None = None


@dataclass
class PartRecord:
    """What is known of one part.

    rounds: mean seconds of an iteration in each. refreshing: which measured iterations refreshed the sampling
    probabilities. processor_s: that all threads ran in each. covered_s: of a GPU's main stream, with operations or
    waits, in each; empty on a CPU. warmup: iterations left out. threads: of a kernel. period: iterations from one
    refresh to the next; None: there is none.
    """

    rank: Rank
    rounds: list[float] = field(default_factory=list)
    ops: list[Ops] = field(default_factory=list)
    counts: list[tuple[int, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refreshing: list[bool] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    covered_s: list[float] = field(default_factory=list)
    warmup: int = 0
    threads: int = 1
    period: int | None = None
    peak_bytes: int | None = None
    inner: int = 0
    boundary: int = 0
    skipped: Skipped | None = None

    @property
    def iterations(self) -> int:
        """Measured ones."""
        return len(self.seconds)

    @property
    def mean_seconds(self) -> float:
        """Of an iteration."""
        return float(self._weights @ self.seconds)

    @property
    def outside_seconds(self) -> float:
        """Processor time of an iteration that is in none of its ops; on a GPU time in which its main stream has none
        and waits for none: the host prepares it.

        Where kernels have several threads, an op is the time of one of them, so the rest of the iteration is taken.
        """
        if self.covered_s:
            return max(0.0, float(self._weights @ (np.array(self.seconds) - self.covered_s)))
        counted = np.zeros(self.iterations)
        for ops in self.ops:
            np.add.at(counted, ops.iteration, ops.seconds)
        whole = self.processor_s if self.threads == 1 else self.seconds
        return max(0.0, float(self._weights @ (np.asarray(whole) - counted)))

    @property
    def _weights(self) -> FloatArray:
        return iteration_weights(np.array(self.refreshing, np.bool_), self.period or 1)

    @property
    def drawn(self) -> Mapping[str, float]:
        """Mean counts of a measured iteration, by COUNTS."""
        return dict(zip(COUNTS, np.mean(self.counts, axis=0).tolist(), strict=True))

    def forget(self) -> None:
        """As before its first turn."""
        for kept in (self.rounds, self.ops, self.counts, self.seconds, self.refreshing):
            kept.clear()
        self.processor_s.clear()
        self.covered_s.clear()
        self.warmup = 0


class PartRun:
    """A part in memory, between its first iteration and `close`."""

    def __init__(
        self, record: PartRecord, options: Options, device: torch.device, shelf: DatasetCache, mail: Mail
    ) -> None:
        """Everything that comes before the first iteration."""
        self.record = record
        self._peak = GpuPeak(device) if device.type == "cuda" else None
        place = Place(record.rank, options.workers, 0, options.workers, launched=True)
        channels = StandIns(record.rank, options.workers, backend_of(options), mail)
        if device.type == "cpu":
            # A thread may have to wait for a core: what it computed is the time that it had one.
            channels.now = time.thread_time_ns
        self.worker: WorkerState = prepare(options, place, device, shelf, channels)
        self._t: Iteration = 0
        self._measured: list[Iteration] = []
        self._origin = 0 if device.type == "cpu" else time.perf_counter_ns()
        self._memory = MemoryUsage(replace(options, warmup=_COUNTED + 1), 0)
        part = self.worker.share.part
        record.inner, record.boundary = part.inner_nodes, part.boundary_nodes
        record.threads = torch.get_num_threads()

    def turn(self, iterations: int) -> list[float]:
        """Measure so many iterations and, where probabilities are refreshed now and then, one more that does so."""
        first = len(self.record.seconds)
        self.train(iterations, measured=True)
        if self.record.period is not None:
            self.train(1, measured=True, refreshing=True)
        record = self.record
        found = record.seconds[first:]
        weights = iteration_weights(np.array(record.refreshing[first:], np.bool_), record.period or 1)
        record.rounds.append(float(weights @ found))
        return found

    def train(self, iterations: int, *, measured: bool, refreshing: bool = False) -> list[float]:
        """Go on by so many; their seconds. Nothing is under way afterwards.

        measured: whether they are kept. refreshing: whether they refresh the sampling probabilities; the very first
        iteration does.
        """
        found = []
        if self._peak is not None:
            self._peak.begin()
        ran = time.process_time()
        for _ in range(iterations):
            t = self._t
            if self.record.period is not None:
                self.worker.method.refresh_next(refreshing or t == 0)
            start = time.perf_counter()
            with nullcontext() if measured else self._memory.of(t, self.worker):
                _, drawn = self.worker.trainer.iteration(t, LocalSums())
            if refreshing:
                # What it refreshes is computed beside what comes next; alone, it is waited for.
                waited = self.worker.recorder.mark()
                self.worker.method.drain()
                self.worker.recorder.add(OpKind.WAIT, MAIN_STREAM, t, waited, self.worker.recorder.mark())
            self._finish()
            found.append(time.perf_counter() - start)
            self.worker.recorder.end_iteration()
            self._t += 1
            if measured:
                self._measured.append(t)
                self.record.counts.append(iteration_counts(drawn))
        # Draws ahead are counted to their end, as in the operations.
        self.worker.method.drain()
        ran = time.process_time() - ran
        self._finish()
        if self._peak is not None:
            self._peak.end()
        if measured:
            self.record.seconds += found
            self.record.refreshing += [refreshing] * iterations
            self.record.processor_s += [ran / iterations] * iterations
        else:
            self.record.warmup += iterations
        return found

    def _finish(self) -> None:
        """Wait for the GPU, which the host runs ahead of."""
        if self.worker.device.type == "cuda":
            torch.cuda.synchronize(self.worker.device)

    def close(self) -> None:
        """Keep what was recorded, and leave."""
        worker = self.worker
        worker.method.drain()
        before = self.record.iterations - len(self._measured)
        if self._measured:
            timeline = worker.recorder.timeline(self._origin)
            self.record.ops.append(_ops(timeline, self._measured, before))
            if worker.device.type == "cuda":
                self.record.covered_s += covered(timeline, self._measured)
        self.record.peak_bytes = self._most_bytes()
        self.abandon()

    def abandon(self) -> None:
        """Leave, and keep nothing."""
        self.worker.method.close()
        self.worker.trainer.close()

    def _most_bytes(self) -> int | None:
        """Bytes of this part's tensors: on a GPU the most at any instant, on a CPU all that are held in an iteration.

        None where another library holds the matrices.
        """
        if self._peak is not None:
            return max(self.record.peak_bytes or 0, self._peak.nbytes)
        held = self._memory.report(self.worker)
        return None if held is None else sum(value for name, value in held.items() if name != "evaluation")


def iteration_counts(drawn: SampledGraph | LoadedBatch) -> tuple[int, ...]:
    """What an iteration read, by COUNTS."""
    if isinstance(drawn, SampledGraph):
        sent = 0 if drawn.requests is None else drawn.requests.rows
        return drawn.rows, drawn.hits, sent, sum(drawn.edges)
    return drawn.rows, drawn.hits, 0, sum(places.size for places in drawn.graph.drawn.places)


def covered(timeline: Timeline, measured: list[Iteration]) -> list[float]:
    """Of each of the `measured` iterations, the seconds in which the main stream has an operation or waits."""
    if MAIN_STREAM not in timeline.streams:
        return [0.0] * len(measured)
    at = np.flatnonzero(timeline.stream == timeline.streams.index(MAIN_STREAM))
    at = at[np.argsort(timeline.iteration[at], kind="stable")]
    wanted = np.array(measured)
    bounds = np.searchsorted(timeline.iteration[at], np.stack([wanted, wanted + 1]))
    spans = [at[first:last] for first, last in bounds.T.tolist()]
    return [Intervals.of(timeline.start_ps[own], timeline.end_ps[own]).length * 1e-12 for own in spans]


def _ops(timeline: Timeline, measured: list[Iteration], before: int) -> Ops:
    """Those of the `measured` iterations, numbered from `before` on."""
    wanted: Any = np.isin(timeline.iteration, measured)
    for kind in ANSWERED:
        wanted &= timeline.kind != KIND_CODE[kind]
    at = np.flatnonzero(wanted)
    keys = np.stack(
        [
            before + np.searchsorted(measured, timeline.iteration[at]),
            timeline.kind[at].astype(np.int64),
            timeline.layer[at].astype(np.int64),
            timeline.direction[at].astype(np.int64),
        ],
        axis=1,
    )
    unique, group = np.unique(keys, axis=0, return_inverse=True)
    seconds = np.bincount(group.ravel(), (timeline.end_ps[at] - timeline.start_ps[at]) * 1e-12, len(unique))
    iteration, kind, layer, direction = unique.T
    return Ops(iteration, kind, layer, direction, seconds.astype(np.float64))
