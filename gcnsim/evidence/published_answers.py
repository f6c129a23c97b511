"""Simulates each published setting at every end of its assumptions, and reads the printed metrics off the runs.

Tables of mini-batch systems print rows loaded per epoch and partitioning time in addition to times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.ids import Bytes, Seconds
from gcnsim.core.processes import parallel_map
from gcnsim.cost import VALUE, making_core_seconds
from gcnsim.evidence.published_systems import RowScenario
from gcnsim.scenario import RELEASED
from gcnsim.scenario.machine import resolve_machine
from gcnsim.schedule import COMPUTE_STREAM, estimate
from gcnsim.simulation import Result, simulate_scenario, write_schedule
from gcnsim.simulation.assumed import normal_position
from gcnsim.simulation.batches import plan_of
from gcnsim.simulation.diagnosis import least_wire_s
from gcnsim.simulation.expected_batches import degree_law
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.propagation import factors
from gcnsim.simulation.published_tables import TableSource, random_parts
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.timeline import PS_PER_S, Direction, OpKind
from gcnsim.trace.counts import AccessCounts, BatchCounts
from gcnsim.workload import DatasetFacts, LayerShape, dataset
from gcnsim.workload.reach import Groups, counted, expected_neighbours

MANY = 16
"""Workers beyond which a simulation takes longer than its ends are worth."""


Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TableValues:
    """What tables print, of one run: seconds, bytes and elements per iteration, of the slowest worker.

    communication_s: what the GPU waits for rows, the all-reduce aside. low_s, high_s: the interval of iteration_s.
    forward_bytes: rows that all workers send. wire_s: the least that the bytes need on the network.
    memory: elements of the largest worker (BNS-GCN, eq. 4).

    Of mini-batches: per_epoch, iterations of an epoch; loaded_bytes, input rows that a worker loads in an epoch;
    cached_share, rows in its cache over the nodes of the graph; partition_s, what the partitioning before training
    takes.
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
    wire_s: float = 0.0
    per_epoch: int = 1
    loaded_bytes: float = 0.0
    cached_share: float = 0.0
    partition_s: float = 0.0

    @property
    def exchanging_s(self) -> float:
        """Communication with the all-reduce."""
        return self.communication_s + self.reduce_s


class RangeOfResults(NamedTuple):
    """One setting at the low, the likely and the high end of its assumptions."""

    low: TableValues
    likely: TableValues
    high: TableValues


def answer(
    every: Sequence[RowScenario], processes: int = 1, progress: Progress = lambda _: None, *, spread: bool = True
) -> dict[RowScenario, RangeOfResults]:
    """Every distinct setting of `every`, at all ends of its assumptions; at the likely one alone without `spread`."""
    # A simulation of many workers takes as long as all others together: its ends lie where analysis puts them.
    distinct = list(dict.fromkeys(every))
    sources: dict[object, Source] = {}
    for one in distinct:
        sources.setdefault(_source(one), _opened(one))
    large = {one for one in distinct if one.scenario.cluster.gpus > MANY}
    ends = {
        one: sources[_source(one)].assumption_bounds if spread and one not in large else (RangeEnd.LIKELY,)
        for one in distinct
    }
    pairs = [(one, bound) for one in distinct for bound in ends[one]]
    pairs.sort(key=lambda pair: -_effort(pair[0]))
    progress(f"simulating {len(distinct)} published settings")

    def run(pair: tuple[RowScenario, RangeEnd]) -> TableValues:
        return measured(pair[0], sources[_source(pair[0])], pair[1])

    def guess(pair: tuple[RowScenario, RangeEnd]) -> float:
        return estimated_s(pair[0], sources[_source(pair[0])], pair[1])

    found = dict(zip(pairs, parallel_map(run, pairs, processes), strict=True))
    unsimulated = [(one, bound) for one in distinct if spread and one in large for bound in RangeEnd]
    guessed = dict(zip(unsimulated, parallel_map(guess, unsimulated, processes), strict=True))

    def at(one: RowScenario, bound: RangeEnd) -> TableValues:
        likely = found[one, RangeEnd.LIKELY]
        if (one, bound) in guessed:
            return _longer(likely, guessed[one, bound] / guessed[one, RangeEnd.LIKELY])
        return found.get((one, bound), likely)

    return {one: RangeOfResults(*(at(one, bound) for bound in RangeEnd)) for one in distinct}


