"""Two hosts whose workers wait, end to end: what the record says, and the same kernels and messages simulated."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.engine.run import timeline
from gcnsim.evidence.recorded_run import accelerated_cluster, accelerated_faults, scenario_of
from gcnsim.evidence.validation import judge
from gcnsim.records.compute_reading import measured_compute
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from gcnsim.simulation import simulate_scenario
from gcnsim.timeline import KIND_CODE, Direction, OpKind, Timeline
from runtime.record import read_run
from tests.measured_files import measured_file, write_graph
from tests.runtime.accelerator.test_measured_file import knobs
from tests.runtime.emulation.places import emulated, needs_namespaces

ITERATIONS = 12
PLAN = """
- {out: pipegcn, args: [--method, pipegcn]}
- {out: psc-gcn, args: [--method, psc-gcn, --tau, "2", --epsilon, "0.3", --cache, 20%]}
- {out: bns-gcn, args: [--method, bns-gcn, --rate, "0.3"]}
- {out: full-graph, args: [--method, full-graph]}
"""
NAMES = ("pipegcn", "psc-gcn", "bns-gcn", "full-graph")
KERNELS = (OpKind.AGGREGATE, OpKind.UPDATE, OpKind.LOSS, OpKind.STEP, OpKind.SCATTER, OpKind.PACK, OpKind.SAMPLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four runs of PLAN, worker 1 being slow."""
    found = tmp_path_factory.mktemp("accelerated")
    (found / "plan.yaml").write_text(PLAN, encoding="utf-8")
    words = ("--hosts", "2", "--bandwidth", "2Gbps", "--accelerator", "t4", "--scale", "40", "--slow-worker", "1:1.5")
    options = ("--iterations", str(ITERATIONS), "--hidden", "64", "--layers", "3", "--quiet")
    code, _, err = emulated(found, *words, "--plan", "plan.yaml", "--", *options).end()
    assert code == 0, err
    return found


def lengths(spans: Timeline, kind: OpKind, iteration: int) -> dict[tuple[int, ...], float]:
    """Nanoseconds of a kind's spans in an iteration, by worker, layer and direction; nothing of those of no length."""
    chosen = np.flatnonzero((spans.kind == KIND_CODE[kind]) & (spans.iteration == iteration))
    found: dict[tuple[int, ...], float] = {}
    for place in chosen.tolist():
        key = int(spans.worker[place]), int(spans.layer[place]), int(spans.direction[place])
        lasted = float(spans.end_ps[place] - spans.start_ps[place]) / 1e3
        # Sampling on the compute stream is its wait for the sampler.
        waits = kind is OpKind.SAMPLE and spans.streams[spans.stream[place]] == "compute"
        if lasted and not waits:
            found[key] = found.get(key, 0.0) + lasted
    return found


@needs_namespaces
@pytest.mark.parametrize("name", NAMES)
def test_the_record_says_what_stood_for_what_and_that_nothing_was_computed(folder: Path, name: str) -> None:
    run = read_run(folder / name)
    assert run.record.emulation is not None
    facts = run.record.emulation
    accelerator = facts["accelerator"]
    assert (accelerator["name"], accelerator["scale"], accelerator["bandwidth"]) == ("t4", 40.0, 250e6)
    assert facts["bandwidth"] == 250e6 / 40
    assert facts["measured"] > 0.9 * 0.94 * facts["bandwidth"]
    assert (accelerator["slow_worker"], accelerator["slow_factor"]) == (1, 1.5)
    assert accelerator["latency_s"] > accelerator["message_s"] >= 0.0
    assert accelerator["local_latency_s"] is None
    assert accelerator["figures"]["memory_bandwidth"] == 320e9
    assert {row.loss for row in run.iterations} == {None}
    assert run.record.accuracy == {"train": None, "val": None, "test": None}
    assert run.record.summary is not None
    assert len(run.iterations) == ITERATIONS


@needs_namespaces
@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_messages_are_those_that_are_simulated(folder: Path, name: str) -> None:
    run = read_recorded_run(folder / name)
    result = simulate_scenario(scenario_of(run))
    simulated, recorded = timeline(result.run), run.timeline()
    # Simulated iterations train the graphs of the trace in turn; not the last one, whose spans may be cut off. Where
    # nothing is drawn all are alike.
    at = result.run.iterations - 2
    same = 9
    if name in ("psc-gcn", "bns-gcn"):
        at = max(index for index in range(at) if 3 <= index % ITERATIONS < ITERATIONS - 2)
        same = at % ITERATIONS
    for kind in KERNELS:
        if kind is OpKind.SAMPLE and name in ("pipegcn", "full-graph"):
            continue
        found, wanted = lengths(recorded, kind, same), lengths(simulated, kind, at)
        assert found
        # Instants are recorded in whole nanoseconds.
        assert found == pytest.approx(wanted, abs=2.0)
    assert messages(recorded, same) == messages(simulated, at)


def messages(spans: Timeline, iteration: int) -> Counter[tuple[int, ...]]:
    """Rows and gradients sent in an iteration: worker, peer, layer, direction, bytes."""
    sent = [name.startswith(("f.tx", "b.tx")) for name in spans.streams]
    chosen = np.flatnonzero(np.array(sent)[spans.stream] & (spans.iteration == iteration) & (spans.nbytes > 0))
    columns = (spans.worker, spans.peer, spans.layer, spans.direction, spans.nbytes)
    return Counter(zip(*(column[chosen].astype(int).tolist() for column in columns), strict=True))


