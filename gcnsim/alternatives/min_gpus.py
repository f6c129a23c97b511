"""The fewest GPUs that would hold a scenario, by the counts of as many parts: nothing is scaled.

A part of half the nodes borders on more than half as many, and its cache is a share of these, so memory at one number
of parts does not tell that at another. What is known of a dataset does; of one partition of a graph it does not.
"""

from __future__ import annotations

from dataclasses import replace

from gcnsim.errors import ScenarioError
from gcnsim.machine import resolve_machine
from gcnsim.scenario import MOST_GPUS, ClusterSpec, Scenario
from gcnsim.simulation.memory import fits, memory_of
from gcnsim.sources import Source
from gcnsim.sources.model import resolve_model
from gcnsim.sources.range_end import RangeEnd

LINEAR_SCAN = 32
"""Numbers of GPUs that are asked one by one: profiles answer for them at once."""

NEAR = 128
"""Numbers of GPUs that are looked at before larger ones, whose counts take seconds each."""

DRAWN = 3
"""Graphs drawn to tell what a worker holds at most: whole partitions differ little between draws."""


def holds(scenario: Scenario, accesses: Source) -> bool | None:
    """Whether the scenario's GPUs hold it, by a few drawn graphs; None where there is no law, or no counts."""
    run = replace(scenario.run, iterations=min(scenario.run.iterations, DRAWN))
    model = resolve_model(scenario.workload, accesses.declared)
    asked = replace(scenario, run=run, faults=())
    try:
        counts = accesses.counts(asked, model.features, RangeEnd.LIKELY)
        return fits(memory_of(asked, counts, model.shapes), resolve_machine(scenario.cluster).capacities)
    except ScenarioError:
        return None


def known_at_other_sizes(scenario: Scenario, accesses: Source) -> bool:
    """Whether counts are known at other numbers of parts, and parts are what makes memory smaller.

    Where the GPUs stand for more (`partition.parts`) fewer of them hold parts as large.
    """
    return accesses.any_parts and scenario.partition.parts is None and not scenario.method.mini_batches


def _first(cluster: ClusterSpec, gpus: int) -> ClusterSpec:
    """Servers like the first ones of `cluster` with `gpus` in all, and no more of it than memory depends on."""
    servers = -(-gpus // cluster.gpus_per_server)
    return ClusterSpec(
        gpus=gpus,
        gpus_per_server=cluster.gpus_per_server,
        device=cluster.device,
        devices=None if cluster.devices is None else cluster.devices[:servers],
        payload=cluster.payload,
    )


def least_gpus(scenario: Scenario, accesses: Source) -> int | None:
    """The fewest GPUs of this kind that hold the scenario; None where that is not known, or not even the most do.

    Each number is asked up to LINEAR_SCAN, since memory falls with parts but for their unevenness; beyond, by halving:
    up to NEAR, or else up to twice as many until they hold it.
    """
    if not known_at_other_sizes(scenario, accesses) or resolve_machine(scenario.cluster).capacities is None:
        return None
    step = scenario.method.worker_multiple
    most = min(accesses.most_gpus, MOST_GPUS) // step
    walked = min(LINEAR_SCAN // step, most)

    def enough(parts: int) -> bool:
        return bool(holds(replace(scenario, cluster=_first(scenario.cluster, parts * step), faults=()), accesses))

    found = next((parts for parts in range(1, walked + 1) if enough(parts)), None)
    if found is not None:
        return found * step
    few, many = walked, min(max(walked, NEAR // step), most)
    while few == many or not enough(many):
        if many == most:
            return None
        few, many = many, min(2 * many, most)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many * step
