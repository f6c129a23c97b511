"""Slow workers and faults that pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.engine import Run
from gcnsim.engine import simulate as run
from gcnsim.planning.rows import links_of
from gcnsim.scenario import SCHEMA, Fault, Jitter, Pause, Scenario, SlowGpu, from_mapping, read_injected
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.diagnosis import EvenPartition, evened, straggler_of
from gcnsim.simulation.faults import apply_transient_faults, struck
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S, OpKind
from gcnsim.trace.counts import AccessCounts
from tests.cases import Case, method
from tests.gcnsim.simulation.faulted import REDDIT, studied


@pytest.mark.parametrize("method", [{"name": "psc-gcn", "tau": 8}])
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


@pytest.mark.parametrize(("name", "cv"), [("full-graph", 2.0)])
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


@pytest.mark.parametrize("tau", [3])
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


def scenario(method: str = "psc-gcn", **cluster: Any) -> Scenario:
    """Reddit's parts on the GPUs as they are numbered, so that workers are those of its profile."""
    requested = {
        "schema": SCHEMA,
        "cluster": {"gpus": 6, "bandwidth": "15Gbps"} | cluster,
        "workload": {"dataset": "reddit"},
        "partition": {"placement": "as-numbered"},
        "method": {"name": method},
        "run": {"iterations": 5},
    }
    return from_mapping(requested, "test")


def counts_of(base: Scenario, accesses: Source) -> AccessCounts:
    return accesses.counts(base, resolve_model(base.workload, accesses.declared).features, RangeEnd.LIKELY)


def test_the_straggler_of_reddit_on_six_is_worker_four() -> None:
    base = scenario()
    accesses = open_source(base)
    straggler = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert straggler is not None
    assert (straggler.worker, straggler.load, straggler.amount) == (4, "boundary nodes", 162_357)
    assert straggler.mean == pytest.approx(99_579, abs=1)
    assert straggler.share_of_mean == pytest.approx(1.63, abs=0.005)
    assert straggler.busy > 0.98
    assert straggler.others_low is not None
    assert straggler.others_high is not None
    # The busiest sender has 1.19 times the mean, as counted, so other NICs wait less.
    assert 0.6 < straggler.others_low <= straggler.others_high < 0.78
    assert straggler.text.startswith(
        "worker 4 has 162,357 boundary nodes, 1.63 times the mean (99,579); NIC of server 2 is"
    )


def test_where_gpus_limit_the_straggler_has_more_edges() -> None:
    base = scenario("full-graph", bandwidth="40Gbps")
    accesses = open_source(base)
    straggler = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert straggler is not None
    assert (straggler.worker, straggler.load) == (4, "edges")
    assert "that of other workers" in straggler.text


def test_the_uplink_of_a_rack_is_compared_with_those_of_other_racks() -> None:
    base = scenario("pipegcn", servers_per_rack=1, oversubscription=8.0)
    accesses = open_source(base)
    found = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert found is not None
    assert "; uplink of rack 2 is busy " in found.text
    assert "% of the time, those of other racks " in found.text


@pytest.mark.parametrize(
    ("method", "cluster"),
    [
        ("distdgl", {"gpus": 4}),
        ("pipegcn", {"gpus": 4, "gpus_per_server": 4, "host_memory": "2GB/s", "transport": "staged"}),
    ],
    ids=str,
)
def test_nobody_straggles_alone_in_mini_batches_or_on_a_link_that_all_share(
    method: str, cluster: dict[str, Any]
) -> None:
    base = scenario(method, **cluster)
    accesses = open_source(base)
    assert straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses)) is None


def test_an_even_partition_has_no_straggler_and_is_faster() -> None:
    base = scenario()
    accesses = open_source(base)
    even = EvenPartition(accesses)
    result, counts = simulate_scenario(base, even), counts_of(base, even)
    assert straggler_of(result, counts) is None
    assert result.metrics.iteration_s < 0.85 * simulate_scenario(base, accesses).metrics.iteration_s


@pytest.mark.parametrize("per_server", [2, 4])
def test_evening_keeps_every_total_and_every_law_of_counts(per_server: int) -> None:
    base = scenario(gpus=6)
    counts = counts_of(base, open_source(base))
    even = evened(counts, per_server)
    for name in ("rows", "hits"):
        before, after = getattr(counts, name), getattr(even, name)
        assert (after.sum(axis=(1, 2)) == before.sum(axis=(1, 2))).all()
        assert not after[:, range(6), range(6)].any()
        server = np.arange(6) // per_server
        beside = (server[:, None] == server[None, :]) & ~np.eye(6, dtype=bool)
        assert (after[:, beside].sum(axis=1) == before[:, beside].sum(axis=1)).all()
    assert (even.hits <= even.rows).all()
    for name in ("inner_edges", "boundary_edges", "inner_nodes", "boundary_nodes", "entries", "cached_rows"):
        before, after = getattr(counts, name), getattr(even, name)
        assert (after.sum(axis=-1) == before.sum(axis=-1)).all()
        assert (np.ptp(after, axis=-1) <= 1).all()
    if 6 % per_server == 0:
        for axis in (1, 2):
            assert (np.ptp(even.rows.sum(axis=axis), axis=1) <= 2).all()
    assert counts.iterations == even.iterations


def test_two_workers_are_evened_and_one_has_nobody_to_share_with() -> None:
    for gpus, same in ((2, False), (1, True)):
        base = scenario("full-graph", gpus=gpus)
        counts = counts_of(base, open_source(base))
        even = evened(counts)
        assert (even is counts) == same
        assert int(np.ptp(even.boundary_nodes)) <= 1
        assert int(np.ptp(even.inner_nodes)) <= 1
    assert counts.boundary_nodes.sum() == 0


def test_mini_batches_are_returned_as_they_are() -> None:
    base = scenario("distdgl", gpus=4)
    counts = counts_of(base, open_source(base))
    assert evened(counts) is counts
