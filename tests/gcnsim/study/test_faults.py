"""Faults: what each does to a schedule, and what it costs synchronous and stale methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim.api import simulate, what_if
from gcnsim.engine import simulate as run
from gcnsim.errors import GcnsimError, ScenarioError, UnitError
from gcnsim.methods import Facts, method
from gcnsim.scenario import (
    FAULTS,
    Fault,
    Jitter,
    Pause,
    SlowGpu,
    SlowLink,
    from_mapping,
    read_injected,
    scenario_hash,
    to_mapping,
)
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.study.faults import afflicted, settling
from gcnsim.timeline import PHASE, PS_PER_S, OpKind, Phase

REDDIT: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 4, "bandwidth": "15Gbps"},
    "workload": {"dataset": "reddit"},
    "run": {"iterations": 12},
}
NOTHING = "pause:seconds=1us"
"""Costs nothing, in a run of the same length."""


def seconds(name: str, *injected: str, **knobs: Any) -> float:
    asked = REDDIT | {"method": {"name": name, **knobs}}
    row = simulate(asked, inject=injected or (NOTHING,)).payload["result"]
    return float(row["iteration_s"])


@pytest.fixture
def schedule(facts: Callable[..., Facts]) -> Schedule:
    return method("full-graph")(facts())


def with_fault(schedule: Schedule, fault: Fault, measured: int = 6, seed: int = 0) -> Schedule:
    return afflicted(schedule, [fault], measured, seed)


def test_a_slow_gpu_works_longer_in_its_iterations_alone(schedule: Schedule) -> None:
    slow = with_fault(schedule, SlowGpu(worker=1, factor=3.0, first=2, last=3))
    begin = settling(schedule)
    for op in schedule.ops:
        factor = slow.demand[:, op.index] / np.maximum(schedule.demand[0, op.index], 1e-30)
        mine = op.worker == 1 and PHASE[op.kind] in (Phase.COMPUTE, Phase.OPTIMIZER) and schedule.demand[0, op.index]
        wanted = np.ones(begin + 6)
        if mine:
            wanted[begin + 2 : begin + 4] = 3.0
        if schedule.demand[0, op.index]:
            assert factor == pytest.approx(wanted)


def test_a_slow_link_keeps_its_bytes_and_loses_bandwidth(schedule: Schedule) -> None:
    slow = with_fault(schedule, SlowLink(link="nic0", factor=4.0))
    for name, before, after in zip(schedule.link_names, schedule.capacity, slow.capacity, strict=True):
        assert after == (before / 4 if name.startswith("nic0.") else before)
    assert (slow.demand == schedule.demand[0]).all()


def test_a_pause_stops_all_of_a_worker_and_no_other(schedule: Schedule) -> None:
    paused = with_fault(schedule, Pause(worker=0, seconds=2.0, iteration=3))
    found = run(paused, paused.demand.shape[0])
    begin = settling(schedule)
    step = [op.index for op in schedule.ops if op.kind is OpKind.STEP]
    ends = found.ends[:, step] / PS_PER_S
    lasted = np.diff(ends, axis=0)
    usual = lasted[begin].max()
    assert lasted[begin + 2].min() == pytest.approx(usual + 2.0, rel=0.01), "a synchronous method waits it out"
    assert lasted[begin + 3] == pytest.approx(lasted[begin], rel=0.01), "and goes on as before"
    first = next(op for op in schedule.ops if op.worker == 0 and schedule.streams[op.stream].name == COMPUTE_STREAM)
    assert found.starts[begin + 3, first.index] - found.ends[begin + 2, schedule.ends[0]] >= 2 * PS_PER_S


def test_jitter_is_seeded_has_mean_one_and_the_asked_spread(schedule: Schedule) -> None:
    one, again = (with_fault(schedule, Jitter(cv=0.2), 4000, seed=3).demand for _ in range(2))
    other = with_fault(schedule, Jitter(cv=0.2), 4000, seed=4).demand
    assert (one == again).all()
    assert (one != other).any()
    op = next(op for op in schedule.ops if op.kind is OpKind.AGGREGATE and schedule.demand[0, op.index])
    factors = one[settling(schedule) :, op.index] / schedule.demand[0, op.index]
    assert factors.mean() == pytest.approx(1.0, abs=0.02)
    assert factors.std() == pytest.approx(0.2, rel=0.1)
    assert (one[: settling(schedule)] == schedule.demand[0]).all(), "settling is free of it"


def test_a_pause_costs_a_synchronous_method_all_of_it_and_a_stale_one_less() -> None:
    pause, share = "pause:worker=0,seconds=600ms,iteration=4", 0.6 / 12
    synchronous = seconds("full-graph", pause) - seconds("full-graph")
    stale = seconds("psc-gcn", pause, tau=2) - seconds("psc-gcn", tau=2)
    assert 0.7 * share < synchronous <= 1.001 * share
    assert 0.0 <= stale < 0.8 * synchronous


def test_poor_links_cost_alike_what_they_leave() -> None:
    usual = seconds("psc-gcn", tau=2)
    half = seconds("psc-gcn", "slow-link:link=nic1,factor=2", tau=2)
    assert half > 1.2 * usual
    lossy = seconds("psc-gcn", "lossy-link:link=nic1,lost=50%", tau=2)
    assert lossy == pytest.approx(half, rel=1e-9), "half sent again is half the bandwidth"
    capacity = simulate(REDDIT, inject=[NOTHING]).result.run.schedule
    nic = dict(zip(capacity.link_names, capacity.capacity, strict=True))["nic1.tx"]
    beside = seconds("psc-gcn", f"background:link=nic1,rate={round(nic * 4)}bps", tau=2)
    assert beside == pytest.approx(half, rel=1e-6)


def test_links_carry_no_more_bytes_for_being_slow() -> None:
    plain, slow = (simulate(REDDIT, inject=[each]).payload["links"] for each in (NOTHING, "slow-link:link=nic0"))
    assert slow["nic0.tx"]["bytes"] == plain["nic0.tx"]["bytes"]
    assert slow["nic0.tx"]["utilization"] <= 1.0001


def test_faults_in_a_scenario_and_on_the_command_line_are_one() -> None:
    listed = [{"kind": "pause", "worker": 1, "seconds": "2s", "iteration": 4}, {"kind": "jitter", "cv": 0.1}]
    scenario = from_mapping(REDDIT | {"faults": listed}, "test")
    injected = read_injected(["pause:worker=1,seconds=2s,iteration=4", "jitter:cv=0.1"])
    assert scenario.faults == injected
    assert from_mapping(to_mapping(scenario), "again") == scenario
    plain = from_mapping(REDDIT, "test")
    assert "faults" not in to_mapping(plain)
    assert scenario_hash(plain) != scenario_hash(scenario)


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_has_defaults_that_can_be_run(kind: str) -> None:
    assert simulate(REDDIT | {"run": {"iterations": 4}}, inject=[kind]).payload["provenance"]["faults"].startswith(kind)


def test_a_what_if_with_faults_answers_every_row() -> None:
    answer = what_if(gpus=2, method=["full-graph", "pipegcn"], iterations=5, inject=["slow-gpu:worker=1,factor=4"])
    usual = what_if(gpus=2, method=["full-graph", "pipegcn"], iterations=5)
    for row, before in zip(answer.results, usual.results, strict=True):
        assert row["iteration_s"] > 1.3 * before["iteration_s"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pause:worker=4", r"pause.worker: 4 is not there; cluster.gpus is 4: 0 to 3 are"),
        ("pause:iteration=12", r"pause.iteration: 12 is outside the run; allowed: 0 to 11"),
        ("pause:iteration=-1", r"iteration: -1 is not allowed"),
        ("slow-gpu:first=5,last=3", r"slow-gpu.last: 3 is before first, 5"),
        ("slow-link:link=nic9", r"nic9 is not there"),
        ("background:link=nic0,rate=15Gbps", r"leaves nic0.tx nothing"),
        ("slow-link:factor=0", r"factor: 0 is not allowed"),
        ("lossy-link:lost=100%", r"lost: 100% is not allowed"),
        ("fire", r"unknown fault 'fire'"),
        ("pause:when=3", r"pause.when: unknown key"),
        ("pause:seconds", r"write KIND:name=value"),
        ("pause:seconds=2", r"--inject pause.seconds"),
        (":", r"unknown fault ''"),
        ("jitter:on=wires", r"unknown kind of work"),
    ],
)
def test_bad_faults_are_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises((ScenarioError, UnitError), match=says):
        simulate(REDDIT, inject=[text])


@pytest.mark.parametrize("faults", ["pause", [3], [{"worker": 1}], {"kind": "pause"}])
def test_a_list_of_faults_is_checked(faults: object) -> None:
    with pytest.raises(GcnsimError, match="faults"):
        from_mapping(REDDIT | {"faults": faults}, "test")
