"""A stopped worker begins nothing, nothing that had not begun reaches it, and little is gained from what is queued."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import Run, simulate
from gcnsim.scenario import Pause
from gcnsim.schedule import Schedule
from gcnsim.simulation.faults import HELD, apply_transient_faults
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
AT = 4
"""The measured iteration that is paused."""


def stopped(schedule: Schedule, worker: int, seconds: float, measured: int = 12) -> tuple[Run, int]:
    """The run with a pause, and its first measured iteration."""
    judge = Steady(schedule, 4)
    begin = judge.window(simulate(schedule, judge.most, judge.enough).ends).first
    paused = apply_transient_faults(schedule, [Pause(worker=worker, seconds=seconds, iteration=AT)], begin, measured, 0)
    return simulate(paused, begin + measured), begin


def crowded(facts: MakeFacts, tau: int) -> Schedule:
    """Four workers alike, whose links take a fifth longer than their work."""
    return method("psc-gcn")(facts(tau=tau, per_server=1, nic=5.6e7, nic_latency=0.0, layers=2))


@pytest.mark.parametrize("worker", [2])
@pytest.mark.parametrize("tau", [0, 4])
def test_nothing_that_had_not_begun_leaves_or_reaches_a_stopped_worker(facts: MakeFacts, tau: int, worker: int) -> None:
    schedule = crowded(facts, tau)
    run, begin = stopped(schedule, worker, 0.2)
    stops = run.ends[begin + AT - 1, schedule.ends[worker]]
    names = [schedule.streams[op.stream].name for op in schedule.ops]
    own = [op.index for op in schedule.ops if op.worker == worker and op.kind is not OpKind.ALLREDUCE]
    sent = [op.index for op in schedule.ops if op.peer == worker and op.kind is not OpKind.ALLREDUCE]
    assert {names[op].split(".")[0] for op in own} >= {"f", "b", "gpu"}
    for chosen in (own, sent):
        starts = run.starts[:, chosen]
        assert not ((starts > stops) & (starts < stops + 0.2 * PS_PER_S * 0.999)).any()


@pytest.mark.parametrize("tau", [4])
def test_a_pause_costs_a_link_bound_pipeline_nearly_all_of_it(facts: MakeFacts, tau: int) -> None:
    """Its link carries no more than was under way: with tau 4, half was gained from queues that it went on to serve."""
    schedule = crowded(facts, tau)
    run, _ = stopped(schedule, 0, 0.5, 30)
    plain = simulate(schedule, run.iterations)
    added = np.subtract(*(item.ends[-1, list(schedule.ends)].max() for item in (run, plain))) / PS_PER_S
    assert 0.9 * 0.5 <= added <= 1.02 * 0.5


def test_nothing_is_held_up_in_other_iterations(facts: MakeFacts) -> None:
    schedule = crowded(facts, 2)
    (run, begin), plain = stopped(schedule, 1, 1e-9), simulate(schedule, 12)
    made = run.schedule
    held = [op.index for op in made.ops if made.streams[op.stream].name.startswith(HELD)]
    assert held
    assert ((made.demand[:, held] > 0).sum(axis=0) == 1).all(), "each in one iteration"
    assert (run.starts[:12, : len(schedule.ops)] == plain.starts).all() or begin < 12
    assert run.ends[-1, schedule.ends[0]] == pytest.approx(
        simulate(schedule, run.iterations).ends[-1, schedule.ends[0]]
    )


def test_an_all_reduce_is_not_held_up_after_its_iteration(facts: MakeFacts) -> None:
    """A worker may have ended while its last piece is on its way: the others' iteration ends as it would."""
    schedule = method("full-graph")(facts())
    run, begin = stopped(schedule, 1, 2.0)
    plain = simulate(schedule, run.iterations)
    ends, usual = (item.ends[:, list(schedule.ends)].max(axis=1) for item in (run, plain))
    assert (ends[: begin + AT] == usual[: begin + AT]).all()
    assert (ends[begin + AT] - usual[begin + AT]) / PS_PER_S == pytest.approx(2.0, rel=0.02)
