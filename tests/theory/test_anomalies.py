"""Scenarios in which something better makes an iteration slower, since flows that share links then meet otherwise.

No run is wrong: their states repeat, most to the picosecond. So "never slower" holds for the analytic bounds alone, and
for runs only where flows do not wait for each other (`test_random_scenarios`).
"""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec, Paths
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.simulation import write_schedule
from gcnsim.simulation.open_assumptions import estimated_counts
from gcnsim.simulation.open_source import open_source
from gcnsim.timeline import PS_PER_S, OpKind
from tests.theory.test_random_scenarios import (
    GRAPHS,
    TAU,
    TOLERANCE,
    Largest,
    MakeFacts,
    RowScenario,
    busiest,
    pace,
    written,
)

SAMPLED: RowScenario = {
    "name": "psc-gcn",
    "workers": 5,
    "nic_latency": 0.0,
    "layers": 2,
    "cores": 1.0,
    "slope": 0.5,
    "sampled": True,
}


def test_near_saturation_a_larger_tau_may_be_slower(facts: MakeFacts) -> None:
    """With tau 3 the busiest link hardly rests, with tau 4 it does: the same messages meet otherwise."""
    requested = SAMPLED | {"per_server": 2, "nic": 55315169.6, "tau": 3, "iterations": GRAPHS, "spread": 0.8}
    before = written(facts, requested)
    assert pace(before) == pytest.approx(busiest(before)[0], rel=0.011)
    assert Largest(TAU).compare(facts, requested) == pytest.approx(0.0144, abs=0.003)
    assert Largest(TAU).compare(facts, requested | {"tau": 4}) < TOLERANCE, (
        "6 % where rows and gradients went side by side"
    )


def test_an_all_reduce_beside_more_under_way_may_be_slower(facts: MakeFacts) -> None:
    """From tau 2 on nothing else is waited for, whatever tau; but it shares links with what is then under way."""
    requested = SAMPLED | {"per_server": 1, "nic": 62342816.3, "pcie": 4.6e9, "hits": 0.5, "tau": 1}
    assert Largest(TAU).compare(facts, requested) == pytest.approx(0.021, abs=0.003)
    later = written(facts, requested, tau=2)
    assert pace(later) == pytest.approx(1.08 * busiest(later)[0], rel=0.01)
    run = simulate(later, 60)
    reducing = [op.index for op in later.ops if op.kind is OpKind.ALLREDUCE]
    taken = (run.ends[50, reducing].max() - run.starts[50, reducing].min()) / PS_PER_S
    assert taken > 0.8 * pace(later)


def test_so_it_may_where_no_link_is_nearly_saturated(facts: MakeFacts) -> None:
    """Both runs repeat themselves to the picosecond, after 10 iterations and after 740."""
    requested = SAMPLED | {"workers": 4, "per_server": 1, "nic": 19952623.1, "nic_latency": 0.002, "pcie": 316227766.0}
    requested |= {"startup": 0.0, "slope": 0.0, "rows": 50.0, "tau": 3, "iterations": GRAPHS, "spread": 0.8}
    racks = Paths(nvlink=LinkSpec(297669770.5, 1e-6), servers_per_rack=1, oversubscription=3.0, direct=True)
    requested |= {"paths": racks, "serial": True}
    later = written(facts, requested, tau=4)
    assert Largest(TAU).compare(facts, requested) == pytest.approx(0.0074, abs=0.001)
    assert pace(later) > 1.5 * busiest(later)[0]
    assert simulate(written(facts, requested), 100, endless=True).period is not None


def test_identical_iterations_may_stay_locked_far_from_what_links_need() -> None:
    """At tau 1 the pace repeats itself 15 % above what the busiest link needs; at 2 and 3 it is what the link needs.

    Graphs that vary end this (`test_a_start_in_step_is_not_believed`).
    """
    question: dict[str, Any] = {
        "schema": SCHEMA,
        "cluster": {"gpus": 8, "gpus_per_server": 1, "bandwidth": "1Gbps", "transport": "staged"},
        "workload": {"dataset": "yelp"},
    }
    paces = []
    for tau in (1, 2, 3):
        method = {"name": "psc-gcn", "tau": tau, "epsilon": 0.1, "cache": "10%"}
        asked = from_mapping(question | {"method": method}, "test")
        accesses = open_source(asked)
        schedule = write_schedule(asked, estimated_counts(asked, accesses), accesses)
        paces.append(pace(schedule) / busiest(schedule)[0])
        if tau == 1:
            assert simulate(schedule, 300, endless=True).period is not None
    assert paces == pytest.approx([1.154, 1.0, 1.0], abs=0.005)
