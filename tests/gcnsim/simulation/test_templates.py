"""A schedule that was written at another bandwidth is the one that would have been written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.methods import every_method
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.schedule import Schedule
from gcnsim.simulation import write_schedule
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.propagation import best_lower_s, factors
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.templates import MOST, Templates

BANDWIDTHS = (1.25e8, 1.875e9, 1.25e10)


def scenario_of(method: str, **cluster: Any) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}}, "test")


def written(scenario: Scenario, accesses: Source) -> Schedule:
    features = resolve_model(scenario.workload, accesses.declared).features
    return write_schedule(scenario, accesses.counts(scenario, features, RangeEnd.LIKELY), accesses)


def same(one: Schedule, other: Schedule) -> bool:
    delays = ("latency_s", "startup_s", "queue", "way", "wait", "cap")
    return (
        one.capacity == other.capacity
        and np.array_equal(one.demand, other.demand)
        and all(np.array_equal(getattr(one.columns, name), getattr(other.columns, name)) for name in delays)
        and one.columns.routes == other.columns.routes
    )


@pytest.mark.parametrize("method", sorted(every_method()))
def test_another_bandwidth_is_other_capacities_alone(method: str) -> None:
    alone = getattr(every_method()[method], "one_server", False)
    base = scenario_of(method, gpus_per_server=4 if alone else 2)
    accesses, templates = open_source(base), Templates()
    for bandwidth in BANDWIDTHS:
        moved = replace(base, cluster=replace(base.cluster, bandwidth=bandwidth))
        expected = written(moved, accesses)
        with templates.used():
            assert same(written(moved, accesses), expected)


@pytest.mark.parametrize("method", ["psc-gcn", "bns-gcn", "distdgl"])
def test_what_the_assumptions_leave_open_is_the_same(method: str) -> None:
    base = scenario_of(method)
    accesses, templates = open_source(base), Templates()
    for bandwidth in BANDWIDTHS:
        moved = replace(base, cluster=replace(base.cluster, bandwidth=bandwidth))
        expected = factors(moved, accesses, 0)
        lower = best_lower_s(moved, accesses, RangeEnd.LIKELY)
        with templates.used():
            found = factors(moved, accesses, 0)
            assert best_lower_s(moved, accesses, RangeEnd.LIKELY) == lower
        assert np.array_equal(found.joint, expected.joint)
        assert (found.nominal_s, found.alone) == (expected.nominal_s, expected.alone)


def test_kernels_that_slow_down_beside_transfers_are_written_anew() -> None:
    base = scenario_of("psc-gcn", rate_beside_copies="50%")
    accesses, templates = open_source(base), Templates()
    schedules = []
    with templates.used():
        for bandwidth in BANDWIDTHS:
            schedules.append(written(replace(base, cluster=replace(base.cluster, bandwidth=bandwidth)), accesses))
    assert not np.array_equal(schedules[0].demand, schedules[-1].demand)


def test_few_things_are_kept_and_none_where_nobody_asked() -> None:
    templates, made = Templates(), []
    base = scenario_of("pipegcn")
    accesses = open_source(base)
    several, turns = MOST + 6, MOST + 16
    for turn in range(turns):
        templates.get(turn % several, (accesses,), lambda turn=turn: made.append(turn))  # type: ignore[misc]
    assert made == list(range(turns))
    templates.get((turns - 1) % several, (accesses,), lambda: made.append(-1))
    assert made[-1] == turns - 1
    assert written(base, accesses) is not written(base, accesses)
