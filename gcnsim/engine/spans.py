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
    ops = schedule.columns
    total, count = run.ends.shape
    demand = schedule.demand[np.arange(total) % schedule.demand.shape[0]]
    on_cores = np.array([*(kind == "cpu" for kind in schedule.link_kinds), False])
    is_bytes = ops.is_flow & ~on_cores[ops.first_link()]
    columns: dict[str, AnyArray] = {
        "kind": ops.kind.astype(np.uint8),
        "worker": ops.worker.astype(np.int32),
        "stream": ops.stream.astype(np.int32),
        "layer": ops.layer.astype(np.int32),
        "direction": ops.direction.astype(np.uint8),
        "peer": ops.peer.astype(np.int32),
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
    streams = tuple(ops.names[name] for name in ops.stream_name.tolist())
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=streams)


def _waits(run: Run) -> dict[str, AnyArray]:
    """The gaps of every worker's compute stream as spans of kind WAIT, named after the op they delay."""
    columns = run.schedule.columns
    parts: list[dict[str, AnyArray]] = []
    for index in columns.streams_called(COMPUTE_STREAM).tolist():
        queue = columns.queue_of(index)
        starts, ends = run.starts[:, queue].ravel(), run.ends[:, queue].ravel()
        free = np.r_[0, ends[:-1]]
        size = starts.size
        parts.append(
            {
                "kind": np.full(size, KIND_CODE[OpKind.WAIT], dtype=np.uint8),
                "worker": np.full(size, columns.stream_worker[index], dtype=np.int32),
                "stream": np.full(size, index, dtype=np.int32),
                "iteration": np.repeat(np.arange(run.iterations, dtype=np.int32), len(queue)),
                "layer": np.tile(columns.layer[queue].astype(np.int32), run.iterations),
                "direction": np.full(size, Direction.NONE, dtype=np.uint8),
                "peer": np.full(size, -1, dtype=np.int32),
                "start_ps": free,
                "end_ps": starts,
                "nbytes": np.zeros(size),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
