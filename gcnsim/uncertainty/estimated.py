"""The analytic estimate of a scenario: from the mean of a few drawn graphs, without simulating."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.boundary import AccessCounts
from gcnsim.ids import Seconds
from gcnsim.scenario import Scenario
from gcnsim.schedule import estimate
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.templates import shared
from gcnsim.sources import Source
from gcnsim.sources.model import resolve_model
from gcnsim.sources.range_end import RangeEnd

FEW: Final = 3
"""Graphs drawn for an estimate: counts of whole partitions differ little between draws."""


def mean_counts(counts: AccessCounts) -> AccessCounts:
    """One graph with the mean of all of `counts`, rounded to whole rows and edges."""
    if counts.iterations == 1:
        return counts
    mean = {
        name: getattr(counts, name).mean(axis=0, keepdims=True).round().astype("int64")
        for name in ("rows", "hits", "inner_edges", "boundary_edges")
    }
    return replace(counts, **mean)


def estimated_counts(scenario: Scenario, accesses: Source, corner: RangeEnd = RangeEnd.LIKELY) -> AccessCounts:
    """The mean of a few drawn graphs of the scenario."""
    return shared("estimated", scenario, (accesses,), lambda: _estimated_counts(scenario, accesses, corner), corner)


def _estimated_counts(scenario: Scenario, accesses: Source, corner: RangeEnd) -> AccessCounts:
    few = replace(scenario, run=replace(scenario.run, iterations=min(scenario.run.iterations, FEW)), faults=())
    features = resolve_model(scenario.workload, accesses.declared).features
    return mean_counts(accesses.counts(few, features, corner))


def estimated_s(scenario: Scenario, accesses: Source, corner: RangeEnd = RangeEnd.LIKELY) -> Seconds:
    """The analytic estimate of the scenario without its faults, in seconds per iteration."""
    calm = replace(scenario, faults=())
    return estimate(write_schedule(calm, estimated_counts(scenario, accesses, corner), accesses))
