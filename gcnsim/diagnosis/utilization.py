"""How busy each worker and each link of a simulated run is: what a heat map shows, and where a straggler stands out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcnsim.cluster import LinkName
from gcnsim.ids import BoolArray, Rank
from gcnsim.simulation.metrics import link_units
from gcnsim.simulation.run import Result
from gcnsim.simulation.window import MeasurementWindow
from gcnsim.timeline import OpKind, Phase


def utilization_of(result: Result) -> dict[str, list[dict[str, Any]]]:
    """Per worker and per link, the shares of the measured iterations in which it is busy, as plain data.

    workers: worker, server, and shares of `gpu` (kernels), `sampler`, `copies` (rows packed and copied between device
    and host), `reduce` (the all-reduce) and `waiting` (its GPU waits for communication). All but the first and the last
    overlap, so they need not add up to one. links: name, kind, server (None of an uplink of racks) and `utilization`,
    what was carried over what could have been; for a server's cores, core-seconds. Links that carry nothing are left
    out.
    """
    window = MeasurementWindow(result.run, result.warm_up)
    per_server = result.scenario.cluster.gpus_per_server
    workers = [
        {"worker": rank, "server": rank // per_server} | _busy(window, rank) for rank in range(window.schedule.workers)
    ]
    schedule = result.run.schedule
    carried = link_units(result.run, result.warm_up)
    facts = zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
    links = [
        {
            "name": name,
            "kind": kind,
            "server": _server(name, per_server),
            "utilization": min(1.0, carried[name] / capacity / result.metrics.iteration_s),
        }
        for name, kind, capacity in facts
        if carried[name] > 0
    ]
    return {"workers": workers, "links": links}


def _busy(window: MeasurementWindow, rank: Rank) -> dict[str, float]:
    """Shares of this worker's window."""
    start, end = window.edges(rank)
    kind = np.array([op.kind for op in window.schedule.ops])
    own = window.worker == rank
    masks: dict[str, BoolArray] = {
        "gpu": own & (window.phase == Phase.COMPUTE),
        "sampler": own & window.is_sampling,
        "copies": own & (window.phase == Phase.TRANSFER) & (kind != OpKind.WIRE),
        "reduce": own & (window.phase == Phase.REDUCE),
    }
    busy = {name: window.spans(mask, rank).length for name, mask in masks.items()}
    busy["waiting"] = window.split(rank).exposed.length
    return {name: length / max(1, end - start) for name, length in busy.items()}


def _server(name: str, per_server: int) -> int | None:
    """The server that a link belongs to, by its name."""
    found = LinkName.of(name)
    return None if found is None else found.in_server(per_server)
