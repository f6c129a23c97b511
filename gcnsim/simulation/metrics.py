"""What a run's spans say, per iteration, for the slowest worker (docs/glossary.md, "What the numbers mean").

Parts of an iteration are those of `gcnsim.breakdown`. A wait of the compute stream is followed back along the ops that
each ended as the next began (`MeasurementWindow`): where that chain samples and this worker's sampler is at work, the
wait is for sampling; everywhere else it is for a transfer, a peer or the all-reduce, which is communication.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.engine import Run
from gcnsim.ids import FloatArray, Rank
from gcnsim.simulation.side_by_side import computing_and_exposed, slowest_of
from gcnsim.simulation.window import MeasurementWindow
from gcnsim.timeline import PS_PER_S


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


def measure(run: Run, first: int) -> Metrics:
    """The metrics of the iterations from `first` (at least 1) to the end of `run`."""
    window = MeasurementWindow(run, first)
    ranks = range(run.schedule.workers)
    computing, exposed = computing_and_exposed(window)
    # All workers end together (all-reduce); the slowest is the one the others wait for: it waits least itself. Training
    # runs are told apart by the same rule.
    slowest = slowest_of(window, exposed)
    split = window.split(slowest)
    start, end = window.edges(slowest)
    scale = 1.0 / (window.count * PS_PER_S)
    length = (end - start) * scale
    nic_bytes, nic_share = _nic(window, length)
    busy = [busy / max(1, e - s) for busy, (s, e) in zip(computing, map(window.edges, ranks), strict=True)]
    return Metrics(
        worker=slowest,
        iteration_s=length,
        compute_s=split.compute * scale,
        exposed_comm_s=split.exposed.length * scale,
        exposed_other_s=split.other * scale,
        hidden_comm_s=split.parts.hidden_comm.length * scale,
        sampling_s=split.sampling * scale,
        gpu_utilization=float(np.mean(busy)),
        nic_utilization=nic_share,
        nic_bytes=nic_bytes,
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


def units_moved(window: MeasurementWindow) -> FloatArray:
    """Mean units (bytes; core-seconds for a CPU) per measured iteration over each link, float64[links]."""
    schedule = window.schedule
    ops, links = schedule.columns.crossings
    rows = np.arange(window.first, window.run.iterations) % schedule.demand.shape[0]
    moved = schedule.demand[rows].mean(axis=0)
    return np.bincount(links, weights=moved[ops], minlength=len(schedule.capacity)).astype(np.float64)


def link_units(run: Run, first: int) -> dict[str, float]:
    """Mean units per iteration (bytes; core-seconds for a CPU) carried by each link, by name."""
    window = MeasurementWindow(run, first)
    return dict(zip(window.schedule.link_names, units_moved(window).tolist(), strict=True))


def _nic(window: MeasurementWindow, iteration_s: float) -> tuple[float, float]:
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
    # A full link is busy all the time, rounding of its bytes aside.
    return sent, min(1.0, share) if share <= 1.0 + ROUNDING else share


ROUNDING = 1e-9
"""Share of an iteration that the picoseconds of its operations may be short of their seconds."""