def measured(one: RowScenario, accesses: Source, bound: RangeEnd) -> TableValues:
    """One run at one end of the assumptions."""
    result = simulate_scenario(one.scenario, accesses, bound)
    model = resolve_model(one.scenario.workload, accesses.declared)
    counts = accesses.counts(one.scenario, model.features, bound)
    metrics = result.metrics
    reduce_s = _reduce_seconds(result)
    # What the slowest worker computes longer than the mean worker, that one waits for. Blocks are even, but for
    # replicas of which one has everything to do: that one's time is computation.
    longer = max(0.0, metrics.compute_s - metrics.gpu_utilization * metrics.iteration_s)
    if one.system.at_random:
        longer = 0.0
    low_s, high_s = interval_of(one, accesses, result, bound)
    measurement = TableValues(
        iteration_s=metrics.iteration_s,
        low_s=low_s,
        high_s=high_s,
        compute_s=metrics.compute_s,
        communication_s=max(0.0, metrics.exposed_comm_s - reduce_s) + (0.0 if one.scenario.method.tau else longer),
        reduce_s=reduce_s + (longer if one.scenario.method.tau else 0.0),
        sampling_s=_sampling_seconds(one, result),
        forward_bytes=_forward_bytes(result),
        memory=_memory(counts, model.shapes),
        wire_s=least_wire_s(result),
        per_epoch=result.per_epoch,
    )
    return measurement if counts.batches is None else _batched(one, measurement, counts.batches, model.shapes, bound)


def interval_of(one: RowScenario, accesses: Source, result: Result, bound: RangeEnd) -> tuple[Seconds, Seconds]:
    """The 90 % interval of an iteration: what the run and a platform's error leave open; without a platform what the
    joint draws of the assumptions do, and what laws leave out."""
    if one.scenario.cluster.platform is not None or bound is not RangeEnd.LIKELY:
        return result.low_s, result.high_s
    seconds, seed = result.metrics.iteration_s, one.scenario.run.seed
    time_factors = factors(one.scenario, accesses, seed)
    place = normal_position("laws", seed)
    reach = np.where(place < 0, seconds / result.low_s, result.high_s / seconds)
    low, high = np.quantile(
        time_factors.scaled(seconds, time_factors.joint) * reach**place, (0.05, 0.95), method="hazen"
    )
    return float(low), float(high)


def _longer(likely: TableValues, by: float) -> TableValues:
    """A run all of whose times are `by` times as long."""
    names = ("iteration_s", "low_s", "high_s", "compute_s", "communication_s", "reduce_s")
    return replace(likely, **{name: getattr(likely, name) * by for name in names})


def _batched(
    one: RowScenario, measurement: TableValues, batches: BatchCounts, shapes: tuple[LayerShape, ...], bound: RangeEnd
) -> TableValues:
    """Further values in tables of mini-batch systems."""
    plan = plan_of(one.scenario, shapes)
    measurement = replace(measurement, loaded_bytes=loaded_bytes(batches, plan.width))
    if one.scenario.workload.dataset is None:
        return measurement
    facts = dataset(one.scenario.workload.dataset)
    return replace(
        measurement,
        cached_share=float(batches.cached.mean()) / facts.nodes,
        partition_s=partition_seconds(facts, len(shapes), bound),
    )


def estimated_s(one: RowScenario, accesses: Source, bound: RangeEnd) -> float:
    """Seconds of an iteration at one end of the assumptions, unsimulated (`gcnsim.schedule.estimate`)."""
    model = resolve_model(one.scenario.workload, accesses.declared)
    return estimate(write_schedule(one.scenario, accesses.counts(one.scenario, model.features, bound), accesses))


def _source(one: RowScenario) -> object:
    """What decides the accesses of a setting."""
    spec = one.scenario
    own = None if spec.partition.statistics == "published" else (spec.workload, spec.partition, spec.method)
    return spec.workload.dataset, spec.cluster.gpus, one.boundary, one.parts, own


def _opened(one: RowScenario) -> Source:
    if one.scenario.partition.statistics != "published":
        return open_source(one.scenario)
    facts, workers = dataset(one.scenario.workload.dataset or ""), one.scenario.cluster.gpus
    if one.boundary is None:
        return TableSource(facts, workers, parts=one.parts)
    return random_parts(facts, workers, one.boundary)


