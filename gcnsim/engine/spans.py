"""From a run to a timeline: every op a span, and every wait of a compute stream a span of its own."""

from __future__ import annotations

import numpy as np

from gcnsim.engine.run import Run
from gcnsim.ids import AnyArray, IntArray, Iteration, Rank, frozen
from gcnsim.schedule import COMPUTE_STREAM
from gcnsim.timeline import KIND_CODE, Direction, OpKind, Timeline

Parts = dict[str, AnyArray]
"""Columns of a timeline, by name."""


def timeline(run: Run) -> Timeline:
    """All spans of `run`, ordered by (start, worker, stream, op); empty flows and zero-length ops are left out."""
    columns = run.schedule.columns
    streams = np.arange(columns.streams)
    spans = _spans(run, np.arange(columns.size), columns.streams_called(COMPUTE_STREAM), streams)
    order = np.lexsort((spans["end_ps"], spans["stream"], spans["worker"], spans["start_ps"]))
    spans = {name: column[order] for name, column in spans.items()}
    names = tuple(columns.names[name] for name in columns.stream_name.tolist())
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=names)


def timeline_near(run: Run, rank: Rank, since: int) -> Timeline:
    """The spans of one worker, and those of others whose peer it is, in no order; streams of a name are one.

    Of iterations with an op of theirs that ends after `since`, in picoseconds.
    """
    columns, near = run.schedule.columns, run.schedule.columns.near(rank)
    rows = np.flatnonzero(run.ends[:, near].max(axis=1) > since)
    main = columns.streams_called(COMPUTE_STREAM)
    own = main[columns.stream_worker[main] == rank]
    spans = _spans(run, near, own, columns.stream_name, int(rows[0]))
    return Timeline(**{name: frozen(column) for name, column in spans.items()}, streams=columns.names)


def _spans(run: Run, chosen: IntArray, main: IntArray, streams: IntArray, first: Iteration = 0) -> Parts:
    """The spans of the ops `chosen`, and the waits of the streams `main`; streams: by stream, its number there.

    From iteration `first` on.
    """
    schedule = run.schedule
    ops = schedule.columns
    rows = np.arange(first, run.iterations)
    demand = schedule.demand[:, chosen][rows % schedule.demand.shape[0]]
    on_cores = np.array([*(kind == "cpu" for kind in schedule.link_kinds), False])
    is_bytes = (ops.way[chosen] >= 0) & ~on_cores[ops.first_link(chosen)]
    columns: Parts = {
        "kind": ops.kind[chosen].astype(np.uint8),
        "worker": ops.worker[chosen].astype(np.int32),
        "stream": streams[ops.stream[chosen]].astype(np.int32),
        "layer": ops.layer[chosen].astype(np.int32),
        "direction": ops.direction[chosen].astype(np.uint8),
        "peer": ops.peer[chosen].astype(np.int32),
    }
    spans = {name: np.tile(column, rows.size) for name, column in columns.items()}
    spans["iteration"] = np.repeat(rows.astype(np.int32), chosen.size)
    spans["start_ps"], spans["end_ps"] = run.starts[first:, chosen].ravel(), run.ends[first:, chosen].ravel()
    spans["nbytes"] = np.where(is_bytes, demand, 0.0).ravel()
    every = [spans, *(_waits(run, index, int(streams[index])) for index in main.tolist())]
    spans = {name: np.concatenate([part[name] for part in every]) for name in spans}
    real = spans["end_ps"] > spans["start_ps"]
    return {name: column[real] for name, column in spans.items()}


def _waits(run: Run, index: int, stream: int) -> Parts:
    """The gaps of a worker's compute stream `index` as spans of kind WAIT, named after the op they delay."""
    columns = run.schedule.columns
    queue = columns.queue_of(index)
    starts, ends = run.starts[:, queue].ravel(), run.ends[:, queue].ravel()
    size = starts.size
    return {
        "kind": np.full(size, KIND_CODE[OpKind.WAIT], dtype=np.uint8),
        "worker": np.full(size, columns.stream_worker[index], dtype=np.int32),
        "stream": np.full(size, stream, dtype=np.int32),
        "iteration": np.repeat(np.arange(run.iterations, dtype=np.int32), queue.size),
        "layer": np.tile(columns.layer[queue].astype(np.int32), run.iterations),
        "direction": np.full(size, Direction.NONE, dtype=np.uint8),
        "peer": np.full(size, -1, dtype=np.int32),
        "start_ps": np.r_[0, ends[:-1]],
        "end_ps": starts,
        "nbytes": np.zeros(size),
    }
