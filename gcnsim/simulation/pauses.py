"""A worker that is stopped for a while: it begins nothing meanwhile, and nothing reaches it that has not yet begun to.

An op more, on a stream of its own, holds up all that the worker would begin in the paused iteration. Under staleness
messages and copies of earlier iterations are still queued then, and a stopped process serves none of them: what had
not begun when the pause did begins after it, the worker's own and what others send it. What was under way travels on,
as into buffers of the operating system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from gcnsim.engine import Run, begun, simulate
from gcnsim.ids import Iteration, Rank
from gcnsim.scenario import Pause
from gcnsim.schedule import Schedule, stream_waits, with_op
from gcnsim.simulation.window import PAUSE
from gcnsim.timeline import PS_PER_S, OpKind

HELD: Final = "held"
"""How streams begin whose spans hold a message up until its worker goes on."""


class Hold(NamedTuple):
    """Op `op` of iteration `row` begins no sooner than `seconds` after the end of iteration `row` - 1 of `worker`."""

    worker: Rank
    row: Iteration
    op: int
    seconds: float


def paused(schedule: Schedule, fault: Pause, begin: Iteration) -> Schedule:
    """`schedule`, whose work is told for every iteration, with the pause; begin: the first measured iteration."""
    at = begin + fault.iteration
    # Until the pause the run is the same without it: what has begun by then is read off.
    holds = list(_holds(simulate(schedule, at + 1, endless=True), fault, at))
    found = _stopped(schedule, fault, at)
    for hold in holds:
        found = _with_op(found, hold, f"{HELD}{found.columns.size}", [hold.op])
    return found


def _stopped(schedule: Schedule, fault: Pause, at: Iteration) -> Schedule:
    """What the worker would begin in iteration `at` waits for the pause."""
    columns = schedule.columns
    first = np.flatnonzero((stream_waits(columns).lag == 1) & (columns.worker == fault.worker)).tolist()
    stop = Hold(fault.worker, at, -1, fault.seconds)
    return _with_op(schedule, stop, f"{PAUSE}{columns.size}", first)


def _with_op(schedule: Schedule, hold: Hold, stream: str, followers: Sequence[int]) -> Schedule:
    """`schedule` with a wait that begins with its worker's iteration, and that `followers` wait for."""
    after = (schedule.ends[hold.worker], 1)
    columns = with_op(schedule.columns, OpKind.WAIT, hold.worker, stream, after, followers)
    column = np.zeros((schedule.demand.shape[0], 1))
    column[hold.row] = hold.seconds
    return replace(
        schedule,
        columns=columns,
        demand=np.concatenate([schedule.demand, column], axis=1),
    )


def _holds(run: Run, fault: Pause, at: Iteration) -> Iterator[Hold]:
    """The first op of each stream that the pause holds up, where it is of an earlier iteration, or sent to the worker.

    Streams run in order, so what follows it on its stream waits too. What the worker itself begins in the paused
    iteration `_stopped` holds up. A worker's iteration has ended when it has passed on what it owes of the all-reduce.
    """
    schedule, worker = run.schedule, fault.worker
    since_when = begun(run)
    stops = int(run.ends[at - 1, schedule.ends[worker]])
    columns = schedule.columns
    reduces = columns.is_kind(OpKind.ALLREDUCE)
    sent = (columns.peer == worker) & columns.is_flow & (columns.thread < 0)
    for queue, stream in zip(schedule.order, schedule.streams, strict=True):
        own = stream.worker == worker
        held = [op for op in queue if not reduces[op]]
        chosen = held if own else [op for op in held if sent[op]]
        late = np.argwhere(since_when[: at if own else at + 1, chosen] >= stops)
        if late.size:
            row, place = (int(value) for value in late[0])
            since = int(run.ends[row - 1, schedule.ends[stream.worker]]) if row else 0
            seconds = (stops - since) / PS_PER_S + fault.seconds
            if seconds > 0:
                yield Hold(stream.worker, row, chosen[place], seconds)
