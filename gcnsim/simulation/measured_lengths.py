"""Measured times in place of a schedule's laws, by worker, kind, layer and direction of its operations.

A file of measured times has the words of a run's recorder; a schedule has its own operations. What a worker does by
itself is replaced: kernels, packing, sampling, look-ups. Messages, copies between host and device, all-reduces and
hand-overs between threads stay as the links and the host have them.
- One measured operation may be several of the schedule, as a sum over inner and one over boundary columns: they share
  its time as the laws would.
- What the schedule does and the file does not have takes no time, since the code that was measured does not do it.
- What the file has and the schedule does not is added to the map of the same layer, or else to the optimizer's step.
- On cores, times are what a thread had a core for, beside busy neighbours; hand-overs are the processor time of an
  iteration that is in none of its operations. Whether threads wait for cores is the schedule's.
- On GPUs, the time of an iteration in none of the main stream's operations or waits is the host's, which prepares
  kernels: it is added to the optimizer's step.
- Measured iterations are drawn and replayed, all operations of one worker's iteration together, so that they vary as
  measured; each operation is scaled to its measured mean. Those that refresh the sampling probabilities come as often
  as the scenario refreshes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, log
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank, Seconds
from gcnsim.core.streams import stream
from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.records.compute_facts import (
    LOOKUP,
    MOVED,
    STEP,
    WITHOUT_LAYER,
    MeasuredPart,
    OpKey,
    first_gap,
    in_schedule_words,
    iteration_weights,
    placed,
    replayed,
    unmeasured,
)
from gcnsim.scenario import Scenario
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.schedule.columns import KIND_OF
from gcnsim.simulation.measured_setting import Answering
from gcnsim.timeline import Direction
from gcnsim.trace.counts import AccessCounts

REPLAYED: Final = 24
"""Measured iterations that are replayed before they begin again, at least."""

THREADS: Final = (COMPUTE_STREAM, "sampler", "load")
PACKING: Final = ".pack"
"""Streams, and the end of the names of others, in which a worker works by itself."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of one worker, by the schedule's words: seconds of every replayed iteration, float64[T], or a mean, float64[1].

    looked_up: rows that were looked up in an iteration, where the file says it. outside: seconds of an
    iteration outside its operations.
    """

    seconds: Mapping[OpKey, FloatArray]
    looked_up: float | None
    outside: Seconds


def with_measured(
    schedule: Schedule, scenario: Scenario, counts: AccessCounts, found: Answering, *, replayed: bool
) -> Schedule:
    """The schedule with measured times in place of the laws'. replayed: iterations are, else all are the mean.

    Raises ScenarioError for times that lack an operation that every training has.
    """
    graphs = schedule.demand.shape[0]
    times = ceil(REPLAYED / graphs) if replayed and graphs < REPLAYED else 1
    demand = np.tile(schedule.demand, (times, 1))
    own = _own_work(schedule)
    for rank in range(schedule.workers):
        lengths = _lengths(scenario, found, rank, demand.shape[0] if replayed else 1)
        _replace(schedule, demand, np.flatnonzero(own & (schedule.columns.worker == rank)), lengths, counts, rank)
    return replace(schedule, demand=demand, periodic=schedule.periodic and graphs > 1)


def _own_work(schedule: Schedule) -> BoolArray:
    """bool[ops]: what workers do by themselves, on their device or a core."""
    columns = schedule.columns
    named = np.array([name in THREADS or name.endswith(PACKING) for name in columns.names], np.bool_)
    on_cores = np.array([kind == "cpu" for kind in schedule.link_kinds], np.bool_)
    first = columns.first_link()
    inside = (columns.way < 0) | (on_cores[np.maximum(first, 0)] & (first >= 0))
    found: BoolArray = named[columns.stream_name[columns.stream]] & inside & ~columns.is_kind(*MOVED)
    return found


def _replace(
    schedule: Schedule, demand: FloatArray, ops: IntArray, lengths: Lengths, counts: AccessCounts, rank: Rank
) -> None:
    """Put the lengths of a worker's operations `ops` into `demand`, float64[T, ops of all]."""
    columns, left = schedule.columns, dict(lengths.seconds)
    groups: dict[OpKey, list[int]] = {}
    for op in ops.tolist():
        kind = KIND_OF[int(columns.kind[op])]
        key = OpKey(kind, int(columns.layer[op]), Direction(int(columns.direction[op])))
        groups.setdefault(OpKey(kind, -1, Direction.NONE) if kind in WITHOUT_LAYER else key, []).append(op)
    step = groups.pop(STEP, [])
    # What the optimizer does waits for its gradients; what else is a step there hands over between threads.
    updates = [op for op in step if columns.after[op]] or step[-1:]
    stalls = [op for op in step if op not in updates and columns.way[op] < 0]
    groups[STEP] = updates
    demand[:, stalls] = 0.0
    hand_overs = [op for op in step if op not in updates and op not in stalls]
    if hand_overs:
        _share(demand, hand_overs, np.array([lengths.outside]))
    if LOOKUP not in groups:
        left.pop(LOOKUP, None)  # a cache was measured, and none is asked about
    left = placed(left, groups)
    if not hand_overs:
        left[STEP] = left[STEP] + lengths.outside
    for key, own in groups.items():
        if key == LOOKUP:
            _look_up(demand, own, left.get(key), lengths.looked_up, counts, rank)
        elif key in left:
            _share(demand, own, left[key])
        else:
            demand[:, own] = unmeasured(key, demand[:, own])


