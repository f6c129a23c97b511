"""How busy each worker and each link of a simulated run is: what a heat map shows, and where a straggler stands out."""

from __future__ import annotations

from collections.abc import Iterator

from gcnsim.cluster import LinkName
from gcnsim.ids import BoolArray, Rank
from gcnsim.results import LinkUse, Utilization, WorkerUse
from gcnsim.simulation.metrics import link_units
from gcnsim.simulation.run import Result
from gcnsim.simulation.window import MeasurementWindow
from gcnsim.timeline import OpKind, Phase


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
    """Shares of this worker's window: its GPU, sampler, copies and all-reduce, and its GPU's waiting."""
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
    """The server that a link belongs to, by its name."""
    found = LinkName.of(name)
    return None if found is None else found.in_server(per_server)
