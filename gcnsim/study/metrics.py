"""What a run's spans say, per iteration, for the slowest worker (docs/glossary.md, "What the numbers mean").

Every instant of a worker's iteration is exactly one of three: its GPU computes (compute); it does not, and what it
waits for or handles is communication (exposed_comm); or it is neither (exposed_other: sampling, optimizer, and the
rest). A wait of the compute stream is followed back along the ops that each ended as the next began: where that chain
samples and this worker's sampler is at work, the wait is for sampling; everywhere else it is for a transfer, a peer or
the all-reduce, which is communication.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gcnsim.engine import Run
from gcnsim.ids import BoolArray, IntArray, Rank
from gcnsim.schedule import COMPUTE_STREAM, Bounds, all_waits
from gcnsim.timeline import PHASE, PS_PER_S, Intervals, Phase


@dataclass(frozen=True, slots=True)
class Metrics:
    """Means per iteration over the measured window: seconds, bytes, shares of one.

    iteration = compute + exposed comm + exposed other. Communication of the worker (one of its transfers in flight, or
    an exposed wait) is exposed_comm + hidden_comm. nic_bytes: sent by the busiest server NIC.
    """

    worker: Rank
    iteration_s: float
    compute_s: float
    exposed_comm_s: float
    exposed_other_s: float
    hidden_comm_s: float
    sampling_s: float
    gpu_utilization: float
    nic_utilization: float
    nic_bytes: float
    bottleneck: str


@dataclass(frozen=True, slots=True)
class _Split:
    """One worker's window in picoseconds."""

    compute: int
    exposed: Intervals
    other: int
    transfers: Intervals
    sampling: int


