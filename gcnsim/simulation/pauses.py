"""A worker that is stopped for a while: it begins nothing meanwhile, and nothing reaches it that has not yet begun to.

An op more, on a stream of its own, holds up all that the worker would begin in the paused iteration. Under staleness
messages and copies of earlier iterations are still queued then, and a stopped process serves none of them: what had
not begun when the pause did begins after it, the worker's own and what others send it. What was under way travels on,
as into buffers of the operating system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from gcnsim.engine import Run, begun, simulate
from gcnsim.ids import Iteration, Rank
from gcnsim.scenario import Pause
from gcnsim.schedule import Op, Schedule, Stream
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
    holds = list(_holds(simulate(schedule, at + 1), fault, at))
    found = _stopped(schedule, fault, at)
    for hold in holds:
        found = _with_op(found, hold, f"{HELD}{len(found.ops)}", {hold.op})
    return found


def _stopped(schedule: Schedule, fault: Pause, at: Iteration) -> Schedule:
    """What the worker would begin in iteration `at` waits for the pause."""
    first = {
        queue[0] for queue, own in zip(schedule.order, schedule.streams, strict=True) if own.worker == fault.worker
    }
    stop = Hold(fault.worker, at, -1, fault.seconds)
    return _with_op(schedule, stop, f"{PAUSE}{len(schedule.ops)}", first)


def _with_op(schedule: Schedule, hold: Hold, stream: str, followers: set[int]) -> Schedule:
    """`schedule` with a wait that begins with its worker's iteration, and that `followers` wait for."""
    new = len(schedule.ops)
    wait = Op(new, OpKind.WAIT, hold.worker, len(schedule.streams), ((schedule.ends[hold.worker], 1),))
    ops = [replace(op, after=(*op.after, (new, 0))) if op.index in followers else op for op in schedule.ops]
    column = np.zeros((schedule.demand.shape[0], 1))
    column[hold.row] = hold.seconds
    return replace(
        schedule,
        streams=(*schedule.streams, Stream(hold.worker, stream)),
        ops=(*ops, wait),
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
    for queue, stream in zip(schedule.order, schedule.streams, strict=True):
        own = stream.worker == worker
        held = [op for op in queue if schedule.ops[op].kind is not OpKind.ALLREDUCE]
        chosen = held if own else [op for op in held if _sent_to(schedule.ops[op], worker)]
        late = np.argwhere(since_when[: at if own else at + 1, chosen] >= stops)
        if late.size:
            row, place = (int(value) for value in late[0])
            since = int(run.ends[row - 1, schedule.ends[stream.worker]]) if row else 0
            seconds = (stops - since) / PS_PER_S + fault.seconds
            if seconds > 0:
                yield Hold(stream.worker, row, chosen[place], seconds)


def _sent_to(op: Op, worker: Rank) -> bool:
    """Whether an op is a message to the worker."""
    return op.peer == worker and op.route is not None and op.thread < 0
