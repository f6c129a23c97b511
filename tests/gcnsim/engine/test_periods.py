"""Periods that are found are periods: what is not simulated is what simulation gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.engine import Run, compile_now, simulate
from gcnsim.engine.kernel.driver import simulate_by
from gcnsim.engine.kernel.run import run as uncompiled
from gcnsim.engine.reference import simulate as simulate_by_reference
from gcnsim.engine.stopping import SPAN_PS, PeriodDetector
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method
from tests.networks import coupled

Builders = Callable[..., Builder]

FAR = 1001
"""Iterations that are asked for: the last is number 1,000."""

TOLERANCE = 1e-9
"""The most by which an end may be wrong, as a share of the run until then."""


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Simulated by the compiled engine."""
    assert compile_now() is None


def off(schedule: Schedule, run: Run) -> float:
    """How far the ends of `run` at its last iteration are from simulated ones, as a share of the run."""
    whole = simulate(schedule, run.iterations + 2 * schedule.depth)
    right = whole.ends[run.iterations - 1]
    return float(np.abs(run.ends[-1] - right).max() / right.max())


def found(schedules: list[Schedule]) -> list[Run]:
    """Runs of those of `schedules` that have a period, each as near to the simulated run as it must be."""
    runs = [run for run in (simulate(schedule, FAR, endless=True) for schedule in schedules) if run.period is not None]
    for run in runs:
        assert run.simulated + run.by_period == FAR
        assert off(run.schedule, run) <= TOLERANCE
    return runs


def drawn(count: int, name: str, scale: float, *, queues: bool = False) -> list[Schedule]:
    return [coupled(stream(index, name), scale, queues=queues) for index in range(count)]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_random_networks(scale: float) -> None:
    assert len(found(drawn(20, "periods", scale))) >= 18


def test_random_networks_with_queues() -> None:
    assert len(found(drawn(20, "queues", 1.0, queues=True))) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-3])
def test_many_random_networks(scale: float) -> None:
    assert len(found(drawn(1000, "many periods", scale))) >= 950


@pytest.mark.slow
def test_many_random_networks_with_queues() -> None:
    assert len(found(drawn(500, "many queues", 1.0, queues=True))) >= 250


NETWORKS = (5e7, 1e8, 2e8, 3e8, 5e8, 1e9, 1e10)
"""Bytes per second of a NIC: from one that the pipeline waits for to one that is hardly used."""

METHODS = (("full-graph", 0), ("pipegcn", 1), ("psc-gcn", 2), ("psc-gcn", 5), ("bns-gcn", 0))


def pipelines(facts: Callable[..., Case], speeds: tuple[float, ...]) -> list[Schedule]:
    return [method(name)(facts(tau=tau, slope=0.1, nic=nic)) for name, tau in METHODS for nic in speeds]


def test_methods(facts: Callable[..., Case]) -> None:
    schedules = pipelines(facts, NETWORKS[::2])
    assert len(found(schedules)) >= 0.8 * len(schedules)


@pytest.mark.slow
def test_methods_on_many_networks(facts: Callable[..., Case]) -> None:
    schedules = pipelines(facts, tuple(np.geomspace(NETWORKS[0], NETWORKS[-1], 60).tolist()))
    assert len(schedules) == 300
    assert len(found(schedules)) >= 0.8 * len(schedules)


def test_both_engines_find_the_same_period() -> None:
    repeating = 0
    for schedule in drawn(12, "periods", 1.0) + drawn(4, "queues", 1.0, queues=True):
        expected = simulate_by_reference(schedule, 40, endless=True)
        for run in (simulate(schedule, 40, endless=True), simulate_by(uncompiled, schedule, 40, endless=True)):
            assert (run.simulated, run.period) == (expected.simulated, expected.period)
            np.testing.assert_array_equal(run.starts, expected.starts)
            np.testing.assert_array_equal(run.ends, expected.ends)
        repeating += expected.by_period > 0
    assert repeating >= 12


def test_synchronous_training_repeats_after_few_iterations_to_the_picosecond(facts: Callable[..., Case]) -> None:
    schedule = method("full-graph")(facts(slope=0.1, nic=1e8))
    run, whole = simulate(schedule, FAR, endless=True), simulate(schedule, FAR)
    assert run.period is not None
    assert run.period.iterations == 1
    assert run.simulated <= 5 or run.ends[run.simulated - 1].max() <= 2 * SPAN_PS
    np.testing.assert_array_equal(run.starts, whole.starts)
    np.testing.assert_array_equal(run.ends, whole.ends)


# ---- what looks like a period, and is none yet


def every_ten(*first: int) -> IntArray:
    """Instants of six iterations, int64[6, n], in spans of `SPAN_PS`: these of the first, ten later in each other."""
    found: IntArray = 10 * np.arange(6, dtype=np.int64)[:, None] + np.array(first, dtype=np.int64)
    return found


APART = every_ten(0, 2), every_ten(4, 9)
"""Starts and ends of two ops that are over when the next iteration begins."""

ACROSS = every_ten(0, 2), every_ten(4, 13)
"""Of two ops, of which the second is under way when the next iteration begins."""


def first_shown(starts: IntArray, ends: IntArray, queued: list[bool] | None = None) -> int | None:
    """After how many of these iterations a period is found."""
    watch = PeriodDetector(1, None if queued is None else np.array(queued))
    counts = range(1, starts.shape[0] + 1)
    return next((count for count in counts if watch.look(starts * SPAN_PS, ends * SPAN_PS, count)), None)


