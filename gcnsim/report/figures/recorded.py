"""What a recorded run gives the figure of its timeline, and the facts that its trace file needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.errors import FileError
from gcnsim.ids import IntArray
from gcnsim.report.figures.style import time_unit
from gcnsim.report.figures.timeline import TimelineData, timeline_data
from gcnsim.runs.recorded_run import TIMELINE, RecordedRun
from gcnsim.timeline import Timeline
from gcnsim.timeline.run_perfetto import MAIN, RunFacts


def facts_of_run(run: RecordedRun, spans: Timeline) -> RunFacts:
    """When the last worker's own thread ended each iteration, and which is the first that was measured.

    Raises FileError where an iteration has no span of such a thread.
    """
    main = np.isin(spans.stream, [place for place, name in enumerate(spans.streams) if name in MAIN])
    iterations = spans.iteration[main]
    count = int(iterations.max(initial=-1)) + 1
    ends: IntArray = np.zeros(count, np.int64)
    np.maximum.at(ends, iterations, spans.end_ps[main])
    empty = np.flatnonzero(np.bincount(iterations, minlength=count) == 0)
    if empty.size or count < run.iterations.size:
        place = int(empty[0]) if empty.size else count
        raise FileError(f"{run.path / TIMELINE}: has no span of a training thread in iteration {place}")
    return RunFacts(np.maximum.accumulate(ends), count - int(run.iterations.size), {})


def timeline_of_run(run: RecordedRun) -> TimelineData:
    """One steady iteration of a recorded run, the slowest worker among those shown. Raises FileError."""
    spans = run.timeline()
    facts = facts_of_run(run, spans)
    return timeline_data(spans, facts.ends, facts.measured, first=[run.slowest])


def in_one_unit(one: TimelineData, other: TimelineData) -> tuple[TimelineData, TimelineData]:
    """Both with the unit of the longer, so that their axes can be compared."""
    unit = time_unit(max(one.length_s, other.length_s))
    first, second = (replace(each, unit=unit.name, unit_s=unit.size) for each in (one, other))
    return first, second
