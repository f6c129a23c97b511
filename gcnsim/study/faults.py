"""Faults put into a schedule: what they change is work, capacities and when ops may start; the engine knows nothing.

A run with faults is of one length: it settles without them, then every measured iteration is simulated, those of
the faults included, so that the mean tells what they cost over so many iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import BoolArray, FloatArray, Iteration, Rank
from gcnsim.scenario import Background, Fault, Jitter, LossyLink, Pause, SlowGpu, SlowLink
from gcnsim.schedule import Op, Schedule, Stream
from gcnsim.streams import stream
from gcnsim.timeline import PHASE, OpKind, Phase
from gcnsim.units import BANDWIDTH

SETTLING: Final = 4
"""Iterations, and twice what a method's staleness reaches back, before the first measured one."""

SLOWED: Final = {"compute": (Phase.COMPUTE, Phase.OPTIMIZER), "sampling": (Phase.SAMPLING,)}


def settling(schedule: Schedule) -> Iteration:
    """Iterations that are simulated before the first measured one."""
    return SETTLING + 2 * schedule.depth


def afflicted(schedule: Schedule, faults: Sequence[Fault], measured: int, seed: int) -> Schedule:
    """`schedule` with `faults`, its work told for every one of `settling(schedule)` + `measured` iterations.

    Raises ScenarioError for a link that the cluster does not have, or one without bandwidth left.
    """
    begin = settling(schedule)
    rows = np.arange(begin + measured) % schedule.demand.shape[0]
    capacity = list(schedule.capacity)
    work: FloatArray = schedule.demand[rows].copy()
    for place, fault in enumerate(faults):
        if isinstance(fault, SlowLink | LossyLink | Background):
            _lessen(capacity, schedule, fault)
        elif isinstance(fault, SlowGpu):
            last = measured - 1 if fault.last is None else fault.last
            slowed = slice(begin + fault.first, begin + last + 1)
            work[slowed, _ops(schedule, "compute", fault.worker)] *= fault.factor
        elif isinstance(fault, Jitter):
            chosen = _ops(schedule, fault.on)
            work[begin:, chosen] *= _factors(fault.cv, (measured, int(chosen.sum())), seed, place)
    found = replace(schedule, demand=work, capacity=tuple(capacity), periodic=False)
    for fault in faults:
        if isinstance(fault, Pause):
            found = _paused(found, fault, begin)
    return found


def _factors(cv: float, shape: tuple[int, int], seed: int, place: int) -> FloatArray:
    """Log-normal factors of mean 1 and coefficient of variation `cv`."""
    spread = float(np.sqrt(np.log1p(cv**2)))
    factors: FloatArray = stream(seed, "jitter", place).lognormal(-(spread**2) / 2, spread, shape)
    return factors


def _ops(schedule: Schedule, on: str, worker: Rank | None = None) -> BoolArray:
    """Which ops do this kind of work, of one worker or all."""
    return np.array(
        [PHASE[op.kind] in SLOWED[on] and worker in (None, op.worker) for op in schedule.ops], dtype=np.bool_
    )


def _lessen(capacity: list[float], schedule: Schedule, fault: SlowLink | LossyLink | Background) -> None:
    """Leave a link, or both directions of it, what the fault leaves."""
    names = schedule.link_names
    chosen = [place for place, name in enumerate(names) if fault.link in (name, name.rpartition(".")[0])]
    if not chosen:
        raise ScenarioError(f"fault link: {fault.link} is not there; {nearest(fault.link, names)}")
    for place in chosen:
        if isinstance(fault, SlowLink):
            capacity[place] /= fault.factor
        elif isinstance(fault, LossyLink):
            capacity[place] *= 1.0 - fault.lost
        elif fault.rate < capacity[place]:
            capacity[place] -= fault.rate
        else:
            raise ScenarioError(
                f"fault rate: {BANDWIDTH.exact(fault.rate)} of background leaves {names[place]} nothing of its "
                f"{BANDWIDTH.exact(round(capacity[place]))}; allowed: less than that"
            )


def _paused(schedule: Schedule, fault: Pause, begin: Iteration) -> Schedule:
    """An op more, on a stream of its own: what the worker would begin in an iteration waits for it."""
    new = len(schedule.ops)
    first = {
        queue[0] for queue, own in zip(schedule.order, schedule.streams, strict=True) if own.worker == fault.worker
    }
    pause = Op(new, OpKind.WAIT, fault.worker, len(schedule.streams), ((schedule.ends[fault.worker], 1),))
    ops = [replace(op, after=(*op.after, (new, 0))) if op.index in first else op for op in schedule.ops]
    column = np.zeros((schedule.demand.shape[0], 1))
    column[begin + fault.iteration] = fault.seconds
    return replace(
        schedule,
        streams=(*schedule.streams, Stream(fault.worker, f"pause{new}")),
        ops=(*ops, pause),
        demand=np.concatenate([schedule.demand, column], axis=1),
        extra=np.append(schedule.extra, 0.0),
    )
