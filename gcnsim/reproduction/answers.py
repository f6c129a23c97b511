"""Each setting simulated once at every end of its assumptions, and what tables print read off the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gcnsim.cost import VALUE, elementwise_seconds
from gcnsim.processes import each
from gcnsim.reproduction.asking import Asked
from gcnsim.reproduction.parts import TableAccesses
from gcnsim.schedule import COMPUTE_STREAM, estimate
from gcnsim.study import (
    Accesses,
    Corner,
    Result,
    machine,
    platform_of,
    resolve_model,
    study,
    write_schedule,
)
from gcnsim.timeline import PHASE, PS_PER_S, Direction, OpKind, Phase
from gcnsim.trace import AccessCounts
from gcnsim.workload import BoundaryRow, LayerShape, dataset

MANY = 16
"""Workers beyond which a simulation takes longer than its ends are worth."""

SMOOTHING_PASSES = 3
"""A moving average is read, the received row is read, the average is written (PipeGCN, smoothing)."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What tables print, of one run: seconds, bytes and elements per iteration, of the slowest worker.

    communication_s: what the GPU waits for rows, the all-reduce aside. low_s, high_s: the interval of iteration_s.
    forward_bytes: rows that all workers send. memory: elements of the largest worker (BNS-GCN, eq. 4).
    smoothing: what a moving average of received rows would add to its kernels, by direction.
    """

    iteration_s: float
    low_s: float
    high_s: float
    compute_s: float
    communication_s: float
    reduce_s: float
    sampling_s: float
    forward_bytes: float
    memory: float
    smoothing: Mapping[str, float]

    def smoothed(self, ways: Sequence[str]) -> Measured:
        """The run with a moving average of what it receives in these directions."""
        more = sum(self.smoothing[way] for way in ways)
        longer = {name: getattr(self, name) + more for name in ("iteration_s", "low_s", "high_s", "compute_s")}
        return replace(self, **longer)


class Ends(NamedTuple):
    """One setting at the low, the likely and the high end of its assumptions."""

    low: Measured
    likely: Measured
    high: Measured


def answer(
    every: Sequence[Asked], processes: int = 1, progress: Progress = lambda _: None, *, spread: bool = True
) -> dict[Asked, Ends]:
    """Every distinct setting of `every`, at all ends of its assumptions; at the likely one alone without `spread`."""
    distinct = list(dict.fromkeys(map(_run_of, every)))
    sources: dict[object, Accesses] = {}
    for one in distinct:
        sources.setdefault(_source(one), _opened(one))
    ends = {one: corners_of(one, sources[_source(one)]) if spread else (Corner.LIKELY,) for one in distinct}
    pairs = [(one, corner) for one in distinct for corner in ends[one]]
    pairs.sort(key=lambda pair: -_effort(pair[0]))
    progress(f"simulating {len(distinct)} published settings")

    def run(pair: tuple[Asked, Corner]) -> Measured:
        return measured(pair[0], sources[_source(pair[0])], pair[1])

    found = dict(zip(pairs, each(run, pairs, processes), strict=True))

    def at(one: Asked, corner: Corner) -> Measured:
        likely = found[_run_of(one), Corner.LIKELY]
        return found.get((_run_of(one), corner), likely).smoothed(one.system.smooths)

    return {one: Ends(*(at(one, corner) for corner in Corner)) for one in every}


def _run_of(one: Asked) -> Asked:
    """The simulation that answers a setting: moving averages are added to it afterwards."""
    return one.by(one.scenario.method)


def corners_of(one: Asked, accesses: Accesses) -> tuple[Corner, ...]:
    """The ends to simulate: the likely one alone of a cluster that takes as long as all others together."""
    return (Corner.LIKELY,) if one.scenario.cluster.gpus > MANY else accesses.corners


def measured(one: Asked, accesses: Accesses, corner: Corner) -> Measured:
    """One run at one end of the assumptions; of many workers that pipeline, what analysis says of it."""
    if one.scenario.cluster.gpus > MANY and one.scenario.method.tau:
        return estimated(one, accesses, corner)
    result = study(one.scenario, accesses, corner)
    model = resolve_model(one.scenario.workload, accesses.declared)
    counts = accesses.counts(one.scenario, model.features, corner)
    metrics = result.metrics
    reduce_s = _reduce_seconds(result)
    return Measured(
        iteration_s=metrics.iteration_s,
        low_s=result.low_s,
        high_s=result.high_s,
        compute_s=metrics.compute_s,
        communication_s=max(0.0, metrics.exposed_comm_s - reduce_s),
        reduce_s=reduce_s,
        sampling_s=metrics.sampling_s,
        forward_bytes=_forward_bytes(result),
        memory=_memory(counts, model.shapes),
        smoothing=_smoothing_seconds(one, counts, model.shapes, metrics.worker),
    )


def estimated(one: Asked, accesses: Accesses, corner: Corner) -> Measured:
    """One run by analysis: as long as its largest load or its longest chain (`gcnsim.schedule.estimate`).

    Computation is the kernels of the worker that has most of them, the all-reduce what its messages take alone.
    """
    model = resolve_model(one.scenario.workload, accesses.declared)
    counts = accesses.counts(one.scenario, model.features, corner)
    schedule = write_schedule(one.scenario, counts, accesses)
    work = schedule.demand.mean(axis=0)
    kernels = [op for op in schedule.ops if PHASE[op.kind] is Phase.COMPUTE]
    compute = np.bincount([op.worker for op in kernels], weights=work[[op.index for op in kernels]])
    rank = int(np.argmax(compute))
    reduced = [op for op in schedule.ops if op.kind is OpKind.ALLREDUCE and op.worker == rank]
    reduce_s = sum(
        op.latency_s + work[op.index] / min(schedule.capacity[link] for link in op.route or ()) for op in reduced
    )
    iteration_s = max(estimate(schedule), float(compute[rank]) + reduce_s)
    platform = platform_of(one.scenario.cluster)
    spread = iteration_s * (0.0 if platform is None else platform.error)
    wires = [op.index for op in schedule.ops if op.kind is OpKind.WIRE and op.direction is Direction.FORWARD]
    return Measured(
        iteration_s=iteration_s,
        low_s=iteration_s - spread,
        high_s=iteration_s + spread,
        compute_s=float(compute[rank]),
        communication_s=iteration_s - float(compute[rank]) - reduce_s,
        reduce_s=reduce_s,
        sampling_s=0.0,
        forward_bytes=float(work[wires].sum()),
        memory=_memory(counts, model.shapes),
        smoothing=_smoothing_seconds(one, counts, model.shapes, rank),
    )


def _source(one: Asked) -> object:
    """What decides the accesses of a setting."""
    return one.scenario.workload.dataset, one.scenario.cluster.gpus, one.boundary


def _opened(one: Asked) -> Accesses:
    facts, workers = dataset(one.scenario.workload.dataset or ""), one.scenario.cluster.gpus
    if one.boundary is None:
        return TableAccesses(facts, workers)
    row = BoundaryRow(workers, facts.nodes / workers, one.boundary)
    return TableAccesses(replace(facts, boundary=(row,)), workers, at_random=True)


def _effort(one: Asked) -> int:
    """How long a study takes, in no unit: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = one.scenario.method
    return one.scenario.cluster.gpus**2 * (2 + method.tau) * (1 if method.epsilon == 1.0 else 4)


