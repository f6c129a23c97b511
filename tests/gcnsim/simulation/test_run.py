"""One run from scenario to result, on accesses made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.methods import Method, create_method
from gcnsim.scenario import AS_NUMBERED, SCHEMA, ClusterSpec, PartitionSpec, Scenario, WorkloadSpec, from_mapping
from gcnsim.scenario.machine import LAW_ERROR
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation import simulate_scenario, write_schedule
from gcnsim.simulation.model import Declared
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.timeline import OpKind
from gcnsim.trace.counts import AccessCounts
from tests.cases import Case


@dataclass
class Made(Source):
    """A source that gives the same counts to whoever asks, and remember who did."""

    everything: AccessCounts
    drawn: AccessCounts
    asked: list[tuple[str, int, RangeEnd]]
    declared: Declared = Declared(features=64, hidden=32, layers=2, classes=8)  # noqa: RUF009 - frozen
    assumption_bounds: tuple[RangeEnd, ...] = (RangeEnd.LIKELY,)
    most_gpus: int = 1_000_000
    name: str = "made"

    def describe(self, scenario: Scenario) -> dict[str, str]:
        return {"kind": "made"}

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        self.asked.append((scenario.method.name, features, bound))
        return self.everything if scenario.method.epsilon == 1.0 else self.drawn


@pytest.fixture
def made(facts: Callable[..., Case]) -> Made:
    drawn = facts(iterations=12, rows=500.0, spread=0.2, slope=0.05, hits=0.25).counts
    return Made(facts(rows=2000.0, slope=0.05).counts, drawn, [])


def scenario(method: Method, *, bandwidth: float = 1e8, **run: Any) -> Scenario:
    cluster = ClusterSpec(gpus=4, gpus_per_server=2, bandwidth=bandwidth)
    return Scenario("test", cluster, WorkloadSpec(), PartitionSpec(placement=AS_NUMBERED), method, RunSpec(**run))


METHODS = [
    create_method("full-graph"),
    create_method("pipegcn"),
    create_method("psc-gcn", tau=0),
    create_method("psc-gcn", tau=3),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.name} {method.tau}")
def test_a_result_holds_together(made: Made, method: Method) -> None:
    result = simulate_scenario(scenario(method), made)
    assert result.settled
    assert 0.0 < result.low_s <= result.metrics.iteration_s <= result.high_s
    assert result.bounds.lower_s <= result.metrics.iteration_s * 1.01
    assert result.metrics.iteration_s <= result.bounds.upper_s * 1.01
    assert result.warm_up >= 1 + result.run.schedule.depth
    assert result.run.iterations > result.warm_up
    assert made.asked == [(method.name, 64, RangeEnd.LIKELY)]


def test_the_same_scenario_gives_the_same_result(made: Made) -> None:
    one, two = (simulate_scenario(scenario(METHODS[3]), made) for _ in range(2))
    assert one.metrics == two.metrics
    assert (one.low_s, one.high_s) == (two.low_s, two.high_s)
    np.testing.assert_array_equal(one.run.ends, two.run.ends)


def test_what_the_method_says_reaches_the_schedule(made: Made) -> None:
    method = create_method("psc-gcn", tau=5, refresh=1)
    schedules = [
        write_schedule(scenario(item), made.drawn, made)
        for item in (method, method.with_knobs(refresh=50), method.with_knobs(sampler="uniform"))
    ]
    drawn = [op.index for op in schedules[0].ops if op.kind is OpKind.SAMPLE]
    work = [float(schedule.demand[0, drawn].sum()) for schedule in schedules]
    assert work[0] > work[1] > work[2] > 0.0
    assert [schedule.depth for schedule in schedules] == [5, 5, 5]


def test_at_epsilon_one_nothing_is_drawn(made: Made) -> None:
    result = simulate_scenario(scenario(create_method("psc-gcn", epsilon=1.0, tau=1)), made)
    assert not any(op.kind is OpKind.SAMPLE for op in result.run.schedule.ops)
    assert result.metrics == simulate_scenario(scenario(METHODS[1]), made).metrics


def test_one_gpu_needs_no_network(facts: Callable[..., Case]) -> None:
    counts = facts(workers=1, per_server=1).counts
    alone = replace(scenario(METHODS[1]), cluster=ClusterSpec(gpus=1, gpus_per_server=1))
    result = simulate_scenario(alone, Made(counts, counts, []))
    assert (result.metrics.exposed_comm_s, result.metrics.hidden_comm_s, result.metrics.nic_bytes) == (0.0, 0.0, 0.0)
    assert result.metrics.iteration_s == pytest.approx(result.bounds.lower_s) == pytest.approx(result.bounds.upper_s)
    assert result.limit.word == "GPU compute"


@pytest.mark.parametrize(
    ("question", "tau", "iterations"),
    [
        ({"gpus": 2, "device": "v100-32", "bandwidth": "5.6Gbps"}, 2, 10),
        ({"gpus": 8, "device": "rtx-2080-ti", "bandwidth": "20.3Gbps"}, 5, 3),
    ],
)
def test_no_answer_is_below_its_bound(question: dict[str, object], tau: int, iterations: int) -> None:
    """Queues that grew within the tolerance for a settled run made these 0.4 and 0.5 % faster than their links are."""
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": question | {"gpus_per_server": 1},
        "workload": {"dataset": "reddit"},
        "method": {"name": "psc-gcn", "tau": tau, "epsilon": 1.0},
        "run": {"iterations": iterations},
    }
    result = simulate_scenario(from_mapping(mapping, "test"))
    metrics = result.metrics
    assert metrics.iteration_s >= result.bounds.lower_s
    # What laws leave out they leave out of the bound too.
    assert result.bounds.lower_s * (1 - LAW_ERROR) <= result.low_s <= metrics.iteration_s <= result.high_s
    assert max(metrics.nic_utilization, metrics.gpu_utilization) <= 1.0
    parts = metrics.compute_s + metrics.exposed_comm_s + metrics.exposed_other_s
    assert parts == pytest.approx(metrics.iteration_s, rel=1e-9)


@pytest.mark.parametrize(("devices", "iterations"), [("t4,rtx-2080-ti", 3), ("v100-32,t4", 5)])
def test_few_iterations_on_unequal_gpus_settle(devices: str, iterations: int) -> None:
    """4 to 6 % too slow, and not settled, where a run ended soon after the iterations that were asked for."""
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "devices": devices, "bandwidth": "15Gbps"},
        "workload": {"dataset": "reddit"},
        "method": {"name": "psc-gcn", "tau": 1, "epsilon": 0.1},
    }
    few, many = (
        simulate_scenario(from_mapping(mapping | {"run": {"iterations": count}}, "test")) for count in (iterations, 30)
    )
    assert few.settled
    assert few.metrics.iteration_s == pytest.approx(many.metrics.iteration_s, rel=0.02)


def test_a_run_that_does_not_settle_has_successors_for_its_last_iterations() -> None:
    """Where the network is a little slower than the GPUs, a pipeline of eight iterations takes hundreds to fill."""
    question = {
        "schema": SCHEMA,
        "cluster": {"gpus": 6, "bandwidth": "20.498Gbps"},
        "partition": {"placement": "as-numbered"},
        "method": {"name": "psc-gcn", "tau": 8, "epsilon": 1.0},
    }
    result = simulate_scenario(from_mapping(question, "test"))
    assert not result.settled
    run = result.run
    assert run.simulated == run.iterations
    longer = simulate(run.schedule, run.iterations + 30)
    np.testing.assert_array_equal(run.ends, longer.ends[: run.iterations])
    np.testing.assert_array_equal(run.starts, longer.starts[: run.iterations])
