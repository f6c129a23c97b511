"""The scenario of a recorded run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.methods import create_method
from gcnsim.methods.psc_gcn import PscGcn
from gcnsim.methods.sancus import Sancus
from gcnsim.records.compute_reading import measured_compute
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.records.run_files import Cluster
from gcnsim.scenario import Scenario
from gcnsim.schedule import Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.timeline import OpKind
from gcnsim.workload.caching import CacheSize
from runtime.options import Options
from tests.gcnsim.evidence.conftest import EMULATED, WriteRun, parts_measured, run_document, write_folder
from tests.gcnsim.evidence.made_calibration import MACHINE
from tests.gcnsim.evidence.made_gpu import on_gpus

KNOBS = {
    "tau": 3,
    "epsilon": 0.3,
    "sampler": "uniform",
    "refresh": 7,
    "cache": CacheSize(fraction=0.3),
    "cache_policy": "degree",
    "estimator": "unbiased",
    "cold_start": "zeros",
}


@pytest.fixture
def make_scenario(tmp_path: Path) -> Callable[..., Scenario]:
    """The scenario of a run with these options, without its trace."""

    def make(calibration: str | None = None, emulation: Any = EMULATED, **options: Any) -> Scenario:
        given = Options(**{"threads": 1, "hidden": 32} | options)
        folder = write_folder(tmp_path / "run", run_document(given, emulation=emulation), [0.1] * 10)
        return scenario_of(read_recorded_run(folder), calibration)

    return make


def test_knobs_arrive(make_scenario: Callable[..., Scenario]) -> None:
    method = make_scenario(method="psc-gcn", knobs=KNOBS).method
    assert isinstance(method, PscGcn)
    assert (method.tau, method.epsilon, method.sampler) == (3, 0.3, "uniform")
    assert (method.refresh, method.cache, method.cache_policy) == (7, CacheSize(fraction=0.3), "degree")
    assert (method.overlap, method.norms) == ("none", None), "stale rows leave nothing to sum beneath transfers"


@pytest.mark.parametrize("name", ["pipegcn", "pipegcn-g", "pipegcn-f", "pipegcn-gf"])
def test_a_smoothed_run_is_asked_as_what_it_is(make_scenario: Callable[..., Scenario], name: str) -> None:
    method = make_scenario(method=name, knobs={"gamma": 0.9, "cold_start": "zeros"}).method
    assert (method.name, method.tau, method.epsilon) == (name, 1, 1.0)


@pytest.mark.parametrize("scale", ["rate", "ratio"])
def test_a_rate_arrives_and_its_scale_changes_no_schedule(make_scenario: Callable[..., Scenario], scale: str) -> None:
    method = make_scenario(method="bns-gcn", knobs={"rate": 0.25, "boundary_scale": scale}).method
    assert (method.name, method.tau, method.epsilon, method.rate) == ("bns-gcn", 0, 1.0, 0.25)
    assert method.overlap == "central"


def test_the_model_arrives(make_scenario: Callable[..., Scenario]) -> None:
    workload = make_scenario(model="graphsage", norm="layer", seed=9, overlap="none")
    assert (workload.workload.model, workload.workload.norm) == ("graphsage", "layer")
    widths = workload.workload.features, workload.workload.hidden, workload.workload.classes
    assert widths == (32, 32, 8)
    assert workload.workload.layers == 2
    assert workload.run.seed == 9
    assert workload.method.overlap == "none"
    assert make_scenario().workload.norm == "none"


def test_dropout_arrives(make_scenario: Callable[..., Scenario]) -> None:
    found = make_scenario(dropout=0.5, dropout_order="dropout-first").workload
    assert (found.dropout, found.dropout_order) == (0.5, "dropout-first")
    assert make_scenario().workload.dropout == 0.0, "what a run did not drop is not what a question leaves open"


def test_the_emulated_cluster_arrives(make_scenario: Callable[..., Scenario]) -> None:
    emulation = EMULATED | {"hosts": 3, "workers_per_host": 2, "latency_s": 5e-4, "latency_by": "netem"}
    cluster = make_scenario("c.json", emulation, workers=6).cluster
    assert (cluster.gpus, cluster.gpus_per_server, cluster.servers) == (6, 2, 3)
    assert cluster.bandwidth == 2.5e7
    assert cluster.latency == pytest.approx(5e-4)
    assert (cluster.device, cluster.shared_cores, cluster.calibration) == ("cpu-core", True, "c.json")


def test_workers_of_one_machine_talk_through_its_memory(make_scenario: Callable[..., Scenario]) -> None:
    cluster = make_scenario(emulation=None, workers=3).cluster
    assert (cluster.gpus, cluster.gpus_per_server, cluster.servers) == (3, 3, 1)
    assert not cluster.shared_cores


def test_input_that_was_summed_before_training_is_neither_sent_nor_summed(write_run: WriteRun) -> None:
    def scheduled(*, preaggregate: bool) -> Schedule:
        folder = write_run(f"run-{preaggregate}", preaggregate=preaggregate)
        measured = [measured_compute(str(path)) for path in parts_measured(folder, folder)]
        scenario = scenario_of(read_recorded_run(folder), measured=measured)
        return simulate_scenario(scenario, open_source(scenario)).run.schedule

    plain, summed = scheduled(preaggregate=False), scheduled(preaggregate=True)

    def layers(schedule: Schedule, kind: OpKind) -> set[int]:
        return {op.layer for op in schedule.ops if op.kind is kind}

    assert layers(plain, OpKind.WIRE) == {0, 1}
    assert layers(plain, OpKind.AGGREGATE) == {0, 1}
    assert layers(summed, OpKind.WIRE) == {1}
    assert layers(summed, OpKind.AGGREGATE) == {1}
    assert layers(summed, OpKind.UPDATE) == {0, 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "trained with dtype float64, which the simulator does not model; allowed: float32"),
        ({"device": "cuda"}, "names no GPU; allowed: GPUs of one kind"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(
    make_scenario: Callable[..., Scenario], tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        make_scenario(**options)
    assert str(caught.value) == f"{tmp_path / 'run'}: {message}"


def test_a_run_with_default_threads_is_what_it_was(make_scenario: Callable[..., Scenario], tmp_path: Path) -> None:
    assert make_scenario(threads=None).cluster.gpus == 2, (
        "two workers on two cores: one thread each, as one was asked for"
    )
    document = run_document(Options(threads=None, hidden=32)) | {"threads": 4}
    folder = write_folder(tmp_path / "new", document, [0.1] * 10)
    with pytest.raises(ScenarioError) as crowded:
        scenario_of(read_recorded_run(folder))
    assert str(crowded.value) == (
        f"{folder}: 2 workers of 4 threads each on 2 cores; more threads than cores are not modelled (train with "
        "--threads 1)"
    )
    folder = write_folder(folder, document | {"hardware": {**MACHINE, "cores": 8}}, [0.1] * 10)
    run = read_recorded_run(folder)
    assert scenario_of(run).cluster.threads == 4


@pytest.mark.parametrize("threads", [None, 1, 8])
def test_a_run_on_gpus_is_of_the_catalogues_device(write_run: WriteRun, threads: int | None) -> None:
    place = Cluster(2, 2, 1.25e9, 1.175e9)
    options = {"workers": 4, "threads": threads, "device": "cuda", "emulation": None}
    folder = on_gpus(write_run("run", **options), place, ("NVIDIA GeForce RTX 2080 Ti",) * 2)
    scenario = scenario_of(read_recorded_run(folder), "c.json")
    cluster = scenario.cluster
    assert (cluster.device, cluster.gpus, cluster.gpus_per_server) == ("rtx-2080-ti", 4, 2)
    assert (cluster.bandwidth, cluster.shared_cores, cluster.calibration) == (1.25e9, False, "c.json")


@pytest.mark.parametrize(("backend", "transport"), [("auto", "staged"), ("gloo", "staged"), ("nccl", "direct")])
def test_the_transport_of_a_run_on_gpus_is_its_backends(write_run: WriteRun, backend: str, transport: str) -> None:
    run = read_recorded_run(on_gpus(write_run("run", device="cuda", method="pipegcn", backend=backend)))
    assert scenario_of(run).cluster.transport == transport


@pytest.mark.parametrize("gpus", [("Tesla T4", "Quadro P600"), ("Quadro P600", "Quadro P600")])
def test_mixed_and_unknown_gpus_are_refused_in_one_line(write_run: WriteRun, gpus: tuple[str, ...]) -> None:
    folder = on_gpus(write_run("run", device="cuda"), gpus=gpus)
    with pytest.raises(ScenarioError) as caught:
        scenario_of(read_recorded_run(folder))
    text = (
        "has GPUs of several kinds (Quadro P600, Tesla T4)"
        if len(set(gpus)) > 1
        else "the catalogue has no GPU 'Quadro P600'"
    )
    assert str(caught.value).startswith(f"{folder}: {text}; ")
    assert "\n" not in str(caught.value)


def test_attention_waits_for_all_rows_whatever_the_run_was_asked(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario(model="gat", heads=4, overlap="central")
    assert (scenario.workload.model, scenario.workload.heads) == ("gat", 4)
    assert scenario.method.overlap == "none"


@pytest.mark.parametrize("method", ["full-graph", "pipegcn", "psc-gcn"])
def test_the_scenario_can_be_studied_with_the_runs_own_trace(write_run: WriteRun, method: str) -> None:
    knobs = {**KNOBS, "tau": 1} if method == "psc-gcn" else {}
    scenario = scenario_of(read_recorded_run(on_gpus(write_run("run", device="cuda", method=method, knobs=knobs))))
    result = simulate_scenario(scenario, open_source(scenario))
    assert result.metrics.iteration_s > 0.0
    assert (result.cache_hit_rate > 0.0) == (method == "psc-gcn")


def test_a_run_that_drew_nodes_is_studied_with_its_own_draws(write_run: WriteRun) -> None:
    run = read_recorded_run(
        on_gpus(write_run("run", device="cuda", method="bns-gcn", knobs={"rate": 0.2, "boundary_scale": "rate"}))
    )
    scenario = scenario_of(run)
    accesses = open_source(scenario)
    result = simulate_scenario(scenario, accesses)
    full = simulate_scenario(replace(scenario, method=create_method("full-graph", overlap="central")), accesses)
    assert result.metrics.nic_bytes < full.metrics.nic_bytes
    assert result.metrics.sampling_s > full.metrics.sampling_s == 0.0
    assert run.settings["rate"] == 0.2


def test_a_method_without_a_schedule_on_cores_is_refused_in_one_line(make_scenario: Callable[..., Scenario]) -> None:
    text = r"run: trained with method sancus on CPU cores, which is modelled for GPUs only$"
    with pytest.raises(ScenarioError, match=text):
        make_scenario(method="sancus")


@pytest.mark.parametrize(("warm", "share"), [(0, 0.0), (5, 0.0), (7, 0.4), (50, 1.0)])
def test_blocks_on_gpus_are_asked_as_they_were_trained(write_run: WriteRun, warm: int, share: float) -> None:
    """Of ten iterations five are measured."""
    knobs = {"stale_test": "fixed", "threshold": 3, "warm_iterations": warm, "clip": 0.5, "skip_backward": "yes"}
    run = write_run("run", device="cuda", method="sancus", knobs=knobs, iterations=10)
    method = scenario_of(read_recorded_run(on_gpus(run))).method
    assert isinstance(method, Sancus)
    assert (method.stale_test, method.threshold, method.skip_backward) == ("fixed", 3.0, "yes")
    assert method.warmup == pytest.approx(share)