def _effort(one: RowScenario) -> int:
    """How long a study takes, in no unit: ops grow with pairs of workers, iterations with sampling and staleness."""
    method = one.scenario.method
    return one.scenario.cluster.gpus**2 * (2 + method.tau) * (1 if method.epsilon == 1.0 else 4)


def _reduce_seconds(result: Result) -> float:
    """Mean time from the last worker's last gradient to when the slowest worker goes on with the sum of all.

    Once where all gradients are reduced together, else for each all-reduce that a worker waits for. Waiting for a
    slower worker before that counts as communication: it is in the exchange that blocking runs wait.
    """
    schedule, run = result.run.schedule, result.run
    waiting: dict[int, list[tuple[int, int]]] = {}
    for stream, ops in zip(schedule.streams, schedule.order, strict=True):
        if stream.name == COMPUTE_STREAM:
            waiting[stream.worker] = [
                (before, op)
                for before, op in pairwise(ops)
                if any(schedule.ops[dep].kind is OpKind.ALLREDUCE for dep, _ in schedule.ops[op].after)
            ]
    total = 0.0
    for index, (_, goes_on) in enumerate(waiting[result.metrics.worker]):
        made = [pairs[index][0] for pairs in waiting.values()]
        gaps = run.starts[result.warm_up :, goes_on] - run.ends[result.warm_up :, made].max(axis=1)
        total += float(np.maximum(gaps, 0).mean())
    return total / PS_PER_S


def _sampling_seconds(one: RowScenario, result: Result) -> float:
    """Seconds of drawing that a clock on the host sees, of the slowest worker.

    Published code reads its clock without waiting for the GPU, and its graph is sorted once a sum asks for it: of
    making the graph it sees the calls alone.
    """
    spec = one.scenario.cluster
    if spec.implementation != RELEASED or one.scenario.method.sampling().whole:
        return result.metrics.sampling_s
    schedule, run = result.run.schedule, result.run
    sample_ops = [
        n for n, op in enumerate(schedule.ops) if op.kind is OpKind.SAMPLE and op.worker == result.metrics.worker
    ]
    seconds = (run.ends - run.starts)[result.warm_up :, sample_ops].sum(axis=1).mean() / PS_PER_S
    return float(seconds) + making_core_seconds(resolve_machine(spec).host, spec.gpus - 1)


def _forward_bytes(result: Result) -> float:
    schedule = result.run.schedule
    columns = schedule.columns
    wires = columns.is_kind(OpKind.WIRE) & (columns.direction == Direction.FORWARD)
    return float(schedule.demand[:, wires].sum(axis=1).mean())


def _memory(counts: AccessCounts, shapes: Sequence[LayerShape]) -> float:
    """Elements of activations, sum over layers of (3 inner + boundary) d_l, of the largest worker (BNS-GCN, eq. 4)."""
    rows = counts.rows.sum(axis=2).mean(axis=0)
    layers = [(3 * counts.inner_nodes + (rows if shape.gathers else 0)) * shape.d_in for shape in shapes]
    return float(np.sum(layers, axis=0).max()) * VALUE


SEEN_PER_S: Final = 1.029e7
"""Nodes of neighbourhoods that PaGraph's partitioner handles in a second: fitted to the one row of its Table 5 that may
be (livejournal, 6 minutes), with the likely law of degrees. A pass over memory would do a hundred times as many."""


def loaded_bytes(batches: BatchCounts, width: int) -> Bytes:
    """Bytes of input rows that a worker loads in an epoch, in the mean of all: wanted, and not in its cache."""
    missed = (batches.wanted - batches.hits).sum(axis=2)
    return float(missed.mean()) * batches.per_epoch * VALUE * width


def partition_seconds(facts: DatasetFacts, hops: int, bound: RangeEnd) -> Seconds:
    """Seconds to deal out the training nodes: every one's neighbourhood of `hops` hops is looked at once."""
    law = degree_law(facts, bound)
    alone = expected_neighbours(law, np.array([1.0 / law.nodes]), (1.0,) * hops)
    return facts.train * facts.nodes * float(counted(law, Groups.one(), alone.chance[0]).sum()) / SEEN_PER_S
