"""A recorded run as a side: the parts of its iterations by its spans, by the same words as a simulated one.

A worker's iteration lasts from the end of its step before to the end of its step, less evaluations between them. It is
its own: worker 0's, which iterations.csv has, leaves out what the others wait for while it writes.

An all-reduce counts from when the last worker is there: before that, the others wait for a peer. A message counts from
when its sender offers it. Bytes are those of rows and gradients: the record's spans have no others.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np

from gcnsim.comparison.facts import facts_of_run
from gcnsim.comparison.sides import Link, Side
from gcnsim.errors import FileError
from gcnsim.ids import AnyArray, BoolArray, IntArray, Rank
from gcnsim.profile import GENERIC_LINK, link
from gcnsim.record import COMPUTE, TIMELINE, Busy, RecordedRun, breakdown, evaluated_after, read_recorded_run
from gcnsim.study import COMMUNICATION, OTHER, Parts
from gcnsim.timeline import KIND_CODE, PS_PER_S, Intervals, OpKind, Phase, Timeline

BENEATH_LOOP = "bns-gcn"
"""Draws on the thread that trains: what it waits for is never its sampler."""


def side_of_run(path: str | Path, label: str) -> Side:
    """The side of the run in the folder `path`. Raises FileError, naming the file and what is wrong."""
    run = read_recorded_run(path)
    told = _Told(run)
    workers = tuple(told.worker(rank) for rank in range(run.workers))
    own = workers[run.slowest]
    lasts = sum(getattr(own, name) for name in ("compute_s", *COMMUNICATION, *OTHER))
    return Side(
        label=label,
        kind="run",
        setting=_setting(run),
        iteration_s=lasts,
        whole={
            "compute_s": own.compute_s,
            "exposed_comm_s": sum(getattr(own, name) for name in COMMUNICATION),
            "exposed_other_s": sum(getattr(own, name) for name in OTHER),
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


class _Told:
    """The spans of a run's measured iterations."""

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        self.spans: Timeline = run.timeline()
        self.count = run.iterations.size
        """The measured iterations are the last of all."""
        self.evaluated = evaluated_after(run.path)
        self.measured: BoolArray = self.spans.iteration > int(self.spans.iteration.max(initial=0)) - self.count
        names = self.spans.streams
        self.main: BoolArray = self._streams([name == COMPUTE for name in names])
        ends = [name.rpartition(".")[2].startswith("tx") for name in names]
        self.sent: BoolArray = self.kinds(OpKind.WIRE) & self._streams(ends)

    def _streams(self, chosen: list[bool]) -> BoolArray:
        mask: BoolArray = np.array(chosen, dtype=np.bool_)[self.spans.stream]
        return mask

    def kinds(self, *kinds: OpKind) -> BoolArray:
        """Mask of the spans of these kinds."""
        mask: BoolArray = np.isin(self.spans.kind, [KIND_CODE[kind] for kind in kinds])
        return mask

    def phase(self, phase: Phase) -> BoolArray:
        """Mask of the spans of this phase."""
        return self.spans.of_phase(phase)

    def covers(self, mask: BoolArray) -> Intervals:
        """When one of the spans in `mask` was under way, in any of the iterations."""
        return Intervals.of(self.spans.start_ps[mask], self.spans.end_ps[mask])

    def sampling_s(self, rank: Rank) -> float:
        """Seconds per iteration in which a worker samples."""
        sampling = self.covers((self.spans.worker == rank) & self.phase(Phase.SAMPLING))
        return self._seconds(sampling.both(self.window(rank)))

    def window(self, rank: Rank) -> Intervals:
        """The measured iterations of a worker, by its own steps, without what was evaluated between them."""
        spans = self.spans
        mine = np.flatnonzero(self.main & (spans.worker == rank))
        last = int(spans.iteration.max(initial=0))
        starts, ends = [], []
        for t in range(last - self.count + 1, last + 1):
            own = mine[spans.iteration[mine] == t]
            if not own.size:
                raise FileError(f"{self.run.path / TIMELINE}: has no span of worker {rank} in iteration {t}")
            before = mine[spans.iteration[mine] == t - 1]
            # The step is the last that the thread that trains does in an iteration.
            begin = before if before.size and t - 1 not in self.evaluated else None
            starts.append(int(spans.start_ps[own].min() if begin is None else spans.end_ps[begin].max()))
            ends.append(int(spans.end_ps[own].max()))
        return Intervals.of(np.array(starts, np.int64), np.array(ends, np.int64))

    def _seconds(self, found: Intervals) -> float:
        return found.length / (self.count * PS_PER_S)

    def worker(self, rank: Rank) -> Parts:
        """One worker's iteration."""
        mine = self.spans.worker == rank
        sampling = self.covers(mine & self.phase(Phase.SAMPLING))
        waits = self.covers(mine & self.main & self.phase(Phase.WAIT))
        transfer = self.phase(Phase.TRANSFER)
        busy = Busy(
            compute=self.covers(mine & self.phase(Phase.COMPUTE)),
            handling=self.covers(mine & self.kinds(OpKind.UNPACK, OpKind.SCATTER) & self.main),
            optimizer=self.covers(mine & self.phase(Phase.OPTIMIZER)),
            # What samples beneath the loop's own waits is waited for; on the thread that trains it is work.
            exposed_sampling=sampling.minus(waits) if self.samples_itself else sampling.both(waits),
            network=self.covers(self.sent & (mine | (self.spans.peer == rank))),
            copies=self.covers(mine & transfer & ~self.kinds(OpKind.WIRE) & ~self.main),
            reduce=self._reducing(rank),
            waits=waits,
        )
        found = breakdown(self.window(rank), busy)
        return Parts(rank, **{f"{part}_s": self._seconds(each) for part, each in found.items()})

    @property
    def samples_itself(self) -> bool:
        """Whether the thread that trains also samples."""
        return bool(self.run.options["method"] == BENEATH_LOOP)

    def _reducing(self, rank: Rank) -> Intervals:
        """When an all-reduce of this worker was under way with all of them there."""
        chosen = np.flatnonzero(self.kinds(OpKind.ALLREDUCE))
        # The k-th of an iteration is the same one on every worker.
        place = _places(self.spans.worker[chosen], self.spans.iteration[chosen])
        keys = list(zip(self.spans.iteration[chosen].tolist(), place.tolist(), strict=True))
        last: dict[tuple[int, int], int] = {}
        for key, start in zip(keys, self.spans.start_ps[chosen].tolist(), strict=True):
            last[key] = max(last.get(key, start), start)
        own = self.spans.worker[chosen] == rank
        starts = np.array([last[key] for key in keys], dtype=np.int64)
        return Intervals.of(starts[own], self.spans.end_ps[chosen][own])

    def links(self) -> dict[str, Link]:
        """Bytes of rows and gradients through each server's card, or between the workers of a server."""
        place, spans = self.run.place, self.spans
        each = self.run.workers if place is None else int(place["workers_per_host"])
        carried: dict[str, float] = {}
        counted = self.sent & self.measured
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


def _places(workers: AnyArray, iterations: AnyArray) -> IntArray:
    """Per span, how many of its worker and iteration came before it."""
    counters: dict[tuple[int, int], count[int]] = {}
    keys = zip(workers.tolist(), iterations.tolist(), strict=True)
    return np.array([next(counters.setdefault(key, count())) for key in keys], dtype=np.int64)
