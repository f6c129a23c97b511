"""Faults: what each does to a schedule, and what it costs synchronous and stale methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.api import simulate, what_if
from gcnsim.core.errors import GcnsimError, ScenarioError, UnitError
from gcnsim.engine import lookahead
from gcnsim.engine import simulate as run
from gcnsim.planning.rows import links_of
from gcnsim.scenario import (
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
from gcnsim.scenario.faults import FAULTS
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.simulation.faults import apply_static_faults, apply_transient_faults, is_static
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method
from tests.gcnsim.simulation.faulted import REDDIT, studied
from tests.measured_files import measured_file, write_graph

NOTHING = "pause:seconds=1us"
"""Costs nothing, in a run of the same length."""


def seconds(name: str, *injected: str, question: dict[str, Any] = REDDIT, **knobs: Any) -> float:
    requested = question | {"method": {"name": name, **knobs}}
    row = simulate(requested, inject=injected or (NOTHING,)).payload["result"]
    return float(row["iteration_s"])


@pytest.fixture
def schedule(facts: Callable[..., Case]) -> Schedule:
    return method("full-graph")(facts())


BEGIN = 6
"""Iterations before the first measured one."""


def with_fault(schedule: Schedule, fault: Fault, measured: int = 6, seed: int = 0) -> Schedule:
    return apply_transient_faults(apply_static_faults(schedule, [fault], {}), [fault], BEGIN, measured, seed)


def test_a_slow_gpu_works_longer_in_its_iterations_alone(schedule: Schedule) -> None:
    slow = with_fault(schedule, SlowGpu(worker=1, factor=3.0, first=2, last=3))
    kernels = 0
    for op in schedule.ops:
        factor = slow.demand[:, op.index] / np.maximum(schedule.demand[0, op.index], 1e-30)
        # The device packs and scatters rows too; bytes on links are not its work.
        mine = op.worker == 1 and op.route is None and schedule.demand[0, op.index]
        wanted = np.ones(BEGIN + 6 + lookahead(schedule))
        if mine:
            wanted[BEGIN + 2 : BEGIN + 4] = 3.0
            kernels += op.kind in (OpKind.PACK, OpKind.SCATTER)
        if schedule.demand[0, op.index]:
            assert factor == pytest.approx(wanted)
    assert kernels


def test_a_gpu_that_is_slow_throughout_is_the_runs_own(schedule: Schedule) -> None:
    fault = SlowGpu(worker=1, factor=3.0)
    assert is_static(fault)
    assert not is_static(SlowGpu(worker=1, factor=3.0, last=5))
    slow = apply_static_faults(schedule, [fault], {})
    for op in schedule.ops:
        factor = 3.0 if op.worker == 1 and op.route is None else 1.0
        assert slow.demand[:, op.index] == pytest.approx(schedule.demand[:, op.index] * factor)
    assert (apply_transient_faults(slow, [fault], BEGIN, 6, 0).demand == slow.demand[0]).all(), "and not slowed twice"


def test_a_slow_link_keeps_its_bytes_and_loses_bandwidth(schedule: Schedule) -> None:
    slow = with_fault(schedule, SlowLink(link="nic0", factor=4.0))
    for name, before, after in zip(schedule.link_names, schedule.capacity, slow.capacity, strict=True):
        assert after == (before / 4 if name.startswith("nic0.") else before)
    assert (slow.demand == schedule.demand[0]).all()


def test_a_pause_stops_all_of_a_worker_and_no_other(schedule: Schedule) -> None:
    paused = with_fault(schedule, Pause(worker=0, seconds=2.0, iteration=3))
    found = run(paused, paused.demand.shape[0])
    step = [op.index for op in schedule.ops if op.kind is OpKind.STEP]
    ends = found.ends[:, step] / PS_PER_S
    lasted = np.diff(ends, axis=0)
    usual = lasted[BEGIN].max()
    assert lasted[BEGIN + 2].min() == pytest.approx(usual + 2.0, rel=0.01), "a synchronous method waits it out"
    assert lasted[BEGIN + 3] == pytest.approx(lasted[BEGIN], rel=0.01), "and goes on as before"
    first = next(op for op in schedule.ops if op.worker == 0 and schedule.streams[op.stream].name == COMPUTE_STREAM)
    assert found.starts[BEGIN + 3, first.index] - found.ends[BEGIN + 2, schedule.ends[0]] >= 2 * PS_PER_S


def test_jitter_is_seeded_has_mean_one_and_the_asked_spread(schedule: Schedule) -> None:
    one, again = (with_fault(schedule, Jitter(cv=0.2), 4000, seed=3).demand for _ in range(2))
    other = with_fault(schedule, Jitter(cv=0.2), 4000, seed=4).demand
    assert (one == again).all()
    assert (one != other).any()
    op = next(op for op in schedule.ops if op.kind is OpKind.AGGREGATE and schedule.demand[0, op.index])
    factors = one[BEGIN:, op.index] / schedule.demand[0, op.index]
    assert factors.mean() == pytest.approx(1.0, abs=0.02)
    assert factors.std() == pytest.approx(0.2, rel=0.1)
    assert (one[:BEGIN] == schedule.demand[0]).all(), "settling is free of it"


def test_a_pause_costs_a_synchronous_method_all_of_it_and_a_stale_one_less() -> None:
    """Of GPUs that take 1.57 times as long as the network: others wait for worker 0 the less, the faster they are."""
    pause, share = "pause:worker=0,seconds=600ms,iteration=4", 0.6 / 12
    slow = REDDIT["cluster"] | {"figures": {"t4.spmm_efficiency": "36.3%"}}
    question = REDDIT | {"cluster": slow, "partition": {"placement": "as-numbered"}}
    synchronous = seconds("full-graph", pause, question=question) - seconds("full-graph", question=question)
    stale = seconds("psc-gcn", pause, question=question, tau=2) - seconds("psc-gcn", question=question, tau=2)
    assert 0.7 * share < synchronous <= 1.001 * share
    assert 0.0 <= stale < 0.8 * synchronous


def test_poor_links_cost_alike_what_they_leave() -> None:
    usual = seconds("psc-gcn", tau=2)
    half = seconds("psc-gcn", "slow-link:link=nic1,factor=2", tau=2)
    assert half > 1.2 * usual
    lossy = seconds("psc-gcn", "lossy-link:link=nic1,lost=50%", tau=2)
    assert lossy == pytest.approx(half, rel=1e-9), "half sent again is half the bandwidth"
    beside = seconds("psc-gcn", "background:link=nic1,rate=7.5Gbps", tau=2)
    assert beside == pytest.approx(half, rel=1e-9), "others' frames take half of the wire"


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


def test_jitter_of_sampling_moves_no_more_bytes() -> None:
    requested = REDDIT | {"method": {"name": "psc-gcn"}}
    calm, jittery = (studied(requested, text) for text in (NOTHING, "jitter:on=sampling,cv=3"))
    for name, link in links_of(calm).items():
        assert links_of(jittery)[name].bytes == pytest.approx(link.bytes, rel=1e-9)
    work = jittery.run.schedule.demand
    sampled = [op.index for op in jittery.run.schedule.ops if op.kind is OpKind.SAMPLE]
    assert (work[-1, sampled] != work[0, sampled]).all()


def test_a_paused_worker_is_paused_and_the_others_wait_for_it() -> None:
    short = REDDIT | {"method": {"name": "full-graph"}, "run": {"iterations": 4}}
    usual = simulate(short).payload
    found = simulate(short, inject=["pause:worker=1,seconds=40s,iteration=2"]).payload
    assert found["slowest"] == 1
    assert found["result"]["bottleneck"] == "paused"
    assert found["result"]["exposed_other_s"] == pytest.approx(10.0, rel=0.01)
    assert found["workers"][1]["rest_s"] == pytest.approx(10.0, rel=0.01)
    for rank in (0, 2, 3):
        longer = found["workers"][rank]["waiting_s"] + found["workers"][rank]["reduce_s"]
        assert longer - usual["workers"][rank]["waiting_s"] - usual["workers"][rank]["reduce_s"] > 9.0


def test_workers_on_cores_have_cores_as_their_bottleneck(tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    path = measured_file(tmp_path, graph, 2, device={"kind": "cpu", "name": "a core"})
    on_cores = {"cluster": {"measured_compute": str(path)}, "workload": {"graph": str(graph)}, "run": {"iterations": 1}}
    requested = {"schema": "gcnsim.scenario/1", "method": {"name": "full-graph"}} | on_cores
    for inject in ((), ("pause:seconds=10ms",), ("jitter:cv=1",)):
        assert studied(requested, *inject).limit.word == "CPU cores"


def test_faults_of_a_scenario_are_named_by_their_place() -> None:
    listed = [{"kind": "jitter"}, {"kind": "slow-link", "link": "nic9"}]
    with pytest.raises(ScenarioError, match=r"^faults\[1\].link: nic9: no such link; known: cpu0, "):
        simulate(REDDIT | {"faults": listed})
    with pytest.raises(ScenarioError, match=r"^faults\[0\].worker: 4: no such worker"):
        simulate(REDDIT | {"faults": [{"kind": "pause", "worker": 4}]})


def test_a_what_if_may_have_rows_that_sample_nothing() -> None:
    jitter = ["jitter:on=sampling"]
    answer = what_if(gpus=2, method=["full-graph", "psc-gcn"], epsilon=[0.1], iterations=3, inject=jitter)
    assert len(answer.results) == 2
    with pytest.raises(ScenarioError, match=r"full-graph does not sample; allowed: compute"):
        what_if(gpus=2, method=["full-graph"], iterations=3, inject=jitter)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slow-link:link=nic9", r"nic9: no such link"),
        ("background:link=nic0,rate=15Gbps", r"leaves nic0.tx nothing"),
        ("slow-link:factor=0", r"factor: 0 is not allowed"),
        ("lossy-link:link=cpu0", r"cpu0 is cores, which carry no traffic"),
        ("slow-link:link=3", r"slow-link.link: 3 is not a link, as results name it \([^)]*\), or both .* \(nic0\)$"),
    ],
)
def test_bad_faults_are_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises((ScenarioError, UnitError), match=says):
        simulate(REDDIT, inject=[text])


@pytest.mark.parametrize("faults", ["pause", [3], [{"worker": 1}], {"kind": "pause"}])
def test_a_list_of_faults_is_checked(faults: object) -> None:
    with pytest.raises(GcnsimError, match="faults"):
        from_mapping(REDDIT | {"faults": faults}, "test")
