"""When a run is steady: not while a pipeline still fills, soon when every iteration is the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import Run, simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.steady import BEHIND, Steady, Window
from gcnsim.timeline import OpKind
from tests.cases import Case, method

Builders = Callable[..., Builder]


def mean(schedule: Schedule, run: Run, first: int) -> float:
    closing = run.ends[:, list(schedule.ends)].max(axis=1)
    return float(closing[-1] - closing[first - 1]) / (run.iterations - first)


def judged(schedule: Schedule, measured: int = 30) -> tuple[Run, Window]:
    judge = Steady(schedule, measured)
    run = simulate(schedule, judge.most, judge.enough)
    return run, judge.window(run.ends)


def filling(b: Builder, tau: int, slower: float) -> Schedule:
    """1 s of compute whose transfer takes `slower` s; the queue between them has `tau` places."""
    read = b.compute(OpKind.SCATTER, 0, 0.0)
    work = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = b.flow(OpKind.WIRE, 0, slower, (0,), stream="tx", after=[work])
    b.wait_for(read, (sent, tau))
    b.reuse(sent, read)
    return b.close([work])


@pytest.mark.parametrize("slower", [0.5, 1.002, 1.02, 1.5])
@pytest.mark.parametrize("tau", [2, 5])
def test_a_filling_pipeline_is_not_steady_too_early(builder: Builders, tau: int, slower: float) -> None:
    schedule = filling(builder(1.0), tau, slower)
    run, window = judged(schedule)
    truth = max(1.0, slower) * 1e12
    found = mean(schedule, run, window.first)
    reaches = found * (1.0 + (0.0 if window.settled else window.behind))
    assert reaches == pytest.approx(truth, rel=0.01)
    assert found <= truth * 1.01


def test_an_unsettled_run_says_how_fast_its_slowest_op_falls_behind(builder: Builders) -> None:
    schedule = filling(builder(1.0), 5, 1.02)
    run = simulate(schedule, 60)
    window = Steady(schedule, 20).window(run.ends)
    assert not window.settled
    assert window.behind == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize(("name", "tau"), [("full-graph", 0), ("pipegcn", 1), ("psc-gcn", 3)])
def test_constant_schedules_stop_early_and_are_right(facts: Callable[..., Case], name: str, tau: int) -> None:
    schedule = method(name)(facts(tau=tau, slope=0.1, nic=1e10))
    run, window = judged(schedule)
    assert run.iterations <= 6 * (1 + tau) + 8
    assert window.settled
    truth = mean(schedule, simulate(schedule, 200), 100)
    assert mean(schedule, run, window.first) == pytest.approx(truth, rel=0.01)


def test_a_start_in_step_is_not_believed() -> None:
    """All workers start in step, 7 % slower than they go once graphs have moved them apart, after some 20 iterations.

    Their state returns before that: the run was once over after 17.
    """
    question = {
        "schema": SCHEMA,
        "cluster": {"gpus": 8, "gpus_per_server": 1, "bandwidth": "1Gbps", "transport": "staged"},
        "workload": {"dataset": "yelp"},
        "method": {"name": "psc-gcn", "tau": 1, "epsilon": 0.1, "cache": "10%"},
        "run": {"seed": 1},
    }
    result = simulate_scenario(from_mapping(question, "test"))
    schedule = result.run.schedule
    pace = mean(schedule, simulate(schedule, 400, endless=True), 100)
    assert result.settled
    assert mean(schedule, simulate(schedule, 17, endless=True), 9) > 1.07 * pace
    assert result.metrics.iteration_s * 1e12 == pytest.approx(pace, rel=0.01)


# With the boundary that graphs of low degree are given now, ogbn-arxiv's pipeline moves on for more than 60 iterations.
LONGER = pytest.mark.xfail(strict=True, reason="4.8 % too fast: a constant state still moves after 60 iterations")
CONSTANT = [
    (6, "reddit", "20.3Gbps", "staged", "h100"),
    pytest.param(8, "ogbn-arxiv", "1.5Gbps", "direct", "a100-80", marks=LONGER),
]
"""4 and 5 % too fast where a state was believed that returned within 0.5 and 0.06 %, after 9 and 30 iterations."""


@pytest.mark.parametrize(("gpus", "dataset", "bandwidth", "transport", "device"), CONSTANT)
def test_a_constant_state_that_only_nearly_returns_is_not_believed(
    gpus: int, dataset: str, bandwidth: str, transport: str, device: str
) -> None:
    cluster = {"gpus": gpus, "gpus_per_server": 1, "bandwidth": bandwidth, "transport": transport, "device": device}
    question = {"schema": SCHEMA, "cluster": cluster, "workload": {"dataset": dataset}, "method": {"name": "pipegcn"}}
    result = simulate_scenario(from_mapping(question, "test"))
    schedule = result.run.schedule
    pace = mean(schedule, simulate(schedule, 300, endless=True), 150)
    assert result.metrics.iteration_s * 1e12 == pytest.approx(pace, rel=0.01)


@pytest.mark.parametrize("tau", [0, 2, 5])
def test_sampled_schedules_are_averaged_and_right(facts: Callable[..., Case], tau: int) -> None:
    given = facts(tau=tau, sampled=True, iterations=30, spread=0.2, slope=0.1, nic=1e8)
    schedule = method("psc-gcn")(given)
    run, window = judged(schedule)
    assert run.iterations - window.first >= 6
    truth = mean(schedule, simulate(schedule, 330), 300)
    assert mean(schedule, run, window.first) == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("measured", [1, 2, 10])
def test_no_more_iterations_are_measured_than_asked_for(builder: Builders, measured: int) -> None:
    schedule = filling(builder(1.0), 5, 1.02)
    judge = Steady(schedule, measured)
    run = simulate(schedule, judge.most, judge.enough)
    window = judge.window(run.ends)
    assert judge.warm_up <= window.first < run.iterations <= judge.most
    assert run.iterations - window.first <= max(measured, judge.least)


def test_a_long_run_agrees_with_what_a_filling_pipeline_was_judged(builder: Builders) -> None:
    schedule = filling(builder(1.0), 5, 1.02)
    run, window = judged(schedule)
    truth = mean(schedule, simulate(schedule, 400), 300)
    assert mean(schedule, run, window.first) * (1.0 + window.behind) == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("measured", [1, 3])
def test_few_iterations_of_an_alternating_pipeline_are_measured_over_whole_rounds(
    facts: Callable[..., Case], measured: int
) -> None:
    """Saturated, it alternates between a few times: 3 to 5 % were missed where no more iterations were measured."""
    schedule = method("pipegcn")(facts(workers=2, per_server=1, nic=6.3e7, nic_latency=0.0, tau=1))
    judge = Steady(schedule, measured)
    run = simulate(schedule, judge.most, judge.enough)
    window = judge.window(run.ends)
    truth = mean(schedule, simulate(schedule, 400), 200)
    assert window.settled
    assert mean(schedule, run, window.first) == pytest.approx(truth, rel=0.015)


def test_more_iterations_than_asked_for_are_whole_rounds_of_the_drawn_graphs(facts: Callable[..., Case]) -> None:
    given = facts(tau=3, sampled=True, iterations=3, spread=0.3, slope=0.2, nic=1.5e8)
    schedule = method("psc-gcn")(given)
    run, window = judged(schedule, 3)
    assert window.settled
    assert (run.iterations - window.first) % 3 == 0
    assert mean(schedule, run, window.first) == pytest.approx(mean(schedule, simulate(schedule, 600), 300), rel=0.015)


SETTLED = Window(5, 0.0, 0.0)


def drawn(b: Builder, amounts: list[float], small: list[float]) -> Schedule:
    b.flow(OpKind.WIRE, 0, np.array(small), (0,), stream="tx")
    return b.close([b.compute(OpKind.UPDATE, 0, np.array(amounts))])


def test_equal_graphs_are_known_exactly(builder: Builders) -> None:
    schedule = drawn(builder(1.0, iterations=3), [2.0] * 3, [1.0] * 3)
    assert Steady(schedule, 30).spread(SETTLED, schedule) == 0.0


def test_the_mean_of_drawn_graphs_is_covered_nine_times_in_ten(builder: Builders) -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        amounts = rng.normal(1.0, 0.1, size=30).tolist()
        schedule = drawn(builder(1.0, iterations=30), amounts, [0.1] * 30)
        width = Steady(schedule, 30).spread(SETTLED, schedule)
        inside.append(abs(np.mean(amounts) - 1.0) <= width * np.mean(amounts))
    assert 0.85 <= np.mean(inside) <= 0.94


def test_only_resources_that_matter_count(builder: Builders) -> None:
    amounts, wild = [1.0, 1.1, 0.9, 1.0], [0.01, 0.4, 0.0, 0.2]
    plain = drawn(builder(1.0, iterations=4), amounts, [0.0] * 4)
    beside = drawn(builder(1.0, iterations=4), amounts, wild)
    assert Steady(beside, 30).spread(SETTLED, beside) == Steady(plain, 30).spread(SETTLED, plain) > 0.0


def test_what_the_state_may_hide_is_added(builder: Builders) -> None:
    schedule = drawn(builder(1.0, iterations=2), [1.0] * 2, [0.0] * 2)
    judge = Steady(schedule, 30)
    assert judge.spread(Window(5, 0.008, 0.0), schedule) == pytest.approx(0.008)
    assert judge.spread(Window(5, -0.1, 0.03), schedule) == pytest.approx(0.018)


def test_a_state_has_returned_when_no_op_moved_by_more_than_the_tolerance() -> None:
    assert Window(5, BEHIND, 0.0).settled
    assert not Window(5, BEHIND * 1.01, 0.0).settled
    assert not Window(5, 0.0, 1.0).settled
