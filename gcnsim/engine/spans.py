"""From a run to a timeline: every op a span, and every wait of a compute stream a span of its own."""

from __future__ import annotations

import numpy as np

from gcnsim.engine.reference import Run
from gcnsim.ids import AnyArray, frozen
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.timeline import KIND_CODE, Direction, OpKind, Timeline


def timeline(run: Run, *, ordered: bool = True) -> Timeline:
    """All spans of `run`, ordered by (start, worker, stream, op); empty flows and zero-length ops are left out.

    ordered: False where the order does not matter, which saves the time for it.
    """
    schedule = run.schedule
    ops = schedule.ops
    total, count = run.ends.shape
    demand = schedule.demand[np.arange(total) % schedule.demand.shape[0]]
    is_bytes = np.array([op.route is not None and schedule.link_kinds[op.route[0]] != "cpu" for op in ops])
    columns: dict[str, AnyArray] = {
        "kind": np.array([KIND_CODE[op.kind] for op in ops], dtype=np.uint8),
        "worker": np.array([op.worker for op in ops], dtype=np.int32),
        "stream": np.array([op.stream for op in ops], dtype=np.int32),
        "layer": np.array([op.layer for op in ops], dtype=np.int32),
        "direction": np.array([op.direction for op in ops], dtype=np.uint8),
        "peer": np.array([op.peer for op in ops], dtype=np.int32),
    }
    spans: dict[str, AnyArray] = {name: np.tile(column, total) for name, column in columns.items()}
    spans["iteration"] = np.repeat(np.arange(total, dtype=np.int32), count)
    spans["start_ps"], spans["end_ps"] = run.starts.ravel(), run.ends.ravel()
    spans["nbytes"] = np.where(is_bytes, demand, 0.0).ravel()
    waits = _waits(run)
    spans = {name: np.concatenate([column, waits[name]]) for name, column in spans.items()}
    real = spans["end_ps"] > spans["start_ps"]
    spans = {name: column[real] for name, column in spans.items()}
    if ordered:
        order = np.lexsort((spans["end_ps"], spans["stream"], spans["worker"], spans["start_ps"]))
        spans = {name: column[order] for name, column in spans.items()}
    streams = tuple(stream.name for stream in schedule.streams)
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=streams)


def _waits(run: Run) -> dict[str, AnyArray]:
    """The gaps of every worker's compute stream as spans of kind WAIT, named after the op they delay."""
    schedule = run.schedule
    parts: list[dict[str, AnyArray]] = []
    for index, (stream, queue) in enumerate(zip(schedule.streams, schedule.order, strict=True)):
        if stream.name != COMPUTE_STREAM:
            continue
        starts, ends = run.starts[:, queue].ravel(), run.ends[:, queue].ravel()
        free = np.r_[0, ends[:-1]]
        size = starts.size
        parts.append(
            {
                "kind": np.full(size, KIND_CODE[OpKind.WAIT], dtype=np.uint8),
                "worker": np.full(size, stream.worker, dtype=np.int32),
                "stream": np.full(size, index, dtype=np.int32),
                "iteration": np.repeat(np.arange(run.iterations, dtype=np.int32), len(queue)),
                "layer": np.tile(np.array([schedule.ops[op].layer for op in queue], dtype=np.int32), run.iterations),
                "direction": np.full(size, Direction.NONE, dtype=np.uint8),
                "peer": np.full(size, -1, dtype=np.int32),
                "start_ps": free,
                "end_ps": starts,
                "nbytes": np.zeros(size),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
