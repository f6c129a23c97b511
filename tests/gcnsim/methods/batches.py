"""Figures of mini-batches on cores, and the ops of their schedules."""

from __future__ import annotations

from gcnsim.cost import BATCH_FIGURES
from gcnsim.schedule import Op, Schedule
from gcnsim.timeline import OpKind

FIGURES = dict(zip(BATCH_FIGURES, (1e-3, 1e7, 2e7, 5e6, 1e8, 2e7, 1e-5), strict=True))


def on(schedule: Schedule, worker: int, stream: str, *kinds: OpKind) -> list[Op]:
    return [
        op
        for op in schedule.ops
        if op.worker == worker and schedule.streams[op.stream].name == stream and (not kinds or op.kind in kinds)
    ]


def work(schedule: Schedule, op: Op, t: int = 0) -> float:
    return float(schedule.demand[t, op.index])
