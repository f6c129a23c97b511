"""What a run's spans add up to, on runs by hand and as laws on every method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import link_units
from gcnsim.simulation.metrics import Metrics, measure
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method

Builders = Callable[..., Builder]
MakeFacts = Callable[..., Case]
ONE_SECOND_PER_UNIT = LinkSpec(1.0)


def metrics(schedule: Schedule, iterations: int = 12, first: int = 6) -> Metrics:
    return measure(simulate(schedule, iterations), first)


def parts(found: Metrics) -> tuple[float, float, float, float]:
    return found.compute_s, found.exposed_comm_s, found.exposed_other_s, found.hidden_comm_s


def training(b: Builder, lag: int, *, nbytes: float = 2.0, step: float = 0.5) -> Schedule:
    """1 s of work, a transfer of 2 s, 2 s of work that needs that of `lag` iterations ago, then the optimizer."""
    one = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = b.flow(OpKind.WIRE, 0, nbytes, (0,), stream="tx", after=[one])
    b.compute(OpKind.AGGREGATE, 0, 2.0, after=[(sent, lag)])
    return b.close([b.compute(OpKind.STEP, 0, step)])


def test_a_synchronous_transfer_is_exposed(builder: Builders) -> None:
    found = metrics(training(builder(1.0), 0))
    assert parts(found) == pytest.approx((3.0, 2.0, 0.5, 0.0))
    assert found.iteration_s == pytest.approx(5.5)
    assert found.gpu_utilization == pytest.approx(3.0 / 5.5)


def test_a_pipelined_transfer_is_hidden(builder: Builders) -> None:
    found = metrics(training(builder(1.0), 1))
    assert parts(found) == pytest.approx((3.0, 0.0, 0.5, 2.0))


def test_a_pipelined_transfer_longer_than_the_compute_is_hidden_in_part(builder: Builders) -> None:
    found = metrics(training(builder(1.0), 1, nbytes=4.0), 60, 40)
    assert parts(found) == pytest.approx((3.0, 0.5, 0.5, 3.5))


def test_waiting_for_the_sampler_is_neither_compute_nor_communication(builder: Builders) -> None:
    b = builder(4.0)
    drawn = b.flow(OpKind.SAMPLE, 0, 3.0, (0,), stream="sampler", cap=1.0)
    ready = b.compute(OpKind.INDEX, 0, 0.0, after=[drawn])
    b.compute(OpKind.AGGREGATE, 0, 2.0, after=[ready])
    step = b.compute(OpKind.STEP, 0, 0.0)
    b.wait_for(drawn, (step, 1))
    found = metrics(b.close([step]))
    assert parts(found) == pytest.approx((2.0, 0.0, 3.0, 0.0))
    assert found.sampling_s == pytest.approx(3.0)


def test_a_transfer_that_waits_for_the_sampler_is_communication_only_while_it_moves(builder: Builders) -> None:
    b = builder(4.0, 1.0)
    drawn = b.flow(OpKind.SAMPLE, 0, 3.0, (0,), stream="sampler", cap=1.0)
    sent = b.flow(OpKind.WIRE, 0, 2.0, (1,), stream="tx", after=[drawn])
    b.compute(OpKind.AGGREGATE, 0, 1.0, after=[sent])
    step = b.compute(OpKind.STEP, 0, 0.0)
    b.wait_for(drawn, (step, 1))
    assert parts(metrics(b.close([step]))) == pytest.approx((1.0, 2.0, 3.0, 0.0))


def test_a_sampler_that_runs_beside_a_transfer_does_not_hide_the_wait_for_it(builder: Builders) -> None:
    b = builder(4.0, 1.0)
    drawn = b.flow(OpKind.SAMPLE, 0, 3.0, (0,), stream="sampler", cap=1.0)
    sent = b.flow(OpKind.WIRE, 0, 4.0, (1,), stream="tx")
    b.compute(OpKind.AGGREGATE, 0, 1.0, after=[sent])
    step = b.compute(OpKind.STEP, 0, 0.0)
    for op in (drawn, sent):
        b.wait_for(op, (step, 1))
    assert parts(metrics(b.close([step]))) == pytest.approx((1.0, 4.0, 0.0, 0.0))


def test_copying_rows_on_the_compute_stream_is_exposed_communication(builder: Builders) -> None:
    b = builder(1.0)
    b.compute(OpKind.SCATTER, 0, 1.0)
    b.compute(OpKind.AGGREGATE, 0, 2.0)
    assert parts(metrics(b.close([b.compute(OpKind.STEP, 0, 0.0)]))) == pytest.approx((2.0, 1.0, 0.0, 0.0))


@pytest.fixture
def pair() -> Cluster:
    """Two servers of one GPU, every link 1 unit/s."""
    return build_cluster(
        gpus=2,
        gpus_per_server=1,
        pcie=ONE_SECOND_PER_UNIT,
        nic=ONE_SECOND_PER_UNIT,
        memory=ONE_SECOND_PER_UNIT,
        cores=ONE_SECOND_PER_UNIT,
    )


def test_the_slowest_worker_is_reported_and_others_wait_for_it(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    work = [b.compute(OpKind.UPDATE, rank, 1.0 + 2.0 * rank) for rank in range(2)]
    found = metrics(b.close([b.compute(OpKind.STEP, rank, 0.0, after=work) for rank in range(2)]))
    assert found.worker == 1
    assert parts(found) == pytest.approx((3.0, 0.0, 0.0, 0.0))
    assert found.gpu_utilization == pytest.approx((1 / 3 + 1) / 2)


def test_a_transfer_belongs_to_both_of_its_ends(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    work = [b.compute(OpKind.UPDATE, rank, 3.0 + rank) for rank in range(2)]
    sent = b.flow(OpKind.WIRE, 0, 2.0, pair.between(0, 1), stream="tx", after=[work[0]], peer=1)
    ends = [b.compute(OpKind.STEP, rank, 0.0, after=[sent, work[1]]) for rank in range(2)]
    found = metrics(b.close(ends))
    assert found.worker == 1
    assert parts(found) == pytest.approx((4.0, 1.0, 0.0, 1.0))
    assert found.nic_bytes == 2.0
    assert found.nic_utilization == pytest.approx(2.0 / 5.0)


def test_units_of_a_window_are_those_of_its_iterations(builder: Builders) -> None:
    b = builder(10.0, 10.0, iterations=3)
    b.flow(OpKind.WIRE, 0, np.array([1.0, 10.0, 100.0]), (0, 1), stream="x")
    end = b.flow(OpKind.WIRE, 0, 7.0, (1,), stream="y")
    run = simulate(b.close([end]), 8)
    assert link_units(run, 6) == pytest.approx({"wire0": 5.5, "wire1": 12.5})  # iterations 6 and 7: drawn graphs 0, 1
    assert link_units(run, 5) == pytest.approx({"wire0": 37.0, "wire1": 44.0})


LAWS = [
    ("full-graph", {}),
    ("full-graph", {"workers": 1, "per_server": 1}),
    ("pipegcn", {"slope": 0.3, "nic": 1e8}),
    ("psc-gcn", {"tau": 2, "sampled": True, "iterations": 8, "spread": 0.4, "weighted": True, "hits": 0.3}),
    ("psc-gcn", {"tau": 0, "sampled": True, "iterations": 8, "spread": 0.4, "cores": 0.5}),
    ("psc-gcn", {"tau": 4, "sampled": True, "nic": 1e7, "workers": 3}),
    ("psc-gcn", {"tau": 1, "nic": 1e11, "workers": 2, "rows": 0.0}),
]


@pytest.mark.parametrize(("name", "shape"), LAWS, ids=str)
def test_laws_of_the_numbers(facts: MakeFacts, name: str, shape: dict[str, float]) -> None:
    schedule = method(name)(facts(**shape))
    judge = Steady(schedule, 30)
    run = simulate(schedule, judge.most, judge.enough)
    first = judge.window(run.ends).first
    found = measure(run, first)
    total = found.compute_s + found.exposed_comm_s + found.exposed_other_s
    assert total == pytest.approx(found.iteration_s, rel=1e-9)
    assert min(parts(found)) >= 0.0
    assert found.exposed_comm_s + found.hidden_comm_s <= found.iteration_s * (1 + 1e-9)
    assert max(found.compute_s, found.sampling_s) <= found.iteration_s * (1 + 1e-9)
    assert 0.0 <= found.gpu_utilization <= 1.0
    assert 0.0 <= found.nic_utilization <= 1.0
    ends = run.ends[:, schedule.ends[found.worker]]
    assert found.iteration_s == pytest.approx((ends[-1] - ends[first - 1]) / (run.iterations - first) / PS_PER_S)


def test_a_run_shorter_than_its_staleness_can_still_be_measured(facts: MakeFacts) -> None:
    found = metrics(method("psc-gcn")(facts(tau=6)), 4, 2)
    assert found.iteration_s > 0.0


def waiting(builder: Callable[..., Builder], reduce_s: float, sampler_s: float) -> Metrics:
    """Two workers: 2 s of compute, an all-reduce, and a sampler whose graph is needed two iterations later."""
    b = builder(1.0, 1.0, workers=2)
    steps = []
    for rank in range(2):
        drawn = b.compute(OpKind.SAMPLE, rank, sampler_s, stream="sampler")
        work = b.compute(OpKind.AGGREGATE, rank, 2.0, after=[(drawn, 2)])
        reduced = b.flow(OpKind.ALLREDUCE, rank, reduce_s, (rank,), stream="reduce", after=[work], peer=1 - rank)
        steps.append(b.compute(OpKind.STEP, rank, 0.0, after=[reduced]))
        b.wait_for(drawn, (steps[-1], 1))
    return measure(simulate(b.close(steps), 12), 6)


def test_a_sampler_nobody_waits_for_does_not_make_a_reduction_sampling(builder: Callable[..., Builder]) -> None:
    found = waiting(builder, reduce_s=4.0, sampler_s=5.0)
    assert (found.compute_s, found.exposed_comm_s, found.exposed_other_s) == pytest.approx((2.0, 4.0, 0.0))


def test_a_sampler_that_is_waited_for_is_sampling(builder: Callable[..., Builder]) -> None:
    b = builder(1.0)
    drawn = b.compute(OpKind.SAMPLE, 0, 3.0, stream="sampler")
    sent = b.flow(OpKind.WIRE, 0, 1.0, (0,), stream="tx", after=[drawn])
    step = b.compute(OpKind.AGGREGATE, 0, 2.0, after=[sent])
    b.wait_for(drawn, (step, 1))
    schedule = b.close([step])
    found = measure(simulate(schedule, 6), 2)
    assert (found.compute_s, found.exposed_comm_s, found.exposed_other_s) == pytest.approx((2.0, 1.0, 3.0))