def _reduce_seconds(result: Result) -> float:
    """Mean time from the last worker's last gradient to the slowest worker's optimizer step.

    Waiting for a slower worker before that counts as communication: it is in the exchange that blocking runs wait.
    """
    schedule, run = result.run.schedule, result.run
    steps = {op.worker: op.index for op in schedule.ops if op.kind is OpKind.STEP}
    last = []
    for stream, ops in zip(schedule.streams, schedule.order, strict=True):
        if stream.name == COMPUTE_STREAM:
            last.append(ops[ops.index(steps[stream.worker]) - 1])
    gaps = run.starts[result.warm_up :, steps[result.metrics.worker]] - run.ends[result.warm_up :, last].max(axis=1)
    return float(np.maximum(gaps, 0).mean()) / PS_PER_S


def _forward_bytes(result: Result) -> float:
    schedule = result.run.schedule
    wires = [op.index for op in schedule.ops if op.kind is OpKind.WIRE and op.direction is Direction.FORWARD]
    return float(schedule.demand[:, wires].sum(axis=1).mean())


def _smoothing_seconds(one: Asked, counts: AccessCounts, shapes: Sequence[LayerShape], rank: int) -> dict[str, float]:
    """What moving averages of received rows add to a worker's kernels (PipeGCN's variants)."""
    _, device, _ = machine(one.scenario.cluster)
    rows = {
        "forward": float(counts.rows[:, rank].sum(axis=1).mean()),
        "backward": float(counts.rows[:, :, rank].sum(axis=1).mean()),
    }
    widths = {
        "forward": [shape.d_in for shape in shapes if shape.gathers],
        "backward": [shape.d_in for shape in shapes[1:] if shape.gathers],
    }
    return {
        way: sum(float(elementwise_seconds(device, rows[way] * width, SMOOTHING_PASSES)) for width in widths[way])
        for way in rows
    }


def _memory(counts: AccessCounts, shapes: Sequence[LayerShape]) -> float:
    """Elements of activations, sum over layers of (3 inner + boundary) d_l, of the largest worker (BNS-GCN, eq. 4)."""
    rows = counts.rows.sum(axis=2).mean(axis=0)
    layers = [(3 * counts.inner_nodes + (rows if shape.gathers else 0)) * shape.d_in for shape in shapes]
    return float(np.sum(layers, axis=0).max()) * VALUE
