"""Diagnose a run: the worker that the others wait for, and the utilisation of workers and links.

It also rejects impossible measurements: a time below the minimum that the network needs for an iteration's bytes cannot
belong to this question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank, Seconds
from gcnsim.core.units import format_bandwidth, format_seconds
from gcnsim.graph.describe import SeedVariation
from gcnsim.hardware.link_specs import LinkName
from gcnsim.results import LinkUse, Utilization, WorkerUse
from gcnsim.scenario import Scenario
from gcnsim.schedule import resource_loads
from gcnsim.simulation.limit import Limit
from gcnsim.simulation.metrics import link_units
from gcnsim.simulation.run import Result
from gcnsim.simulation.source import RangeEnd, SourceView
from gcnsim.simulation.steady import MeasurementWindow
from gcnsim.timeline import OpKind, Phase
from gcnsim.trace.counts import AccessCounts

NOTEWORTHY: Final = 1.05
"""The least ratio of the largest load to the mean that makes a worker a straggler."""

BOUNDARY: Final = "boundary nodes"
SENT: Final = "rows sent"
ENTRIES: Final = "edges"


@dataclass(frozen=True, slots=True)
class Straggler:
    """The worker with most load on the bottleneck.

    load: what it has more of: `boundary nodes` (whose rows it receives), `rows sent` per iteration and layer if its
    boundary nodes are not above average, or `edges` (stored entries, which a GPU sums and a sampler reads). amount,
    mean: its load, and that of all workers. boundary_nodes, boundary_nodes_mean: its boundary nodes, for any kind of
    load. busy: share of the iteration in which its GPU, sampler or link is busy; others_low, others_high: the same for
    the others.
    """

    worker: Rank
    load: str
    amount: int
    mean: float
    boundary_nodes: int
    boundary_nodes_mean: float
    busy: float
    others_low: float | None
    others_high: float | None
    text: str

    @property
    def share_of_mean(self) -> float:
        """Its load over the mean worker's."""
        return self.amount / self.mean


def straggler_of(result: Result, counts: AccessCounts) -> Straggler | None:
    """The worker whose load causes `result`'s bottleneck; None if no worker has more work, or if the resource is about
    as busy everywhere.

    counts: those of the simulation. None for mini-batches, whose workers have no parts.
    """
    limit = result.limit
    if counts.batches is not None or counts.workers < 2 or not limit.most:
        # An all-reduce and the latency of messages are the same for all parts.
        return None
    heavy = [item for item in _loads(limit, counts) if item.share_of_mean(limit.worker) >= NOTEWORTHY]
    if not heavy:
        return None
    load = heavy[0]
    worker = load.heaviest if limit.worker is None else limit.worker
    boundary = counts.boundary_nodes
    straggler = Straggler(
        worker=worker,
        load=load.name,
        amount=round(float(load.amounts[worker])),
        mean=float(load.amounts.mean()),
        boundary_nodes=int(boundary[worker]),
        boundary_nodes_mean=float(boundary.mean()),
        busy=limit.busy,
        others_low=None if limit.others is None else limit.others[0],
        others_high=None if limit.others is None else limit.others[1],
        text="",
    )
    return replace(straggler, text=_text(straggler, limit))


class _Load(NamedTuple):
    """A load that differs between workers, float64[P]."""

    name: str
    amounts: FloatArray

    @property
    def heaviest(self) -> Rank:
        return int(self.amounts.argmax())

    def share_of_mean(self, worker: Rank | None) -> float:
        """The load of a worker over the mean (None: the heaviest); 0 if all are zero."""
        mean = float(self.amounts.mean())
        return float(self.amounts[self.heaviest if worker is None else worker]) / mean if mean else 0.0


def _loads(limit: Limit, counts: AccessCounts) -> list[_Load]:
    """The possible loads behind this bottleneck, likeliest first."""
    entries = _Load(ENTRIES, counts.entries.astype(np.float64))
    boundary = _Load(BOUNDARY, counts.boundary_nodes.astype(np.float64))
    sent = _Load(SENT, np.asarray(counts.rows.mean(axis=0).sum(axis=0), dtype=np.float64))
    if limit.kind in ("compute", "sampling", "cpu"):
        return [entries]
    return [boundary, sent]


def _text(found: Straggler, limit: Limit) -> str:
    text = (
        f"worker {found.worker} has {found.amount:,} {found.load}, "
        f"{found.share_of_mean:.2f} times the mean ({found.mean:,.0f})"
    )
    if found.others_low is None or found.others_high is None:
        return text
    low, high = round(100 * found.others_low), round(100 * found.others_high)
    others = f"{low} %" if low == high else f"{low} to {high} %"
    link = None if limit.link is None else LinkName.of(limit.link)
    those = "that of other workers" if link is None else link.others
    return f"{text}; {limit.most} is busy {round(100 * found.busy)} % of the time, {those} {others}"


class EvenPartition(SourceView):
    """The accesses of `source` with a perfectly balanced partition of the same totals.

    It is the ideal: no partitioner guarantees it. The total rows between servers, and within servers, stay the same.
    """

    placeable = False

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Access counts of the scenario's method, equal for all workers."""
        return evened(self.source.counts(scenario, features, bound), scenario.cluster.gpus_per_server)

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """None: a perfectly balanced partition has no variation."""
        return None