@needs_namespaces
def test_runs_are_judged_as_runs_of_that_gpu(folder: Path) -> None:
    judged, warnings = judge([folder / name for name in NAMES], None)
    assert warnings == []
    assert [run_check.run for run_check in judged] == list(NAMES)
    for run_check in judged:
        assert "with t4, worker 1 1.5 times as slow" in run_check.setting
        assert run_check.measured["compute"] == pytest.approx(run_check.predicted["compute"], rel=0.01)
        # A tiny graph on a crowded machine: what the waits add up to is the least that an iteration takes.
        assert run_check.measured_s > run_check.measured["compute"]


@needs_namespaces
def test_a_scenario_has_the_measured_network_and_the_faults(folder: Path) -> None:
    run = read_recorded_run(folder / "pipegcn")
    cluster = accelerated_cluster(run)
    of_host = {"generic-16.message_s", "generic-16.staging_bandwidth"}
    assert set(cluster["figures"]) == {"ethernet.efficiency", "ethernet.queue"} | of_host
    assert cluster["figures"]["ethernet.queue"] == "16KiB"
    assert "ethernet.queue" not in accelerated_cluster(changed(run, queue=0))["figures"]
    assert "latency" in cluster
    assert accelerated_faults(run) == [{"kind": "slow-gpu", "worker": 1, "factor": 1.5}]
    shared = changed(run, gpus_per_switch=2, background=1e7, slow_worker=None)
    assert accelerated_cluster(shared)["gpus_per_switch"] == 2
    assert [fault["link"] for fault in accelerated_faults(shared)] == ["nic0.tx", "nic1.rx"]
    with pytest.raises(ScenarioError, match=r"waits are by t4\.launch_s 1, which is 1e-05 here"):
        accelerated_cluster(changed(run, figures={"launch_s": 1.0}))


def changed(run: RecordedRun, **facts: Any) -> RecordedRun:
    emulation = json.loads(json.dumps(run.emulation))
    emulation["accelerator"] |= facts
    return replace(run, emulation=emulation)


def chosen(kind: str, layer: int, part: int, direction: str, iteration: int) -> float:
    """Tenths of a millisecond, of every operation and part others."""
    return 1e-4 * (1 + len(kind) % 5 + 0.25 * (layer + 1) + 0.5 * part + (direction == "backward"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The four runs of PLAN with measured times, worker 1 being slow, and the file of the times."""
    found = tmp_path_factory.mktemp("measured")
    graph = write_graph(found)
    drawn: dict[str, dict[str, Any]] = {"psc-gcn": {"epsilon": 0.3, "cache": "20%"}, "bns-gcn": {"rate": 0.3}}
    settings = [(name, knobs(name, **drawn.get(name, {}))) for name in NAMES]
    file = measured_file(found, graph, 2, settings, chosen, outside=3e-4)
    (found / "plan.yaml").write_text(PLAN, encoding="utf-8")
    words = ("--hosts", "2", "--bandwidth", "2Gbps", "--accelerator", "t4", "--scale", "20", "--slow-worker", "1:1.5")
    options = ("--graph", str(graph), "--random-features", "16", "--random-classes", "4", "--hidden", "8", "--quiet")
    more = ("--measured-compute", str(file), "--plan", "plan.yaml", "--", *options, "--iterations", str(ITERATIONS))
    code, _, err = emulated(found, *words, *more).end()
    assert code == 0, err
    return found, file


@needs_namespaces
@pytest.mark.parametrize("name", NAMES)
def test_kernels_take_the_measured_times_as_in_a_simulation(measured: tuple[Path, Path], name: str) -> None:
    folder, path = measured
    run = read_recorded_run(folder / name)
    with pytest.raises(ScenarioError, match=r"its kernels took the times in .*; allowed: with that file"):
        scenario_of(run)
    scenario = scenario_of(run, measured=[measured_compute(str(path))])
    simulated = simulate_scenario(scenario)
    recorded, predicted = run.timeline(), timeline(simulated.run)
    update = lengths(recorded, OpKind.UPDATE, ITERATIONS - 3)
    for worker, slow in ((0, 1.0), (1, 1.5)):
        rate = 0.3 if name == "psc-gcn" else 1.0
        wanted = 1e9 * slow * rate * chosen("update", 1, worker, "backward", 0)
        assert update[worker, 1, int(Direction.BACKWARD)] == pytest.approx(wanted, abs=2.0)
    for kind in KERNELS:
        found = lengths(recorded, kind, ITERATIONS - 3)
        assert found == pytest.approx(lengths(predicted, kind, simulated.run.iterations - 3), abs=2.0)


@needs_namespaces
def test_runs_of_measured_times_are_judged_with_their_file(measured: tuple[Path, Path]) -> None:
    folder, path = measured
    judged, _ = judge([folder / name for name in NAMES], None, measured=[path])
    for run_check in judged:
        assert run_check.measured["compute"] == pytest.approx(run_check.predicted["compute"], rel=0.01)
        # Kernels of tenths of a millisecond, and a machine that other tests crowd.
        assert run_check.predicted_s == pytest.approx(run_check.measured_s, rel=0.25)
