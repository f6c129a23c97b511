"""Runs with faults: settled with what lasts, struck by what passes, never faster than their links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.engine import Run
from gcnsim.engine import simulate as run
from gcnsim.planning.rows import links_of
from gcnsim.scenario import Fault, Jitter, Pause, SlowGpu, from_mapping, read_injected
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.faults import apply_transient_faults, struck
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method
from tests.gcnsim.simulation.faulted import REDDIT, studied


@pytest.mark.parametrize("method", [{"name": "pipegcn"}, {"name": "psc-gcn", "tau": 8}])
def test_a_slower_network_is_one_however_it_is_asked_for(method: dict[str, object]) -> None:
    short = REDDIT | {"method": method, "run": {"iterations": 4}}
    nics = ("nic0", "nic1")
    less = studied(short | {"cluster": {"gpus": 4, "bandwidth": "2Gbps"}})
    for result in (
        studied(short, *(f"slow-link:link={nic},factor=7.5" for nic in nics)),
        studied(short, *(f"background:link={nic},rate=13Gbps" for nic in nics)),
    ):
        assert (result.low_s, result.high_s) == pytest.approx((less.low_s, less.high_s), rel=1e-5)
        assert result.metrics.iteration_s == pytest.approx(less.metrics.iteration_s, rel=1e-5)
        assert result.limit.text == less.limit.text


def test_no_run_with_faults_beats_its_links() -> None:
    draw = np.random.default_rng(0)
    methods = ({"name": "pipegcn"}, {"name": "psc-gcn", "tau": 8}, {"name": "bns-gcn", "rate": 0.1})
    for _ in range(24):
        kinds = [
            f"slow-link:link={draw.choice(['nic1', 'pcie1', 'nic0.tx'])},factor={draw.choice([1.5, 5, 20])}",
            f"lossy-link:link=nic{draw.integers(2)},lost=50%",
            f"background:link=nic{draw.integers(2)},rate=300Mbps",
            f"slow-gpu:worker={draw.integers(2)},factor=5",
            f"slow-gpu:worker={draw.integers(2)},factor=5,first=1",
            f"pause:worker={draw.integers(2)},seconds={draw.choice(['100ms', '3s'])},iteration=1",
            f"jitter:cv={draw.choice([0.3, 2])}",
        ]
        chosen = [str(kinds[place]) for place in draw.choice(len(kinds), draw.integers(1, 4), replace=False)]
        cluster = {"gpus": 2, "gpus_per_server": 1, "bandwidth": str(draw.choice(["1Gbps", "15Gbps"]))}
        method, run = methods[draw.integers(3)], {"iterations": int(draw.choice([2, 4]))}
        result = studied(REDDIT | {"cluster": cluster, "method": method, "run": run}, *chosen)
        assert result.metrics.iteration_s >= result.bounds.lower_s * (1 - 1e-9), chosen
        assert result.low_s <= result.metrics.iteration_s <= result.high_s, chosen
        assert max(link.utilization for link in links_of(result).values()) <= 1 + 1e-6, chosen


def test_drawn_work_is_at_most_as_many_times_shorter_as_it_may_be_longer() -> None:
    result = studied(REDDIT | {"method": {"name": "full-graph"}, "run": {"iterations": 4}}, "jitter:cv=0.3")
    mean = result.metrics.iteration_s
    assert 1.0 < mean / result.low_s <= result.high_s / mean * (1 + 1e-9)


@pytest.mark.parametrize(("name", "cv"), [("full-graph", 0.3), ("full-graph", 2.0), ("pipegcn", 2.0)])
def test_an_interval_under_jitter_holds_what_other_seeds_give(facts: Callable[..., Case], name: str, cv: float) -> None:
    schedule = method(name)(facts())
    judge = Steady(schedule, 8)
    calm = judge.window(run(schedule, judge.most, judge.enough).ends)
    means, widths = [], []
    for seed in range(20):
        perturbed_run = struck(schedule, judge, calm, [Jitter(cv=cv)], seed)
        closing = perturbed_run.run.ends[:, list(schedule.ends)].max(axis=1)
        means.append(float(closing[-1] - closing[perturbed_run.window.first - 1]) / 8 / PS_PER_S)
        widths.append(perturbed_run.noise_s)
    apart = np.abs(np.subtract.outer(means, means))
    held = (apart <= np.array(widths)[:, None])[~np.eye(20, dtype=bool)]
    assert held.mean() >= 0.85
    assert np.mean(widths) < 8 * np.std(means), "and is no wider than it need be"
    assert struck(schedule, Steady(schedule, 1), calm, [Jitter(cv=cv)], 0).noise_s > 0


@pytest.mark.parametrize(
    ("overrides", "inject", "says"),
    [
        (["cluster.bandwidth=1Mbps"], ["slow-link:factor=1000"], r"inject slow-link.factor: 1000 makes .* too long"),
        (["run.iterations=1000000"], [], r"run.iterations: 1000000 iterations .* allowed here: at most [0-9]+$"),
        (["cluster.nvlink=1kbps"], [], r"cluster.nvlink: 1kbps makes iterations too long"),
        (["cluster.bandwidth=1kbps"], [], r"cluster.bandwidth: 1kbps makes iterations too long"),
        (["run.iterations=200000"], ["pause"], r"run.iterations: 200000 .* --inject pause needs; allowed .* [0-9]+$"),
    ],
)
def test_what_cannot_be_simulated_is_named(overrides: list[str], inject: list[str], says: str) -> None:
    short = REDDIT | {"method": {"name": "full-graph"}, "run": {"iterations": 4}}
    with pytest.raises(ScenarioError, match=says):
        simulate_scenario(replace(from_mapping(short, "test", overrides), faults=read_injected(inject)))


def test_a_fault_for_the_whole_run_settles_however_long_it_is() -> None:
    requested = REDDIT | {"method": {"name": "full-graph"}, "run": {"iterations": 100_000}}
    assert studied(requested, "slow-gpu").run.iterations < 100


def sampled_ahead(b: Builder, tau: int) -> Schedule:
    """1 s of compute on a graph drawn, in 0.95 s, up to `tau` iterations before."""
    drawn = b.compute(OpKind.SAMPLE, 0, 0.95, stream="sampler")
    read = b.compute(OpKind.SCATTER, 0, 0.0)
    b.wait_for(read, (drawn, tau))
    b.reuse(drawn, read)
    return b.close([b.compute(OpKind.UPDATE, 0, 1.0)])


def test_jitter_is_measured_once_it_has_used_up_what_stale_methods_have_ready(
    builder: Callable[..., Builder],
) -> None:
    """From a calm pipeline, with six graphs ready, ten measured iterations are 4 % shorter than later ones."""
    schedule, jitter = sampled_ahead(builder(1.0), 6), [Jitter(on="sampling", cv=1.0)]
    judge = Steady(schedule, 10)
    calm = judge.window(run(schedule, judge.most, judge.enough).ends)
    perturbed_runs = [struck(schedule, judge, calm, jitter, seed) for seed in range(100)]
    early = np.mean([pace(perturbed_run.run, perturbed_run.window.first) for perturbed_run in perturbed_runs])
    late = pace(run(apply_transient_faults(schedule, jitter, 5, 12_000, 99), 12_005), 100)
    calmly = np.mean([pace(run(apply_transient_faults(schedule, jitter, 5, 10, seed), 15), 5) for seed in range(100)])
    assert early == pytest.approx(late, rel=0.02)
    assert calmly < 0.97 * late


def test_synchronous_methods_have_nothing_ready(facts: Callable[..., Case]) -> None:
    schedule = method("full-graph")(facts())
    judge = Steady(schedule, 4)
    calm = judge.window(run(schedule, judge.most, judge.enough).ends)
    assert struck(schedule, judge, calm, [Jitter(cv=0.3)], 0).window.first == calm.first


@pytest.mark.parametrize("tau", [1, 3])
@pytest.mark.parametrize(
    "faults",
    [
        [SlowGpu(worker=1, factor=3.0, first=2)],
        [SlowGpu(worker=1, factor=3.0, first=5, last=6)],
        [Pause(worker=0, seconds=0.2, iteration=6)],
        [Jitter(cv=0.5)],
    ],
    ids=["slow to the end", "slow near the end", "paused", "jittered"],
)
def test_the_last_iterations_are_those_of_a_longer_run(
    facts: Callable[..., Case], faults: Sequence[Fault], tau: int
) -> None:
    """A pipeline that waits for its network: its last transfers share the links with those that would follow."""
    schedule = unlike(method("psc-gcn")(facts(tau=tau, slope=0.1, nic=5e7)))
    judge = Steady(schedule, 9)
    calm = judge.window(run(schedule, judge.most, judge.enough, endless=True).ends)
    found = struck(schedule, judge, calm, faults, 3).run
    begin = found.iterations - judge.measured
    shaken = begin - calm.first
    longer = apply_transient_faults(schedule, faults, begin, judge.measured + 20, 3, shaken)
    whole = run(longer, found.iterations + 20)
    np.testing.assert_array_equal(found.starts, whole.starts[: found.iterations])
    np.testing.assert_array_equal(found.ends, whole.ends[: found.iterations])
    alone = run(longer, found.iterations)
    assert (alone.ends[-1] < found.ends[-1]).any(), "without successors it would end early"


def unlike(schedule: Schedule) -> Schedule:
    """Four graphs in turn, so that the iteration that follows is not the first one again."""
    return replace(schedule, demand=schedule.demand[0] * np.array([1.0, 1.02, 0.97, 1.05])[:, None])


def pace(found: Run, first: int) -> float:
    """Mean seconds of the iterations from `first` on."""
    ends = found.ends[:, list(found.schedule.ends)].max(axis=1)
    return float(ends[-1] - ends[first - 1]) / (found.iterations - first) / PS_PER_S
