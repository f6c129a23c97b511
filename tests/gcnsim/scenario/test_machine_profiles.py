"""Figures of a calibration record in place of the catalogue's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import elementwise_seconds, gemm_seconds, rows_seconds, spmm_seconds
from gcnsim.hardware import device, figures_of, link
from gcnsim.methods import create_method
from gcnsim.records.calibration import Calibration, write_calibration
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec
from gcnsim.scenario.machine import LAW_ERROR, SCHEDULE_ERROR, resolve_machine
from gcnsim.scenario.machine_profiles import for_graph
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation import simulate_scenario
from gcnsim.timeline import OpKind
from tests.gcnsim.evidence.conftest import save_trace, small_graph
from tests.gcnsim.evidence.made_calibration import HOST, NETWORK, calibration, fitted, of_gpu
from tests.gcnsim.evidence.made_gpu import COPIES
from tests.gcnsim.evidence.made_gpu import DEVICE as GPU
from tests.measured_files import measured_file, write_graph


def spec(path: Path, record: Calibration | None = None, **changes: object) -> ClusterSpec:
    write_calibration(path / "c.json", record or calibration())
    given = {
        "gpus": 2,
        "gpus_per_server": 1,
        "device": "cpu-core",
        "bandwidth": 2.5e7,
        "calibration": str(path / "c.json"),
    }
    return ClusterSpec(**(given | changes))  # type: ignore[arg-type] # a mapping of mixed values


def test_fitted_figures_replace_those_of_the_catalogue(tmp_path: Path) -> None:
    machine = resolve_machine(spec(tmp_path))
    for profile, known in zip((machine.host, machine.network), (HOST, NETWORK), strict=True):
        figures = figures_of(profile)
        assert {name: figures[name].value for name in known} == known
        assert {figures[name].source for name in known} == {"fitted"}
        assert figures[next(iter(known))].reference == "chosen for a test"


def test_a_gpus_record_without_the_hosts_calls_is_refused(tmp_path: Path) -> None:
    """Its launches held the host's share, which would count twice."""
    record = of_gpu()
    device_figures = {**record.figures["device"], **fitted({"launch_s": 9e-5})}
    old = replace(record, figures={**record.figures, "device": device_figures, "host": fitted(HOST)})
    with pytest.raises(ScenarioError, match=r"c\.json was fitted before calls of the host were counted; fit its"):
        resolve_machine(spec(tmp_path, old, device="t4"))


def test_a_cluster_of_calibrated_cores(tmp_path: Path) -> None:
    machine = resolve_machine(spec(tmp_path, gpus=4, gpus_per_server=2, shared_cores=True))
    cluster = machine.topology
    (cores,) = cluster.cores(3)
    assert cores == cluster.cores(0)[0]
    assert cluster.links[cores].spec.capacity == pytest.approx(HOST["cores"] * HOST["busy_core_rate"])
    (send, _) = cluster.between(0, 2)
    wire = cluster.links[send].spec
    assert wire.capacity == pytest.approx(2.5e7 * NETWORK["efficiency"])
    # What a message costs the processors is work for the cores, not latency.
    assert wire.latency_s == NETWORK["latency_s"]
    assert machine.host.message_s.value == HOST["message_s"]


def test_a_latency_in_the_scenario_wins(tmp_path: Path) -> None:
    cluster = resolve_machine(spec(tmp_path, latency=0.25)).topology
    assert cluster.latency(cluster.between(0, 1)) == 0.25


def test_another_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        resolve_machine(spec(tmp_path, device="t4"))
    path = tmp_path / "c.json"
    assert str(caught.value) == f"cluster.calibration: {path} is for cpu-core, cluster.device is t4"


def on_t4(**changes: Any) -> Calibration:
    """A record of a T4, whose link to its host has figures too."""
    figures = {"device": fitted(GPU), "host": fitted({"cores": 2.0, "call_s": 3e-5}), "network": {}}
    figures["copies"] = fitted(COPIES)
    return calibration(device="t4", figures=figures, curve=(), graphs={}, **changes)


