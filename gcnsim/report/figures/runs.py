"""What a recorded or simulated run gives the figure of its timeline, and what its trace file needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gcnsim.errors import FileError
from gcnsim.ids import IntArray
from gcnsim.report.figures.links import Pairs, pairs_data
from gcnsim.report.figures.style import time_unit
from gcnsim.report.figures.timeline import PS_PER_S, TimelineData, timeline_data
from gcnsim.runs.recorded_run import TIMELINE, RecordedRun
from gcnsim.timeline import Timeline
from gcnsim.timeline.run_perfetto import MAIN, RunFacts
from gcnsim.units import format_seconds

if TYPE_CHECKING:
    from gcnsim.engine import Run
    from gcnsim.simulation import Result
    from gcnsim.timeline import Timeline


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


def timeline_of_result(result: Result) -> TimelineData:
    """One steady iteration of a simulated run; where workers are many, the slowest and the first of the others."""
    from gcnsim.engine import link_rates, timeline

    run, spans = result.run, timeline(result.run)
    return timeline_data(
        spans,
        run.ends[:, list(run.schedule.ends)].max(axis=1),
        result.warm_up,
        rates=link_rates(run),
        capacity=dict(zip(run.schedule.link_names, run.schedule.capacity, strict=True)),
        waited=Causes(run, spans),
        first=[result.metrics.worker],
    )


def pairs_of_result(result: Result) -> Pairs:
    """Bytes per iteration between the workers of a simulated run."""
    from gcnsim.engine import timeline

    return pairs_data(timeline(result.run), result.warm_up, len(result.run.schedule.ends))


class Causes:
    """What each span of a simulated run waited for: of what had to end before it, that which ended last."""

    def __init__(self, run: Run, spans: Timeline) -> None:
        self._run, self._spans = run, spans
        self._ops: dict[tuple[object, ...], list[int]] = {}
        for op in run.schedule.ops:
            self._ops.setdefault((op.stream, op.kind, op.layer, op.direction, op.peer), []).append(op.index)

    def __call__(self, span: int) -> str:
        """In words: `waited 1.20 ms for wire of worker 2, layer 1, of the iteration before`; empty of no wait."""
        from gcnsim.timeline import KINDS, Direction

        told, run = self._spans, self._run
        key = (
            int(told.stream[span]),
            KINDS[int(told.kind[span])],
            int(told.layer[span]),
            Direction(int(told.direction[span])),
            int(told.peer[span]),
        )
        iteration, start = int(told.iteration[span]), int(told.start_ps[span])
        index = next((op for op in self._ops.get(key, ()) if run.starts[iteration, op] == start), None)
        return "" if index is None else self._of(index, iteration, start)

    def _of(self, index: int, iteration: int, start: int) -> str:
        run, ops = self._run, self._run.schedule.ops
        op = ops[index]
        before = [(int(run.ends[iteration - lag, each]), each, lag) for each, lag in op.waits if lag <= iteration]
        own = [end for end, each, _ in before if ops[each].stream == op.stream]
        others = [found for found in before if ops[found[1]].stream != op.stream]
        stream = run.schedule.order[op.stream]
        at = stream.index(index)
        turn = (iteration, stream[at - 1]) if at else (iteration - 1, stream[-1])
        if turn[0] >= 0:
            own.append(int(run.ends[turn]))
        if not others:
            return ""
        end, cause, lag = max(others)
        free = max(own, default=0)
        if end <= free or end > start:
            return "waited for nothing but its own stream"
        other = ops[cause]
        layer = f", layer {other.layer}" if other.layer >= 0 else ""
        when = "" if lag == 0 else f", of {'the iteration' if lag == 1 else f'{lag} iterations'} before"
        return (
            f"waited {format_seconds((start - free) / PS_PER_S)} for {other.kind} of worker {other.worker}{layer}{when}"
        )
