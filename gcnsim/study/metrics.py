"""What a run's spans say, per iteration, for the slowest worker (docs/glossary.md, "What the numbers mean").

Every instant of a worker's iteration is exactly one of three: its GPU computes (compute); it does not, and what it
waits for or handles is communication (exposed_comm); or it is neither (exposed_other: sampling, optimizer, pauses of
its own, and the rest). A wait of the compute stream is followed back along the ops that each ended as the next began:
where that chain samples and this worker's sampler is at work, the wait is for sampling; everywhere else it is for a
transfer, a peer or the all-reduce, which is communication.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.engine import Run
from gcnsim.ids import BoolArray, IntArray, Rank
from gcnsim.schedule import Bounds
from gcnsim.study.measured import MeasuredRun, Split
from gcnsim.timeline import PS_PER_S, OpKind, Phase


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


def measure(run: Run, first: int, limits: Bounds) -> Metrics:
    """The metrics of the iterations from `first` (at least 1) to the end of `run`; limits: the schedule's bounds."""
    window = MeasuredRun(run, first)
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


def at_least(metrics: Metrics, iteration_s: float) -> Metrics:
    """`metrics` of an iteration of at least `iteration_s` seconds, a bound that no run can beat for long.

    Queues that grew over the measured iterations (a state that returned to within a percent) are still to be emptied:
    the time for it is exposed communication.
    """
    owed = iteration_s - metrics.iteration_s
    if owed <= 0:
        return metrics
    share = metrics.iteration_s / iteration_s
    # Whole picoseconds may add up to less than the bound does: that is no communication.
    waited = owed if owed > ROUNDING * iteration_s else 0.0
    return replace(
        metrics,
        iteration_s=iteration_s,
        exposed_comm_s=metrics.exposed_comm_s + waited,
        gpu_utilization=metrics.gpu_utilization * share,
        nic_utilization=metrics.nic_utilization * share,
    )


def _demand(window: MeasuredRun) -> IntArray:
    """Which rows of the demand the measured iterations used."""
    rows: IntArray = np.arange(window.first, window.run.iterations) % window.schedule.demand.shape[0]
    return rows


def link_units(run: Run, first: int) -> dict[str, float]:
    """Mean units per iteration (bytes; core-seconds for a CPU) carried by each link, by name."""
    window = MeasuredRun(run, first)
    moved = window.schedule.demand[_demand(window)].mean(axis=0)
    units = dict.fromkeys(window.schedule.link_names, 0.0)
    for op in window.schedule.ops:
        for link in op.route or ():
            units[window.schedule.link_names[link]] += float(moved[op.index])
    return units


def _nic(window: MeasuredRun, iteration_s: float) -> tuple[float, float]:
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
    "nvlink": "NVLink",
    "rack": "uplinks of racks",
    "memory": "host memory copies",
    "cpu": "sampling on the CPU",
    "peer": "waiting for a slower worker",
    "other": "optimizer and bookkeeping",
    "pause": "paused",
}

ON_CORES = {"cpu": "CPU cores", "compute": "CPU cores"}
"""Where workers compute on CPU cores, all their work shares these."""

LOADING = {"cpu": "drawing and loading on the CPU"}
"""Where mini-batches are drawn, the same cores pick their rows out of memory."""

SOCKETS = {"cpu": "CPU cores: sampling and sockets"}
"""Where messages between hosts take of the cores that draw."""

ROUNDING = 1e-9
"""Share of an iteration that the picoseconds of its operations may be short of their seconds."""

SATURATED = 0.95
"""Share of the iteration above which a stream or link sets the pace by itself: 95 %."""


def _bottleneck(window: MeasuredRun, split: Split, rank: Rank, limits: Bounds, iteration_s: float) -> str:
    """What to speed up first: the saturated stream or link, else the longest exposed part of the slowest worker.

    Exposed communication is named after the kind of link its transfers and reductions spend most time on.
    """
    first = window.schedule.ops[window.schedule.ends[rank]]
    words = WORDS if first.route is None else WORDS | ON_CORES
    if any(op.kind is OpKind.GATHER for op in window.schedule.ops):
        words = words | LOADING
    elif first.route is None and _through_sockets(window):
        words = words | SOCKETS
    if limits.busiest_s >= SATURATED * iteration_s:
        return words[limits.busiest_kind]
    parts = {"compute": split.compute, "other": 0, "cpu": 0}
    rest = split.other - split.paused
    parts["cpu" if split.sampling > rest / 2 else "other"] = rest
    parts["pause"] = split.paused
    near = ((window.worker == rank) | (window.peer == rank)) & np.isin(window.phase, [Phase.TRANSFER, Phase.REDUCE])
    carried = split.exposed.both(window.spans(near, rank)).length
    parts[_link_kind(window, near, rank)] = carried
    parts["peer"] = split.exposed.length - carried
    return words[max(parts, key=lambda part: parts[part])]


def _through_sockets(window: MeasuredRun) -> bool:
    """Whether messages take of the cores that the workers' samplers run on."""
    kinds = window.schedule.link_kinds
    return any(op.kind is OpKind.WIRE and op.route and kinds[op.route[0]] == "cpu" for op in window.schedule.ops)


def _link_kind(window: MeasuredRun, near: BoolArray, rank: Rank) -> str:
    spent: dict[str, int] = {"nic": 0}
    for kind in dict.fromkeys(window.schedule.link_kinds):
        using = [
            op.route is not None and any(window.schedule.link_kinds[link] == kind for link in op.route)
            for op in window.schedule.ops
        ]
        spent[kind] = window.spans(near & np.array(using), rank).length
    return max(spent, key=lambda kind: spent[kind])