def test_a_gpus_record_has_its_link_too(tmp_path: Path) -> None:
    machine = resolve_machine(spec(tmp_path, on_t4(), device="t4"))
    cluster = machine.topology
    for route in (cluster.to_host(0), cluster.to_device(1)):
        wire = cluster.links[route[0]].spec
        assert wire.capacity == pytest.approx(COPIES["bandwidth"] * COPIES["efficiency"])
        assert wire.latency_s == wire.startup_s == COPIES["latency_s"]
    assert (machine.device.memory_bandwidth.value, machine.host.cores.value) == (GPU["memory_bandwidth"], 2.0)
    with pytest.raises(ScenarioError, match=r"c\.json is for t4, cluster\.device is v100-16$"):
        resolve_machine(spec(tmp_path, on_t4(), device="v100-16"))


def test_a_link_that_the_scenario_names_is_the_catalogues(tmp_path: Path) -> None:
    named = spec(tmp_path, on_t4(), device="t4", pcie="pcie4-x16")
    assert resolve_machine(named).copies == link("pcie4-x16")
    assert resolve_machine(replace(named, calibration=None, pcie=None)).copies == link(device("t4").link)
    assert resolve_machine(spec(tmp_path, of_gpu(), device="t4")).copies == link(device("t4").link)


def test_a_graphs_factor_slows_its_sparse_products_only() -> None:
    record, plain = of_gpu(), replace(device("t4"), multiprocessors=None)
    slow = for_graph(plain, record, "feed")
    assert float(spmm_seconds(slow, 1e8, 1e6, 64)) == pytest.approx(
        1.25 * float(spmm_seconds(plain, 1e8, 1e6, 64)), rel=1e-3
    )
    assert float(gemm_seconds(slow, 1e4, 64, 64)) == float(gemm_seconds(plain, 1e4, 64, 64))
    assert float(rows_seconds(slow, 1e4, 64)) == float(rows_seconds(plain, 1e4, 64))
    assert float(elementwise_seconds(slow, 1e6, 2)) == float(elementwise_seconds(plain, 1e6, 2))
    assert for_graph(plain, record, "beef") is for_graph(plain, None, "feed") is for_graph(plain, record, None) is plain


def test_a_graphs_factor_moves_the_whole_curve(tmp_path: Path) -> None:
    chosen = resolve_machine(spec(tmp_path, of_gpu(), device="t4")).device
    slow = for_graph(chosen, of_gpu(), "feed")
    assert slow.spmm_curve is not None
    assert slow.spmm_curve.values == pytest.approx((0.4, 0.24))
    sizes = np.array([1.0, 1e5, 1e9])
    before, after = (float(spmm_seconds(item, 1e6, 1e4, 64, 5000)) for item in (chosen, slow))
    assert after == pytest.approx(1.25 * before, rel=1e-3)
    assert chosen.spmm_curve is not None
    assert slow.spmm_curve.at(sizes) == pytest.approx(chosen.spmm_curve.at(sizes) / 1.25)


def make_scenario(path: Path, record: Calibration, trace: Path) -> Scenario:
    workload = WorkloadSpec(dataset=None, trace=str(trace), layers=2, hidden=32, features=32, classes=8)
    cluster = spec(path, record, device="t4")
    return Scenario("test", cluster, workload, PartitionSpec(), create_method("full-graph"), RunSpec())


def folder(path: Path, name: str) -> Path:
    (path / name).mkdir()
    return path / name