def _share(demand: FloatArray, ops: list[int], seconds: FloatArray) -> None:
    """Give the operations `seconds`, float64[T] or [1], in the proportion in which they had theirs."""
    law = demand[:, ops].mean(axis=0)
    whole = law.sum()
    shares = law / whole if whole > 0 else np.eye(len(ops))[0]
    demand[:, ops] = np.asarray(seconds)[:, None] * shares


def _look_up(
    demand: FloatArray,
    ops: list[int],
    seconds: FloatArray | None,
    looked_up: float | None,
    counts: AccessCounts,
    rank: Rank,
) -> None:
    """Look-ups by their rows: those of the law, where none was measured."""
    if seconds is None or not looked_up:
        return
    requested = float(counts.hits[:, rank].sum(axis=1).mean())
    _share(demand, ops, seconds * (requested / looked_up))


def _lengths(scenario: Scenario, found: Answering, rank: Rank, iterations: int) -> Lengths:
    part = found.near.parts[rank]
    period = scenario.method.refresh if isinstance(scenario.method, BoundaryRows) else 1
    near = _mapped(scenario, part)
    _refuse_gaps(scenario, near, rank)
    means = _means(near, part, period)
    if found.far is not None:
        far = _means(_mapped(scenario, found.far.parts[rank]), found.far.parts[rank], period)
        # Look-ups go by their rows, which the scenario's own counts say.
        every = [key for key in {**means, **far} if key != LOOKUP]
        means |= {key: _between(means.get(key, 0.0), far.get(key, 0.0), found.share) for key in every}
    more = (part.drawn.get("hits"), part.outside_s)
    if iterations == 1:
        return Lengths({key: np.array([mean]) for key, mean in means.items()}, *more)
    drawn = replayed(part.refreshing, period, stream(scenario.run.seed, "measured compute", rank), iterations)
    return Lengths({key: _scaled(near.get(key), drawn, mean) for key, mean in means.items()}, *more)


def _means(seconds: Mapping[OpKey, FloatArray], part: MeasuredPart, period: int) -> dict[OpKey, Seconds]:
    """Mean seconds of an iteration, of which one in `period` refreshes the sampling probabilities."""
    weights = iteration_weights(part.refreshing, period)
    return {key: float(weights @ values) for key, values in seconds.items()}


def _scaled(measured: FloatArray | None, drawn: IntArray, mean: Seconds) -> FloatArray:
    """The drawn iterations, float64[T], with this mean."""
    values = np.zeros(drawn.size) if measured is None else measured[drawn]
    now = float(values.mean())
    return values * (mean / now) if now > 0 else np.full(drawn.size, mean)


def _between(near: Seconds, far: Seconds, share: float) -> Seconds:
    """The time `share` of the way from one rate to the other: a power law between them; a line where one is nothing."""
    if near > 0 and far > 0:
        return exp((1.0 - share) * log(near) + share * log(far))
    return (1.0 - share) * near + share * far


def _mapped(scenario: Scenario, part: MeasuredPart) -> dict[OpKey, FloatArray]:
    """Seconds of each measured iteration, float64[iterations], by the schedule's words."""
    method = scenario.method
    return in_schedule_words(part, on_host=method.draws_on_host and not method.mini_batches)


def _refuse_gaps(scenario: Scenario, lengths: Mapping[OpKey, FloatArray], rank: Rank) -> None:
    """Raises ScenarioError for times without the map of a layer, in either direction, or the optimizer's step."""
    if gap := first_gap(lengths, range(scenario.workload.layers or 0)):
        raise ScenarioError(
            f"cluster.measured_compute: {scenario.cluster.measured_compute}: part {rank} has no {gap}; "
            "measure it again (python -m runtime.measure)"
        )
