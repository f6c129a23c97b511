"""A run by the kernel: its memory laid out, its questions answered, its rows as a `Run`."""

from __future__ import annotations

from collections.abc import Callable

from gcnsim.engine.kernel.layout import LARGE, layout
from gcnsim.engine.kernel.memory import ASKED, COMPLETE, STOP, packed, whole
from gcnsim.engine.kernel.run import ASKS, STOPPED
from gcnsim.engine.kernel.views import CLOSING, SCALAR
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import Enough, Stop
from gcnsim.ids import FloatArray, IntArray
from gcnsim.schedule import Schedule

Kernel = Callable[[IntArray, FloatArray, FloatArray, IntArray, IntArray, IntArray, int, int], int]
"""`gcnsim.engine.kernel.run.run`, as it stands or compiled."""


def simulate_by(
    kernel: Kernel,
    schedule: Schedule,
    iterations: int,
    enough: Enough | None = None,
    *,
    endless: bool = False,
    large: int = LARGE,
) -> Run:
    """What `gcnsim.engine.reference.simulate` gives, by `kernel`, and about that for a schedule with a grain.

    large: fewest bundles of a group of links that is then shared once per grain (`coarse`).

    Raises RuntimeError for a run that gets stuck.
    """
    stop = Stop(schedule, iterations, enough, endless=endless)
    state, rows = layout(schedule, stop.opened, large)
    ints, floats = packed(state)
    # All of it is in the blocks now.
    del state
    scalar, closing = whole(ints, SCALAR), whole(ints, CLOSING)
    count, graphs = schedule.columns.size, schedule.demand.shape[0]
    scalar[ASKED] = stop.asked_next(0) - 1
    starts, ends = rows.starts.reshape(-1, count), rows.ends.reshape(-1, count)
    complete = 0
    while True:
        why = kernel(ints, floats, *rows, graphs, stop.opened)
        if why == STOPPED:
            break
        if why != ASKS:
            raise RuntimeError(f"{schedule.method}: nothing is left to happen after {scalar[COMPLETE]} iterations")
        while complete < scalar[COMPLETE] and scalar[STOP] < 0:
            complete += 1
            if stop.over(starts, ends, complete):
                scalar[STOP] = closing[complete - 1]
        # Of those that are complete all have been asked about, or no more is asked.
        scalar[ASKED] = stop.opened if scalar[STOP] >= 0 else stop.asked_next(complete) - 1
    return stop.run(starts, ends, int(scalar[COMPLETE]))
