"""Bounds of schedules small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule, ScheduleBounds, bounds, estimate, lower_bound, resource_loads
from gcnsim.schedule.bounds import _turns
from gcnsim.timeline import PS_PER_S, OpKind

MODULE = import_module("gcnsim.schedule.bounds")
"""Not the function, which has its name in the package."""

Builders = Callable[..., Builder]


def vanilla(b: Builder, nbytes: float) -> Schedule:
    """Two transfers side by side between two pieces of work, all in one iteration."""
    one = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = [b.flow(OpKind.WIRE, 0, nbytes, (0,), stream=name, after=[one]) for name in ("x", "y")]
    return b.close([b.compute(OpKind.LOSS, 0, 2.0, after=sent)])


def pipelined(b: Builder, nbytes: float) -> Schedule:
    """The same, but the transfers are waited for one iteration later."""
    one = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = [b.flow(OpKind.WIRE, 0, nbytes, (0,), stream=name, after=[one]) for name in ("x", "y")]
    return b.close([b.compute(OpKind.LOSS, 0, 2.0, after=[(op, 1) for op in sent])])


def busiest(schedule: Schedule) -> tuple[str, float]:
    """The stream or link with the largest mean load, and its seconds."""
    columns, mean = schedule.columns, resource_loads(schedule).mean(axis=0)
    names = [*(columns.names[name] for name in columns.stream_name), *schedule.link_names]
    return names[int(mean.argmax())], float(mean.max())


def test_synchronous_transfers_that_share_a_link(builder: Builders) -> None:
    schedule = vanilla(builder(10.0, latency=0.5), 20.0)
    found = bounds(schedule)
    # Alone 0.5 + 2 s, both together 0.5 + 4 s.
    assert (found.lower_s, estimate(schedule), found.upper_s) == pytest.approx((5.5, 7.5, 7.5))
    assert busiest(schedule) == ("wire0", 4.0)


def test_pipelined_transfers_hide_until_the_link_is_the_limit(builder: Builders) -> None:
    light, heavy = pipelined(builder(10.0), 10.0), pipelined(builder(10.0), 100.0)
    hidden, bound = bounds(light), bounds(heavy)
    assert (hidden.lower_s, estimate(light), hidden.upper_s) == pytest.approx((3.0, 3.0, 5.0))
    assert busiest(light) == ("gpu", 3.0)
    assert (bound.lower_s, estimate(heavy), bound.upper_s) == pytest.approx((20.0, 20.0, 23.0))
    assert busiest(heavy) == ("wire0", 20.0)


@pytest.mark.parametrize("write", [vanilla, pipelined])
@pytest.mark.parametrize("nbytes", [0.0, 1.0, 30.0])
def test_the_simulated_iteration_lies_between(
    builder: Builders, write: Callable[[Builder, float], Schedule], nbytes: float
) -> None:
    schedule = write(builder(10.0, latency=0.1), nbytes)
    run, found = simulate(schedule, 40), bounds(schedule)
    seconds = float(run.ends[-1].max() - run.ends[19].max()) / 20 / PS_PER_S
    assert found.lower_s - 1e-9 <= seconds <= found.upper_s + 1e-9
    assert found.lower_s == lower_bound(schedule)


def test_a_cap_limits_the_rate_of_a_lone_flow(builder: Builders) -> None:
    b = builder(16.0)
    drawn = b.flow(OpKind.SAMPLE, 0, 3.0, (0,), stream="sampler", cap=1.0)
    schedule = b.close([b.compute(OpKind.LOSS, 0, 1.0, after=[(drawn, 1)])])
    assert busiest(schedule) == ("sampler", 3.0)
    assert bounds(schedule).lower_s == 3.0


def test_the_delay_of_a_message_is_time_of_its_stream_and_not_of_the_link(builder: Builders) -> None:
    # Two streams of 100 units each keep the link busy for 20 s, and each takes 10 s besides its delay.
    schedules = [pipelined(builder(10.0, latency=delay), 100.0) for delay in (0.0, 9.0, 15.0)]
    assert [bounds(schedule).lower_s for schedule in schedules] == [20.0, 20.0, 25.0]
    assert [busiest(schedule)[0] for schedule in schedules] == ["wire0", "wire0", "x"]


def test_the_mean_of_all_drawn_graphs_counts(builder: Builders) -> None:
    b = builder(1.0, iterations=4)
    found = bounds(b.close([b.compute(OpKind.LOSS, 0, np.array([1.0, 2.0, 3.0, 6.0]))]))
    assert found == ScheduleBounds(3.0, 3.0)


def test_a_chain_from_one_worker_to_another_is_no_lower_bound(builder: Builders) -> None:
    """Both wait for each other at the end of an iteration: 1 s on the way to worker 1, none on the way back."""
    b = builder(1e9, workers=2)
    work = [b.compute(OpKind.UPDATE, rank, 1.0) for rank in range(2)]
    there = b.compute(OpKind.WIRE, 0, 1.0, stream="latency", after=[work[0]])
    end = [b.compute(OpKind.STEP, 0, 0.0, after=[work[1]]), b.compute(OpKind.STEP, 1, 0.0, after=[there])]
    schedule = b.close(end)
    run = simulate(schedule, 40)
    seconds = float(run.ends[-1, end[0]] - run.ends[19, end[0]]) / 20 / PS_PER_S
    assert seconds == pytest.approx(1.5)  # (2 s there and 1 s back) over two iterations
    assert bounds(schedule).lower_s <= seconds


@pytest.mark.parametrize("seed", range(8))
def test_own_chains_that_cannot_be_longest_need_not_be_followed(
    builder: Builders, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Workers that hear from each other at random: some are waited for by nobody, others by all."""
    rng = np.random.default_rng(seed)
    b = builder(1e9, workers=12)
    work = [b.compute(OpKind.UPDATE, rank, float(rng.random())) for rank in range(12)]
    for layer in range(3):
        heard = [[rank, *np.flatnonzero(rng.random(12) < 0.1 * layer).tolist()] for rank in range(12)]
        seconds = rng.random((12, 12)).tolist()
        sent = [
            [
                b.compute(OpKind.WIRE, peer, seconds[peer][rank], after=[work[peer]], stream=f"to {rank} in {layer}")
                for peer in heard[rank]
            ]
            for rank in range(12)
        ]
        work = [b.compute(OpKind.UPDATE, rank, float(rng.random()), after=sent[rank]) for rank in range(12)]
    schedule = b.close(work)
    every = bounds(schedule)
    monkeypatch.setattr(MODULE, "FEW_CHAINS", 0)
    some = bounds(schedule)
    assert some == every
    monkeypatch.setattr(MODULE, "ROUNDING", np.inf)
    assert bounds(schedule) == every
    monkeypatch.setattr(MODULE, "MOST_CHAINS", 1)
    assert 0.0 < bounds(schedule).lower_s <= every.lower_s


def test_a_thread_waits_for_all_others_and_for_two_slices_of_each() -> None:
    spec = LinkSpec(1.0, cores=1, slice_s=0.25)
    b = Builder("test", Cluster((0,), (Link("cpu", "cpu", "a", "b", spec),)), 1)
    for thread, stream, seconds in (("a", "x", 3.0), ("a", "y", 1.0), ("b", "z", 2.0)):
        last = b.flow(OpKind.LOSS, 0, seconds, (0,), stream=stream, cap=1.0, thread=thread)
    schedule = b.close([last])
    turns = _turns(schedule, np.arange(schedule.columns.size), schedule.demand.mean(axis=0))
    # Its own 4 s (2 s), and as much of the other with two slices of 0.25 s.
    assert sorted(turns.tolist()) == [2.0 + 2.0 + 0.5, 4.0 + 4.0 + 0.5]
    found = bounds(schedule)
    assert found.lower_s == 6.0, "one core does all three"
    assert found.lower_s <= simulate(schedule, 1).ends.max() / PS_PER_S <= found.upper_s
