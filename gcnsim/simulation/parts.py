"""Where each worker's simulated iteration goes, in parts that add up to it (`gcnsim.breakdown`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcnsim.breakdown import Parts, iteration_s
from gcnsim.engine import Run
from gcnsim.ids import Rank, Seconds
from gcnsim.simulation.window import MeasurementWindow
from gcnsim.timeline import PS_PER_S

ROUNDING = 1e-9
"""Share of an iteration that its parts may miss by arithmetic alone."""


def worker_parts(run: Run, first: int) -> tuple[Parts, ...]:
    """Per worker, where the iterations from `first` (at least 1) to the end of `run` went."""
    window = MeasurementWindow(run, first)
    scale = 1.0 / (window.count * PS_PER_S)
    ranks = range(run.schedule.workers)
    return tuple(window.split(rank).parts.parts(rank, lambda ps: ps * scale) for rank in ranks)


def balanced_parts(workers: Sequence[Parts], slowest: Rank, lasts_s: Seconds) -> tuple[Parts, ...]:
    """The workers' parts of an iteration of `lasts_s` seconds, where more was put off than its run shows.

    Queues still to be emptied (`gcnsim.simulation.metrics.at_least`) are messages of rows under way, on every worker.
    """
    owed = lasts_s - iteration_s(workers[slowest])
    if owed <= ROUNDING * lasts_s:
        return tuple(workers)
    return tuple(replace(each, network_s=each.network_s + owed) for each in workers)
