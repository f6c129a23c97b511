"""The ops of schedules of mini-batches."""

from __future__ import annotations

from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import OpKind


def on(schedule: Schedule, worker: int, stream: str, *kinds: OpKind) -> list[Op]:
    return [
        op
        for op in schedule.ops
        if op.worker == worker and schedule.streams[op.stream].name == stream and (not kinds or op.kind in kinds)
    ]


def work(schedule: Schedule, op: Op, t: int = 0) -> float:
    return float(schedule.demand[t, op.index])