def test_only_the_graph_with_a_factor_is_slower(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "a.trace")
    known = of_gpu(graphs={small_graph().content_hash(): 2.0})
    plain, slow = (
        simulate_scenario(make_scenario(folder(tmp_path, name), record, trace)).run.schedule
        for name, record in (("plain", of_gpu(graphs={})), ("slow", known))
    )
    sums = [op.index for op in plain.ops if op.kind is OpKind.AGGREGATE]
    others = [op.index for op in plain.ops if op.kind is not OpKind.AGGREGATE]
    assert (plain.demand[:, others] == slow.demand[:, others]).all()
    assert float(slow.demand[:, sums].sum() / plain.demand[:, sums].sum()) == pytest.approx(2.0, rel=0.05)


def test_the_interval_widens_by_what_the_calibration_left_unexplained(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "a.trace")
    records = {name: of_gpu(error=error) for name, error in (("none", None), ("some", 0.05), ("much", 0.2))}
    none, some, much = (
        simulate_scenario(make_scenario(folder(tmp_path, name), record, trace)) for name, record in records.items()
    )
    assert none.metrics == some.metrics == much.metrics
    seconds = none.metrics.iteration_s
    own = (none.high_s - seconds) / seconds
    assert own == pytest.approx(LAW_ERROR), "nothing is drawn, and without runs it knows no error of its own"
    for found, error in ((some, 0.05), (much, 0.2)):
        width = float(np.hypot(SCHEDULE_ERROR, error))
        assert (found.low_s, found.high_s) == pytest.approx((seconds * (1 - width), seconds * (1 + width)))


def measured(folder: Path, parts: int, **training: Any) -> str:
    """A file of times that cores were measured at, with `training`."""
    threads = training.get("threads", 1)
    core = {"kind": "cpu", "name": "a core", "threads": threads, "cores": 5}
    return str(
        measured_file(folder, write_graph(folder), parts, name=f"{parts}.parquet", device=core, training=training)
    )


def test_a_worker_of_several_threads_has_a_core_that_is_as_many(tmp_path: Path) -> None:
    file = measured(tmp_path, 2, threads=2, aggregator="numba")
    given: dict[str, Any] = {"gpus_per_server": 2, "device": "cpu-core", "measured_compute": file}
    cluster = ClusterSpec(gpus=2, threads=2, **given)
    machine = resolve_machine(cluster)
    assert machine.host.cores.value == 2.0
    (cores,) = machine.topology.cores(0)
    assert machine.topology.links[cores].spec.cores == 2
    assert resolve_machine(replace(cluster, threads=None, aggregator=None)).host.cores.value == 2.0, "as measured"
    more = replace(cluster, figures=(("generic-16.cores", 8.0),))
    assert resolve_machine(more).host.cores.value == 4.0, "a figure of the question is of single cores too"
    with pytest.raises(ScenarioError, match=r"2 workers of 2 threads each need 4 cores, a server has 3"):
        resolve_machine(replace(cluster, figures=(("generic-16.cores", 3.0),)))
    with pytest.raises(
        ScenarioError, match=r"cluster.threads: 3 workers of 2 threads each need 6 cores, a server has 5; more"
    ):
        resolve_machine(replace(cluster, gpus=3, gpus_per_server=3))
    with pytest.raises(ScenarioError, match=r"cluster.threads: 4 workers of 2 threads each need 8 cores"):
        resolve_machine(replace(cluster, gpus=4, gpus_per_server=1, shared_cores=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threads": 2}, r"cluster.threads: 2 is not what \S*.parquet has measured: 1; measure it: .* --threads 2"),
        ({"aggregator": "dgl"}, r"cluster.aggregator: dgl is not what \S*.parquet has measured: plain; measure it: "),
        (
            {"threads": 1, "device": "t4", "measured_compute": None},
            r"cluster.threads: 1 is modelled for workers on CPU cores only; cluster.device is t4",
        ),
    ],
)
def test_kernels_that_were_not_measured_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"gpus": 2, "device": "cpu-core", "measured_compute": measured(tmp_path, 2)}
    assert resolve_machine(ClusterSpec(**given, threads=1, aggregator="plain")).measured is not None
    with pytest.raises(ScenarioError, match=message):
        resolve_machine(ClusterSpec(**(given | changes)))