def test_as_many_iterations_are_compared_as_matter() -> None:
    assert first_shown(*APART) == 2
    # What is under way shared its links with what ended since it started: that is compared too.
    assert first_shown(*ACROSS) == 4


@pytest.mark.parametrize("which", [0, 1], ids=["starts", "ends"])
def test_what_went_on_while_an_op_was_under_way_matters(which: int) -> None:
    times = [array.copy() for array in ACROSS]
    times[which][0, 1] += 1
    assert first_shown(times[0], times[1]) == 5


def test_what_was_under_way_before_matters() -> None:
    starts, ends = (array.copy() for array in APART)
    # Iterations 1 and 2 are alike, but when 1 began an op of iteration 0 was still at it.
    ends[0, 1] = 12
    assert first_shown(starts, ends) == 4


def test_flows_that_wait_for_queues_are_compared_since_there_was_none() -> None:
    assert first_shown(*APART, queued=[False, True]) == 2
    assert first_shown(*ACROSS, queued=[True, False]) == 4
    assert first_shown(*ACROSS, queued=[False, True]) is None


def filling(b: Builder, tau: int, slower: float) -> Schedule:
    """1 s of compute whose transfer takes `slower` s; the queue between them has `tau` places."""
    read = b.compute(OpKind.SCATTER, 0, 0.0)
    work = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = b.flow(OpKind.WIRE, 0, slower, (0,), stream="tx", after=[work])
    b.wait_for(read, (sent, tau))
    b.reuse(sent, read)
    return b.close([work])


@pytest.mark.parametrize(("tau", "slower"), [(3, 1.02), (8, 1.02), (3, 1.005)])
def test_no_period_is_found_while_a_queue_fills(builder: Builders, tau: int, slower: float) -> None:
    schedule = filling(builder(1.0), tau, slower)
    run = simulate(schedule, FAR, endless=True)
    whole = simulate(schedule, FAR + 2 * tau)
    lasted = np.diff(whole.ends[:, schedule.ends[0]])
    # Until the queue is full, compute goes at its own pace, each iteration like the one before.
    full = int(np.flatnonzero(lasted > 1.001 * PS_PER_S)[0])
    assert full >= (tau - 2) / (slower - 1.0)
    assert run.simulated > full
    assert run.period is not None
    assert off(schedule, run) <= 1e-12


def test_no_period_without_equal_paces(builder: Builders) -> None:
    b = builder(1.0)
    b.flow(OpKind.WIRE, 0, 1.0001, (0,), stream="aside")
    schedule = b.close([b.compute(OpKind.STEP, 0, 1.0)])
    run = simulate(schedule, 300, endless=True)
    assert (run.simulated, run.period) == (300, None)


def test_no_period_is_looked_for_where_threads_take_turns() -> None:
    cores = Link("cpu", "cpu", "a", "b", LinkSpec(2.0, cores=2, slice_s=1e-3))
    b = Builder("threads", Cluster((0,), (cores,)), 1)
    work = [b.flow(OpKind.LOSS, 0, 0.5, (0,), stream=name, cap=1.0, thread=name) for name in ("one", "other")]
    schedule = b.close([b.compute(OpKind.STEP, 0, 0.1, after=work)])
    assert all(schedule.ops[op].thread >= 0 for op in work)
    assert simulate(schedule, 60, endless=True).simulated == 60


def test_no_period_is_looked_for_where_links_are_shared_once_per_grain(facts: Callable[..., Case]) -> None:
    schedule = method("full-graph")(facts())
    assert simulate(schedule, 60, endless=True).simulated < 60
    assert simulate(replace(schedule, grain_s=1e-4), 60, endless=True).simulated == 60


@pytest.mark.parametrize("work", [[0.5, 1.5], [1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0, 3.0]])
def test_a_period_is_whole_rounds_of_the_work(builder: Builders, work: list[float]) -> None:
    b = builder(1.0, iterations=len(work))
    b.flow(OpKind.WIRE, 0, np.array(work), (0,), stream="tx")
    schedule = b.close([b.compute(OpKind.STEP, 0, 0.5, after=[0])])
    run = simulate(schedule, 100, endless=True)
    assert run.period is not None
    assert run.period.iterations == len(work)
    np.testing.assert_array_equal(run.ends, simulate(schedule, 100).ends)


def test_work_that_is_never_the_same_is_simulated(builder: Builders) -> None:
    b = builder(1.0, iterations=50)
    schedule = b.close([b.compute(OpKind.STEP, 0, np.linspace(1.0, 2.0, 50))])
    assert simulate(schedule, 50, endless=True).by_period == 0


@pytest.mark.parametrize("seconds", [1e-4, 1e-2, 1.0])
def test_what_is_compared_spans_a_tenth_of_a_second(builder: Builders, seconds: float) -> None:
    b = builder(1.0)
    schedule = b.close([b.compute(OpKind.STEP, 0, seconds)])
    run = simulate(schedule, 5000, endless=True)
    assert run.period == (1, round(seconds * PS_PER_S))
    assert run.first_ends[-1].max() >= SPAN_PS
    assert run.simulated <= 3 + 1.2 * SPAN_PS / PS_PER_S / seconds