def evened(counts: AccessCounts, per_server: int = 1) -> AccessCounts:
    """The same totals, divided equally over the workers, up to rounding to whole nodes, rows and edges.

    Rows between workers of one server (of `per_server`) and rows between servers keep their totals: each kind is
    divided equally over its pairs. Counts of mini-batches are returned unchanged, because they have no parts.
    """
    if counts.batches is not None or counts.workers < 2:
        return counts
    workers = counts.workers
    server = np.arange(workers) // per_server
    same = server[:, None] == server[None, :]
    beside: BoolArray = same & ~np.eye(workers, dtype=np.bool_)
    by_worker = ("inner_edges", "boundary_edges", "inner_nodes", "boundary_nodes", "entries", "cached_rows")
    shared: dict[str, Any] = {name: _equal(getattr(counts, name), workers) for name in by_worker}
    for name in ("rows", "hits"):
        pairs: IntArray = np.zeros_like(getattr(counts, name))
        for kind in (beside, ~same):
            # By diagonals, so that remainders go to every worker in turn.
            receiver, owner = _in_turn(kind)
            if receiver.size:
                held = getattr(counts, name)[:, receiver, owner]
                pairs[:, receiver, owner] = _equal(held, receiver.size)
        shared[name] = pairs
    return replace(counts, **shared)


def _in_turn(pairs: BoolArray) -> tuple[IntArray, IntArray]:
    """The true pairs, each worker's first before any worker's second."""
    receiver, owner = np.nonzero(pairs)
    order = np.lexsort((receiver, (owner - receiver) % pairs.shape[0]))
    return receiver[order], owner[order]


def _equal(amounts: IntArray, places: int) -> IntArray:
    """The sum over the last axis divided equally over `places`, with the remainder on the first of them."""
    whole, left = np.divmod(amounts.sum(axis=-1, keepdims=True), places)
    shared: IntArray = whole + (np.arange(places) < left)
    return shared


def utilization_of(result: Result) -> Utilization:
    """Per worker and per link, the shares of the measured iterations in which it is busy."""
    window = MeasurementWindow(result.run, result.warm_up)
    per_server = result.scenario.cluster.gpus_per_server
    workers = (WorkerUse(rank, rank // per_server, *_busy(window, rank)) for rank in range(window.schedule.workers))
    schedule = result.run.schedule
    carried = link_units(result.run, result.warm_up)
    facts = zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
    links = (
        LinkUse(
            name,
            kind,
            _server(name, per_server),
            min(1.0, carried[name] / capacity / result.metrics.iteration_s),
        )
        for name, kind, capacity in facts
        if carried[name] > 0
    )
    return Utilization(tuple(workers), tuple(links))


def _busy(window: MeasurementWindow, rank: Rank) -> Iterator[float]:
    """Shares of this worker's window: its GPU, sampler, copies and all-reduce busy, and its GPU waiting."""
    start, end = window.edges(rank)
    wire = window.schedule.columns.is_kind(OpKind.WIRE)
    own = window.worker == rank
    masks: tuple[BoolArray, ...] = (
        own & window.of_phase(Phase.COMPUTE),
        own & window.is_sampling,
        own & window.of_phase(Phase.TRANSFER) & ~wire,
        own & window.of_phase(Phase.REDUCE),
    )
    for length in (*(window.spans(mask, rank).length for mask in masks), window.split(rank).exposed.length):
        yield length / max(1, end - start)


def _server(name: str, per_server: int) -> int | None:
    """The server of a link, from its name."""
    found = LinkName.of(name)
    return None if found is None else found.in_server(per_server)


COUNTED: Final = 0.75
"""The remaining share of the bytes if the partition had a quarter fewer boundary nodes."""


def least_wire_s(result: Result) -> Seconds:
    """Seconds in which the busiest NIC of the result sends its bytes of one iteration at its raw rate; 0 for one
    server.
    """
    schedule = result.run.schedule
    cards = [index for index, kind in enumerate(schedule.link_kinds) if kind == "nic"]
    seconds = resource_loads(schedule).mean(axis=0)[schedule.columns.streams :]
    return float(np.max(seconds[cards], initial=0.0)) * result.machine.network.efficiency.value


def impossible(result: Result, measured_s: Seconds, least: float = 1.0) -> str | None:
    """Why no run of this question took `measured_s` per iteration; None if one may have.

    least: the least share of the bytes under the workload's uncertainty.
    """
    return impossible_time(least * least_wire_s(result), measured_s, result.scenario.cluster.bandwidth)


def impossible_time(needed_s: Seconds, measured_s: Seconds, bandwidth: float) -> str | None:
    """The same as `impossible`, for `needed_s` seconds on NICs of `bandwidth` bytes/s."""
    if measured_s >= COUNTED * needed_s:
        return None
    return (
        f"impossible as described: its bytes need {format_seconds(needed_s)} on the busiest network card at "
        f"{format_bandwidth(bandwidth)}, {needed_s / measured_s:.1f} times the measured {format_seconds(measured_s)}"
    )