class _Window:
    """The measured iterations [first, T) of a run."""

    def __init__(self, run: Run, first: int) -> None:
        self.run = run
        self.schedule = run.schedule
        self.first = first
        self.count = run.iterations - first
        self.phase = np.array([PHASE[op.kind] for op in run.schedule.ops])
        self.worker = np.array([op.worker for op in run.schedule.ops])
        self.peer = np.array([op.peer for op in run.schedule.ops])
        self.is_sampling: BoolArray = self.phase == Phase.SAMPLING
        self.waits = all_waits(run.schedule)

    def edges(self, rank: Rank) -> tuple[int, int]:
        """Start and end of the window as this worker sees it: its end of the iteration before, and its last end."""
        ends = self.run.ends[:, self.schedule.ends[rank]]
        return int(ends[self.first - 1]), int(ends[-1])

    def spans(self, mask: BoolArray, rank: Rank) -> Intervals:
        """Instants of the window in which one of the ops of `mask` is under way."""
        start, end = self.edges(rank)
        return Intervals.of(self.run.starts[:, mask].ravel(), self.run.ends[:, mask].ravel()).within(start, end)

    def computing(self, rank: Rank) -> Intervals:
        """When the worker's GPU computes."""
        return self.spans((self.worker == rank) & (self.phase == Phase.COMPUTE), rank)

    def transfers(self, rank: Rank) -> Intervals:
        """When one of the worker's transfers, sent or received, is in flight."""
        return self.spans(((self.worker == rank) | (self.peer == rank)) & (self.phase == Phase.TRANSFER), rank)

    def split(self, rank: Rank) -> _Split:
        """The three parts of the worker's window, and what runs beneath them."""
        on_gpu = np.zeros(len(self.schedule.ops), dtype=np.bool_)
        on_gpu[list(self._gpu_queue(rank))] = True
        computing, sampling = self.computing(rank), self.spans((self.worker == rank) & self.is_sampling, rank)
        handling = self.spans(on_gpu & (self.phase == Phase.TRANSFER), rank)
        exposed = self._waits(rank, sampling).union(handling)
        start, end = self.edges(rank)
        other = (end - start) - computing.length - exposed.length
        return _Split(computing.length, exposed, other, self.transfers(rank), sampling.length)

    def _gpu_queue(self, rank: Rank) -> tuple[int, ...]:
        streams = self.schedule.streams
        return next(
            queue
            for stream, queue in zip(streams, self.schedule.order, strict=True)
            if stream.worker == rank and stream.name == COMPUTE_STREAM
        )

    def _waits(self, rank: Rank, sampling: Intervals) -> Intervals:
        """Waits of the compute stream for a transfer, a peer or the all-reduce: not for this worker's own sampler."""
        queue = list(self._gpu_queue(rank))
        starts, ends = self.run.starts[:, queue].ravel(), self.run.ends[:, queue].ravel()
        free = np.r_[0, ends[:-1]]
        begin, end = self.edges(rank)
        gaps = Intervals.of(free, starts).within(begin, end)
        if not self.is_sampling.any():
            return gaps
        chains = [
            link
            for place in np.flatnonzero((starts > free) & (starts > begin))
            for link in self._sampled(int(place) // len(queue), queue[int(place) % len(queue)], int(free[place]))
        ]
        if not chains:
            return gaps
        critical = Intervals.of(*np.array(chains, dtype=np.int64).T)
        return gaps.minus(critical.both(sampling))

    def _sampled(self, iteration: int, op: int, since: int) -> Iterator[tuple[int, int]]:
        """When sampling was what an op waited for: sampling on the chain of ops that each ended as the next began."""
        starts, ends = self.run.starts, self.run.ends
        while iteration >= 0 and starts[iteration, op] > since:
            begun = int(starts[iteration, op])
            before = [(iteration - lag, dep) for dep, lag in self.waits[op] if iteration >= lag]
            held = [(int(ends[t, dep]), t, dep) for t, dep in before if ends[t, dep] <= begun]
            if not held:
                return
            ended, iteration, op = max(held)
            if self.is_sampling[op]:
                yield max(since, int(starts[iteration, op])), ended


def measure(run: Run, first: int, limits: Bounds) -> Metrics:
    """The metrics of the iterations from `first` (at least 1) to the end of `run`; limits: the schedule's bounds."""
    window = _Window(run, first)
    ranks = range(run.schedule.workers)
    computing = [window.computing(rank).length for rank in ranks]
    # All workers end together (all-reduce); the slowest is the one the others wait for: it waits least itself. Training
    # runs are told apart by the same rule.
    splits = [window.split(rank) for rank in ranks]
    slowest = max(ranks, key=lambda rank: (splits[rank].compute + splits[rank].other, -rank))
    split = splits[slowest]
    start, end = window.edges(slowest)
    scale = 1.0 / (window.count * PS_PER_S)
    length = (end - start) * scale
    nic_bytes, nic_share = _nic(window, length)
    hidden = split.transfers.minus(split.exposed).length
    busy = [busy / max(1, e - s) for busy, (s, e) in zip(computing, map(window.edges, ranks), strict=True)]
    return Metrics(
        worker=slowest,
        iteration_s=length,
        compute_s=split.compute * scale,
        exposed_comm_s=split.exposed.length * scale,
        exposed_other_s=split.other * scale,
        hidden_comm_s=hidden * scale,
        sampling_s=split.sampling * scale,
        gpu_utilization=float(np.mean(busy)),
        nic_utilization=nic_share,
        nic_bytes=nic_bytes,
        bottleneck=_bottleneck(window, split, slowest, limits, length),
    )


def _demand(window: _Window) -> IntArray:
    """Which rows of the demand the measured iterations used."""
    rows: IntArray = np.arange(window.first, window.run.iterations) % window.schedule.demand.shape[0]
    return rows


def link_units(run: Run, first: int) -> dict[str, float]:
    """Mean units per iteration (bytes; core-seconds for a CPU) carried by each link, by name."""
    window = _Window(run, first)
    moved = window.schedule.demand[_demand(window)].mean(axis=0)
    units = dict.fromkeys(window.schedule.link_names, 0.0)
    for op in window.schedule.ops:
        for link in op.route or ():
            units[window.schedule.link_names[link]] += float(moved[op.index])
    return units


def _nic(window: _Window, iteration_s: float) -> tuple[float, float]:
    """Bytes sent per iteration by the busiest NIC, and the utilization of the busiest NIC direction."""
    schedule = window.schedule
    units = link_units(window.run, window.first)
    nics = [
        (name, capacity)
        for name, kind, capacity in zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
        if kind == "nic"
    ]
    sent = max((units[name] for name, _ in nics if name.endswith(".tx")), default=0.0)
    share = max((units[name] / capacity / iteration_s for name, capacity in nics), default=0.0)
    return sent, share


WORDS = {
    "compute": "GPU compute",
    "nic": "network (NIC)",
    "pcie": "PCIe copies",
    "memory": "host memory copies",
    "cpu": "sampling on the CPU",
    "peer": "waiting for a slower worker",
    "other": "optimizer and bookkeeping",
}

ON_CORES = {"cpu": "CPU cores"}
"""Where workers compute on CPU cores, all their work shares these."""

SATURATED = 0.95
"""Share of the iteration above which a stream or link sets the pace by itself: 95 %."""


def _bottleneck(window: _Window, split: _Split, rank: Rank, limits: Bounds, iteration_s: float) -> str:
    """What to speed up first: the saturated stream or link, else the longest exposed part of the slowest worker.

    Exposed communication is named after the kind of link its transfers and reductions spend most time on.
    """
    first = window.schedule.ops[window.schedule.ends[rank]]
    words = WORDS if first.route is None else WORDS | ON_CORES
    if limits.busiest_s >= SATURATED * iteration_s:
        return words[limits.busiest_kind]
    parts = {"compute": split.compute, "other": 0, "cpu": 0}
    parts["cpu" if split.sampling > split.other / 2 else "other"] = split.other
    near = ((window.worker == rank) | (window.peer == rank)) & np.isin(window.phase, [Phase.TRANSFER, Phase.REDUCE])
    carried = split.exposed.both(window.spans(near, rank)).length
    parts[_link_kind(window, near, rank)] = carried
    parts["peer"] = split.exposed.length - carried
    return words[max(parts, key=lambda part: parts[part])]


def _link_kind(window: _Window, near: BoolArray, rank: Rank) -> str:
    spent: dict[str, int] = {"nic": 0}
    for kind in dict.fromkeys(window.schedule.link_kinds):
        using = [
            op.route is not None and any(window.schedule.link_kinds[link] == kind for link in op.route)
            for op in window.schedule.ops
        ]
        spent[kind] = window.spans(near & np.array(using), rank).length
    return max(spent, key=lambda kind: spent[kind])
